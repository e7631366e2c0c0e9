"""Small pictures as frozen objects, drawn as SVG by a few lines of our own: bars, heat maps, curves.

A figure holds what it shows and says it again in words (`description`), so that nobody depends on seeing it. In a
page it follows the page's light or dark colours; `to_svg` gives a file that stands alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import final

from syndic.report.svg import (
    FONT_SIZE,
    STYLE,
    TINTS,
    Form,
    Frame,
    axis,
    bar_kind,
    bottom_height,
    bottom_labels,
    box,
    element,
    escape,
    joined,
    label,
    left_of,
    legend,
    legend_height,
    line,
    number,
    polyline,
    shares,
    text_width,
    thinned,
    tick_text,
    ticks,
)


@dataclass(frozen=True, kw_only=True)
class Figure(ABC):
    """A picture with a title and a description in words; what it shows is as public or private as its numbers."""

    title: str
    description: str = ""
    width: int = 320

    @property
    @abstractmethod
    def height(self) -> float:
        """The height in pixels at the figure's own width; a page may show it larger or smaller."""

    @abstractmethod
    def draw(self) -> list[str]:
        """Return the elements of the picture, title not included."""

    def inline(self) -> str:
        """Return the SVG element for an HTML page whose style sheet has `svg.STYLE`; the page writes the title."""
        words = element("title", escape(self.title))
        words += element("desc", escape(self.description)) if self.description else ""
        size = f"0 0 {self.width} {self.height:.0f}"
        return element("svg", words + "".join(self.draw()), view_box=size, role="img", class_="figure")

    def to_svg(self) -> str:
        """Return an SVG file: background, title and style included."""
        top = 26
        height = self.height + top
        words = element("title", escape(self.title)) + element("desc", escape(self.description or self.title))
        heading = label(self.title, 8, 17, kind="strong", room=self.width - 16)
        drawn = element("g", "".join(self.draw()), transform=f"translate(0 {top})")
        content = element("style", STYLE) + words + box(0, 0, self.width, height, "paper") + heading + drawn
        return element(
            "svg",
            content,
            xmlns="http://www.w3.org/2000/svg",
            view_box=f"0 0 {self.width} {height:.0f}",
            width=self.width,
            height=round(height),
            role="img",
            class_="figure",
        )


