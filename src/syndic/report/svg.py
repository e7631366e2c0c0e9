"""The few pieces of SVG that figures are made of: escaped text, elements, tidy axes, one colour-blind safe style."""

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Literal

Form = Literal["number", "percent"]

FONT_SIZE = 12
HARD = "\u00a0"  # a space that no line ends at
_CHARACTER = 6.6  # pixels that an average character takes at this size
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# characters that neither XML nor HTML may contain
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Okabe and Ito's colours, darkened or lightened to 3:1 against their background. No colour carries a meaning
# alone: later series are also hollow, later lines dashed.
STYLE = """
.figure{--ink:#1d2329;--soft:#4e5861;--grid:#d9dee3;--paper:#fff;
--tint0:#0072b2;--tint1:#c55200;--tint2:#00805d;--tint3:#a3447c;--tint4:#59636b;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
.figure text{fill:var(--ink)}.figure .soft{fill:var(--soft)}.figure .strong{font-weight:600}
.figure .paper{fill:var(--paper)}.figure .grid{stroke:var(--grid);stroke-width:1;fill:none}
.figure .axis{stroke:var(--soft);stroke-width:1;fill:none}
.figure .void{fill:none;stroke:var(--grid);stroke-dasharray:2 2}
.figure .bar{fill:currentColor;stroke:currentColor;stroke-width:1}.figure .hollow{fill-opacity:.18}
.figure .cell{fill:currentColor}.figure .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.figure .dot{fill:currentColor}.figure .band{fill:currentColor;fill-opacity:.18}
.figure .rest{fill:var(--grid)}
.tint0{color:var(--tint0)}.tint1{color:var(--tint1)}.tint2{color:var(--tint2)}
.tint3{color:var(--tint3)}.tint4{color:var(--tint4)}
@media (prefers-color-scheme:dark){.figure{--ink:#e8ecf0;--soft:#b3bdc6;--grid:#3a434c;--paper:#14181c;
--tint0:#56b4e9;--tint1:#e69f00;--tint2:#2fc79b;--tint3:#e08fbd;--tint4:#aab4bd}}
@media print{.figure{--ink:#000;--soft:#333;--grid:#ccc;--paper:#fff;
--tint0:#0072b2;--tint1:#c55200;--tint2:#00805d;--tint3:#a3447c;--tint4:#59636b}}
"""
TINTS = 5
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2")


def escape(text: str) -> str:
    """Return the text as it may stand in HTML and XML, between tags or in an attribute."""
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """Return an element; `content` is markup already, attributes are escaped here.

    `view_box` and names that end in an underscore are written as SVG spells them, `stroke_width` as stroke-width.
    """
    written = []
    for key, value in attributes.items():
        shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        spelled = "viewBox" if key == "view_box" else key.rstrip("_").replace("_", "-")
        written.append(f' {spelled}="{escape(shown)}"')
    return f"<{name}{''.join(written)}>{content}</{name}>"


def label(
    text: str, x: float, y: float, *, anchor: str = "start", kind: str = "", room: float = 1e9, turned: bool = False
) -> str:
    """Return text at a place, cut to `room` pixels; the whole text then is its title."""
    short = fit(text, room)
    content = escape(short) + (element("title", escape(text)) if short != text else "")
    where: dict[str, str | float] = {"transform": f"translate({x:.1f} {y:.1f}) rotate(-40)"} if turned else {}
    place = where or {"x": float(x), "y": float(y)}
    return element("text", content, **place, text_anchor=anchor, **({"class_": kind} if kind else {}))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def box(
    x: float, y: float, width: float, height: float, kind: str, *, title: str = "", opacity: float | None = None
) -> str:
    """Return a rectangle; `title` is shown when pointed at."""
    extra: dict[str, str | float] = {} if opacity is None else {"fill_opacity": opacity}
    content = element("title", escape(title)) if title else ""
    size = {"width": float(max(width, 0.0)), "height": float(max(height, 0.0))}
    return element("rect", content, x=float(x), y=float(y), **size, class_=kind, **extra)


def text_width(text: str) -> float:
    """Return about how many pixels the text takes."""
    return sum(_CHARACTER * (2 if unicodedata.east_asian_width(letter) in "WF" else 1) for letter in text)


def fit(text: str, room: float) -> str:
    """Return the text, cut with an ellipsis to `room` pixels."""
    if text_width(text) <= room:
        return text
    while text and text_width(text) + _CHARACTER > room:
        text = text[:-1]
    return text.rstrip() + "…"


def number(value: float, form: Form = "number") -> str:
    """Return a number as people write it: 12,345 or 0.0123 or 73.1 %."""
    if not isfinite(value):
        return "unbounded" if value > 0 else "none"
    if form == "percent":
        return f"{100 * value:.3g}{HARD}%" if abs(value) < 0.9995 else f"{100 * value:.0f}{HARD}%"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:.3g}"


def power(exponent: int) -> str:
    """Return ten to the exponent, as 10⁻⁵."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}" if exponent not in (0, 1) else str(10**exponent)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) that cover low to high."""
    if not high > low:
        high = low + 1
    rough = (high - low) / about
    size = 10.0 ** floor(log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten around low to high, or round numbers where that would be fewer than two decades."""
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    if last - first < 2:
        within = [10.0**e * times for e in range(first, last + 1) for times in (1, 2, 5)]
        below = max((tick for tick in within if tick <= low * 1.000001), default=low)
        above = min((tick for tick in within if tick >= high * 0.999999), default=high)
        return [tick for tick in within if below <= tick <= above] if above > below else [low / 2, low, low * 2]
    stride = max(1, ceil((last - first) / 7))
    return [10.0**e for e in range(last, first - stride, -stride)][::-1]


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
