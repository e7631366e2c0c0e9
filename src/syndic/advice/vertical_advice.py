"""What a vertical study would be worth under each method, in numbers and in plain words."""

from typing import Literal, final

from syndic.document import Document

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
