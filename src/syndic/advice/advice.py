"""Hold the predicted worth of a study, in numbers and in words."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Final, Literal, Self, final

from syndic.document import Document
from syndic.methods.synthesis.trust import POOR
from syndic.model.selection.score import MEAN_ABSOLUTE

Verdict = Literal["share", "some", "do not share"]
Standing = Literal["gains", "about even", "loses"]

Grade = Literal["good", "fair", "poor"]

GOOD: Final = 0.05
RULE: Final = f"good up to {GOOD:g}, fair up to {POOR:g}, poor above, of the largest error or of the unit that is named"
"""The rule by which a forecast is graded: the same for all methods, and for the reliability of a release."""

_NORMAL: Final = 1.959964

EVEN: Final = 0.1
"""Predicted errors whose ratio differs from 1 by less than this are reported as about even."""


class _Forecast(Document):
    """What every advice says: about which study, for how many people, and what is assumed of them."""

    study: str
    digest: str
    people: int
    assumptions: tuple[str, ...]

    def _printed(self, *lines: str) -> str:
        assumed = (f"  assumes    {text}" for text in self.assumptions)
        return "\n".join([f"{self.study}  (digest {self.digest[:12]})", *lines, *assumed])


class PartyAdvice(Document):
    """One party and one task, as root mean squared errors.

    `standing`: "about even" if the predicted errors, joint and `alone`, differ by less than a tenth; this claims that
    the true ones differ by less than a fifth. `pays`: the joint error is smaller, however little. `close`: about even,
    or the answer depends on the population's shape. `epsilon`: the party's epsilon from which it gains when all
    budgets are multiplied by `factor`; None if it gains at no epsilon up to the highest that was tried.
    """

    party: str
    alone: float
    standing: Standing
    pays: bool
    close: bool
    epsilon: float | None
    factor: float | None


class TaskAdvice(Document):
    """One task: its joint error at the study's budgets, the pooled error without privacy, and each party's.

    `joint_range` is over the population shapes, from the most to the least favourable.
    """

    task: str
    joint: float
    joint_range: tuple[float, float]
    pooled: float
    parties: tuple[PartyAdvice, ...]


@final
class Advice(_Forecast):
    """What sharing would be worth to each party; `print` it to read it. From public numbers and assumptions only.

    `highest`: the largest epsilon that was tried, of the party with the largest budget.
    """

    verdict: Verdict
    words: str
    tasks: tuple[TaskAdvice, ...]
    rows_of_nobody: float = 0.0
    highest: float = 64.0

    def __str__(self) -> str:
        lines = [f"  verdict    {self.words}"]
        for task in self.tasks:
            low, high = task.joint_range
            lines.append(
                f"  {task.task}: joint error {task.joint:.4g} ({low:.3g} to {high:.3g} over population shapes), "
                f"pooled without privacy {task.pooled:.4g}"
            )
            lines += [f"    {one.party:<12} alone {one.alone:.4g}: {_gain(one, self.highest)}" for one in task.parties]
        return self._printed(*lines)


def standing_of(joint: float, own: float) -> Standing:
    """Compare a party's predicted joint error with its error alone."""
    if 1 / (1 + EVEN) < joint / own < 1 + EVEN:
        return "about even"
    return "gains" if joint < own else "loses"


def verdict_of(tasks: Sequence[TaskAdvice], kind: str, said: str) -> tuple[Verdict, str]:
    """Return the verdict, and in words in how many tasks of this kind each party gains; `said` follows."""
    names = [one.party for one in tasks[0].parties]
    gains = {
        name: sum(one.standing == "gains" for task in tasks for one in task.parties if one.party == name)
        for name in names
    }
    if all(count == len(tasks) for count in gains.values()):
        return "share", f"SHARE: every party gains in every {kind} ({len(tasks)} of {len(tasks)}); {said}"
    if not any(gains.values()):
        return "do not share", f"DO NOT SHARE: no party gains in any {kind}; {said}"
    each = ", ".join(f"{name} in {count} of {len(tasks)}" for name, count in gains.items())
    return "some", f"IT DEPENDS: {kind}s in which a party gains: {each}; {said}"


def way_out(tasks: Sequence[TaskAdvice]) -> str:
    """Return what would have to change where no party gains."""
    starts = [one.factor for task in tasks for one in task.parties if one.factor is not None]
    if not starts:
        return "No epsilon up to 64 changes this: use fewer columns or bins, or another method"
    return f"The first gain needs all budgets times {min(starts):.3g}, or fewer columns or bins"


def _gain(one: PartyAdvice, highest: float) -> str:
    verdict = {"gains": "gains", "about even": "about even", "loses": "does not gain"}[one.standing]
    verdict += ", but it depends on the population's shape" if one.close and one.standing != "about even" else ""
    if one.epsilon is None:
        return f"{verdict}; break-even at no epsilon up to {highest:g}"
    return f"{verdict}; break-even at epsilon {one.epsilon:.3g}"


