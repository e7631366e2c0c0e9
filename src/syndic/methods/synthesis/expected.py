"""Expected errors of a fitted model and the rows drawn from it, from noisy tables alone.

*Noise*: a cell of expected count m, known with standard deviation d, is off by about sqrt(2/pi) min(m, d). The error of
a pair is that of its single columns, and that of its association: s e / sqrt(s^2 + e^2), where e is the noise on its
cells and s the association in the model, since a fit leaves out associations below the noise. Associations that noise
hides count as half of what could just be seen. *Model*: the squared distance of noisy tables from the model less what
noise adds, with a weight that falls where chance explains it. *Merged*: levels of a group have the group's relation to
other columns; neighbours within a group differ by about a quarter of the step to the next group.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Column, Factor, Schema
from syndic.data.ranged import Ranged
from syndic.errors import InputError
from syndic.methods.synthesis.trust import DIGITS, ColumnTrust, ExpectedError, PairTrust, Reliability
from syndic.model.markov import Measurement
from syndic.model.markov.measurement import in_groups
from syndic.model.selection import Grouping, Synthesis
from syndic.model.selection.score import MEAN_ABSOLUTE, noisy_distance

Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.integer]]
Groups = tuple[tuple[int, ...], ...]

_WITHIN_GROUP: Final = 0.25
USUAL: Final = 0.07
"""How far pairs of columns of made-up tables are from independent columns, on average."""

# The same over the most that is possible with the columns' shares, on Adult and made-up tables (root mean square).
_USUAL_SHARE: Final = 0.25
HIDDEN: Final = 0.5
"""Associations that noise hides count as this share of what could just be seen."""
# an empty level may have people: its expected error counts as that of this share of a deviation
_EMPTY: Final = 1 / 3
# smooth counts of neighbours have about half the noise
_SMOOTH: Final = 0.5
# larger tables are compared by groups of levels
_MOST_CELLS: Final = 1 << 18


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnModel:
    """What is known of rows whose model is not published: its noisy tables, groups of levels, and number of people.

    Columns that no table has together are unrelated in the rows.
    """

    grouping: Grouping
    one_way: dict[str, Floats]
    rounds: tuple[tuple[Measurement, ...], ...]
    total: float


def reliability_of(
    schema: Schema,
    fitted: Synthesis | DrawnModel,
    groups: Sequence[Groups],
    drawn: Codes,
    *,
    ordered: Sequence[str] = (),
    released: Mapping[str, NDArray[np.int64]] | None = None,
    target: str | None = None,
) -> Reliability:
    """Return the expected errors of rows `drawn` from a model.

    Args:
        schema: The columns with all their levels.
        fitted: The model and its noisy tables, or only these if no model is published: then rows stand for it.
        groups: For every round the group of every level of every column, or nothing if tables count levels.
        drawn: The codes of the drawn rows.
        ordered: Columns whose levels were smoothed.
        released: The level that each level of a long list is released as.
        target: The study's target, if it has one.
    """
    known = _Known(schema, fitted, groups, drawn, frozenset(ordered), released or {})
    names = schema.names
    # nothing is known of a pair that was not measured: it may be as near to its limit as those that were
    measured = [known.model(pair) for pair in combinations(names, 2) if frozenset(pair) in known.measured]
    shares = [strength_of(table) / max(limit_of(table), 1e-9) for table in measured]
    typical = max(_USUAL_SHARE, float(np.sqrt(np.mean(np.square(shares)))) if shares else 0.0)
    return Reliability(
        columns=tuple(known.column(name) for name in names),
        pairs=tuple(known.pair(pair, typical) for pair in combinations(names, 2)),
        target=target,
    )


@final
@dataclass
class _Counted:
    """The sum of noisy tables over the same cells, weighted by precision, and the precision of a cell."""

    values: Floats
    precision: float = 0.0
    used: float = 0.0


class _Known:
    """What a release says of its columns and pairs."""

    def __init__(
        self,
        schema: Schema,
        fitted: Synthesis | DrawnModel,
        groups: Sequence[Groups],
        drawn: Codes,
        ordered: frozenset[str],
        released: Mapping[str, NDArray[np.int64]],
    ) -> None:
        self.schema, self.fitted, self.drawn, self.ordered, self.released = schema, fitted, drawn, ordered, released
        self.field = fitted.field if isinstance(fitted, Synthesis) else None
        self.domain, self.grouped = schema.domain, fitted.grouping.domain_of_groups
        self.total = max(fitted.total, 1.0)
        self.rows = max(len(next(iter(drawn.values()))), 1)
        self.groups = fitted.grouping.by_column
        self.counted: dict[frozenset[str], _Counted] = {}
        self.coarse: dict[frozenset[str], Measurement] = {}
        self.levels: dict[str, float] = dict.fromkeys(schema.names, 0.0)
        self.tables: dict[tuple[str, ...], Floats] = {}
        for one, used in zip(fitted.rounds, groups, strict=True):
            for table in one:
                self._add(table, used)
        self.measured = {*self.counted, *self.coarse}
        self.margins = {name: self._margin(name) for name in schema.names}

    def _add(self, table: Measurement, groups: Groups) -> None:
        plain = not groups or groups == Grouping.none(self.domain).groups
        if plain:
            for name in table.names:
                self.levels[name] += self.domain[name] / (table.variance * table.values.size)
            table = self.fitted.grouping.gather(table)
        elif groups != self.fitted.grouping.groups:
            self._add_coarse(table, groups)
            return
        used = self.field is None or self.field.tree.home(table.names) is not None
        for names in [*((name,) for name in table.names), *combinations(table.names, 2)]:
            kept = tuple(sorted(names, key=self.schema.names.index))
            axes = tuple(axis for axis, name in enumerate(table.names) if name not in names)
            values = table.values.sum(axis=axes)
            values = values if names == kept else values.T
            variance = table.variance * table.values.size / values.size
            one = self.counted.setdefault(frozenset(names), _Counted(np.zeros(values.shape)))
            one.values += values / variance
            one.precision += 1 / variance
            one.used += used / variance

    def _add_coarse(self, table: Measurement, groups: Groups) -> None:
        """Keep a pair that was counted over groups of the model's groups."""
        maps = []
        for name, axis in zip(table.names, self.domain.axes(table.names), strict=True):
            of_model, of_table = self.groups[name], np.array(groups[axis])
            one = np.zeros(self.grouped[name], dtype=np.int64)
            one[of_model] = of_table
            if (one[of_model] != of_table).any():
                return
            maps.append(one)
        if len(maps) == 2:
            self.coarse[frozenset(table.names)] = replace(table, groups=tuple(maps))

    def model(self, names: tuple[str, ...]) -> Floats:
        """Return the model's counts over groups; those of the drawn rows if the model's need too much memory."""
        if names not in self.tables:
            found = None
            if self.field is not None:
                with suppress(InputError):
                    found = self.field.marginal(names).values
            if found is None:
                found = self.fitted.grouping.count(self.drawn, [names])[0].values * (self.total / self.rows)
            self.tables[names] = np.asarray(found, dtype=np.float64)
        return self.tables[names]

    def column(self, name: str) -> ColumnTrust:
        """Return the expected error of one column."""
        sizes = np.bincount(self.groups[name])
        expected = ExpectedError.of(noise=self.margins[name], drawn=self._drawn((name,)))
        return ColumnTrust(
            column=name,
            expected=expected,
            merged=round(float((sizes[self.groups[name]] > 1).mean()), DIGITS),
            width=mean_width(self.schema[name], self.groups[name], self.model((name,))),
        )

    def pair(self, pair: tuple[str, str], typical: float) -> PairTrust:
        """Return the expected error of two columns; `typical` is the strength of an average pair over its limit."""
        table, counted = self.model(pair), self.counted.get(frozenset(pair))
        strength, beyond, noise = strength_of(table), 0.0, MEAN_ABSOLUTE / 2
        hidden, compared = typical * limit_of(table), table
        coarse = self.coarse.get(frozenset(pair))
        if counted is None and coarse is not None:
            # in the order of the schema, as all pairs are asked
            compared = in_groups(table, coarse.groups)
            counted = _Counted(coarse.values / coarse.variance, 1 / coarse.variance)
        if counted is not None:
            noise = self._noise(compared, counted.precision)
            # the least association that stands out of the noise of so many cells
            hidden = HIDDEN * noise * (2 / compared.size) ** 0.25
            beyond = self._beyond(compared, counted)
        could = math.hypot(strength, hidden)
        related = could * noise / math.hypot(could, noise) if could + noise > 0 else 0.0
        one, other = pair
        expected = ExpectedError.of(
            noise=math.hypot(related, self.margins[one], self.margins[other]),
            merged=self._merged(one, table) + self._merged(other, table.T),
            model=beyond,
            drawn=self._drawn(pair),
        )
        held = counted is not None if self.field is None else self.field.tree.home(pair) is not None
        return PairTrust(
            columns=pair,
            expected=expected,
            strength=round(strength, DIGITS),
            limit=round(limit_of(table), DIGITS),
            measured=frozenset(pair) in self.measured,
            held=held,
        )

    def _noise(self, table: Floats, precision: float) -> float:
        deviation = 1 / math.sqrt(precision) if precision > 0 else math.inf
        return MEAN_ABSOLUTE * float(np.minimum(np.maximum(table, 0.0), deviation).sum()) / (2 * self.total)

    def _margin(self, name: str) -> float:
        """Return the expected error of a column's noisy counts: of its groups, and of levels within them."""
        counted = self.counted.get(frozenset((name,)))
        groups = self._single(self.model((name,)), 0.0 if counted is None else counted.used)
        several = (self._sizes(name) > 1)[self.groups[name]] & self._as_itself(name)
        levels = self._spread((name,))[several]
        within = self._single(levels, self.levels[name]) * (_SMOOTH if name in self.ordered else 1.0)
        return math.hypot(groups, within)

    def _as_itself(self, name: str) -> NDArray[np.bool_]:
        """Return which levels are released as themselves and not as a branch."""
        levels = np.arange(self.domain[name])
        return np.asarray(self.released.get(name, levels) == levels)

    def _sizes(self, name: str) -> NDArray[np.int64]:
        """Return how many levels of each group are released as themselves."""
        groups = self.groups[name]
        return np.bincount(groups[self._as_itself(name)], minlength=int(groups.max()) + 1)

    def _single(self, counts: Floats, precision: float) -> float:
        if not precision > 0:
            return self._noise(counts, precision)
        deviation = 1 / math.sqrt(precision)
        off = np.clip(counts, _EMPTY * deviation, deviation).sum()
        return min(MEAN_ABSOLUTE * float(off) / (2 * self.total), float(np.maximum(counts, 0.0).sum()) / self.total)

    def _beyond(self, table: Floats, counted: _Counted) -> float:
        """Return the distance of noisy counts from the model that noise does not explain."""
        variance, noisy = 1 / counted.precision, counted.values / counted.precision
        excess = float(np.square(noisy - table).sum()) - table.size * variance
        chance = variance * math.sqrt(2 * table.size)
        if not excess > 0:
            return 0.0
        distance = max(0.0, noisy_distance(noisy, table, variance)) / (2 * self.total)
        return min(1.0, distance * excess / math.hypot(excess, chance))

    def _merged(self, name: str, table: Floats) -> float:
        """Return what levels of one group lose of their relation to the table's other column."""
        sizes, mass = self._sizes(name), table.sum(axis=1) / self.total
        several = sizes > 1
        if not several.any():
            return 0.0
        given = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-9)
        if name not in self.ordered:
            apart = np.abs(given - table.sum(axis=0) / self.total).sum(axis=1) / 2
            return float(mass[several].sum() * (mass * apart).sum())
        steps = np.abs(np.diff(given, axis=0)).sum(axis=1) / 2
        near = np.zeros(len(sizes))
        near[:-1] += steps
        near[1:] += steps
        near[1:-1] /= 2
        return float(_WITHIN_GROUP * (mass * near)[several].sum())

    def _drawn(self, names: tuple[str, ...]) -> float:
        """Return the distance of the drawn rows from the model, or what chance adds to columns that are unrelated."""
        if self.field is None:
            unrelated = len(names) > 1 and frozenset(names) not in self.counted
            return MEAN_ABSOLUTE * float(np.sqrt(self.model(names) / self.total / self.rows).sum()) / 2 * unrelated
        fine = self.domain.project(names).size <= _MOST_CELLS
        cells = (Grouping.none(self.domain) if fine else self.fitted.grouping).count(self.drawn, [names])[0].values
        made = self._spread(names) if fine else self.model(names)
        return float(np.abs(cells / self.rows - made / self.total).sum()) / 2

    def _spread(self, names: tuple[str, ...]) -> Floats:
        """Return the model's counts over levels."""
        table = Factor(self.grouped.project(names), self.model(names))
        return np.asarray(self.fitted.grouping.spread(table, self.fitted.one_way).values)


def strength_of(table: Floats) -> float:
    """Return the distance of a table of two columns from independent columns."""
    total = max(float(table.sum()), 1.0)
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0)) / total).sum()) / (2 * total)


def limit_of(table: Floats) -> float:
    """Return the largest distance from independent columns that is possible with a table's columns."""
    total = max(float(table.sum()), 1.0)
    return min(1 - float(np.square(table.sum(axis=axis) / total).sum()) for axis in (0, 1))


def mean_width(column: Column, groups: NDArray[np.integer], counts: Floats) -> float | None:
    """Return the mean width of a counted bin as a share of the range, weighted by counts; None without a range."""
    if not isinstance(column, Ranged):
        return None
    edges = column.bin_edges
    widths = np.diff(edges.astype(np.int64) if edges.dtype.kind == "M" else edges).astype(np.float64)
    together = np.bincount(groups[: len(widths)], weights=widths, minlength=len(counts))
    mass = np.where(together > 0, np.maximum(counts, 0.0), 0.0)
    return round(float((mass * together).sum() / max(mass.sum(), 1e-9) / widths.sum()), DIGITS)
