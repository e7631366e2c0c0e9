"""`ledger`: show, verify and export what was spent on a party's people."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.errors import InputError
from syndic.privacy import Ledger, shown
from syndic.privacy.spending import STUDY_COLUMNS

LEDGER = click.argument("file", type=PATH)


@click.group(epilog="\b\nExample: syndic ledger show run/parties/north/ledger.sqlite")
def ledger() -> None:
    """Read, verify and export a party's ledger."""


@ledger.command("show")
@LEDGER
@click.option("--calls", is_flag=True, help="Also every call that was answered or refused.")
@JSON
def show_entries(file: Path, calls: bool, as_json: bool) -> None:
    """Show what was spent per data set, and every agreement, withdrawal and charge."""
    with _existing(file) as book:
        spendings = [book.spent(dataset) for dataset in book.datasets()]
        studies = book.studies()
        entries = [entry for entry in book.entries() if calls or entry.kind != "call"]
    if as_json:
        show.as_json({"spent": spendings, "studies": studies, "entries": entries})
        return
    show.as_table(
        str(file),
        ("data set", "spent epsilon", "cap", "delta", "left"),
        (
            (
                one.dataset,
                shown(one.epsilon),
                shown(one.cap.epsilon),
                f"{float(one.delta):g}",
                f"{float(one.left):.4g}",
            )
            for one in spendings
        ),
    )
    if studies:
        show.as_table("studies", STUDY_COLUMNS, (one.row for one in studies))
    for one in studies:
        for text in one.price.discloses:
            click.echo(f"study {one.study[:12]} DISCLOSES: {text}")
    show.as_table(
        "entries",
        ("no.", "time", "kind", "data set", "study", "charge", "why"),
        (
            (
                str(entry.number),
                entry.time,
                entry.kind,
                entry.dataset,
                entry.study[:12],
                "; ".join(event.what for event in entry.events),
                f"{entry.why}: {entry.reply[:12]}" if entry.kind == "call" else entry.why,
            )
            for entry in entries
        ),
    )


@ledger.command()
@LEDGER
@click.option("--published", metavar="DIGEST", help="A head that was published or countersigned earlier.")
@JSON
def verify(file: Path, published: str | None, as_json: bool) -> None:
    """Check the chain: nothing changed, missing, reordered or cut."""
    with _existing(file) as book:
        book.verify(published=published)
        facts = {"file": str(file), "entries": sum(1 for _ in book.entries()), "head": book.head()}
    told = f"{file} verified: {facts['entries']} entries, head {facts['head']}"
    show.as_json_or(told, facts, as_json=as_json)


@ledger.command()
@LEDGER
@click.argument("target", type=PATH)
def export(file: Path, target: Path) -> None:
    """Write every entry to a .json or .csv file."""
    with _existing(file) as book:
        book.export(target)
    click.echo(f"wrote {target}")


def _existing(file: Path) -> Ledger:
    if not file.is_file():
        raise InputError(f"{file}: no such ledger")
    return Ledger.open(file, create=False)
