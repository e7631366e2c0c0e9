"""`report`, `export`: a release for people to read, and its metadata for catalogues."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import example
from syndic.cli.show import JSON, PATH
from syndic.errors import InputError
from syndic.study import Release


@click.command(
    epilog=example(
        "syndic report run",
        "syndic report run --party north --source north.csv --ledger ledger.sqlite",
    )
)
@click.argument("folder", type=PATH)
@click.option(
    "--out", "path", type=PATH, help="File to write.  [default: FOLDER/report.html, or owner-report-PARTY.html]"
)
@click.option("--party", help="Write this party's private report, outside the release's folder.")
@click.option("--source", type=PATH, help="That party's rows, shown as exact shares beside the released ones.")
@click.option("--ledger", type=PATH, help="That party's ledger, shown after it was verified.")
@JSON
def report(
    folder: Path, path: Path | None, party: str | None, source: Path | None, ledger: Path | None, as_json: bool
) -> None:
    """Write the report of a release as one HTML file.

    Anybody can open it. With --party it is the report for that data owner. It contains private numbers.
    """
    # other verbs need no pictures
    from syndic.report import owner_report  # noqa: PLC0415
    from syndic.report import report as public_report  # noqa: PLC0415

    if party is None and (source is not None or ledger is not None):
        raise InputError("--source and --ledger show private numbers of one party: name it with --party")
    with show.progress_bar("write the report", shown=not as_json):
        release = Release.load(folder)
        if party is None:
            written = public_report(release, path or folder / "report.html")
        else:
            target = path or Path(f"owner-report-{party}.html")
            written = owner_report(release, target, party=party, source=source, ledger=ledger)
    text = f"wrote {written}" + (f" - OWNER ONLY, for {party} alone" if party else "")
    facts = {"file": str(written), "owner": party, "digest": release.statement.digest}
    show.as_json_or(text, facts, as_json=as_json)


@click.command(
    epilog=example(
        "syndic export run --about about.toml --registry entry.yaml",
        "syndic export run --about about.toml --croissant croissant.json",
    )
)
@click.argument("folder", type=PATH)
@click.option(
    "--about", "words", type=PATH, required=True, help="Who publishes it, where and what for: .toml or .json."
)
@click.option("--registry", type=PATH, help="Write an entry for the DP Deployments Registry: .yaml or .json.")
@click.option("--croissant", type=PATH, help="Write Croissant 1.0 metadata of the table: .json or .jsonld.")
@JSON
def export(folder: Path, words: Path, registry: Path | None, croissant: Path | None, as_json: bool) -> None:
    """Write metadata of a release for catalogues. Reads no row."""
    from syndic.report import About, write_croissant, write_registry  # noqa: PLC0415  # other verbs need no catalogue

    if registry is None and croissant is None:
        raise InputError("nothing to write: give --registry FILE, --croissant FILE or both")
    with show.progress_bar("export", shown=not as_json):
        release, about = Release.load(folder), About.load(words)
        written = [] if registry is None else [write_registry(release, about, registry)]
        if croissant is not None:
            written.append(write_croissant(release, folder, about, croissant))
    facts = {"files": [str(path) for path in written], "digest": release.statement.digest}
    show.as_json_or("\n".join(f"wrote {path}" for path in written), facts, as_json=as_json)
