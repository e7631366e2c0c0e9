"""What is summed over people, and the noisy sums of a study, block by block, in people and in columns' own units.

A block says for every cell of some columns what a row's value of another column stands for: a public integer matrix,
its readings, with a row for each level of that column. A party counts its rows by cell and level; the sums are these
counts times the readings. A person adds one row of the matrix to one cell. So what neighbours change follows from the
matrix alone, and any value of a row is one of its levels. Sums of shares of counts are shares of the sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Date, Integer, Real, Schema
from syndic.data.coding import bins_of
from syndic.data.lists import OTHER
from syndic.data.schema import Column
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.model.describe import Kind, Sums
from syndic.model.describe.sums import CLEAR, NORMAL
from syndic.model.markov.measurement import onto_simplex

Floats = NDArray[np.float64]

BITS: Final = 12
ONE: Final = 1 << BITS
"""What one person counts in the sums, which are whole numbers."""
LEAST_BITS: Final = 9
"""Where rows are proven, sums must fit into a field: of many people one counts less, but at least 2^9."""
MOST_BINS: Final = 32
"""Bins of a number whose quantiles are wanted, at most: each adds noise to the share below a value."""
MOST_RANGE: Final = 1e50
"""How far apart the bounds of a number may be, and its inverse how close: fourth powers must be in floating point."""
MOST_LEVELS: Final = 1000
"""Values of a listed column, at most."""


@final
class Block(Document):
    """One set of sums. `by`: the columns of the cells; `within`: also apart by group of people. `of`: what is read.

    `levels`: a count of each level, with bins of a number merged to at most 32. `moments`: number of people, sum and
    sum of squares of a number. `outcome`: people without and with the level `success`.
    """

    by: tuple[str, ...]
    of: str
    read: Literal["levels", "moments", "outcome"] = "levels"
    success: int = 0
    within: bool = False

    @property
    def clique(self) -> tuple[str, ...]:
        """The columns that are counted."""
        return (*self.by, self.of)


@final
class Readings:
    """The matrix of a block, and what its sums mean."""

    def __init__(self, block: Block, schema: Schema, bits: int = BITS) -> None:
        """Work out the matrix from public bounds and values; a person counts 2^`bits`."""
        self.block, self.column, self.one = block, schema[block.of], 1 << bits
        self.shape = tuple(schema.domain[name] for name in block.by)

    @cached_property
    def matrix(self) -> NDArray[np.int64]:
        """What each level of the column adds to the sums of a cell."""
        column, block = self.column, self.block
        if block.read == "levels":
            return np.eye(int(self.merged.max()) + 1, dtype=np.int64)[self.merged] * self.one
        found = np.zeros((column.size, 3 if block.read == "moments" else 2), dtype=np.int64)
        if block.read == "outcome":
            success = np.arange(column.levels) == block.success
            found[: column.levels] = np.column_stack([~success, success]) * self.one
            return found
        scaled = (bins_of(column)[0] - self.middle) / self.half
        features = np.column_stack([np.ones(column.levels), scaled, 2 * scaled**2 - 1])
        # clipped again after rounding: a rounding error must not let a person count more
        found[: column.levels] = np.clip(np.rint(features * self.one), -self.one, self.one).astype(np.int64)
        return found

    @cached_property
    def merged(self) -> NDArray[np.int64]:
        """The merged bin of each level; missing values have one of their own."""
        column = self.column
        bins = min(column.levels, MOST_BINS) if is_number(column) else column.levels
        return np.append(np.arange(column.levels) * bins // column.levels, np.full(column.size - column.levels, bins))

    @property
    def edges(self) -> Floats:
        """The edges of merged bins of a number."""
        edges = np.asarray(self.column.bin_edges, dtype=np.float64)  # type: ignore[union-attr]  # numbers only
        first = np.flatnonzero(np.diff(self.merged[: self.column.levels], prepend=-1))
        return np.append(edges[first], edges[-1])

    @property
    def middle(self) -> float:
        """The number from which others are counted."""
        _, least, most = bins_of(self.column)
        return least / 2 + most / 2

    @property
    def half(self) -> float:
        """Half the range of the numbers."""
        _, least, most = bins_of(self.column)
        if most > least and not 1 / MOST_RANGE < most - least < MOST_RANGE:
            raise InputError(f"'{self.column.name}': its bounds are too far apart, or too close, for a sum of squares")
        return (most - least) / 2 or 1.0

    @cached_property
    def translation(self) -> Floats:
        """How sums become counts, or number of people, sum and sum of squares from the middle; a row for each."""
        features = self.matrix.shape[1]
        if self.block.read == "levels":
            return np.eye(features)
        if self.block.read == "outcome":
            return np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
        half = self.half
        return np.array([[1.0, 0.0, 0.0], [0.0, half, 0.0], [half**2 / 2, 0.0, half**2 / 2]])

    def cells(self, groups: int) -> int:
        """Return the number of sums."""
        return prod(self.shape) * int(self.matrix.shape[1]) * (groups if self.block.within else 1)

    def sums(self, counts: NDArray[Any], place: int, groups: int) -> NDArray[np.int64]:
        """Return the sums of one party's counts, or shares, at the place of its group of people. Private."""
        own = counts.reshape(-1, self.column.size).astype(np.int64) @ self.matrix
        if not self.block.within:
            return own.ravel()
        every = np.zeros((groups, *own.shape), dtype=np.int64)
        every[place] = own
        return every.ravel()

    def sensitivity(self, neighbours: Literal["add_remove", "replace"]) -> int:
        """Return the most that one person of one party changes the sums by, in squared l2.

        Added or removed, that is a row of the matrix; replaced, two rows in two cells, or the difference of two rows in
        one. The latter is not larger. Rows that count one level have no negative product. Rows of moments differ by
        d^2 (1 + 4 s^2) for the difference d and the sum s of two scaled numbers up to m, |d| + |s| <= 2 m; this is less
        than twice 1 + m^2 + (2 m^2 - 1)^2 by .8 at least, which no rounding to 1 / 512 makes up for.
        """
        return int((self.matrix**2).sum(axis=1).max()) * (1 if neighbours == "add_remove" else 2)


