"""One self-contained HTML page: no script, no outside file; light, dark, printed, by keyboard and by screen reader."""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, final

from syndic.report.figure import Bars, Figure
from syndic.report.svg import STYLE, element, escape, number

_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?(?![\w-])")
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>#|~&]")


@final
@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"table '{self.caption}': every row must have {len(self.head)} texts")

    @property
    def of_numbers(self) -> list[bool]:
        """For each column whether it is set to the right: most of its texts begin as a number does."""
        found = ([bool(_NUMBER.match(text)) for text in column if text] for column in zip(*self.rows, strict=True))
        wide = [2 * sum(one) > len(one) for one in found] or [False] * len(self.head)
        return [False, *wide[1:]]


@final
@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, paragraphs, figures and tables. All of it is plain text, escaped later.

    `points` are a list, `commands` are lines to type. `owner` marks a private section.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Grid, ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    owner: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Page:
    """A report: its title, warnings, main numbers and sections.

    `warnings`, read first, have a title and points. `owner` names the party whose private numbers the page
    contains; every section is then marked.
    """

    title: str
    subtitle: str
    lead: str
    warnings: tuple[Section, ...]
    facts: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]
    footer: str
    owner: str = ""

    def to_html(self) -> str:
        """Return the page."""
        style = _style(self.owner)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        named = f"OWNER ONLY: {self.title}" if self.owner else self.title
        head = (
            '<meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            '<meta name="referrer" content="no-referrer">'
            f"<title>{escape(named)} - {escape(self.subtitle)}</title><style>{style}</style>"
        )
        return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{self._body()}\n</body>\n</html>\n'

    def to_markdown(self) -> str:
        """Return the page as Markdown; figures are left out, and nothing in a text is markup."""
        lines = [f"# {_plain(self.title)}", _plain(self.subtitle), _plain(self.lead)]
        for one in self.warnings:
            lines += [f"**{_plain(one.title)}**", _points(one.points)]
        lines += [_points(" - ".join(fact for fact in one if fact) for one in self.facts)]
        for place, section in enumerate(self.sections, start=1):
            lines += [f"## {place}. {_plain(section.title)}", *map(_plain, section.paragraphs), _points(section.points)]
            lines += [grid_markdown(table) for table in section.tables]
            lines += ["".join(f"    {command}\n" for command in section.commands), *map(_plain, section.notes)]
        return "\n\n".join(one.strip("\n") for one in (*lines, _plain(self.footer)) if one) + "\n"

    def _body(self) -> str:
        parts = [element("a", "Skip to the report", href="#report", class_="skip")]
        if self.owner:
            parts.append(element("p", escape(_mark(self.owner)), class_="owner-bar"))
        heading = element("p", escape(self.subtitle), class_="kicker") + element("h1", escape(self.title))
        parts.append(element("header", heading + element("p", escape(self.lead), class_="lead")))
        parts.append('<main id="report">')
        for alert in self.warnings:
            content = element("h2", escape(alert.title)) + _listed(alert.points)
            parts.append(element("section", content, class_="warning", aria_label="warning"))
        parts.append(_facts(self.facts))
        sections = list(enumerate(self.sections, start=1))
        links = "".join(element("li", element("a", escape(one.title), href=f"#part-{k}")) for k, one in sections)
        parts.append(element("nav", element("h2", "Contents") + element("ol", links), aria_label="Contents"))
        parts += [self._section(place, one) for place, one in sections]
        parts += ["</main>", element("footer", element("p", escape(self.footer)))]
        return "\n".join(parts)

    def _section(self, place: int, one: Section) -> str:
        parts = [element("h2", f"{place}. {escape(one.title)}", id=f"heading-{place}")]
        if self.owner:
            parts.append(element("p", escape(_mark(self.owner)), class_="owner-mark"))
        parts += [element("p", escape(text)) for text in one.paragraphs]
        if one.points:
            parts.append(_listed(one.points))
        if one.figures:
            parts.append(element("div", "".join(_figure(figure) for figure in one.figures), class_="figures"))
        parts += [grid_html(table) for table in one.tables]
        if one.commands:
            typed = element("code", escape("\n".join(one.commands)))
            parts.append(element("pre", typed, tabindex=0, role="region", aria_label="commands"))
        parts += [element("p", escape(text), class_="note") for text in one.notes]
        where = {"id": f"part-{place}", "aria_labelledby": f"heading-{place}"}
        return element("section", "\n".join(parts), **where, class_="private" if one.owner else "public")


