"""The few pieces of SVG that figures are made of: escaped text, elements, tidy axes, one colour-blind safe style."""

import html
import re
import unicodedata
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
