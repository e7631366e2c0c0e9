"""What a release says about a population: a model of it, and noisy tables of counts with their variances."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.errors import InputError

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

MOST_COUNTS: Final = 4000
"""Noisy counts that one question uses at most: the time grows with their cube. The largest tables are left out."""


@final
class NoValueError(InputError):
    """What was measured gives a question no value, or none that is known well enough for an interval."""


@final
@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts over groups of levels: for every axis the group of each level; `variance` is that of one count."""

    names: tuple[str, ...]
    groups: tuple[Groups, ...]
    values: Floats = field(repr=False)
    variance: float

    def onto(self, names: Sequence[str]) -> "NoisyTable":
        """Return the table summed onto those of its columns that are among `names`, in that order."""
        kept = [self.names.index(name) for name in names if name in self.names]
        gone = tuple(axis for axis in range(len(self.names)) if axis not in kept)
        # transposed so that what is kept has the order of `names`
        values = self.values.sum(axis=gone).transpose(np.argsort(np.argsort(kept)))
        variance = self.variance * self.values.size / values.size
        return NoisyTable(
            tuple(self.names[axis] for axis in kept), tuple(self.groups[axis] for axis in kept), values, variance
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """What a release says.

    `shares` returns a model's share of each cell of some columns; it refuses columns of which it knows no table.
    `rows` is the number of rows, exact if `public`. `repeated`: how many rows of all parties one person may have.
    """

    schema: Schema
    shares: Callable[[tuple[str, ...]], Floats]
    tables: tuple[NoisyTable, ...]
    rows: float
    public: bool
    repeated: int = 1

    def onto(self, names: tuple[str, ...]) -> list[NoisyTable]:
        """Return all tables summed onto `names`; those over the same cells are averaged by their precision."""
        sums: dict[tuple[tuple[str, bytes], ...], tuple[NoisyTable, Floats, float]] = {}
        for table in self.tables:
            if not set(table.names).isdisjoint(names):
                one = table.onto(names)
                key = tuple((name, groups.tobytes()) for name, groups in zip(one.names, one.groups, strict=True))
                _, values, precision = sums.get(key, (one, np.zeros(one.values.shape), 0.0))
                sums[key] = one, values + one.values / one.variance, precision + 1 / one.variance
        found = [NoisyTable(one.names, one.groups, total / known, 1 / known) for one, total, known in sums.values()]
        kept, left = [], MOST_COUNTS
        for one in sorted(found, key=lambda table: table.values.size):
            if one.values.size <= left:
                kept.append(one)
                left -= one.values.size
        if self.public and kept:
            # the public number of rows is a table without columns, all but exact
            kept.append(NoisyTable((), (), np.array(self.rows), 1e-3 * min(table.variance for table in kept)))
        return kept


@final
class Design:
    """The noisy counts of some columns beside a model's shares of their cells.

    Counts and their variances stand in one line, table after table.
    """

    def __init__(self, names: tuple[str, ...], shares: Floats, tables: Sequence[NoisyTable]) -> None:
        """Lay out the counts of all tables one after the other."""
        self.names, self.shares, self.tables = names, shares, tables
        self._sums: dict[tuple[str, ...], Floats] = {}
        self.values = np.concatenate([one.values.ravel() for one in tables])
        self.variances = np.concatenate([np.full(one.values.size, one.variance) for one in tables])

    def gather(self, cells: Floats) -> Floats:
        """Return the sum over the cells of each count."""
        sums: dict[tuple[str, ...], Floats] = {}
        for one in self.tables:
            if one.names not in sums:
                sums[one.names] = self._onto(cells, one.names)
        parts = [_counted(_index(one, one.names), sums[one.names], one.values.size) for one in self.tables]
        return np.concatenate(parts)

    def spread(self, weights: Floats) -> Floats:
        """Return the sum of the weights of all counts that each cell is in."""
        cells, start = np.zeros(self.shares.shape), 0
        for one in self.tables:
            part = weights[start : start + one.values.size]
            start += one.values.size
            cells += part[_index(one, self.names)]
        return cells

    def products(self) -> Floats:
        """Return the share of rows that are in both of every two counts."""
        starts = np.cumsum([0, *(one.values.size for one in self.tables)])
        matrix = np.zeros((starts[-1], starts[-1]))
        for (i, one), (j, other) in product(enumerate(self.tables), repeat=2):
            if i <= j:
                block = self._between(one, other)
                matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
                matrix[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
        return matrix

    def _between(self, one: NoisyTable, other: NoisyTable) -> Floats:
        both = tuple(name for name in self.names if name in one.names or name in other.names)
        if both not in self._sums:
            self._sums[both] = self._onto(self.shares, both)
        shares = self._sums[both]
        left, right = (_index(table, both) for table in (one, other))
        sizes = one.values.size, other.values.size
        return _counted(left * sizes[1] + right, shares, sizes[0] * sizes[1]).reshape(sizes)

    def _onto(self, cells: Floats, names: tuple[str, ...]) -> Floats:
        gone = tuple(axis for axis, name in enumerate(self.names) if name not in names)
        return np.asarray(cells.sum(axis=gone))


def _index(table: NoisyTable, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the count that each cell of `names` is in, along the table's own columns only."""
    place = np.zeros((1,) * len(names), dtype=np.int64)
    for name, groups, size in zip(table.names, table.groups, table.values.shape, strict=True):
        along = [1] * len(names)
        along[names.index(name)] = -1
        place = place * size + groups.reshape(along)
    return place


def _counted(index: NDArray[np.int64], weights: Floats, size: int) -> Floats:
    return np.bincount(np.broadcast_to(index, weights.shape).ravel(), weights=weights.ravel(), minlength=size).astype(
        np.float64
    )