def is_number(column: Column) -> bool:
    """Return whether a column has means and quantiles; dates are refused."""
    if isinstance(column, Date):
        raise InputError(f"'{column.name}' is a date: derive a number from it, or leave it out of `columns`")
    return isinstance(column, Integer | Real)


EVERYBODY: Final = "all"


@final
class Fit(Document):
    """A regression and the sums that it takes; `success` is the value that a logistic one predicts."""

    kind: Kind
    block: Block
    success: str | None = None


@final
class DescribeNote(Document):
    """What was opened: which sums of which parties, and the standard deviation of the noise on a count, in people.

    `deviations`: that of every block, if they differ; `standard_deviation` is then the largest. `parties`: the first of
    every group of people. `covers`: which share of the people every block counts, unless all count everybody: some
    groups may lack a column, or have columns at too many parties. A person counts `parts` times 2^`bits`.
    """

    group: str | None
    columns: tuple[str, ...]
    stratum: str | None
    blocks: tuple[Block, ...]
    fits: tuple[Fit, ...]
    parties: tuple[str, ...]
    repeated: int
    present: tuple[str, ...] = ()
    standard_deviation: float = 0.0
    deviations: tuple[float, ...] = ()
    covers: tuple[float, ...] = ()
    bits: int = BITS
    parts: int = 1