def grid_html(table: Grid) -> str:
    """Return a table that a screen reader can navigate and that scrolls if it is too wide."""
    kinds = ["number" if one else "text" for one in table.of_numbers]
    head = "".join(
        element("th", escape(text), scope="col", class_=kind) for text, kind in zip(table.head, kinds, strict=True)
    )
    rows = []
    for row in table.rows:
        first = element("th", escape(row[0]), scope="row") if row else ""
        rest = "".join(element("td", escape(text), class_=kind) for text, kind in zip(row[1:], kinds[1:], strict=True))
        rows.append(element("tr", first + rest))
    caption = element("caption", escape(table.caption))
    body = element("thead", element("tr", head)) + element("tbody", "".join(rows))
    return element("div", element("table", caption + body), class_="scroll", tabindex=0, role="region",
                   aria_label=table.caption)  # fmt: skip


def grid_markdown(table: Grid) -> str:
    """Return a table in Markdown."""
    bars = ["---:" if one else "---" for one in table.of_numbers]
    rows = (f"| {' | '.join(map(_plain, row))} |" for row in table.rows)
    return "\n".join(
        (f"{_plain(table.caption)}:\n", f"| {' | '.join(map(_plain, table.head))} |", f"|{'|'.join(bars)}|", *rows)
    )


def _listed(points: Iterable[str]) -> str:
    return element("ul", "".join(element("li", escape(text)) for text in points))


def _points(points: Iterable[str]) -> str:
    return "\n".join(f"- {_plain(text)}" for text in points)


def _plain(text: str) -> str:
    """Return the text on one line, with what Markdown and HTML would read as markup escaped."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _figure(figure: Figure) -> str:
    words = element("p", escape(figure.description), class_="note") if figure.description else ""
    numbers = ""
    if isinstance(figure, Bars) and figure.labels:
        values = ([number(value, figure.form) for value in one.values] for one in figure.series)
        head = ("value", *(one.name for one in figure.series))
        rows = tuple(zip(figure.labels, *values, strict=True))
        grid = Grid(f"{figure.title}: the numbers of the figure", head, rows)
        numbers = element("details", element("summary", "The numbers") + grid_html(grid))
    wide = "wide" if figure.width > 400 else "narrow"
    caption = element("figcaption", escape(figure.title))
    return element("figure", caption + figure.inline() + words + numbers, class_=wide)


def _facts(facts: tuple[tuple[str, str, str], ...]) -> str:
    cards = "".join(
        element("div", element("dt", escape(name)) + element("dd", element("strong", escape(value))
                + element("span", escape(meaning)))) for name, value, meaning in facts
    )  # fmt: skip
    return element("section", element("h2", "At a glance", id="glance") + element("dl", cards, class_="facts"),
                   aria_labelledby="glance")  # fmt: skip


def _mark(owner: str) -> str:
    return f"OWNER ONLY - private to {owner}. Not part of the release. Do not pass on."


def _style(owner: str) -> str:
    style = (files("syndic.report") / "page.css").read_text() + STYLE
    if not owner:
        return style
    # a party's name is made of ASCII letters, digits, "-" and "_": it cannot end the text
    text = f'"OWNER ONLY - {owner} - page " counter(page)'
    return f"{style}@page{{margin:20mm 12mm;@top-center{{content:{text};font:700 10pt sans-serif;color:#7a2e00}}}}"
