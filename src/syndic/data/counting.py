"""Count coded rows into many tables in one pass."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.column import code_type
from syndic.data.domain import Domain
from syndic.data.factor import Factor, SparseCounts, check_dense, gather

# Measured on 10 million rows of 15 columns, all pairs: tables of 2^16 cells stay in cache and are indexed by
# 16 bits; counting 18 of them and summing is 4 times faster than counting 105 pairs. Rows are buffered,
# so that summing the tables is cheap compared with filling them, even for small batches.
GROUP_CELLS = 2**16
BUFFER_ROWS = 2**18
# All pairs of columns of mixed sizes take about 30 times their own cells in groups of 2^16, 10 in 2^14, 4 in 2^12.
_TIMES_OWN_CELLS = ((30, GROUP_CELLS), (10, GROUP_CELLS >> 2), (0, GROUP_CELLS >> 4))
MOST_GROUP_CELLS = 2**24
"""Cells of all groups together, about, where smaller groups help: 134 MB."""


def covered_cells(own: int) -> int:
    """Return the most cells, about, that tables of so many cells together take while they are counted."""
    return min(60 * own, MOST_GROUP_CELLS + 4 * own)


@final
class DenseCounter:
    """Counts rows into dense tables over several sets of columns.

    The sets are covered by a few larger ones, which are counted and at the end marginalised.
    """

    def __init__(self, domain: Domain, cliques: Sequence[tuple[str, ...]]) -> None:
        """Start with zero counts; refuse sets too large for a dense table."""
        self._cliques = list(cliques)
        check_dense(*(domain.project(names) for names in cliques))
        groups, self._homes = cover(domain, self._cliques)
        self._groups = [domain.project(names) for names in groups]
        self._counts = [np.zeros(group.size, dtype=np.int64) for group in self._groups]
        wanted = {name for names in cliques for name in names}
        self.names = tuple(name for name in domain.names if name in wanted) or domain.names[:1]
        self._buffer = {name: np.empty(BUFFER_ROWS, dtype=code_type(domain[name])) for name in self.names}
        self._weights: NDArray[np.int64] | None = None
        self._waiting = 0

    def add(self, batch: Mapping[str, NDArray[Any]], weights: NDArray[np.int64] | None = None) -> None:
        """Count a batch of codes of `names`, each row once or, for every batch alike, as often as `weights` says."""
        rows = len(batch[self.names[0]])
        start = 0
        while start < rows:
            taken = min(rows - start, BUFFER_ROWS - self._waiting)
            if weights is not None:
                self._weights = np.empty(BUFFER_ROWS, dtype=np.int64) if self._weights is None else self._weights
                self._weights[self._waiting : self._waiting + taken] = weights[start : start + taken]
            for name, buffer in self._buffer.items():
                buffer[self._waiting : self._waiting + taken] = batch[name][start : start + taken]
            self._waiting += taken
            start += taken
            if self._waiting == BUFFER_ROWS:
                self._flush()

    def factors(self) -> list[Factor]:
        """Return the counts so far, a table for each set of columns."""
        self._flush()
        tables = [
            Factor(group, counts.reshape(group.sizes)) for group, counts in zip(self._groups, self._counts, strict=True)
        ]
        return [tables[home].project(names) for home, names in zip(self._homes, self._cliques, strict=True)]

    def _flush(self) -> None:
        for group, counts in zip(self._groups, self._counts, strict=True):
            kind = np.uint16 if group.size <= 2**16 else np.uint32
            cells: NDArray[Any] = np.zeros(self._waiting, dtype=kind)
            # columns of one level add nothing; without them only the first can have all 2^16 cells
            sizes = {name: group[name] for name in group.names if group[name] > 1}
            for place, (name, size) in enumerate(sizes.items()):
                if place:
                    cells *= kind(size)
                cells += self._buffer[name][: self._waiting]
            # as floats where rows have weights: exact, for sums far below 2^53
            weights = None if self._weights is None else self._weights[: self._waiting]
            np.add(counts, np.bincount(cells, weights, minlength=group.size).astype(np.int64), out=counts)
        self._waiting = 0


def cover(domain: Domain, cliques: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[int]]:
    """Return sets of columns, of at most `GROUP_CELLS` cells where possible, and the one that contains each clique.

    Greedy: start with the largest remaining clique, add the column that covers most cliques for its size, repeat. Many
    cliques are covered by smaller sets, which take less memory together.
    """
    axes = [domain.axes(names) for names in cliques]
    cells = [math.prod(domain.sizes[axis] for axis in one) for one in axes]
    most = next(limit for times, limit in _TIMES_OWN_CELLS if times * sum(cells) <= MOST_GROUP_CELLS)
    waiting = _Waiting(domain.sizes, axes)
    groups: list[tuple[str, ...]] = []
    for row in sorted(range(len(cliques)), key=lambda row: -cells[row]):
        if waiting.homes[row] < 0:
            group = waiting.cover(row, len(groups), most)
            groups.append(tuple(domain.names[axis] for axis in group))
    return groups, waiting.homes.tolist()


class _Waiting:
    """Cliques as rows; `homes` has their groups, -1 where none contains them yet.

    Of each row it is known how many columns the group at work lacks, and the sum of these columns: the column itself
    where it lacks one. Adding a column to the group only touches the rows that have it.
    """

    def __init__(self, sizes: Sequence[int], cliques: Sequence[tuple[int, ...]]) -> None:
        self.cliques, self.homes = cliques, np.full(len(cliques), -1)
        self.sizes = np.array(sizes, dtype=np.float64)
        self.widths, self.sums = np.array([len(one) for one in cliques]), np.array([sum(one) for one in cliques])
        self.lacks, self.rest = self.widths.copy(), self.sums.copy()
        having: list[list[int]] = [[] for _ in sizes]
        for row, one in enumerate(cliques):
            for axis in one:
                having[axis].append(row)
        self.having = [np.array(rows, dtype=np.int64) for rows in having]

    def cover(self, row: int, place: int, most: int) -> NDArray[np.int64]:
        """Return the columns of a group that grows around a row, and give it the rows that it contains."""
        chosen, gain = np.zeros(len(self.sizes), dtype=bool), np.zeros(len(self.sizes))
        touched, added = [np.array([row])], list(self.cliques[row])
        while added:
            for axis in added:
                chosen[axis] = True
                touched.append(self._add(axis, gain))
            worth = gain / np.log(np.maximum(self.sizes, 2))
            worth[chosen | (np.prod(self.sizes[chosen]) * self.sizes > most)] = 0
            best = int(np.argmax(worth))
            added = [best] if worth[best] > 0 else []
        rows = np.concatenate(touched)
        self.homes[rows[self.lacks[rows] == 0]] = place
        self.lacks[rows], self.rest[rows] = self.widths[rows], self.sums[rows]
        return np.flatnonzero(chosen)

    def _add(self, axis: int, gain: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rows that have a column; count those that then lack one more by that one."""
        rows = self.having[axis]
        rows = self.having[axis] = rows[self.homes[rows] < 0]
        self.lacks[rows] -= 1
        self.rest[rows] -= axis
        gain += np.bincount(self.rest[rows[self.lacks[rows] == 1]], minlength=len(gain))
        return rows


@final
class CellCounter:
    """Counts rows into the occupied cells of a domain of any size that 63 bits can number."""

    def __init__(self, domain: Domain) -> None:
        """Start with no cells."""
        domain.check_index()
        self._domain = domain
        empty = np.empty(0, dtype=np.int64)
        # the counts so far, then those of batches that wait
        self._parts = [(empty, empty)]
        self._waiting = 0

    def add(self, batch: Mapping[str, NDArray[Any]], numbers: NDArray[np.int64] | None = None) -> None:
        """Count a batch of codes, each once or as often as `numbers` says."""
        cells = self._domain.index([batch[name] for name in self._domain.names])
        self._parts.append(gather(cells, numbers))
        self._waiting += len(self._parts[-1][0])
        # merging costs time proportional to the cells, so wait for as many
        if self._waiting > max(1 << 20, len(self._parts[0][0])):
            self._merge()

    def counts(self) -> SparseCounts:
        """Return the counts so far."""
        self._merge()
        return SparseCounts(self._domain, *self._parts[0])

    def _merge(self) -> None:
        cells, counts = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts, self._waiting = [gather(cells, counts)], 0
