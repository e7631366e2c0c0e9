"""`receive`, `decline`, `compare`, `check-schema`: the console's use cases on a terminal."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.agree import HOME
from syndic.cli.show import JSON, PATH
from syndic.cli.study import STUDY
from syndic.errors import InputError
from syndic.study import PartyFolder, Release, Study, schema_check
from syndic.study import agreement as owner
from syndic.study.differences import differences


@click.command(epilog="\b\nExample: syndic receive study.toml --home clinic")
@STUDY
@HOME
@JSON
def receive(study_file: Path, folder: Path, as_json: bool) -> None:
    """Keep a study file in the home as pending. Nothing is agreed to, no row is read."""
    home = PartyFolder(folder=folder)
    _show(home, owner.receive(home, Study.load(study_file)), as_json)


@click.command(epilog="\b\nExample: syndic decline 3f9a12cd3f9a12cd --home clinic --why 'not now'")
@click.argument("digest")
@HOME
@click.option("--why", default="", help="A reason, for the owner's own notes.")
@JSON
def decline(digest: str, folder: Path, why: str, as_json: bool) -> None:
    """Note the owner's no to a pending study, found by the first letters of its digest. Nobody is told."""
    home = PartyFolder(folder=folder)
    found = [one.run for one in owner.studies(home) if digest and one.run.startswith(digest)]
    if len(found) != 1:
        raise InputError(f"{digest or 'an empty digest'} is not the beginning of one study's digest here")
    owner.decline(home, found[0], why=why)
    _show(home, found[0], as_json)


@click.command(epilog="\b\nExample: syndic compare run-2025 run-2026")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@JSON
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two releases: what they state differently, and how far the shares of their columns differ."""
    changes, columns = differences(Release.load(first), Release.load(second))
    if as_json:
        show.as_json({"changes": changes, "columns": columns})
        return
    show.as_table(
        "what they state", ("key", str(first), str(second)), ((one.key, one.before, one.after) for one in changes)
    )
    show.as_table(
        "half the sum of all differences of shares: 0 alike, 1 nothing in common",
        ("column", "distance"),
        ((one.column, f"{one.distance:.3f}") for one in columns),
    )


@click.command("check-schema", epilog="\b\nExample: syndic check-schema schema.toml --home clinic")
@click.argument("schema_file", metavar="SCHEMA", type=PATH)
@HOME
@JSON
def check_schema(schema_file: Path, folder: Path, as_json: bool) -> None:
    """Hold a schema against the home's own rows. What it prints is private."""
    found = schema_check.check_schema(folder, schema_check.Write(text=_text(schema_file)))
    if as_json:
        show.as_json(found)
        return
    click.echo(f"PRIVATE, for the owner: {found.source}, {found.rows_read} rows looked at")
    if found.problem:
        raise InputError(found.problem)
    show.as_table(
        str(schema_file),
        ("column", "level", "rows"),
        ((column.name, level.label, str(level.rows)) for column in found.columns for level in column.levels),
    )
    for column in found.columns:
        click.echo(f"{column.name}: {column.words}; {column.outside} values lie outside")


def _show(home: PartyFolder, run: str, as_json: bool) -> None:
    standing = next(one for one in owner.studies(home) if one.run == run)
    show.as_json_or(f"{standing.study} is {standing.state}: {standing.run}", standing, as_json=as_json)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read") from None
