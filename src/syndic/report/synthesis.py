"""The section of the synthesis: what was measured, how well the model fits it, and the model's graph."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import cos, isfinite, pi, sin
from statistics import NormalDist
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Date
from syndic.data.column import Listed
from syndic.methods.synthesis.result import SyntheticTable
from syndic.model.interval import MOST_LETTERS, quoted
from syndic.model.markov import Measurement
from syndic.report.figure import Bars, Figure, Heat, Series
from syndic.report.page import Grid, Section
from syndic.report.svg import element, escape, fit, label, number, text_width
from syndic.study.release import Release

_LABEL_ROOM: Final = 110.0


@final
@dataclass(frozen=True, kw_only=True)
class Graph(Figure):
    """Nodes on a circle; an edge is (place, place, strength), and a stronger one is drawn wider and darker."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int, float], ...]
    width: int = 680

    def __post_init__(self) -> None:
        for one, other, strength in self.edges:
            if not (0 <= one < len(self.nodes) and 0 <= other < len(self.nodes)) or one == other:
                raise ValueError(f"an edge from {one} to {other}: there are {len(self.nodes)} nodes")
            if not isfinite(strength) or strength < 0:
                raise ValueError("strengths must be finite and not negative")

    @property
    def height(self) -> float:
        """Room for the circle; many nodes take a larger one."""
        return 2 * self._radius + 70

    def draw(self) -> list[str]:
        """Return the edges, the weakest first, then the nodes and their names."""
        most = max((strength for _, _, strength in self.edges), default=0.0) or 1.0
        drawn = [
            self._edge(one, other, strength, strength / most)
            for one, other, strength in sorted(self.edges, key=lambda edge: edge[2])
        ]
        for place, name in enumerate(self.nodes):
            x, y, right, down = self._place(place)
            drawn.append(element("circle", element("title", escape(name)), cx=x, cy=y, r=4, class_="dot tint0"))
            anchor = "middle" if abs(right) < 0.2 else "start" if right > 0 else "end"
            drawn.append(label(name, x + 9 * right, y + 4 + 12 * down, anchor=anchor, room=_LABEL_ROOM))
        return drawn

    def _edge(self, one: int, other: int, strength: float, share: float) -> str:
        (x1, y1, *_), (x2, y2, *_) = self._place(one), self._place(other)
        title = element("title", escape(f"{self.nodes[one]} and {self.nodes[other]}: {strength:.3g}"))
        shade: dict[str, str | float] = {
            "stroke": "currentColor",
            "stroke_width": 0.8 + 3.2 * share,
            "stroke_opacity": 0.25 + 0.65 * share,
        }
        return element("line", title, x1=x1, y1=y1, x2=x2, y2=y2, class_="tint0", **shade)

    @property
    def _radius(self) -> float:
        names = max((text_width(fit(name, _LABEL_ROOM)) for name in self.nodes), default=0.0)
        return float(min(60 + 7 * len(self.nodes), (self.width - 2 * names - 40) / 2))

    def _place(self, node: int) -> tuple[float, float, float, float]:
        """Return the place of a node, and the outward direction."""
        turn = 2 * pi * node / max(1, len(self.nodes)) - pi / 2
        right, down = cos(turn), sin(turn)
        return (
            self.width / 2 + self._radius * right,
            self.height / 2 + self._radius * down,
            right,
            down,
        )


_SHOWN = 20
_PAIRS = 4
_LEVELS = 24


def synthesis_section(release: Release, result: SyntheticTable) -> Section:
    """Return the section on how the table was made."""
    note = result.note
    opened = sum(len(one.tables) for one in note.rounds)
    return Section(
        title="How the table was made: noisy tables and a model",
        paragraphs=(
            f"In {len(note.rounds)} rounds {number(opened)} tables of counts of all rows together were opened, "
            "each with noise, and no other table. What later rounds asked was chosen from what earlier ones had "
            "opened. A model was fitted to all of them, and every row of the synthetic table was drawn from it.",
            f"By the noisy counts there are about {number(round(note.total))} rows{_between(release)}. The model "
            f"has {number(note.cells)} cells in {number(len(note.cliques))} groups of columns. Columns in no "
            "common group are related only through the columns that the groups share.",
        ),
        figures=(_graph(release, result), *_fitted(result), *_pairs(release, result)),
        tables=(_intervals(release), _rounds(result), _measured(result)),
    )


def _between(release: Release) -> str:
    """Return the 95 % interval of the number of rows, unless it is public: all tables' sums, by their precision."""
    measured = release.measured
    if measured.public:
        return ""
    half = NormalDist().inv_cdf(0.975) / sum(1 / (one.variance * one.values.size) for one in measured.tables) ** 0.5
    return f" (95 % interval: {number(round(measured.rows - half))} to {number(round(measured.rows + half))})"


