"""Tables of counts over a domain: dense ones, with a number for each cell, and sparse ones for large domains."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.domain import Domain
from syndic.errors import InputError


@final
@dataclass(frozen=True, eq=False)
class Factor:
    """One number for each cell of a domain. Exact counts in it are private."""

    domain: Domain
    values: NDArray[Any] = field(repr=False)  # exact counts are private, also in logs

    def __post_init__(self) -> None:
        if self.values.shape != self.domain.sizes:
            raise ValueError(f"values of shape {self.values.shape} must have the domain's {self.domain.sizes}")

    def project(self, names: Iterable[str]) -> "Factor":
        """Sum out every column not in `names`; the result has their order."""
        domain = self.domain.project(names)
        axes = self.domain.axes(domain.names)
        gone = tuple(axis for axis in range(len(self.domain)) if axis not in axes)
        kept = sorted(axes)
        values = np.asarray(self.values.sum(axis=gone)).transpose([kept.index(axis) for axis in axes])
        return Factor(domain, values)

    def sum(self) -> Any:
        """Return the sum of all cells."""
        return self.values.sum()


DENSE_CELLS = 2**27


@final
@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Occupied cells of a domain, by increasing linear index (`Domain.index`), with their counts.

    Which cells are occupied is as private as the counts.
    """

    domain: Domain
    cells: NDArray[np.int64] = field(repr=False)  # exact counts are private, also in logs
    counts: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        self.domain.check_index()
        if self.cells.shape != self.counts.shape or self.cells.ndim != 1:
            raise ValueError("cells and counts must be two lists of the same length")
        if len(self.cells) and (self.cells[0] < 0 or self.cells[-1] >= self.domain.size):
            raise ValueError(f"cells must be between 0 and {self.domain.size - 1}")
        if np.any(self.cells[1:] <= self.cells[:-1]):
            raise ValueError("cells must be increasing")

    def project(self, names: Iterable[str]) -> "SparseCounts":
        """Return the counts of some columns, in the order given."""
        domain = self.domain.project(names)
        codes = dict(zip(self.domain.names, self.domain.unravel(self.cells), strict=True))
        cells = domain.index([codes[name] for name in domain.names]) if domain.names else self.cells * 0
        return SparseCounts(domain, *gather(cells, self.counts))

    def dense(self) -> Factor:
        """Return all cells, including empty ones; refuse if that takes more than a gibibyte."""
        check_dense(self.domain)
        values = np.zeros(self.domain.size, dtype=np.int64)
        values[self.cells] = self.counts
        return Factor(self.domain, values.reshape(self.domain.sizes))


def check_dense(*domains: Domain) -> None:
    """Refuse a dense table that does not fit in a gibibyte."""
    total = sum(domain.size for domain in domains)
    if total > DENSE_CELLS:
        raise InputError(
            f"a table of {total} cells is too large (at most {DENSE_CELLS}): use fewer columns, fewer "
            "bins or sparse counts"
        )


def gather(
    cells: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct cells in order with the sum of their counts (one each by default)."""
    if counts is None:
        distinct, number = np.unique(cells, return_counts=True)
        return distinct, number.astype(np.int64)
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    if not len(starts):
        return cells[:0], counts[:0]
    return ordered[starts], np.add.reduceat(counts[order], starts)
