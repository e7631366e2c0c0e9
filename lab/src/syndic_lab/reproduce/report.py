"""The report of a reproduction: one HTML page without outside assets, and the same in Markdown with SVG files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from syndic.report.page import Grid, Page, Section
from syndic_lab.bench.row import Row
from syndic_lab.reproduce.item import VERDICTS, Found, Item, Verdict
from syndic_lab.reproduce.pace import in_words
from syndic_lab.reproduce.run import Done, Outcome, machine

NUMBERS_HEAD: Final = ("what was run", "metric", "published", "ours", "error", "baseline", "unit", "verdict")
CLAIMS_HEAD: Final = ("what the paper says", "what was seen", "verdict")
_MEANING: Final = (
    "Agrees, same order, differs: how a number of ours lies to the published one, by the rule under each table; a "
    "claim in words agrees or differs. Error: the standard error over seeds, whose number is in brackets. A number "
    "within two of them agrees, an order within two of them is undecided. Cheaper, dearer: a cost, where less is "
    "better. Differs is no failure by itself: the notes name the cause that was tested, or say that none was found."
)


def write_report(items: Sequence[Item], done: Sequence[Done], folder: Path, *, quick: bool) -> tuple[Path, Path]:
    """Write `report.html`, `report.md` and its figures into the folder; return the two paths."""
    sections = sections_of(items, done)
    lead = summary_of(done)
    page = Page(
        title="Published tables and figures, run again",
        subtitle="Syndic reproduce" + (", quick" if quick else ""),
        lead=f"{lead}. {_MEANING}",
        warnings=(),
        facts=tuple((name, value, "where this was measured") for name, value in machine()),
        sections=tuple(section for _, section in sections),
        footer="Simulations on public or made-up data: nothing here protects anybody or is a release.",
    )
    html, text = folder / "report.html", folder / "report.md"
    html.write_text(page.to_html(), encoding="utf-8")
    text.write_text(_markdown(page, sections, folder), encoding="utf-8")
    return html, text


def summary_of(done: Sequence[Done]) -> str:
    """Return one sentence about the whole."""
    ran = [one for one in done if one.outcome is not None]
    counts = Counter(verdict for one in done for verdict in one.verdicts)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    seconds = sum(one.outcome.cpu_seconds for one in ran if one.outcome)
    return (
        f"{len(ran)} of {len(done)} tables and figures in {in_words(seconds)} of processor time: {said or 'no verdict'}"
    )


def sections_of(items: Sequence[Item], done: Sequence[Done]) -> list[tuple[str, Section]]:
    """Return the sections, each with a short name for files: summary, every table and figure, what is missing."""
    by_name = {one.name: one for one in done}
    found = [("summary", _summary(items, by_name))]
    for item in items:
        outcome = by_name[item.name].outcome
        if outcome is not None:
            found.append((item.name, _section(item, outcome)))
    found.append(("missing", _missing(items, by_name)))
    return found


def _summary(items: Sequence[Item], done: Mapping[str, Done]) -> Section:
    rows = []
    for item in items:
        one = done[item.name]
        counts = Counter(one.verdicts)
        seconds = "" if one.outcome is None else in_words(one.outcome.cpu_seconds)
        rows.append((item.name, item.where, one.state, *_counted(counts), seconds))
    head = ("name", "where", "state", *VERDICTS, "processor time")
    return Section(
        title="Summary",
        tables=(Grid("every table and figure, with its verdicts", head, tuple(rows)),),
        notes=("'kept' was measured by an earlier run with the same version, parameters and data.",),
    )


def _counted(counts: Mapping[Verdict, int]) -> list[str]:
    return [str(counts[verdict]) if counts.get(verdict) else "" for verdict in VERDICTS]


def _section(item: Item, outcome: Outcome) -> Section:
    """Return one table or figure: our pictures, numbers side by side, and by which rule they were judged."""
    rules = {item.rule(row.metric).words() for row in outcome.rows if row.published is not None}
    return Section(
        title=f"{item.paper.short}, {item.where}",
        paragraphs=(f"{item.what[0].upper()}{item.what[1:]}.",),
        figures=(*outcome.curves, *outcome.bars),
        tables=tuple(tables_of(item, outcome.rows)),
        notes=(*item.notes, *(f"{rule[0].upper()}{rule[1:]}." for rule in sorted(rules))),
    )


def tables_of(item: Item, rows: Sequence[Row]) -> list[Grid]:
    """Return published numbers beside ours, and claims beside what was seen."""
    shown = [row for row in rows if row.published is not None or (item.shown and row.metric.startswith(item.shown))]
    found = []
    if shown:
        numbers = tuple(_number_row(item, row) for row in shown)
        found.append(Grid(caption="published and ours", head=NUMBERS_HEAD, rows=numbers))
    if item.claims:
        measured = Found.of(rows)
        seen = [(claim.text, *reversed(claim.verdict(measured))) for claim in item.claims]
        found.append(Grid(caption="in words", head=CLAIMS_HEAD, rows=tuple(seen)))
    return found


def _number_row(item: Item, row: Row) -> tuple[str, ...]:
    verdict = "" if row.published is None else item.rule(row.metric).verdict(row.value, row.published, row.error)
    error = "" if row.error is None else f"{row.error:.1g} ({row.runs})"
    ours = (_short(row.published), _short(row.value), error, _short(row.baseline))
    return (row.row, row.metric, *ours, row.unit, verdict)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _missing(items: Sequence[Item], done: Mapping[str, Done]) -> Section:
    absent = [(item, done[item.name]) for item in items if done[item.name].outcome is None]
    rows = tuple(
        (item.name, item.paper.title, f"{item.where}: {item.what}", one.state, one.why) for item, one in absent
    )
    return Section(
        title="What was not reproduced, and why",
        paragraphs=() if rows else ("Everything that was asked for was run.",),
        tables=(Grid(caption="not reproduced", head=("name", "paper", "what", "state", "why"), rows=rows),)
        if rows
        else (),
    )


def _markdown(page: Page, sections: Sequence[tuple[str, Section]], folder: Path) -> str:
    lines = [f"# {page.title}", "", page.lead, "", *(f"- {name}: {value}" for name, value, _ in page.facts), ""]
    for key, section in sections:
        lines += [f"## {section.title}", "", *(text for each in section.paragraphs for text in (each, ""))]
        for place, figure in enumerate(section.figures, start=1):
            path = folder / "figures" / f"{key}-{place}.svg"
            path.parent.mkdir(exist_ok=True)
            path.write_text(figure.to_svg(), encoding="utf-8")
            lines += [f"![{_cell(figure.title)}](figures/{path.name})", ""]
        for table in section.tables:
            lines += [f"### {table.caption}", "", *_table(table), ""]
        lines += [text for each in section.notes for text in (each, "")]
    return "\n".join([*lines, page.footer, ""])


def _table(table: Grid) -> list[str]:
    rule = "|".join("---:" if one else "---" for one in table.of_numbers)
    rows = [f"| {' | '.join(map(_cell, row))} |" for row in table.rows]
    return [f"| {' | '.join(table.head)} |", f"|{rule}|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "/")
