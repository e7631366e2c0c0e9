"""The section on reliability: the expected error of every column and pair, as a map with numbers and in sentences."""

from dataclasses import dataclass
from math import isfinite
from typing import Final, final

from syndic.methods.synthesis.trust import POOR, PairTrust, Reliability
from syndic.report.figure import Figure
from syndic.report.page import Grid, Section
from syndic.report.svg import FONT_SIZE, bottom_height, bottom_labels, box, label, number, text_width, thinned

_TARGET_MARK: Final = "▸ "
# the darkest colour still lets the text on it be read, in light and dark
_DARKEST: Final = 0.5
_LEAST_FOR_NUMBERS: Final = 24.0
_PITCH: Final = (9.0, 26.0)


@final
@dataclass(frozen=True, kw_only=True)
class ErrorMap(Figure):
    """A square of all columns by all columns: a colour and a number for each pair, outlined for the `marked` column.

    The diagonal has the single columns.
    """

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    marked: str | None = None
    width: int = 680

    def __post_init__(self) -> None:
        if any(len(row) != len(self.names) for row in self.values) or len(self.values) != len(self.names):
            raise ValueError(f"values must be {len(self.names)} rows of as many numbers")
        if not all(isfinite(value) and value >= 0 for row in self.values for value in row):
            raise ValueError("errors must be finite and not negative")

    @property
    def height(self) -> float:
        """Rows of a fixed height, the labels below and the scale."""
        return self._pitch * len(self.names) + bottom_height(self._labels, self._slot) + 34

    def draw(self) -> list[str]:
        """Return the cells with their numbers, both axes, the outline and the scale."""
        left, slot, pitch, labels = self._left, self._slot, self._pitch, self._labels
        most = max((value for row in self.values for value in row), default=0.0) or 1.0
        drawn = []
        for i, row in enumerate(self.values):
            for j, value in enumerate(row):
                x, y = left + j * slot, 6 + i * pitch
                title = f"{self.names[i]}, {self.names[j]}: {value:.3f}" if i != j else f"{self.names[i]}: {value:.3f}"
                shade = 0.02 + (_DARKEST - 0.02) * value / most
                drawn.append(box(x + 0.5, y + 0.5, slot - 1, pitch - 1, "cell tint1", title=title, opacity=shade))
                if slot >= _LEAST_FOR_NUMBERS and pitch >= FONT_SIZE:
                    drawn.append(label(_short(value), x + slot / 2, y + pitch / 2 + 4, anchor="middle"))
        for place in thinned(len(labels), pitch, FONT_SIZE + 1):
            kind = "strong" if self.names[place] == self.marked else ""
            y = 6 + (place + 0.5) * pitch + 4
            drawn.append(label(labels[place], left - 5, y, anchor="end", room=left - 7, kind=kind))
        bottom = 6 + pitch * len(labels)
        if self.marked in self.names:
            place = self.names.index(self.marked)
            drawn.append(box(left, 6 + place * pitch, slot * len(labels), pitch, "axis"))
            drawn.append(box(left + place * slot, 6, slot, pitch * len(labels), "axis"))
        drawn += bottom_labels(labels, left, slot, bottom)
        return drawn + self._scale(bottom + bottom_height(labels, slot) + 6, most)

    def _scale(self, y: float, most: float) -> list[str]:
        end, steps = number(round(most, 3)), (0.0, 0.25, 0.5, 0.75, 1.0)
        x = self.width - 12 - text_width(end) - 14 * len(steps)
        drawn = [label("expected error  0", x - 5, y + 10, anchor="end", kind="soft")]
        drawn += [
            box(x + 14 * place, y + 1, 13, 11, "cell tint1", opacity=0.02 + (_DARKEST - 0.02) * step)
            for place, step in enumerate(steps)
        ]
        return [*drawn, label(end, x + 14 * len(steps) + 5, y + 10, kind="soft")]

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(f"{_TARGET_MARK}{name}" if name == self.marked else name for name in self.names)

    @property
    def _left(self) -> float:
        return float(min(max((text_width(text) for text in self._labels), default=0.0) + 10, self.width * 0.3))

    @property
    def _slot(self) -> float:
        return (self.width - self._left - 12) / max(1, len(self.names))

    @property
    def _pitch(self) -> float:
        least, most = _PITCH
        return min(max(self._slot, least), most)


def reliability_section(reliability: Reliability) -> Section:
    """Return the section: the sentence, the map, the worst pairs, and the relations to the target."""
    target = reliability.target
    marked = f" The target, {target}, is first and outlined." if target is not None else ""
    listed = reliability.worst() if target is None else reliability.with_target()
    caption = "Parts of the largest expected errors" if target is None else f"Relations to {target}, the worst first"
    return Section(
        title="Which relations can be relied on",
        paragraphs=(
            reliability.sentence,
            "An expected error is the total variation distance between this table and the rows behind it: 0 means the "
            "same shares, 1 nothing in common. It is computed from the release alone, from the noise on the counts, "
            "the values that were merged, and what the model does not hold. It is an expectation and not a bound: on "
            "made-up tables, most true errors are at most 1.5 times the expected one.",
        ),
        points=tuple(f"{pair}." for pair in reliability.worst()),
        figures=(_map(reliability, marked),),
        tables=(_grid(caption, listed),),
    )


def _map(reliability: Reliability, marked: str) -> ErrorMap:
    names = [one.column for one in reliability.columns]
    if reliability.target is not None:
        names.sort(key=lambda name: name != reliability.target)
    errors = {frozenset(pair.columns): pair.expected.error for pair in reliability.pairs}
    errors |= {frozenset((one.column,)): one.expected.error for one in reliability.columns}
    return ErrorMap(
        title="Expected error of every column and every pair",
        description=f"Numbers are hundredths of the largest possible error, 1. The diagonal has the single columns. "
        f"Above {POOR:g} (10), a relation is not held well.{marked}",
        names=tuple(names),
        values=tuple(tuple(errors[frozenset((one, other))] for other in names) for one in names),
        marked=reliability.target,
    )


def _grid(caption: str, pairs: tuple[PairTrust, ...]) -> Grid:
    return Grid(
        caption=caption,
        head=("columns", "expected error", "noise", "merged values", "model", "drawn rows", "association", "at most"),
        rows=tuple(
            (
                " x ".join(pair.columns),
                *(
                    f"{value:.3f}"
                    for value in (
                        pair.expected.error,
                        pair.expected.noise,
                        pair.expected.merged,
                        pair.expected.model,
                        pair.expected.drawn,
                        pair.strength,
                        pair.limit,
                    )
                ),
            )
            for pair in pairs
        ),
        numbers=tuple(range(1, 8)),
    )


def _short(value: float) -> str:
    return "<1" if 0 < value < 0.005 else f"{100 * value:.0f}"
