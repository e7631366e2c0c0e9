"""`receive`, `decline`, `compare`, `check-schema`: what the console does, for people who like a terminal."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.agree import HOME
from syndic.cli.study import JSON, STUDY
from syndic.errors import InputError
from syndic.study import Release

_FOLDER = click.Path(path_type=Path)


@click.command(epilog="\b\nExample: syndic receive study.toml --home clinic")
@STUDY
@HOME
@JSON
def receive(study_file: Path, folder: Path, as_json: bool) -> None:
    """Keep a study file in the home as pending. Nothing is agreed to, no row is read."""
    from syndic.console import studies  # noqa: PLC0415  # pictures are of no use to the other verbs

    line = studies.receive(
        folder, studies.Sent(text=_text(study_file), kind="json" if study_file.suffix == ".json" else "toml")
    )
    if as_json:
        show.as_json(line)
    else:
        click.echo(f"{line.study} is {line.state}: {line.run}")


@click.command(epilog="\b\nExample: syndic decline 3f9a12cd3f9a12cd --home clinic --why 'not now'")
@click.argument("digest")
@HOME
@click.option("--why", default="", help="A reason, for the owner's own notes.")
@JSON
def decline(digest: str, folder: Path, why: str, as_json: bool) -> None:
    """Note the owner's no to a pending study, found by the first letters of its digest. Nobody is told."""
    from syndic.console import studies  # noqa: PLC0415  # pictures are of no use to the other verbs

    found = [one.run for one in studies.studies(folder) if digest and one.run.startswith(digest)]
    if len(found) != 1:
        raise InputError(f"{digest or 'an empty digest'} is not the beginning of one study's digest here")
    line = studies.decline(folder, found[0], studies.Decline(why=why))
    if as_json:
        show.as_json(line)
    else:
        click.echo(f"{line.study} is {line.state}: {line.run}")


@click.command(epilog="\b\nExample: syndic compare run-2025 run-2026")
@click.argument("first", type=_FOLDER)
@click.argument("second", type=_FOLDER)
@JSON
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two releases: what they state differently, and how far the shares of their columns differ."""
    from syndic.console import releases  # noqa: PLC0415  # pictures are of no use to the other verbs

    changes, columns = releases.differences(Release.load(first), Release.load(second))
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
@click.argument("schema_file", metavar="SCHEMA", type=_FOLDER)
@HOME
@JSON
def check_schema(schema_file: Path, folder: Path, as_json: bool) -> None:
    """Hold a schema against the home's own rows. What it prints is private."""
    from syndic.console import workbench  # noqa: PLC0415  # pictures are of no use to the other verbs

    found = workbench.check_schema(folder, workbench.Write(text=_text(schema_file)))
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


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read") from None
