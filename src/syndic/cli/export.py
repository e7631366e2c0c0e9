"""`export`: a release's entry for a registry of deployments, and its table's metadata for catalogues."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.errors import InputError
from syndic.study import Release

_FILE = click.Path(path_type=Path)


@click.command(
    epilog="\b\nExample: syndic export run --about about.toml --registry entry.yaml --croissant croissant.json"
)
@click.argument("folder", type=_FILE)
@click.option(
    "--about", "words", type=_FILE, required=True, help="Who publishes it, where and for what: .toml or .json."
)
@click.option("--registry", type=_FILE, help="Write an entry for the DP Deployments Registry: .yaml or .json.")
@click.option("--croissant", type=_FILE, help="Write Croissant 1.0 metadata of the table: .json or .jsonld.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def export(folder: Path, words: Path, registry: Path | None, croissant: Path | None, as_json: bool) -> None:
    """Describe a release for catalogues. Reads the release only, no row of anybody."""
    from syndic.report import About, write_croissant, write_registry  # noqa: PLC0415  # of no use to the other verbs

    if registry is None and croissant is None:
        raise InputError("say what to write: --registry FILE, --croissant FILE or both")
    release, about = Release.load(folder), About.load(words)
    written = [] if registry is None else [write_registry(release, about, registry)]
    if croissant is not None:
        written.append(write_croissant(release, folder, about, croissant))
    if as_json:
        show.as_json({"files": [str(path) for path in written], "digest": release.statement.digest})
        return
    for path in written:
        click.echo(f"wrote {path}")
