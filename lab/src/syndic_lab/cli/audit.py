"""`audit`: try to break every privacy claim."""

import sys
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON
from syndic_lab.audit import AuditReport, BrokenClaimError, PlantedReport, audits, faults, plant
from syndic_lab.audit import audit as run_audits
from syndic_lab.audit.page import summary_of, tables_of, write_page


@click.command(epilog="\b\nExample: syndic audit homm marginals --quick")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick/--full", default=True, help="About two minutes, or a quarter of an hour.")
@click.option("--planted", is_flag=True, help="Plant faults instead, and check that the audits find them.")
@click.option("--list", "listed", is_flag=True, help="Only name the audits, or with --planted the faults.")
@click.option("--seed", type=int, help="Repeat a run: its report names its seed.")
@click.option(
    "--out", "target", metavar="FILE", type=click.Path(path_type=Path), help="Also write .json, .md or .html."
)
@JSON
def audit(
    names: tuple[str, ...],
    quick: bool,
    planted: bool,
    listed: bool,
    seed: int | None,
    target: Path | None,
    as_json: bool,
) -> None:
    """Try to break the privacy claims of mechanisms and methods.

    Audits all of them, or those whose names begin with a NAME. Ends with status 1 if a claim is broken.
    """
    if listed:
        _list(planted, as_json)
        return
    report = _run(names, quick, planted, seed, as_json)
    if as_json:
        show.as_json(report)
    else:
        _print(report)
    if target is not None:
        write_page(report, target)
        click.echo(f"wrote {target}", err=as_json)
    try:
        report.check()
    except BrokenClaimError as error:
        if not as_json:
            raise
        sys.exit(error.exit_code)


def _run(
    names: tuple[str, ...], quick: bool, planted: bool, seed: int | None, as_json: bool
) -> AuditReport | PlantedReport:
    with show.progress_bar(shown=not as_json) as progress:

        def done(_name: str, place: int, total: int) -> None:
            progress("audit", place, total)

        if planted:
            return plant(names, seed=seed, progress=done)
        return run_audits(names, effort="quick" if quick else "full", seed=seed, progress=done)


def _list(planted: bool, as_json: bool) -> None:
    if planted:
        found = [{"name": each.name, "what": each.what} for each in faults()]
    else:
        found = [{"name": each.name, "what": each.level} for each in audits()]
    if as_json:
        show.as_json(found)
    else:
        show.as_lines({each["name"]: each["what"] for each in found})


def _print(report: AuditReport | PlantedReport) -> None:
    bounds, *facts = tables_of(report)
    show.as_table(bounds.caption, bounds.head, bounds.rows)
    for table in facts:
        odd = [row for row in table.rows if row[-1] != "yes"]
        click.echo(f"{table.caption}: {len(table.rows)} looked at, {len(odd)} not as claimed")
        for row in odd:
            click.echo("  " + ", ".join(row))
    click.echo(summary_of(report))