Variant = Literal["shares", "sketch", "oracle", "glued"]
Recommended = Literal["shares", "sketch", "oracle", "glued", "none"]


class Expected(Document):
    """Expected mean total variation distance, 0 to 1, of the release from the data, over sets of `columns` columns.

    `low` and `high` are for the easiest and the hardest artificial population, `middle` for the one between.
    """

    columns: int
    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({self.low:.3f} to {self.high:.3f})"


class VariantAdvice(Document):
    """One method: expected distances, the most megabytes that all roles send, and about how many seconds it takes."""

    variant: Variant
    expected: tuple[Expected, ...]
    megabytes: float
    seconds: float
    protects: str


@final
class VerticalAdvice(_Forecast):
    """Which method a vertical study should use; `print` it to read it. From public numbers and assumptions only.

    `alone`: distance of single columns, counted with the whole budget and drawn independently. `chance`: distance of a
    second sample of as many people, without privacy. `left_out`: methods that cannot run this study, and why.
    """

    recommended: Recommended
    words: str
    variants: tuple[VariantAdvice, ...]
    alone: tuple[Expected, ...]
    chance: tuple[Expected, ...]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"  verdict    {self.words}"]
        lines.append("  expected total variation distance from the data (0 to 1), by number of columns compared:")
        lines += [
            f"    {one.variant:<8} {_listed(one.expected)}; up to {one.megabytes:,.1f} MB, {one.seconds:,.0f} s"
            for one in self.variants
        ]
        lines.append(f"    single columns only: {_listed(self.alone)}")
        lines.append(f"    sampling error, without privacy: {_listed(self.chance)}")
        lines += [f"  {one.variant:<8}   protects {one.protects}" for one in self.variants]
        return self._printed(*lines, *(f"  left out   {text}" for text in self.left_out))


def _listed(expected: tuple[Expected, ...]) -> str:
    return ", ".join(f"{one.columns}: {one}" for one in expected)


def wider_words(factor: float) -> str:
    """Return in words how much wider than on pooled rows an interval will be; infinitely if there is none."""
    if factor == inf:
        return "the noise is too large for intervals of regressions on all columns"
    return f"its interval will be about {factor:.2g} times as wide as on pooled rows"


class PublishedError(Document):
    """What noise does to one kind of published number: `error` is graded, `words` say its unit.

    `chance` is the error of as many people without privacy, against the population they are drawn from; None where it
    does not apply. `wider`: how many times as wide as on pooled rows its interval will be, where it has one; infinite
    if it has none at this budget.
    """

    what: str
    error: float
    words: str
    chance: float | None = None
    wider: float | None = None

    @classmethod
    def of_interval(cls, what: str, width: float, wider: float, unit: str) -> Self:
        """Return the error of a number with a 95 % interval of this width, so many times that on pooled rows."""
        deviation = MEAN_ABSOLUTE * width / (2 * _NORMAL)
        return cls(
            what=what,
            error=deviation * sqrt(max(0.0, 1 - wider**-2)),
            words=f"{unit}; {wider_words(wider)}",
            chance=deviation / wider,
            wider=wider,
        )

    @property
    def grade(self) -> Grade:
        """The grade by `RULE`."""
        return "good" if self.error <= GOOD else "fair" if self.error <= POOR else "poor"

    def __str__(self) -> str:
        chance = "" if self.chance is None else f"; sampling error without privacy {self.chance:.3f}"
        return f"{self.what}: {self.error:.3f} {self.words}{chance}: {self.grade}"


@final
class NoiseAdvice(_Forecast):
    """What noise does to everything that a study publishes; `print` it to read it. From public numbers only.

    `errors` begin with the worst; `change` says what would make them smaller. `wanted` is the width of intervals that
    was asked for, against pooled rows, and `epsilon` the smallest that gives it to all; None if none up to 64 does.
    """

    errors: tuple[PublishedError, ...]
    change: str
    wanted: float | None = None
    epsilon: float | None = None

    @property
    def grade(self) -> Grade:
        """The grade of the largest error."""
        return self.errors[0].grade

    @property
    def words(self) -> str:
        """The forecast in one sentence, with what to change if it is poor."""
        worst = self.errors[0]
        told = f"{worst.grade}: {worst.what}, expected error {worst.error:.2f} {worst.words}"
        return f"{told}. {self.change}" if worst.grade == "poor" else told

    def __str__(self) -> str:
        lines = [f"  forecast   {self.words}", *(f"    {one}" for one in self.errors)]
        if self.wanted is not None:
            least = "no epsilon up to 64 is enough" if self.epsilon is None else f"epsilon {self.epsilon:.3g} is enough"
            lines.append(f"  width      all intervals at most {self.wanted:g} times as wide as on pooled rows: {least}")
        return self._printed(*lines, f"  rule       {RULE}")