@dataclass(frozen=True)
class Series:
    """Named values, one for each label of the figure."""

    name: str
    values: tuple[float, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Bars(Figure):
    """Bars for each label, one per series. Lying bars suit names, standing ones suit values with an order.

    `most` is the end of the axis, shown behind lying bars; `pitch` is the room of a lying bar in pixels. `spans` has
    the interval of each of the first series' values, drawn over its bar, or None.
    """

    labels: tuple[str, ...]
    series: tuple[Series, ...]
    form: Form = "number"
    lying: bool = False
    axis: str = ""
    most: float | None = None
    pitch: int = 19
    spans: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        if len(self.spans) not in (0, len(self.labels)):
            raise ValueError(f"there are {len(self.spans)} spans for {len(self.labels)} labels")
        for one in self.series:
            if len(one.values) != len(self.labels):
                raise ValueError(f"series '{one.name}' has {len(one.values)} values for {len(self.labels)} labels")
            if not all(isfinite(value) for value in one.values):
                raise ValueError(f"series '{one.name}' has values that are not finite")

    @property
    def height(self) -> float:
        """Lying bars need a row each, standing ones a fixed height."""
        top = legend_height(self.series)
        if self.lying:
            return top + 12 + max(2, len(self.labels)) * self._row() + (16 if self.axis else 0)
        return top + 190

    def draw(self) -> list[str]:
        """Return the bars, their axis and, for several series, a legend."""
        values = [value for one in self.series for value in one.values]
        values += [end for span in self.spans if span is not None for end in span]
        low, high = min([0.0, *values]), max([0.0, *values]) if self.most is None else self.most
        names = legend([one.name for one in self.series], self.width, bars=True)
        if not self.labels:
            return [*names, label("nothing to show", self.width / 2, self.height / 2, anchor="middle", kind="soft")]
        return names + (self._lying if self.lying else self._standing)(low, high if high > low else low + 1)

    def _lying(self, low: float, high: float) -> list[str]:
        top = legend_height(self.series) + 4
        left = min(max((text_width(text) for text in self.labels), default=0.0) + 12, self.width * 0.42)
        ends = max((text_width(self._shown(value)) for one in self.series for value in one.values), default=0.0)
        scale = (self.width - left - ends - 10) / (high - low)
        pitch = self._row()
        thick = (pitch - 5) / max(1, len(self.series))
        drawn = []
        for place, text in enumerate(self.labels):
            y = top + place * pitch
            drawn.append(label(text, left - 6, y + (pitch - 5) / 2 + 4, anchor="end", room=left - 8))
            for index, one in enumerate(self.series):
                value = one.values[place]
                start, end = left + (min(value, 0) - low) * scale, left + (max(value, 0) - low) * scale
                y_bar = y + index * thick
                if self.most is not None and len(self.series) == 1:
                    drawn.append(box(left, y_bar, (high - low) * scale, thick - 1, "rest"))
                drawn.append(box(start, y_bar, end - start, thick - 1, bar_kind(index), title=self._words(one, place)))
                if index == 0 and (span := self._span(place)) is not None:
                    first, last, middle = *(left + (edge - low) * scale for edge in span), y_bar + thick / 2
                    drawn.append(line(first, middle, last, middle, "axis"))
                    end = max(end, last)
                after = end if self.most is None or len(self.series) > 1 else left + (high - low) * scale
                drawn.append(label(self._shown(value), after + 5, y_bar + thick / 2 + 4, kind="soft"))
        zero = left - low * scale
        drawn.append(line(zero, top - 2, zero, top + len(self.labels) * pitch - 2, "axis"))
        if self.axis:
            drawn.append(label(self.axis, left, self.height - 4, kind="soft", room=self.width - left))
        return drawn

    def _standing(self, low: float, high: float) -> list[str]:
        up = ticks(low, high, 4)
        foot = bottom_height(self.labels, (self.width - left_of(up, self.form) - 14) / len(self.labels)) + 2
        top, bottom = legend_height(self.series) + 8, self.height - foot
        frame = Frame.around(up, self.form, width=self.width, top=top, bottom=bottom)
        drawn = frame.rows(self.form, self.axis)
        slot = frame.wide / max(1, len(self.labels))
        thick = slot * (0.86 if len(self.labels) > 12 else 0.74) / max(1, len(self.series))
        for place in range(len(self.labels)):
            x = frame.left + slot * (place + 0.5) - thick * len(self.series) / 2
            for index, one in enumerate(self.series):
                start, end = sorted((frame.y(0), frame.y(one.values[place])))
                drawn.append(
                    box(x + index * thick, start, thick, end - start, bar_kind(index), title=self._words(one, place))
                )
            if (span := self._span(place)) is not None:
                drawn.append(line(x + thick / 2, frame.y(span[0]), x + thick / 2, frame.y(span[1]), "axis"))
        drawn.append(line(frame.left, frame.y(0), frame.left + frame.wide, frame.y(0), "axis"))
        return drawn + bottom_labels(self.labels, frame.left, slot, frame.bottom)

    def _row(self) -> float:
        return self.pitch + 10.0 * (len(self.series) - 1)

    def _shown(self, value: float) -> str:
        return number(value, self.form)

    def _words(self, one: Series, place: int) -> str:
        name = f"{one.name}, " if len(self.series) > 1 else ""
        span = self._span(place) if one is self.series[0] else None
        between = "" if span is None else f" ({self._shown(span[0])} to {self._shown(span[1])})"
        return f"{name}{self.labels[place]}: {self._shown(one.values[place])}{between}"

    def _span(self, place: int) -> tuple[float, float] | None:
        return self.spans[place] if self.spans else None


@final
@dataclass(frozen=True, kw_only=True)
class Heat(Figure):
    """A grid of cells, stronger colour for larger values; values below 0 have another colour, NaN means none.

    `hundredths`: cells that have room also show their value as a number of hundredths. `marked`: the row and the column
    of this name are outlined.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    row_axis: str = ""
    column_axis: str = ""
    hundredths: bool = False
    marked: str | None = None

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"values must be {len(self.rows)} rows of {len(self.columns)} numbers")

    @property
    def height(self) -> float:
        """Cells are about square, within limits."""
        return self._grid_height() + self._below() + 44

    def draw(self) -> list[str]:
        """Return the cells, both axes and the scale."""
        left = min(max((text_width(text) for text in self.rows), default=0.0) + 10, self.width * 0.34)
        top, wide, high = 22.0, self.width - left - 12, self._grid_height()
        finite = [abs(value) for row in self.values for value in row if isfinite(value)]
        most = max(finite, default=0.0) or 1.0
        slot, pitch = wide / max(1, len(self.columns)), high / max(1, len(self.rows))
        drawn = [label(f"{self.row_axis} ↓", 4, 13, kind="soft", room=self.width - 8)] if self.row_axis else []
        for i, row in enumerate(self.values):
            for j, value in enumerate(row):
                x, y = left + j * slot, top + i * pitch
                drawn.append(self._cell(x, y, slot, pitch, (i, j, value, most)))
                if self.hundredths and isfinite(value) and slot >= 2 * FONT_SIZE and pitch >= FONT_SIZE:
                    shown = "<1" if 0 < value < 0.005 else f"{100 * value:.0f}"
                    drawn.append(label(shown, x + slot / 2, y + pitch / 2 + 4, anchor="middle"))
        for place in thinned(len(self.rows), pitch, FONT_SIZE + 3):
            y = top + (place + 0.5) * pitch + 4
            drawn.append(label(self.rows[place], left - 5, y, anchor="end", room=left - 7))
        if self.marked in self.rows:
            drawn.append(box(left, top + self.rows.index(self.marked) * pitch, wide, pitch, "axis"))
        if self.marked in self.columns:
            drawn.append(box(left + self.columns.index(self.marked) * slot, top, slot, high, "axis"))
        drawn += bottom_labels(self.columns, left, slot, top + high)
        return drawn + self._scale(left, top + high + self._below(), most)

    def _cell(self, x: float, y: float, slot: float, pitch: float, what: tuple[int, int, float, float]) -> str:
        i, j, value, most = what
        if not isfinite(value):
            return box(x + 0.5, y + 0.5, slot - 1, pitch - 1, "void", title=f"{self.rows[i]}, {self.columns[j]}: none")
        kind = "cell tint0" if value >= 0 else "cell tint1"
        title = f"{self.rows[i]}, {self.columns[j]}: {number(value)}"
        gap = 0.5 if min(slot, pitch) > 5 else 0.0
        shade = self._shade(abs(value) / most)
        return box(x + gap, y + gap, slot - 2 * gap, pitch - 2 * gap, kind, title=title, opacity=shade)

    def _shade(self, part: float) -> float:
        # the darkest colour still lets a number on it be read, in light and dark
        return 0.03 + (0.47 if self.hundredths else 0.97) * part

    def _scale(self, left: float, y: float, most: float) -> list[str]:
        """Return the axis' name and five steps from the weakest colour to the strongest."""
        signed = any(value < 0 for row in self.values for value in row)
        low, end = number(-most if signed else 0), number(most)
        steps = (-1.0, -0.5, 0.0, 0.5, 1.0) if signed else (0.0, 0.25, 0.5, 0.75, 1.0)
        x = self.width - 12 - text_width(end) - 5 - 14 * len(steps)
        drawn = [label(low, x - 5, y + 18, anchor="end", kind="soft")]
        if self.column_axis:
            drawn.append(
                label(f"{self.column_axis} →", left, y + 18, kind="soft", room=x - left - text_width(low) - 12)
            )
        for place, step in enumerate(steps):
            kind = "cell tint1" if step < 0 else "cell tint0"
            drawn.append(box(x + 14 * place, y + 9, 13, 11, kind, opacity=self._shade(abs(step))))
        return [*drawn, label(end, x + 14 * len(steps) + 5, y + 18, kind="soft")]

    def _grid_height(self) -> float:
        if self.hundredths:
            return len(self.rows) * min(max(self.width * 0.7 / max(1, len(self.columns)), 9.0), 26.0)
        square = (self.width * 0.72) / max(1, len(self.columns)) * len(self.rows)
        return float(min(max(square, 14 * min(len(self.rows), 12), 60), 230))

    def _below(self) -> float:
        return bottom_height(self.columns, (self.width * 0.7) / max(1, len(self.columns)))


@dataclass(frozen=True)
class Line:
    """Points (x, y) joined in order; `band` adds (x, lowest, highest) around them, such as a confidence interval."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...] = ()
    dots: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Curve(Figure):
    """Lines over two axes, each plain or logarithmic; marks are single points with a name.

    `y_least` is a value that the upright axis has to reach down to, such as 0.
    """

    lines: tuple[Line, ...]
    x_axis: str
    y_axis: str
    x_log: bool = False
    y_log: bool = False
    y_least: float | None = None
    marks: tuple[tuple[float, float, str], ...] = ()

    def __post_init__(self) -> None:
        xs, ys = self._spread()
        if not all(isfinite(value) for value in (*xs, *ys)):
            raise ValueError("points must be finite: leave out those that are not")
        if (self.x_log and min(xs, default=1) <= 0) or (self.y_log and min(ys, default=1) <= 0):
            raise ValueError("a logarithmic axis shows positive values only")

    @property
    def height(self) -> float:
        """A fixed height, and a row for the legend."""
        return legend_height(self.lines) + 216

    def draw(self) -> list[str]:
        """Return both axes, the lines, the marks and a legend."""
        xs, ys = self._spread()
        across, up = axis(xs, log=self.x_log), axis(ys, log=self.y_log)
        top = legend_height(self.lines) + 12
        frame = Frame.around(up, "number", width=self.width, top=top, bottom=self.height - 44, log=self.y_log)
        drawn = legend([one.name for one in self.lines], self.width, bars=False)
        drawn += frame.rows("number", self.y_axis)
        places = [frame.left + frame.wide * share for share in shares(across, across, log=self.x_log)]
        for place, tick in zip(places, across, strict=True):
            drawn.append(line(place, frame.bottom, place, frame.bottom + 4, "axis"))
            drawn.append(label(tick_text(tick, "number", log=self.x_log), place, frame.bottom + 16, anchor="middle"))
        drawn.append(label(self.x_axis, frame.left + frame.wide, frame.bottom + 32, anchor="end", kind="soft"))
        for index, one in enumerate(self.lines):
            drawn += self._line(index, one, frame, across)
        for x, y, name in self.marks:
            drawn += self._mark(*self._places([(x, y)], frame, across)[0], name)
        return [*drawn, line(frame.left, frame.bottom, frame.left + frame.wide, frame.bottom, "axis")]

    def _line(self, index: int, one: Line, frame: Frame, across: list[float]) -> list[str]:
        drawn, tint = [], f"tint{index % TINTS}"
        if one.band:
            edge = [(x, low) for x, low, _ in one.band] + [(x, high) for x, _, high in reversed(one.band)]
            drawn.append(element("polygon", points=joined(self._places(edge, frame, across)), class_=f"band {tint}"))
        places = self._places(one.points, frame, across)
        drawn.append(polyline(places, index))
        if one.dots or len(places) == 1:
            for (x, y), (right, value) in zip(places, one.points, strict=True):
                words = element("title", escape(f"{one.name}: {number(right)}, {number(value)}"))
                drawn.append(element("circle", words, cx=x, cy=y, r=3, class_=f"dot {tint}"))
        return drawn

    def _mark(self, x: float, y: float, name: str) -> list[str]:
        anchor = "end" if x + text_width(name) + 10 > self.width else "start"
        return [
            element("circle", cx=x, cy=y, r=4.5, class_="dot tint1"),
            label(name, x - 8 if anchor == "end" else x + 8, y - 7, anchor=anchor, kind="strong"),
        ]

    def _places(
        self, points: Sequence[tuple[float, float]], frame: Frame, across: list[float]
    ) -> list[tuple[float, float]]:
        along = shares([x for x, _ in points], across, log=self.x_log)
        return [(frame.left + frame.wide * share, frame.y(y)) for share, (_, y) in zip(along, points, strict=True)]

    def _spread(self) -> tuple[list[float], list[float]]:
        points = [point for one in self.lines for point in one.points] + [(x, y) for x, y, _ in self.marks]
        bands = [(x, edge) for one in self.lines for x, low, high in one.band for edge in (low, high)]
        least = [] if self.y_least is None else [self.y_least]
        return [x for x, _ in points + bands], [y for _, y in points + bands] + least
