"""What sharing would be worth, in numbers and in plain words."""

from typing import Final, Literal, final

from syndic.document import Document

Verdict = Literal["share", "some", "do not share"]
Standing = Literal["gains", "about even", "loses"]

EVEN: Final = 0.1
"""Predicted errors that differ by less than this part are told as about even."""

EVEN_IN_TRUTH: Final = 0.2
"""What about even says: the true errors differ by less than this part."""


class PartyAdvice(Document):
    """One party and one task, as root mean squared errors.

    `standing`: about even if the predicted errors jointly and `alone` differ by less than a tenth, which says that the
    true ones differ by less than a fifth. `pays`: jointly is better, be it only just. `close`: about even, or the
    shape decides. `epsilon`: its own epsilon from which on it gains, when all budgets are multiplied by `factor`; None
    if it does not up to 64.
    """

    party: str
    alone: float
    standing: Standing
    pays: bool
    close: bool
    epsilon: float | None
    factor: float | None


class TaskAdvice(Document):
    """One task: its error jointly at the study's budgets, pooled without privacy, and for every party.

    `joint_range` is from the kindest to the harshest shape that the people may have.
    """

    task: str
    joint: float
    joint_range: tuple[float, float]
    pooled: float
    parties: tuple[PartyAdvice, ...]


@final
class Advice(Document):
    """What sharing would be worth; `str(advice)` is for reading. Made of public numbers and assumptions only."""

    study: str
    digest: str
    verdict: Verdict
    words: str
    people: int
    rows_of_nobody: float
    tasks: tuple[TaskAdvice, ...]
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.study}  (digest {self.digest[:12]})", f"  verdict    {self.words}"]
        for task in self.tasks:
            low, high = task.joint_range
            lines.append(
                f"  {task.task}: error jointly {task.joint:.4g} ({low:.3g} to {high:.3g}, as people's shape is), "
                f"pooled without privacy {task.pooled:.4g}"
            )
            lines += [f"    {one.party:<12} alone {one.alone:.4g}: {_gain(one)}" for one in task.parties]
        return "\n".join([*lines, *(f"  assumes    {text}" for text in self.assumptions)])


def standing_of(joint: float, own: float) -> Standing:
    """Return what two predicted root mean squared errors say to a party."""
    if 1 / (1 + EVEN) < joint / own < 1 + EVEN:
        return "about even"
    return "gains" if joint < own else "loses"


def verdict_of(tasks: tuple[TaskAdvice, ...], people: int, nobody: float) -> tuple[Verdict, str]:
    """Return the verdict, and in words for whom sharing pays, or why it does not."""
    names = [one.party for one in tasks[0].parties]
    gains = {
        name: sum(one.standing == "gains" for task in tasks for one in task.parties if one.party == name)
        for name in names
    }
    noise = f"about {nobody:,.0f} of {people + nobody:,.0f} rows would be noise"
    if all(count == len(tasks) for count in gains.values()):
        return "share", f"SHARE: every party gains in every task, {len(tasks)} of {len(tasks)}; {noise}"
    if not any(gains.values()):
        return "do not share", f"DON'T SHARE: no party gains in any task; {noise}. {_way_out(tasks)}"
    told = ", ".join(f"{name} in {count} of {len(tasks)}" for name, count in gains.items())
    return "some", f"IT DEPENDS: tasks in which a party gains: {told}; {noise}"


def _way_out(tasks: tuple[TaskAdvice, ...]) -> str:
    starts = [one.factor for task in tasks for one in task.parties if one.factor is not None]
    if not starts:
        return "No epsilon up to 64 would change that: use fewer columns or bins, or another method"
    return f"The first gain would need all budgets times {min(starts):.3g}, or fewer columns or bins"


def _gain(one: PartyAdvice) -> str:
    verdict = {"gains": "sharing pays", "about even": "about even", "loses": "sharing does not pay"}[one.standing]
    verdict += ", if people have the usual shapes" if one.close and one.standing != "about even" else ""
    if one.epsilon is None:
        return f"{verdict}; no epsilon up to 64 is enough"
    return f"{verdict}; it starts to at epsilon {one.epsilon:.3g}"


Variant = Literal["shares", "sketch", "oracle", "glued"]
Recommended = Literal["shares", "sketch", "oracle", "glued", "none"]


class Expected(Document):
    """Expected mean distance (total variation, 0 to 1) of the release from the people, over sets of `columns` columns.

    `low` and `high` are of the easiest and the hardest crowd that was tried, `middle` of the one between.
    """

    columns: int
    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({self.low:.3f} to {self.high:.3f})"


class VariantAdvice(Document):
    """One method: what it is expected to reach, at most how much all roles send, and about how long it takes."""

    variant: Variant
    expected: tuple[Expected, ...]
    megabytes: float
    seconds: float
    protects: str


@final
class VerticalAdvice(Document):
    """Which method a vertical study should use; `str(advice)` is for reading. Made of public numbers and assumptions.

    `alone`: what single columns reach, counted with the whole budget and drawn independently. `chance`: how far a
    second sample of as many people is from the first, without privacy. `left_out`: methods that cannot run this study.
    """

    study: str
    digest: str
    recommended: Recommended
    words: str
    people: int
    variants: tuple[VariantAdvice, ...]
    alone: tuple[Expected, ...]
    chance: tuple[Expected, ...]
    left_out: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.study}  (digest {self.digest[:12]})", f"  verdict    {self.words}"]
        lines.append("  expected distance from the people (0 none, 1 all), by how many columns are looked at together:")
        lines += [
            f"    {one.variant:<8} {_told(one.expected)}; up to {one.megabytes:,.1f} MB, {one.seconds:,.0f} s"
            for one in self.variants
        ]
        lines.append(f"    single columns only: {_told(self.alone)}")
        lines.append(f"    chance alone, without privacy: {_told(self.chance)}")
        lines += [f"  {one.variant:<8}   protects {one.protects}" for one in self.variants]
        lines += [f"  left out   {text}" for text in self.left_out]
        return "\n".join([*lines, *(f"  assumes    {text}" for text in self.assumptions)])


def _told(expected: tuple[Expected, ...]) -> str:
    return ", ".join(f"{one.columns}: {one}" for one in expected)
