"""One published table or figure: what gives our numbers, what they are held against, and how near is near."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from syndic.report.figure import Bars, Curve
from syndic_lab.bench.row import Row

Verdict = Literal["agrees", "same order", "differs", "undecided", "cheaper", "dearer", "not measured"]
VERDICTS: Final[tuple[Verdict, ...]] = (
    "agrees", "same order", "differs", "undecided", "cheaper", "dearer", "not measured",
)  # fmt: skip
Measure = Callable[[bool], Iterator[Row | Curve | Bars]]


@final
@dataclass(frozen=True)
class Paper:
    """A publication whose tables and figures are gone through."""

    key: str
    title: str

    @property
    def short(self) -> str:
        """Who wrote it, and when: what stands before the colon."""
        return self.title.partition(":")[0]


@final
@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a number agrees with a published one: within a share of it, or within `absolute` where that is more.

    A number with a standard error also agrees within two of them. The same order is within a `factor`. A `cost` is only
    asked to be no more than the published one, and so is what a `bound` is on, but for its error. `said` are words: 1
    if they hold, 0 if not, undecided between.
    """

    within: float = 0.25
    absolute: float = 0.0
    factor: float = 4.0
    cost: bool = False
    said: bool = False
    bound: bool = False

    def verdict(self, value: float, published: float, error: float | None = None) -> Verdict:
        """Return how a measured number compares."""
        if self.cost:
            return "cheaper" if value <= published else "dearer"
        if self.bound:
            return "agrees" if value - 2 * (error or 0.0) <= published else "differs"
        if self.said:
            return "agrees" if value == published else "differs" if abs(value - published) == 1 else "undecided"
        if abs(value - published) <= max(self.within * abs(published), self.absolute, 2 * (error or 0.0)):
            return "agrees"
        low, high = sorted((abs(value), abs(published)))
        return "same order" if value * published > 0 and high <= self.factor * low else "differs"

    def words(self) -> str:
        """Return the rule in words."""
        if self.cost:
            return "cheaper: no more than published"
        if self.bound:
            return "agrees: no more than the published bound, or by less than two standard errors"
        if self.said:
            return "undecided: within two standard errors of the difference"
        near = f"agrees: within {self.within:.0%}" if self.within else "agrees: equal"
        near += f" or within {self.absolute:g}" if self.absolute else ""
        return f"{near} or two standard errors; same order: within a factor of {self.factor:g}"


COST: Final = Rule(cost=True)
SAID: Final = Rule(said=True)
BOUND: Final = Rule(bound=True)


@final
@dataclass(frozen=True)
class Found:
    """What an item measured, by row and metric."""

    values: Mapping[tuple[str, str], float]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Found":
        """Return the rows' values."""
        return cls({(row.row, row.metric): row.value for row in rows})

    def one(self, row: str, metric: str) -> float:
        """Return a value; a KeyError says that it was not measured."""
        return self.values[row, metric]

    def ending(self, end: str, metric: str) -> float:
        """Return the value of the only row with this end."""
        found = [value for (row, what), value in self.values.items() if row.endswith(end) and what == metric]
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows end with '{end}'")
        return found[0]


@final
@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says in words; `holds` looks at what was measured and says what it saw."""

    text: str
    holds: Callable[[Found], tuple[bool, str]]

    def verdict(self, found: Found) -> tuple[Verdict, str]:
        """Return whether the claim holds and what was seen."""
        try:
            holds, seen = self.holds(found)
        except (KeyError, ValueError):
            return "not measured", "the run had no such rows"
        return ("agrees" if holds else "differs"), seen


@final
@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure. Without `measure` it cannot be reproduced, and `reason` says why.

    With `measure`, `reason` says where data can be asked for. `needs` are files of `SYNDIC_DATA`, `libraries` what must
    be importable; `rules` go by the beginning of a metric, the first that fits counts. Rows without a published number
    are shown if their metric begins with one of `shown`. `seconds` are processor seconds, quick and in full, on the
    machine that calibration refers to; without the first the item is left out of a quick run. `timed`: it measures
    time, so nothing runs beside it. `pieces` are parts of a
    full run, by name: each takes an hour at most and is kept by itself. `benches` names the modules of
    `syndic_lab.bench` whose published rows it has.
    """

    name: str
    paper: Paper
    where: str
    what: str
    measure: Measure | None = None
    reason: str = ""
    needs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    rules: tuple[tuple[str, Rule], ...] = (("", Rule()),)
    claims: tuple[Claim, ...] = ()
    shown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: tuple[float | None, float] = (None, 0.0)
    timed: bool = False
    pieces: tuple[tuple[str, Measure], ...] = ()
    benches: tuple[str, ...] = ()

    def rule(self, metric: str) -> Rule:
        """Return the rule of a metric."""
        return next((rule for begin, rule in self.rules if metric.startswith(begin)), Rule())

    def expected(self, quick: bool) -> float | None:
        """Return the processor seconds it takes; None where it is not run."""
        if self.measure is None:
            return None
        return self.seconds[0] if quick else self.seconds[1]

    def verdicts(self, rows: Sequence[Row]) -> list[Verdict]:
        """Return the verdict of every published number and claim."""
        numbers = [
            self.rule(row.metric).verdict(row.value, row.published, row.error)
            for row in rows
            if row.published is not None
        ]
        found = Found.of(rows)
        return [*numbers, *(claim.verdict(found)[0] for claim in self.claims)]
