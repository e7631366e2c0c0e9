"""Counts for pictures: of every column of a released table, of an owner's rows, and of pairs.

A column with many values is shown in groups. The groups follow from the public schema and from the synthetic
rows, never from an owner's, so that an owner's page has the groups of the public one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Column, Date, Integer, Ordinal, Real, Table
from syndic.data.bins import apart
from syndic.data.column import MISSING_LABEL, Listed
from syndic.data.lists import OTHER
from syndic.model.interval import quoted

STANDING: Final = 24  # bars side by side that stay readable
LYING: Final = 12


@final
@dataclass(frozen=True, eq=False)
class Grouping:
    """A column in at most so many groups: the label of each; either the values `kept`, in order, or `bins` of them."""

    column: Column
    labels: tuple[str, ...]
    kept: NDArray[np.int64] | None
    bins: int

    def groups(self, codes: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the group of every code."""
        whole: NDArray[np.int64] = np.asarray(codes).astype(np.int64)
        if self.kept is not None:
            place = np.minimum(np.searchsorted(self.kept, whole), len(self.kept) - 1)
            return np.where(self.kept[place] == whole, place, len(self.kept))
        levels = self.column.levels
        if self.bins == levels:
            return whole
        return np.where(whole >= levels, self.bins, whole * self.bins // levels)

    def condition(self, place: int) -> str | None:
        """Return the condition of a question that a group stands for; None for several or missing values of a list."""
        column, name = self.column, quoted(self.column.name)
        if isinstance(column, Boolean):
            return (f"not {name}", name, None)[place]
        if isinstance(column, Listed):
            codes = np.arange(column.size) if self.kept is None and self.bins == column.levels else self.kept
            code = column.size if codes is None or place >= len(codes) else int(codes[place])
            return f"{name} == {column.labels()[code]!r}" if code < column.levels else None
        if not isinstance(column, Integer | Real) or place >= self.bins:
            return None
        first, last = (-(-end * column.levels // self.bins) for end in (place, place + 1))
        edges = column.bin_edges
        above = [f"{name} >= {edges[first]}"] if first else []
        return " and ".join(above + ([f"{name} < {edges[last]}"] if last < column.levels else [])) or None

    def count(self, codes: NDArray[np.integer], weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the number of rows in each group, or the sum of their weights."""
        return _summed(self.groups(codes), weights, len(self.labels))


def grouping(column: Column, codes: NDArray[np.integer], most: int) -> Grouping:
    """Return the column in at most `most` groups and one for missing values.

    Values without an order: the most frequent of `codes` (synthetic), the rest together. Others: neighbours.
    """
    if column.size <= most:
        return Grouping(column, column.labels(), None, column.levels)
    if isinstance(column, Categorical):
        names = column.labels()
        counts = np.bincount(np.asarray(codes, dtype=np.int64), minlength=column.size)
        # stable, so that the list's order decides between equals
        kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
        rest = f"{len(names) - len(kept)} other values"
        return Grouping(column, (*(names[place] for place in kept), rest), kept, 0)
    bins = min(most, column.levels)
    starts = [-(-place * column.levels // bins) for place in range(bins + 1)]
    labels = [_between(column, first, last - 1) for first, last in pairwise(starts)]
    return Grouping(column, (*labels, MISSING_LABEL)[: bins + column.size - column.levels], None, bins)


def pair(
    first: Grouping, first_codes: NDArray[np.integer], second: Grouping, second_codes: NDArray[np.integer],
    weights: NDArray[np.int64] | None,
) -> NDArray[np.int64]:  # fmt: skip
    """Return the number of rows in each pair of groups."""
    wide = len(second.labels)
    cells = first.groups(first_codes) * wide + second.groups(second_codes)
    return _summed(cells, weights, len(first.labels) * wide).reshape(len(first.labels), wide)


def association(table: NDArray[np.int64]) -> float:
    """Return Cramer's V of a table of counts: 0 for independent columns, 1 for columns that determine each other."""
    counts = np.maximum(table, 0).astype(np.float64)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return 0.0
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    squared = float(((counts - expected) ** 2 / expected).sum() / total)
    return min(1.0, sqrt(squared / (min(counts.shape) - 1)))


def own_counts(table: Table, groupings: Iterable[Grouping]) -> tuple[list[NDArray[np.int64]], int]:
    """Return the exact counts of an owner's rows in each grouping, and the number of rows. Private."""
    groupings = list(groupings)
    sums = [np.zeros(len(one.labels), dtype=np.int64) for one in groupings]
    rows = 0
    for batch in table.batches([one.column.name for one in groupings]):
        for place, one in enumerate(groupings):
            sums[place] += one.count(batch[one.column.name])
        rows += len(batch[groupings[0].column.name])
    return sums, rows


def is_ordered(column: Column) -> bool:
    """Say whether the column's values have an order that a picture should keep along an axis."""
    return not isinstance(column, Categorical | Boolean)


def _summed(places: NDArray[np.int64], weights: NDArray[np.int64] | None, size: int) -> NDArray[np.int64]:
    counts = np.bincount(places, weights=None if weights is None else weights.astype(np.float64), minlength=size)
    return np.rint(counts).astype(np.int64)


def _between(column: Column, first: int, last: int) -> str:
    """Return the values of the bins `first` to `last`, without writing out all bins of equal width: maybe billions."""
    match column:
        case Integer() | Date():
            lower, width = int(column.lowest()), int(column.beyond() - column.lowest())
            low, high = (lower + place * width // column.levels for place in (first, last + 1))
            if column.edges is not None or column.scale != "linear":
                low, high = (int(edge) for edge in column.bin_edges[[first, last + 1]].astype(np.int64))
            if isinstance(column, Date):
                return " to ".join(str(np.int64(step).astype(column.clock)) for step in (low, high - 1))
            return f"{low}-{high - 1}" if high - 1 > low else str(low)
        case Real():
            step = (column.upper - column.lower) / column.levels
            start, end = (column.lower + place * step for place in (first, last + 1))
            if column.edges is not None or column.scale != "linear":
                start, end = column.bin_edges[[first, last + 1]].tolist()
            return " to ".join(apart([start, end], 4))
        case Ordinal():
            names = (*column.values, OTHER)
            return f"{names[first]} to {names[last]}" if last > first else names[first]
        case _:
            return f"{first}-{last}"
