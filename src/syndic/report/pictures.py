"""Figures of the synthetic table: every column, and the pairs of columns with the strongest association.

A column with many values is shown in groups. The groups follow from the public schema and from the synthetic
rows, never from an owner's, so that an owner's page has the groups of the public one.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Column, Date, Integer, Ordinal, Real, Table
from syndic.data.bins import apart
from syndic.data.column import MISSING_LABEL, Listed
from syndic.data.lists import OTHER
from syndic.errors import InputError
from syndic.model.interval import MOST_LETTERS, Measured, interval_of, quoted
from syndic.report.figure import Bars, Heat, Series
from syndic.report.page import Section
from syndic.report.svg import Form, number
from syndic.study.release import Release

STANDING: Final = 24  # bars side by side that stay readable
LYING: Final = 12
_PAIRS: Final = 12
_PAIR_GROUPS: Final = 12
_MOST_IN_MAP: Final = 60  # columns of a map of all pairs that stays readable
_ROWS_FOR_RANKING: Final = 100_000
# Columns whose counts come with intervals.
_WITH_INTERVALS: Final = 50
WEIGHT: Final = "weight"
Spans = tuple[tuple[float, float] | None, ...]


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


@final
@dataclass(frozen=True, eq=False)
class Coded:
    """The released columns that the schema describes, as codes, with the weight of each row if it has one."""

    codes: Mapping[str, NDArray[np.integer]]
    groupings: Mapping[str, Grouping]
    weights: NDArray[np.int64] | None
    rows: int


def coded(release: Release) -> Coded | None:
    """Return the released table for figures; None if the method publishes no table."""
    table = release.known_table
    if table is None:
        return None
    arrow = table.to_arrow()
    columns = [column for column in release.study.schema.columns if column.name in table.names]
    codes = {column.name: column.encode(arrow[column.name]) for column in columns}
    groupings = {
        column.name: grouping(column, codes[column.name], STANDING if is_ordered(column) else LYING)
        for column in columns
    }
    has_weight = WEIGHT in table.names and WEIGHT not in release.study.schema.names
    weights = np.asarray(arrow[WEIGHT], dtype=np.int64) if has_weight else None
    return Coded(codes, groupings, weights, len(table))


def columns_section(table: Coded, release: Release) -> Section:
    """Return a figure of every column's counts, with intervals if the method publishes noisy tables."""
    figures: list[Bars] = []
    for name, one in table.groupings.items():
        counts, levels = one.count(table.codes[name], table.weights), one.column.levels
        known = table.codes[name] < levels
        rows = int(known.sum() if table.weights is None else table.weights[known].sum())
        spans = intervals_of(release, one, rows) if len(figures) < _WITH_INTERVALS else ()
        figures.append(marginal(one, (Series("synthetic", tuple(map(float, counts))),), spans=spans))
    weighted = " Rows have weights, so counts may be negative." if table.weights is not None else ""
    lines = (
        f" A line over a bar is the 95 % interval of its share of the people, as rows: sampling and noise (the first "
        f"{_WITH_INTERVALS} columns)."
        if any(figure.spans for figure in figures)
        else ""
    )
    return Section(
        title="The columns of the synthetic table",
        paragraphs=(
            f"{number(table.rows)} synthetic rows. Every figure is made from the release alone: anybody who has it "
            f"can draw the same.{weighted}{lines}",
        ),
        figures=tuple(figures),
    )


def intervals_of(release: Release, one: Grouping, rows: int) -> Spans:
    """Return the interval of every group's share of people with a known value, times `rows`; none without tables."""
    with suppress(InputError):
        measured = release.measured
        return tuple(_interval(measured, one.condition(place), rows) for place in range(len(one.labels)))
    return ()


def _interval(measured: Measured, condition: str | None, rows: int) -> tuple[float, float] | None:
    question = f"mean({condition})"
    if condition is None or len(question) > MOST_LETTERS:
        return None
    found = interval_of(measured, question)
    if found.low is None or found.high is None:
        return None
    return max(0.0, found.low) * rows, min(1.0, found.high) * rows


