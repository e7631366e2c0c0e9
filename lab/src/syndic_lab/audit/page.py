"""What audits found as a file: JSON, a Markdown page of tables, or one HTML page with a plot."""

from pathlib import Path
from typing import Final

from syndic.document import to_readable_json
from syndic.errors import InputError
from syndic.report.figure import Bars, Series
from syndic.report.page import Grid, Page, Section
from syndic.version import __version__
from syndic_lab.audit.observation import Finding
from syndic_lab.audit.planted import Caught
from syndic_lab.audit.run import AuditReport, PlantedReport

Report = AuditReport | PlantedReport

BOUND_HEAD: Final = (
    "claim",
    "view",
    "test",
    "epsilon",
    "delta",
    "at least",
    "by its charge",
    "nearest",
    "runs",
    "holds",
)
FACT_HEAD: Final = ("claim", "view", "test", "what", "runs", "holds")
FAULT_HEAD: Final = ("fault", "what is wrong", "caught by", "claimed", "at least", "delta", "caught")


def write_page(report: Report, path: str | Path) -> Path:
    """Write a report as `.json`, `.md` or `.html`, and return the path."""
    path = Path(path)
    match path.suffix:
        case ".json":
            path.write_bytes(to_readable_json(report))
        case ".md":
            path.write_text(_page(report).to_markdown())
        case ".html":
            path.write_text(_page(report).to_html())
        case _:
            raise InputError(f"{path.name}: unknown file type; an audit report can be written as .json, .md or .html")
    return path


def tables_of(report: Report) -> tuple[Grid, ...]:
    """Return the report's tables."""
    if isinstance(report, PlantedReport):
        return (Grid(caption="planted faults", head=FAULT_HEAD, rows=tuple(map(_fault_row, report.faults))),)
    bounds = [each for each in report.findings if each.epsilon is not None]
    facts = [each for each in report.findings if each.epsilon is None]
    return (
        Grid("lower bounds on epsilon", BOUND_HEAD, tuple(map(_bound_row, bounds))),
        Grid(caption="laws and facts", head=FACT_HEAD, rows=tuple(map(_fact_row, facts))),
    )


def summary_of(report: Report) -> str:
    """Return one sentence about the whole."""
    if isinstance(report, PlantedReport):
        count = sum(not each.control for each in report.faults)
        missed = ", ".join(report.missed) or "none"
        return f"{count} planted faults, missed or wrongly accused: {missed}; seed {report.seed}"
    told = "every claim holds" if not report.broken else f"{len(report.broken)} claims are BROKEN"
    if report.left:
        told += f"; interrupted before {len(report.left)} audits were done"
    return (
        f"{told}: {len(report.findings)} findings, all of them right but for a chance of {report.alarm:g}; "
        f"{report.effort}, seed {report.seed}"
    )


def _bound_row(finding: Finding) -> tuple[str, ...]:
    nearest = f"{_short(finding.tight_shown)} of {_short(finding.tight_epsilon)} at {finding.tight_delta or 0:g}"
    return (
        finding.audit,
        finding.view,
        finding.test,
        _short(finding.epsilon),
        f"{finding.delta or 0:g}",
        _short(finding.shown),
        "-" if finding.part is None else _short(finding.part_shown),
        nearest,
        finding.text or str(finding.runs),
        _yes(finding.holds),
    )


def _fact_row(finding: Finding) -> tuple[str, ...]:
    return (finding.audit, finding.view, finding.test, finding.text, str(finding.runs), _yes(finding.holds))


def _fault_row(fault: Caught) -> tuple[str, ...]:
    caught = "yes" if fault.caught else "NO"
    return (
        fault.fault,
        fault.what,
        "; ".join(fault.by) or "-",
        _short(fault.epsilon),
        _short(fault.shown),
        "-" if fault.delta is None else f"{fault.delta:g}",
        ("no, it is sound" if not fault.caught else "WRONGLY ACCUSED") if fault.control else caught,
    )


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "BROKEN"


def _page(report: Report) -> Page:
    planted = isinstance(report, PlantedReport)
    wrong = report.missed if isinstance(report, PlantedReport) else tuple(each.audit for each in report.broken)
    return Page(
        title="Planted faults" if planted else "Audit of every claim",
        subtitle="Syndic",
        lead=summary_of(report) + ".",
        warnings=(Section(title="Not as it should be", points=wrong),) if wrong else (),
        facts=(),
        sections=_sections(report),
        footer=f"Made by Syndic {__version__}. Tables were made up; nobody's rows are in it.",
    )


def _sections(report: Report) -> tuple[Section, ...]:
    tables = tables_of(report)
    pictures = (Section(title="Claimed and shown", figures=(_picture(report),)),) if _bounds(report) else ()
    return (*pictures, *(Section(title=table.caption.capitalize(), tables=(table,)) for table in tables))


def _bounds(report: Report) -> list[tuple[str, float, float]]:
    """Return every claim with its epsilon and what was shown of it, at the delta that the claim is stated at."""
    if isinstance(report, PlantedReport):
        return [(each.fault, each.epsilon, each.shown or 0.0) for each in report.faults if each.epsilon is not None]
    found = [each for each in report.findings if each.epsilon is not None]
    return [(f"{each.audit}: {each.view}", each.epsilon or 0.0, each.shown or 0.0) for each in found]


def _picture(report: Report) -> Bars:
    bounds = _bounds(report)
    return Bars(
        title="Epsilon that is claimed, and the lower bound that an attack shows",
        description=f"{len(bounds)} pairs of bars: the claim and the lower bound",
        labels=tuple(name for name, _, _ in bounds),
        series=(
            Series("claimed", tuple(round(claim, 3) for _, claim, _ in bounds)),
            Series("at least", tuple(round(shown, 3) for _, _, shown in bounds)),
        ),
        lying=True,
        axis="epsilon",
    )
