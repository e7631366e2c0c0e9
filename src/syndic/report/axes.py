"""What pictures share: the frame with its upright axis, labels below it, dashes, legends."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

from syndic.report.svg import (
    DASHES,
    FONT_SIZE,
    TINTS,
    Form,
    box,
    element,
    label,
    line,
    log_ticks,
    number,
    power,
    text_width,
    ticks,
)

_LEGEND = 20.0
_TURNED = 100.0  # the longest turned text, in pixels


@dataclass(frozen=True)
class Frame:
    """The rectangle of a picture with an upright axis, whose ticks are `up`."""

    left: float
    wide: float
    top: float
    bottom: float
    up: list[float]
    log: bool

    @classmethod
    def around(
        cls, up: list[float], form: Form, *, width: int, top: float, bottom: float, log: bool = False
    ) -> "Frame":
        """Return the frame that leaves room for the texts of its ticks and for the axis' name above it."""
        left = left_of(up, form, log=log)
        return cls(left, width - left - 14, top + 12, bottom, up, log)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        return self.bottom - (self.bottom - self.top) * shares([value], self.up, log=self.log)[0]

    def rows(self, form: Form, name: str) -> list[str]:
        """Return grid lines, the texts of the ticks and the axis' name."""
        drawn = [label(name, 4, self.top - 10, kind="soft")] if name else []
        for tick in self.up:
            y = self.y(tick)
            drawn.append(line(self.left, y, self.left + self.wide, y, "grid"))
            drawn.append(label(tick_text(tick, form, log=self.log), self.left - 6, y + 4, anchor="end"))
        return drawn


def left_of(up: Sequence[float], form: Form, *, log: bool = False) -> float:
    """Return the room that the texts of an upright axis take, in pixels."""
    return max(text_width(tick_text(tick, form, log=log)) for tick in up) + 14


def axis(values: list[float], *, log: bool) -> list[float]:
    """Return ticks that cover the values."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    return log_ticks(low, high) if log else ticks(low, high)


def shares(values: Sequence[float], axis: list[float], *, log: bool) -> list[float]:
    """Return where the values stand between the first tick and the last, from 0 to 1."""
    turn = log10 if log else float
    low, high = turn(axis[0]), turn(axis[-1])
    return [(turn(value) - low) / (high - low) for value in values]


def tick_text(value: float, form: Form, *, log: bool) -> str:
    """Return the text of a tick: a power of ten where it is one, on a logarithmic axis."""
    exponent = log10(value) if log and value > 0 else 0.5
    return power(round(exponent)) if abs(exponent - round(exponent)) < 1e-9 else number(value, form)


def joined(places: Sequence[tuple[float, float]]) -> str:
    """Return places as SVG lists them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def polyline(places: Sequence[tuple[float, float]], index: int) -> str:
    """Return the places joined, in the colour and the dashes of the series `index`."""
    dashes = DASHES[index % len(DASHES)]
    style: dict[str, str | float] = {"stroke_dasharray": dashes} if dashes else {}
    return element("polyline", "", points=joined(places), class_=f"line tint{index % TINTS}", **style)


def bar_kind(index: int) -> str:
    """Return the style of a series of bars: every second one is hollow."""
    return f"bar tint{index % TINTS}" + (" hollow" if index % 2 else "")


def _level(labels: Sequence[str], slot: float) -> bool:
    """Say whether the labels fit side by side."""
    return all(text_width(text) <= slot - 2 for text in labels)


def bottom_height(labels: Sequence[str], slot: float) -> float:
    """Return the room that labels below a frame take, in pixels."""
    if _level(labels, slot):
        return 24.0
    longest = max(text_width(text) for text in labels)
    return 20.0 + 0.64 * min(longest, _TURNED) + FONT_SIZE / 2


def bottom_labels(labels: Sequence[str], left: float, slot: float, bottom: float) -> list[str]:
    """Return labels below a frame: level where they fit side by side, else turned, and not all of them if crowded."""
    if _level(labels, slot):
        middle = [left + slot * (place + 0.5) for place in range(len(labels))]
        return [label(text, x, bottom + 16, anchor="middle") for text, x in zip(labels, middle, strict=True)]
    drawn = []
    for place in thinned(len(labels), slot, FONT_SIZE + 7):
        x = left + slot * (place + 0.5) + 4
        # turned by 40 degrees, a text may be so long before it leaves the picture on the left
        drawn.append(label(labels[place], x, bottom + 13, anchor="end", turned=True, room=min(_TURNED, x / 0.77)))
    return drawn


def legend_height(entries: Sequence[object]) -> float:
    """Return the room of the legend, in pixels; one series alone needs none."""
    return _LEGEND if len(entries) > 1 else 0.0


def legend(names: Sequence[str], width: int, *, bars: bool) -> list[str]:
    """Return the names of the series beside their styles."""
    if len(names) < 2:
        return []
    drawn, x = [], 4.0
    together = sum(text_width(name) + 34 for name in names)
    room = float(width) if together <= width else (width - 8) / len(names) - 30
    for index, name in enumerate(names):
        if bars:
            drawn.append(box(x, 5, 11, 9, bar_kind(index)))
        else:
            drawn.append(polyline([(x, 10.0), (x + 16, 10.0)], index))
        drawn.append(label(name, x + 20, 14, room=room))
        x += min(text_width(name), room) + 34
    return drawn


def thinned(count: int, room: float, needed: float) -> list[int]:
    """Return the places of the labels to write where each has `room` pixels and needs more: every so many."""
    return list(range(0, count, max(1, ceil(needed / room))))
