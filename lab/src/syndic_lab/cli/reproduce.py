"""`reproduce`: recompute published tables and figures and compare them with ours."""

import sys
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON
from syndic_lab.reproduce import Item, chosen
from syndic_lab.reproduce import reproduce as run_items
from syndic_lab.reproduce.pace import in_words
from syndic_lab.reproduce.report import summary_of, write_report
from syndic_lab.reproduce.run import reason_not_to


@click.command(epilog="\b\nExample: syndic reproduce --quick --only homm --out reproduced")
@click.option(
    "--only",
    "names",
    metavar="NAME",
    multiple=True,
    help="Run only items whose names begin with NAME. May be repeated.",
)
@click.option("--quick", is_flag=True, help="Fewer repetitions and items: at most ten minutes on two idle cores.")
@click.option(
    "--out",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default="reproduced",
    show_default=True,
    help="Folder for results and the report. Items with stored results are not run again.",
)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List the items with the time each needs, or why it cannot run here, and exit.",
)
@JSON
def reproduce(names: tuple[str, ...], quick: bool, folder: Path, listed: bool, as_json: bool) -> None:
    """Recompute the tables and figures of the published methods, and compare them with the published ones.

    Writes report.html, report.md and one JSON file for each item. An interrupted run continues where it stopped. The
    exit status is 1 if a measurement failed. Set SYNDIC_DATA to the folder with the data sets.
    """
    items = chosen(names)
    if listed:
        _list(items, quick, as_json)
        return
    done = run_items(items, folder, quick=quick, tell=lambda text: click.echo(text, err=True))
    paths = write_report(items, done, folder, quick=quick)
    if as_json:
        show.as_json({"summary": summary_of(done), "items": done})
    else:
        click.echo(summary_of(done))
    for path in paths:
        click.echo(f"wrote {path}", err=as_json)
    if any(one.state == "failed" for one in done):
        sys.exit(1)


def _list(items: tuple[Item, ...], quick: bool, as_json: bool) -> None:
    found = []
    for item in items:
        stated = reason_not_to(item, quick)
        need = ": ".join(stated) if stated else f"about {in_words(item.expected(quick) or 0.0)} of processor time"
        found.append({"name": item.name, "where": f"{item.paper.key}, {item.where}", "what": need})
    if as_json:
        show.as_json(found)
    else:
        show.as_table("tables and figures", ("name", "where", "here"), (tuple(each.values()) for each in found))
