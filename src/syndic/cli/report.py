"""`report`: one HTML page about a release, for anyone; or with an owner's own numbers, for that owner alone."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.errors import InputError
from syndic.study import Release

_FILE = click.Path(path_type=Path)


@click.command(
    epilog="\b\nExamples:\n"
    "  syndic report run\n"
    "  syndic report run --party north --source north.csv --ledger run/parties/north/ledger.sqlite"
)
@click.argument("folder", type=_FILE)
@click.option(
    "--out", "path", type=_FILE, help="The file to write.  [default: FOLDER/report.html, or owner-report-PARTY.html]"
)
@click.option("--party", help="Write this party's owner-only page; never into the release's folder.")
@click.option("--source", type=_FILE, help="That party's rows, shown as exact shares beside the synthetic ones.")
@click.option("--ledger", type=_FILE, help="That party's ledger, shown after checking that it is whole.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def report(
    folder: Path, path: Path | None, party: str | None, source: Path | None, ledger: Path | None, as_json: bool
) -> None:
    """Write the report of a release: one HTML file that anybody can open."""
    # pictures are of no use to the other verbs
    from syndic.report import owner_report  # noqa: PLC0415
    from syndic.report import report as public_report  # noqa: PLC0415

    if party is None and (source is not None or ledger is not None):
        raise InputError("--source and --ledger show one party's private numbers: say whose with --party")
    release = Release.load(folder)
    if party is None:
        written = public_report(release, path or folder / "report.html")
    else:
        target = path or Path(f"owner-report-{party}.html")
        written = owner_report(release, target, party=party, source=source, ledger=ledger)
    if as_json:
        show.as_json({"file": str(written), "owner": party, "digest": release.statement.digest})
        return
    click.echo(f"wrote {written}" + (f" - OWNER ONLY, for {party} alone" if party else ""))