@dataclass(frozen=True, kw_only=True)
class Opened(Result):
    """The noisy sums, and how to read them."""

    note: DescribeNote
    sums: NDArray[np.int64]
    schema: Schema

    @cached_property
    def groups(self) -> Mapping[str, int]:
        """The groups that stand out from the noise, and their level; everybody if there is no column of groups."""
        if self.note.group is None:
            return {EVERYBODY: 0}
        column = self.schema[self.note.group]
        labels, counts = column.labels()[: column.levels], self.people
        least = CLEAR * self.deviation_of(Block(by=(), of=self.note.group))
        return {label: place for place, label in enumerate(labels) if counts[place] > least}

    @cached_property
    def people(self) -> Floats:
        """The noisy number of people of every level of the group."""
        if self.note.group is None:
            return np.array([self.cells(self.note.blocks[0]).sum()])
        return np.asarray(self.cells(Block(by=(), of=self.note.group))[0])

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Each group but the first, and the first, with which it is compared."""
        first, *others = self.groups or (EVERYBODY,)
        return tuple((other, first) for other in others)

    def place(self, group: str) -> int:
        """Return the place of a group among `groups`."""
        if group not in self.groups:
            raise InputError(f"'{group}' is not a group that stands out from the noise ({', '.join(self.groups)})")
        return list(self.groups).index(group)

    # Listed columns.

    def levels(self, column: str) -> Mapping[str, int]:
        """Return the values of a listed column; "other" only if somebody has it, as far as the noise shows."""
        block, described = self._block(column), self.schema[column]
        if is_number(described):
            raise InputError(f"'{column}' is a number: ask for its mean or quantiles")
        cells = self.cells(block)
        counts, least = cells.sum(axis=0), CLEAR * self.deviation_of(block) * len(cells) ** 0.5
        labels = enumerate(described.labels()[: described.levels])
        return {label: place for place, label in labels if label != OTHER or counts[place] > least}

    def strata_of(self, column: str) -> Block | None:
        """Return the block of a listed column by stratum, if there are strata."""
        block = self._block(column)
        within = msgspec.structs.replace(block, within=True)
        apart = msgspec.structs.replace(block, by=(self.note.stratum or "", *block.by))
        return next((one for one in (within, apart) if one in self._starts), None)

    def counts(self, column: str, *, stratified: bool = False) -> Floats:
        """Return people by stratum, group and value; parties that dropped out and missing strata are left out."""
        block, levels = self._block(column), list(self.levels(column).values())
        within = self.tabled(column, stratified=stratified)
        groups = len(self.cells(block))
        counts = self.cells(within).reshape(-1, groups, self.readings(block).matrix.shape[1])
        if within.within:
            counts = counts[[place for place, name in enumerate(self.note.parties) if name in self.note.present]]
        elif within != block:
            counts = counts[: self.schema[within.by[0]].levels]
        return np.asarray(counts[:, list(self.groups.values())][:, :, levels])

    def tabled(self, column: str, *, stratified: bool) -> Block:
        """Return the block of a listed column; by stratum if that is wanted and there are strata."""
        return (self.strata_of(column) if stratified else None) or self._block(column)

    # Numbers.

    def moments(self, column: str) -> Block:
        """Return the block of a number."""
        block = self._block(column)
        if not is_number(self.schema[column]):
            raise InputError(f"'{column}' is no number: ask for the share of a value")
        return msgspec.structs.replace(block, read="moments")

    def numbers(self, column: str) -> Sums:
        """Return people, sum and squares of every group; skewness and kurtosis are those of the bins."""
        block, groups = self.moments(column), list(self.groups.values())
        counts, edges = self.histogram(column)
        shapes = [_shape(one, (edges[:-1] + edges[1:]) / 2) for one in counts]
        return Sums.of_numbers(self.cells(block)[groups], self.noise(block), shapes, self.note.repeated)

    def histogram(self, column: str) -> tuple[Floats, Floats]:
        """Return the people of every group by bin of a number, and the edges of the bins."""
        self.moments(column)
        edges = self.readings(self._block(column)).edges
        return self.cells(self._block(column))[list(self.groups.values()), : edges.size - 1], edges

    # The sums of a block.

    @cached_property
    def _matrices(self) -> Mapping[Block, Readings]:
        return {block: Readings(block, self.schema, self.note.bits) for block in self.note.blocks}

    @cached_property
    def _starts(self) -> Mapping[Block, slice]:
        found, start = {}, 0
        for block in self.note.blocks:
            stop = start + self.readings(block).cells(len(self.note.parties))
            found[block], start = slice(start, stop), stop
        return found

    def deviation_of(self, block: Block) -> float:
        """Return the standard deviation of the noise on a count of a block, in people."""
        every = self.note.deviations
        return every[self.note.blocks.index(block)] if every else self.note.standard_deviation

    @property
    def partly(self) -> Mapping[str, float]:
        """The columns that are counted together for a part of the people only, and for which share of them."""
        covers = zip(self.note.blocks, self.note.covers, strict=False)
        return {" x ".join(block.clique): share for block, share in covers if share < 1}

    def readings(self, block: Block) -> Readings:
        """Return the matrix of a block."""
        return self._matrices[block]

    def cells(self, block: Block) -> Floats:
        """Return the counts, or people, sums and squares, of all cells of a block (rows)."""
        readings = self.readings(block)
        sums = self.sums[self._starts[block]].reshape(-1, readings.matrix.shape[1]) / readings.one / self.note.parts
        return np.asarray(sums @ readings.translation.T)

    def noise(self, block: Block) -> Floats:
        """Return the covariance of the noise of what a cell of a block has."""
        translation = self.readings(block).translation
        return np.asarray(self.deviation_of(block) ** 2 * (translation @ translation.T))

    def _block(self, column: str) -> Block:
        if column not in self.note.columns:
            raise InputError(f"'{column}' is not among the columns of the study ({', '.join(self.note.columns)})")
        return Block(by=() if self.note.group is None else (self.note.group,), of=column)


def _shape(counts: Floats, middles: Floats) -> tuple[float, float]:
    """Return skewness and kurtosis; of a normal distribution if the noise leaves no people."""
    whole = float(counts.sum())
    if whole <= 1:
        return NORMAL
    counts = onto_simplex(counts, whole)
    centred = middles - counts @ middles / whole
    second, third, fourth = (counts @ centred**power / whole for power in (2, 3, 4))
    if second <= 0:
        return NORMAL
    return float(third / second**1.5), float(fourth / second**2)
