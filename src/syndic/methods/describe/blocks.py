"""What is summed over people: for every cell of some columns, numbers that a row's value of another column stands for.

A block is a public integer matrix, its readings, with a row for each level of a column. A party counts its rows by cell
and level; the sums are these counts times the readings. A person adds one row of the matrix to one cell. So what
neighbours change follows from the matrix alone, and any value of a row is one of its levels. Sums of shares of counts
are shares of the sums.
"""

from functools import cached_property
from math import prod
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Date, Integer, Real, Schema
from syndic.data.coding import bins_of
from syndic.data.schema import Column
from syndic.document import Document
from syndic.errors import InputError

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
