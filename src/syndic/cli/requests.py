"""`receive`, `decline`, `compare`: what the console also offers, in a terminal."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.agree import HOME
from syndic.cli.groups import example
from syndic.cli.show import JSON, PATH
from syndic.cli.study import STUDY
from syndic.errors import InputError
from syndic.study import PartyFolder, Release, Study
from syndic.study import agreement as owner
from syndic.study.differences import differences


@click.command(epilog=example("syndic receive study.toml --home clinic"))
@STUDY
@HOME
@JSON
def receive(study_file: Path, folder: Path, as_json: bool) -> None:
    """Store a study file in the party folder as pending.

    Agrees to nothing and reads no row.
    """
    home = PartyFolder(folder=folder)
    _show(home, owner.receive(home, Study.load(study_file)), as_json)


@click.command(epilog=example("syndic decline 3f9a --home clinic --why 'not now'"))
@click.argument("digest")
@HOME
@click.option("--why", default="", help="A reason, for the party's own record.")
@JSON
def decline(digest: str, folder: Path, why: str, as_json: bool) -> None:
    """Decline a pending study; nobody is notified.

    DIGEST is the beginning of the study's digest, as `syndic studies` shows it.
    """
    home = PartyFolder(folder=folder)
    found = [one.run for one in owner.studies(home) if digest and one.run.startswith(digest)]
    if len(found) != 1:
        raise InputError(
            f"{digest or 'an empty digest'} is not the beginning of exactly one study's digest: see `syndic studies`"
        )
    owner.decline(home, found[0], why=why)
    _show(home, found[0], as_json)


@click.command(epilog=example("syndic compare run-2025 run-2026"))
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@JSON
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two releases: their statements and their columns."""
    with show.progress_bar("compare", shown=not as_json):
        changes, columns = differences(Release.load(first), Release.load(second))
    if as_json:
        show.as_json({"changes": changes, "columns": columns})
        return
    show.as_table(
        "statements that differ",
        ("key", str(first), str(second)),
        ((one.key, one.before, one.after) for one in changes),
    )
    show.as_table(
        "total variation distance of each column: 0 the same, 1 nothing in common",
        ("column", "distance"),
        ((one.column, f"{one.distance:.3f}") for one in columns),
    )


def _show(home: PartyFolder, run: str, as_json: bool) -> None:
    standing = next(one for one in owner.studies(home) if one.run == run)
    show.as_json_or(f"{standing.study} is {standing.state}: {standing.run}", standing, as_json=as_json)