def marginal(one: Grouping, series: tuple[Series, ...], *, percent: bool = False, spans: Spans = ()) -> Bars:
    """Return the bars of one column, vertical if its values have an order."""
    column = one.column
    fewer = len(one.labels) < column.size
    merged = f" Shown in {len(one.labels)} groups of its {number(column.size)} values." if fewer else ""
    top = max(range(len(one.labels)), key=lambda place: series[0].values[place])
    form: Form = "percent" if percent else "number"
    largest = number(series[0].values[top], form)
    words = f"Most frequent: {one.labels[top]} ({largest})." if any(series[0].values) else "No rows."
    return Bars(
        title=column.name,
        description=words + merged,
        labels=one.labels,
        series=series,
        form=form,
        lying=not is_ordered(column),
        axis="share of rows" if percent else "rows",
        spans=spans,
    )


def pairs_section(table: Coded) -> Section | None:
    """Return heat maps of the pairs with the strongest association, and the association of all pairs."""
    names = list(table.groupings)
    if len(names) < 2 or not table.rows:
        return None
    small = {name: grouping(table.groupings[name].column, codes, _PAIR_GROUPS) for name, codes in table.codes.items()}
    strength = _strengths(table, small)
    ranked = sorted(strength, key=lambda both: -strength[both])
    shown = ranked[:_PAIRS]
    figures = tuple(_heat(table, small, both, strength[both]) for both in shown)
    some = f"The {len(shown)} of {number(len(ranked))} pairs of columns with the strongest association"
    chosen = some if len(shown) < len(ranked) else f"All {len(ranked)} pairs of columns"
    return Section(
        title="Pairs of columns of the synthetic table",
        paragraphs=(
            f"{chosen}, the strongest first. Darker cells (in dark mode: brighter) have more synthetic rows.",
            "The strength is Cramer's V: 0 if the columns are independent, 1 if one determines the other. Noise alone "
            "also gives small values.",
        ),
        figures=(*((_overview(in_map(names, ranked), strength, len(names)),) if len(names) > 2 else ()), *figures),
    )


def in_map(names: Sequence[str], ranked: Iterable[Sequence[str]]) -> list[str]:
    """Return the columns that a map of pairs has room for: those of the first pairs, in the order of `names`."""
    kept = set(islice(dict.fromkeys(name for pair in ranked for name in pair), _MOST_IN_MAP))
    return [name for name in names if name in kept]


def left_out(shown: Sequence[str], every: int) -> str:
    """Return the sentence on columns that a map has no room for."""
    return f" The {len(shown)} of {every} columns with the most to show." if len(shown) < every else ""


def _strengths(table: Coded, small: Mapping[str, Grouping]) -> dict[tuple[str, str], float]:
    """Return Cramer's V of every pair, from rows spread evenly over the table if there are very many."""
    stride = max(1, table.rows // _ROWS_FOR_RANKING)
    groups = {name: one.groups(table.codes[name][::stride]) for name, one in small.items()}
    weights = None if table.weights is None else table.weights[::stride].astype(np.float64)
    found = {}
    for first, second in combinations(small, 2):
        high, wide = len(small[first].labels), len(small[second].labels)
        counts = np.bincount(groups[first] * wide + groups[second], weights=weights, minlength=high * wide)
        found[first, second] = association(np.rint(counts).astype(np.int64).reshape(high, wide))
    return found


def _overview(names: list[str], strength: Mapping[tuple[str, str], float], every: int) -> Heat:
    def value(first: str, second: str) -> float:
        return float("nan") if first == second else strength.get((first, second), strength.get((second, first), 0.0))

    first, second = max(strength, key=lambda both: strength[both])
    return Heat(
        title="Association between columns",
        description=f"Strongest: {first} and {second} ({strength[first, second]:.2f}).{left_out(names, every)}",
        width=320 if len(names) <= 12 else 680,
        rows=tuple(names),
        columns=tuple(names),
        values=tuple(tuple(value(row, column) for column in names) for row in names),
    )


def _heat(table: Coded, small: Mapping[str, Grouping], both: tuple[str, str], strength: float) -> Heat:
    # the longer labels go beside the rows, where there is room
    first, second = sorted(both, key=lambda name: -max(len(text) for text in small[name].labels))
    counts = pair(small[first], table.codes[first], small[second], table.codes[second], table.weights)
    row, column = np.unravel_index(int(np.argmax(counts)), counts.shape)
    return Heat(
        title=f"{first} and {second}",
        description=f"Strength {strength:.2f}. Fullest cell: {small[first].labels[row]}, "
        f"{small[second].labels[column]} ({number(int(counts[row, column]))} rows).",
        rows=small[first].labels,
        columns=small[second].labels,
        values=tuple(tuple(map(float, line)) for line in counts),
        row_axis=first,
        column_axis=second,
    )
