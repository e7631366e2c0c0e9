"""`reproduce`: published tables and figures again, beside ours."""

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
@click.option("--only", "names", metavar="NAME", multiple=True, help="Items whose names begin so; may be repeated.")
@click.option("--quick", is_flag=True, help="Within ten minutes on two idle cores: fewer repeats, fewer items.")
@click.option(
    "--out",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default="reproduced",
    show_default=True,
    help="Where rows and the report go; what is there already is not run again.",
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), default=2, show_default=True, help="How many items at a time."
)
@click.option("--list", "listed", is_flag=True, help="Only name the items, with what each takes or lacks here.")
@JSON
def reproduce(names: tuple[str, ...], quick: bool, folder: Path, jobs: int, listed: bool, as_json: bool) -> None:
    """Repeat published experiments and compare the results.

    Writes report.html, report.md and one JSON file for each item. The same command continues an interrupted run.
    Ends with status 1 if a measurement failed. Reads data sets from the folder that SYNDIC_DATA names.
    """
    items = chosen(names)
    if listed:
        _list(items, quick, as_json)
        return
    done = run_items(items, folder, quick=quick, jobs=jobs, tell=lambda text: click.echo(text, err=True))
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
        told = ": ".join(stated) if stated else f"about {in_words(item.expected(quick) or 0.0)} of processor time"
        found.append({"name": item.name, "where": f"{item.paper.key}, {item.where}", "what": told})
    if as_json:
        show.as_json(found)
    else:
        show.as_table("tables and figures", ("name", "where", "here"), (tuple(each.values()) for each in found))