def _graph(release: Release, result: SyntheticTable) -> Graph:
    names = release.study.schema.names
    place = {name: index for index, name in enumerate(names)}
    pairs = Counter(
        tuple(sorted((place[one], place[other])))
        for table in result.tables
        for one, other in combinations(table.names, 2)
        if len(table.names) <= 8
    )
    held = {
        tuple(sorted((place[one], place[other])))
        for clique in result.note.cliques
        for one, other in combinations(clique, 2)
    }
    edges = tuple((one, other, float(1 + pairs[one, other])) for one, other in sorted(held))
    return Graph(
        title="Which columns the model links",
        description=f"{len(edges)} of {len(names) * (len(names) - 1) // 2} pairs of columns are in one group of the "
        "model. A darker line: more of the noisy tables have both columns.",
        nodes=names,
        edges=edges,
    )


def _made(result: SyntheticTable, table: Measurement) -> NDArray[np.float64] | None:
    """Return the model's own table, or None if the noisy one has bins that only its method knows."""
    field = result.model.fitted.field
    # noisy tables are of levels in the first round and of the model's groups of levels later
    grouped = table.values.shape == field.domain.project(table.names).sizes
    made = (field if grouped else result.model).marginal(table.names).values
    return made if made.shape == table.values.shape else None


def _fitted(result: SyntheticTable) -> tuple[Bars, ...]:
    """Return the root mean square difference of the model's tables and the noisy ones, in standard deviations."""
    made = [(one, _made(result, one)) for one in _largest(result)]
    errors = [
        (" x ".join(one.names), float(np.sqrt(np.mean((own - one.values) ** 2) / one.variance)))
        for one, own in made
        if own is not None
    ]
    return (_followed(errors),) if errors else ()


def _followed(errors: Sequence[tuple[str, float]]) -> Bars:
    return Bars(
        title="How well the model fits the noisy tables",
        description="Distance from the noisy table in standard deviations of its noise: about 1 is what noise "
        "explains, more is what the model leaves out.",
        labels=tuple(name for name, _ in errors),
        series=(Series("distance", tuple(error for _, error in errors)),),
        lying=True,
        width=680,
    )


def _pairs(release: Release, result: SyntheticTable) -> tuple[Figure, ...]:
    schema = release.study.schema
    two = {one.names: one for one in result.tables if len(one.names) == 2}
    small = [one for one in two.values() if max(schema.domain.project(one.names).sizes) <= _LEVELS]
    figures = []
    for table in small[-_PAIRS:]:
        one, other = table.names
        made = result.model.marginal(table.names).values
        figures.append(
            Heat(
                title=f"{one} and {other}, by the model",
                description=f"Expected rows. The noisy counts have a standard deviation of {table.variance**0.5:.3g}.",
                rows=schema[one].labels(),
                columns=schema[other].labels(),
                values=tuple(tuple(map(float, line)) for line in made),
                row_axis=one,
                column_axis=other,
            )
        )
    return tuple(figures)


def _intervals(release: Release) -> Grid:
    """Return the mean of every column of numbers and the share of every other column's most frequent value."""
    rows = []
    for column in release.study.schema.columns[:_SHOWN]:
        if isinstance(column, Date):
            continue
        counts = release.model.marginal((column.name,)).values
        value = f" == {column.labels()[int(counts.argmax())]!r}" if isinstance(column, Listed) else ""
        question = f"mean({quoted(column.name)}{value})"
        if len(question) > MOST_LETTERS:
            continue
        found = release.interval(question)
        ends = found.reason if found.low is None else f"{found.low:.4g} to {found.high:.4g}"
        rows.append((found.question, "" if found.value is None else f"{found.value:.4g}", ends or ""))
    return Grid(
        caption="Means and shares with 95 % intervals, which account for sampling and noise. Intervals from the "
        "synthetic rows are too narrow: use release.interval or syndic interval",
        head=("question", "value", "95 % interval"),
        rows=tuple(rows),
        numbers=(1,),
    )


def _rounds(result: SyntheticTable) -> Grid:
    rows = []
    for place, one in enumerate(result.note.rounds, 1):
        # a table across parties of different columns has more noise than one within a party
        deviations = " or ".join(f"{each:.3g}" for each in sorted(set(one.deviation_of)))
        rows.append((str(place), f"{len(one.tables)} tables", deviations, number(len(one.present))))
    return Grid(
        caption="Rounds",
        head=("round", "opened", "standard deviation of every count", "parties in the sum"),
        rows=tuple(rows),
        numbers=(2, 3),
    )


def _measured(result: SyntheticTable) -> Grid:
    shown = _largest(result)
    left = len(result.tables) - len(shown)
    more = f" The {left} others are in tables.parquet." if left else ""
    return Grid(
        caption=f"Noisy tables, the largest first.{more}",
        head=("columns", "cells", "standard deviation of a count"),
        rows=tuple((" x ".join(one.names), number(one.values.size), f"{one.variance**0.5:.3g}") for one in shown),
        numbers=(1, 2),
    )


def _largest(result: SyntheticTable) -> list[Measurement]:
    return sorted(result.tables, key=lambda one: (-one.values.size, one.names))[:_SHOWN]
