"""`ledger`, `log`: what was spent on a party's people, what was asked and refused, and that neither was changed."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import Listed, command, example
from syndic.cli.show import FOLDER, JSON, PATH
from syndic.document import to_json
from syndic.errors import InputError
from syndic.privacy import Entry, Ledger, shown
from syndic.privacy.audit import AuditLog
from syndic.privacy.spending import STUDY_COLUMNS

LEDGER = click.argument("file", type=PATH)


@click.group(cls=Listed, epilog=example("syndic ledger show run/parties/north/ledger.sqlite"))
def ledger() -> None:
    """Read, verify or export a party's privacy ledger."""


@command(
    "syndic ledger show run/parties/north/ledger.sqlite",
    "syndic ledger show run/parties/north/ledger.sqlite --calls",
    of=ledger,
    name="show",
)
@LEDGER
@click.option("--calls", is_flag=True, help="Also show every call that was answered or refused.")
@JSON
def show_entries(file: Path, calls: bool, as_json: bool) -> None:
    """Show what was spent on each data set, and every agreement, withdrawal and charge."""
    with show.progress_bar("read the ledger", shown=not as_json), _existing(file) as book:
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
            show.wrapped("", f"study {one.study[:12]} DISCLOSES: {text}")
    click.echo("entries (times in UTC)")
    for entry in entries:
        _show_entry(entry)


@command(
    "syndic ledger verify run/parties/north/ledger.sqlite",
    "syndic ledger verify ledger.sqlite --published 4378ae6feef4...",
    of=ledger,
)
@LEDGER
@click.option("--published", metavar="DIGEST", help="A head that was published or countersigned earlier.")
@JSON
def verify(file: Path, published: str | None, as_json: bool) -> None:
    """Check that no entry was changed, removed or reordered."""
    with show.progress_bar("verify the ledger", shown=not as_json), _existing(file) as book:
        book.verify(published=published)
        facts = {"file": str(file), "entries": sum(1 for _ in book.entries()), "head": book.head()}
    text = f"{file} verified: {facts['entries']} entries, head {facts['head']}"
    show.as_json_or(text, facts, as_json=as_json)


@command("syndic ledger export run/parties/north/ledger.sqlite ledger.csv", of=ledger)
@LEDGER
@click.argument("target", type=PATH)
def export(file: Path, target: Path) -> None:
    """Write every entry to a .json or .csv file.

    An existing TARGET is overwritten.
    """
    with show.progress_bar("export the ledger", shown=True), _existing(file) as book:
        book.export(target)
    click.echo(f"wrote {target}")


@command("syndic log clinic", "syndic log clinic --json | jq 'select(.allowed | not)'")
@FOLDER
@click.option("--published", metavar="DIGEST", help="A head that was noted elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines of the file, JSON for programs.")
def log(folder: Path, published: str | None, as_json: bool) -> None:
    """Verify and show the audit log: who did or asked what, and why not.

    FOLDER is the party folder or the coordinator's. Ends with status 5 if a line was changed, removed or reordered.
    """
    book = AuditLog(folder)
    if not book.path.is_file():
        raise InputError(f"{folder}: there is no {book.path.name}: nothing was recorded yet")
    records = book.verify(published)
    if as_json:
        # not the file again: it may have changed since
        for one in records:
            click.echo(to_json(one).decode())
        return
    for one in records:
        state = "allowed" if one.allowed else "REFUSED"
        study = f"  study {one.study[:12]}" if one.study else ""
        show.wrapped(f"{one.number:>4}  ", f"{one.time[:19].replace('T', ' ')}  {state}  {one.who}: {one.what}{study}")
        if one.why:
            show.wrapped(f"{'':6}{'why':<8}", one.why)
    click.echo(f"{book.path} verified: {len(records)} records, head {records[-1].hash if records else ''}")


def _show_entry(entry: Entry) -> None:
    """Print an entry in lines that fit the terminal: when, what and which study, then what was charged and why."""
    time = entry.time[:19].replace("T", " ")
    study = f"  study {entry.study[:12]}" if entry.study else ""
    show.wrapped(f"{entry.number:>4}  ", f"{time}  {entry.kind:<8}{study}  data set {entry.dataset}")
    cap = "" if entry.cap is None else f"epsilon {float(entry.cap.epsilon):g}, delta {float(entry.cap.delta):g}"
    details = {
        "cap": cap,
        "charge": "; ".join(event.what for event in entry.events),
        "why": "" if entry.kind == "call" else entry.why,
        "call": f"{entry.why}: {entry.reply[:12]}" if entry.kind == "call" else "",
    }
    for name, text in details.items():
        if text:
            show.wrapped(f"{'':6}{name:<8}", text)


def _existing(file: Path) -> Ledger:
    if not file.is_file():
        raise InputError(f"{file}: no such ledger")
    return Ledger.open(file, create=False)
