"""`advise`: is sharing worth it, before anything is spent?"""

from pathlib import Path

import click

from syndic.advice import Assumptions
from syndic.advice import advise as advise_on
from syndic.cli import show
from syndic.cli.show import JSON
from syndic.cli.study import STUDY
from syndic.study import Study


@click.command(
    epilog="\b\nExamples:\n"
    "  syndic advise study.toml\n"
    "  syndic advise study.toml --task mean:age --task classify:diabetes --assume age.mean=44 --assume r2=0.2"
)
@STUDY
@click.option(
    "--task",
    "tasks",
    multiple=True,
    metavar="KIND:COLUMN",
    help="What the release is for: mean, shares, linear or classify. May be repeated.",
)
@click.option(
    "--assume",
    "assumed",
    multiple=True,
    metavar="KEY=VALUE|FILE",
    help="About the people: age.mean=44, age.sd=12, colour.shares=5/3/2, r2=0.2, or a .toml file. May be repeated.",
)
@JSON
def advise(study_file: Path, tasks: tuple[str, ...], assumed: tuple[str, ...], as_json: bool) -> None:
    """Is sharing worth it? Alone, jointly and pooled, for every party. Reads no row, spends nothing.

    For studies of different columns of the same people: which method, and how near to the people it would be.
    """
    study = Study.load(study_file)
    with show.progress_bar(shown=not as_json) as progress:
        advice = advise_on(study, tasks=tasks or None, assumptions=Assumptions.of(assumed), progress=progress)
    show.as_json_or(advice, advice, as_json=as_json)
