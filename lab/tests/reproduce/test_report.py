"""The report of a reproduction: verdicts, claims, figures, what is missing; nothing from outside."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from syndic.report.figure import Bars, Curve, Line, Series
from syndic_lab.bench.row import Row
from syndic_lab.reproduce import Claim, Done, Item, Paper, Rule
from syndic_lab.reproduce.report import summary_of, write_report
from syndic_lab.reproduce.run import Outcome

FIRST = Paper("first-2000", "First 2000: a method")
ITEMS = (
    Item(
        name="first-table-1",
        paper=FIRST,
        where="Table 1",
        what="losses",
        measure=lambda _: iter(()),
        rules=(("seconds", Rule(cost=True)), ("", Rule(within=0.1))),
        claims=(Claim(text="a is better than b", holds=lambda found: (found.one("a", "loss") < 1, "a at 1.05")),),
        shown=("gap",),
        notes=("Ours has half of the rows.",),
        seconds=(1.0, 2.0),
    ),
    Item(name="first-figure-1", paper=FIRST, where="Figure 1", what="a curve", reason="The data are <lost>."),
)


def row(name: str, metric: str, value: float, published: float | None = None, baseline: float | None = None) -> Row:
    return Row(bench="b", row=name, metric=metric, value=value, unit="u", baseline=baseline, published=published)


OUTCOME = Outcome(
    item="first-table-1",
    key="0",
    version="1",
    quick=True,
    cpu_seconds=12.3,
    seconds=20.0,
    rows=(row("a", "loss", 1.05, 1.0, 2.0), row("b|c", "loss", 9.0, 1.0), row("a", "seconds", 3.0, 4.0),
          row("a", "gap", 0.12345678), row("a", "not shown", 1.0)),
    curves=(Curve(title="A curve", lines=(Line("x", ((1.0, 2.0), (2.0, 3.0))),), x_axis="x", y_axis="y"),),
    bars=(Bars(title="Bars", labels=("one",), series=(Series("s", (1.0,)),)),),
)  # fmt: skip
DONE = (
    Done(name="first-table-1", state="done", outcome=OUTCOME, verdicts=tuple(ITEMS[0].verdicts(OUTCOME.rows))),
    Done(name="first-figure-1", state="not reproducible", why=ITEMS[1].reason),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("syndic_lab.reproduce.report.machine", lambda: (("Syndic", "VERSION"), ("processors", "2")))
    write_report(ITEMS, DONE, tmp_path, quick=True)
    return tmp_path


def test_markdown(folder: Path, golden: Callable[[str, str], None]) -> None:
    golden("reproduce-report.md", (folder / "report.md").read_text())


def test_summary_counts_every_verdict() -> None:
    assert summary_of(DONE) == "1 of 2 tables and figures in 12 s of processor time: 1 agrees, 2 differs, 1 cheaper"


def test_the_page_has_tables_and_plots_and_nothing_from_outside(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "The data are &lt;lost&gt;." in page
    assert "Ours has half of the rows." in page
    assert "Agrees: within 10% or two standard errors; same order: within a factor of 4." in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "not shown" not in page


def test_markdown_links_to_figures_that_are_there(folder: Path) -> None:
    linked = re.findall(r"\((figures/[^)]+)\)", (folder / "report.md").read_text())
    assert linked == ["figures/first-table-1-1.svg", "figures/first-table-1-2.svg"]
    assert all((folder / path).read_text().startswith("<svg") for path in linked)
