"""Count coded rows into many tables in one pass."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.column import code_type
from syndic.data.domain import Domain
from syndic.data.factor import Factor
from syndic.data.sparse import SparseCounts, check_dense, gather

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
        self._groups = [domain.project(names) for names in cover(domain, self._cliques)]
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
        homes = [set(group.names) for group in self._groups]
        return [
            tables[next(place for place, home in enumerate(homes) if home.issuperset(names))].project(names)
            for names in self._cliques
        ]

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


def cover(domain: Domain, cliques: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return sets of columns, of at most `GROUP_CELLS` cells where possible, that contain all cliques.

    Greedy: start with the largest remaining clique, add the column that covers most cliques for its size, repeat. Many
    cliques are covered by smaller sets, which take less memory together.
    """
    own = sum(domain.project(names).size for names in cliques)
    most = next(cells for times, cells in _TIMES_OWN_CELLS if times * own <= MOST_GROUP_CELLS)
    sizes = np.array(domain.sizes, dtype=np.float64)
    left = np.zeros((len(cliques), len(domain)), dtype=bool)
    for row, names in enumerate(cliques):
        left[row, list(domain.axes(names))] = True
    groups = []
    while len(left):
        group = left[np.argmax(left @ np.log(sizes))].copy()
        while True:
            lacking = left & ~group
            gain = lacking[lacking.sum(axis=1) == 1].sum(axis=0) / np.log(np.maximum(sizes, 2))
            gain[np.prod(sizes[group]) * sizes > most] = 0
            best = int(np.argmax(gain))
            if gain[best] == 0:
                break
            group[best] = True
        left = left[(left & ~group).any(axis=1)]
        groups.append(tuple(domain.names[axis] for axis in np.flatnonzero(group)))
    return groups


@final
class CellCounter:
    """Counts rows into the occupied cells of a domain of any size that 63 bits can number."""

    def __init__(self, domain: Domain) -> None:
        """Start with no cells."""
        domain.check_index()
        self._domain = domain
        self._cells: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._waiting: list[NDArray[np.int64]] = []
        self._tallied: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._rows = 0

    def add(self, batch: Mapping[str, NDArray[Any]], numbers: NDArray[np.int64] | None = None) -> None:
        """Count a batch of codes, each once or as often as `numbers` says."""
        cells = self._domain.index([batch[name] for name in self._domain.names])
        if numbers is None:
            self._waiting.append(cells)
        else:
            self._tallied.append((cells, numbers))
        self._rows += len(cells)
        # merging costs time proportional to the cells, so wait for as many rows
        if self._rows > max(1 << 20, len(self._cells)):
            self._merge()

    def counts(self) -> SparseCounts:
        """Return the counts so far."""
        self._merge()
        return SparseCounts(self._domain, self._cells, self._counts)

    def _merge(self) -> None:
        cells, counts = gather(np.concatenate([*self._waiting, self._cells[:0]]))
        parts = [(self._cells, self._counts), (cells, counts), *self._tallied]
        self._cells, self._counts = gather(
            np.concatenate([part for part, _ in parts]), np.concatenate([part for _, part in parts])
        )
        self._waiting, self._tallied, self._rows = [], [], 0
