"""`report`, `export`: a release for reading, by anyone or by one owner, and its metadata for catalogues."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.errors import InputError
from syndic.study import Release


@click.command(
    epilog="\b\nExamples:\n"
    "  syndic report run\n"
    "  syndic report run --party north --source north.csv --ledger run/parties/north/ledger.sqlite"
)
@click.argument("folder", type=PATH)
@click.option(
    "--out", "path", type=PATH, help="The file to write.  [default: FOLDER/report.html, or owner-report-PARTY.html]"
)
@click.option("--party", help="Write this party's owner-only page; never into the release's folder.")
@click.option("--source", type=PATH, help="That party's rows, shown as exact shares beside the synthetic ones.")
@click.option("--ledger", type=PATH, help="That party's ledger, shown after checking that it is whole.")
@JSON
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
    told = f"wrote {written}" + (f" - OWNER ONLY, for {party} alone" if party else "")
    facts = {"file": str(written), "owner": party, "digest": release.statement.digest}
    show.as_json_or(told, facts, as_json=as_json)


@click.command(
    epilog="\b\nExample: syndic export run --about about.toml --registry entry.yaml --croissant croissant.json"
)
@click.argument("folder", type=PATH)
@click.option(
    "--about", "words", type=PATH, required=True, help="Who publishes it, where and for what: .toml or .json."
)
@click.option("--registry", type=PATH, help="Write an entry for the DP Deployments Registry: .yaml or .json.")
@click.option("--croissant", type=PATH, help="Write Croissant 1.0 metadata of the table: .json or .jsonld.")
@JSON
def export(folder: Path, words: Path, registry: Path | None, croissant: Path | None, as_json: bool) -> None:
    """Describe a release for catalogues. Reads the release only, no row of anybody."""
    from syndic.report import About, write_croissant, write_registry  # noqa: PLC0415  # of no use to the other verbs

    if registry is None and croissant is None:
        raise InputError("say what to write: --registry FILE, --croissant FILE or both")
    release, about = Release.load(folder), About.load(words)
    written = [] if registry is None else [write_registry(release, about, registry)]
    if croissant is not None:
        written.append(write_croissant(release, folder, about, croissant))
    facts = {"files": [str(path) for path in written], "digest": release.statement.digest}
    show.as_json_or("\n".join(f"wrote {path}" for path in written), facts, as_json=as_json)
