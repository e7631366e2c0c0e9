"""The inputs of a fit: noisy tables, and cells known to be impossible."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError

UNKNOWN: Final = 1e18
"""The variance of a table without information: its round was lost."""


@final
@dataclass(frozen=True, eq=False)
class Measurement:
    """A table of noisy counts over some columns; `variance` is that of one cell's noise. Public: it has noise.

    `groups`: where cells are of groups of the domain's levels, the group of every level of each column.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)
    variance: float
    groups: tuple[NDArray[np.int64], ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.names) or len(set(self.names)) != len(self.names):
            raise InputError(f"a table of {self.values.ndim} axes must have as many distinct names: {list(self.names)}")
        if not (np.isfinite(self.variance) and self.variance > 0):
            raise InputError(f"variance of the table {list(self.names)} ({self.variance}) must be positive")
        if not np.isfinite(self.values).all():
            raise InputError(f"the table {list(self.names)} must be finite")


@final
@dataclass(frozen=True, eq=False)
class Impossible:
    """Cells that no row can be in (`cells` is true there). Public knowledge, declared, never derived from rows."""

    names: tuple[str, ...]
    cells: NDArray[np.bool_] = field(repr=False)


def in_groups(table: NDArray[np.float64], groups: Sequence[NDArray[np.int64]] | None) -> NDArray[np.float64]:
    """Return a table of levels summed to groups; as it is without groups."""
    for axis, one in enumerate(groups or ()):
        sums = np.zeros((int(one.max()) + 1, *np.delete(table.shape, axis)))
        np.add.at(sums, one, np.moveaxis(table, axis, 0))
        table = np.moveaxis(sums, 0, axis)
    return table


def in_order(domain: Domain, names: Sequence[str], values: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the table with its columns in the domain's order; refuse one that does not have the domain's sizes."""
    axes, sizes = domain.axes(names), domain.project(names).sizes
    if values.shape != sizes:
        raise InputError(f"the table {list(names)} has shape {values.shape}; its columns have {sizes} levels")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return tuple(names[place] for place in order), values.transpose(order)


def combine(domain: Domain, measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return one table per set of columns, in the domain's order; repeated ones are averaged by inverse variance.

    Tables of groups follow, as they are.
    """
    sums: dict[tuple[str, ...], tuple[NDArray[np.float64], float]] = {}
    for one in measurements:
        if one.groups is not None:
            continue
        names, values = in_order(domain, one.names, one.values)
        before, precision = sums.get(names, (np.zeros(values.shape), 0.0))
        sums[names] = (before + values / one.variance, precision + 1 / one.variance)
    levels = [Measurement(names, total / precision, 1 / precision) for names, (total, precision) in sums.items()]
    return [*levels, *(one for one in measurements if one.groups is not None)]


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """Return the number of rows: every table's sum, weighted by the inverse of its variance. At least 1."""
    if not measurements:
        raise InputError("no table was measured: give the total")
    weights = np.array([1 / (one.variance * one.values.size) for one in measurements])
    sums = np.array([one.values.sum() for one in measurements])
    return max(1.0, float(weights @ sums / weights.sum()))


def sums_by_column(domain: Domain, tables: Iterable[Measurement]) -> dict[str, tuple[NDArray[np.float64], float]]:
    """Return the counts of each column times their precision, summed over the tables with it, and the precision."""
    sums: dict[str, tuple[NDArray[np.float64], float]] = {}
    for one in tables:
        for axis, name in enumerate(one.names):
            counts = one.values.sum(axis=tuple(other for other in range(one.values.ndim) if other != axis))
            precision = counts.size / (one.variance * one.values.size)
            before, weight = sums.get(name, (np.zeros(domain[name]), 0.0))
            sums[name] = before + precision * counts, weight + precision
    return sums


def one_way(domain: Domain, tables: Sequence[Measurement]) -> dict[tuple[str, ...], NDArray[np.float64]]:
    """Return the log shares of each measured column: all tables that contain it, averaged by inverse variance.

    A count is raised to at least a quarter of its standard deviation and half a row.
    """
    logs: dict[tuple[str, ...], NDArray[np.float64]] = {}
    for name, (counts, weight) in sums_by_column(domain, (one for one in tables if one.groups is None)).items():
        shares = np.maximum(counts / weight, max(0.5, 0.25 / np.sqrt(weight)))
        logs[name,] = np.log(shares / shares.sum())
    return logs


def onto_simplex(cells: NDArray[np.float64], people: float) -> NDArray[np.float64]:
    """Return the nearest table without negative cells that sums to `people`."""
    if people <= 0:
        return np.zeros_like(cells)
    ordered = np.sort(cells.ravel())[::-1]
    surplus = (np.cumsum(ordered) - people) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered > surplus)[-1])
    return np.asarray(np.maximum(cells - surplus[kept], 0.0), dtype=np.float64)
