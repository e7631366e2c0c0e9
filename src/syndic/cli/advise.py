"""`advise`: predict whether sharing is worth its cost, before anything is spent."""

from pathlib import Path

import click

from syndic.advice import Assumptions
from syndic.advice import advise as advise_on
from syndic.cli import show
from syndic.cli.groups import example
from syndic.cli.show import JSON, STUDY
from syndic.study import Study


@click.command(
    epilog=example(
        "syndic advise study.toml",
        "syndic advise study.toml --task mean:age --assume age.mean=44",
        "syndic advise study.toml --task classify:diabetes --assume r2=0.2",
        "syndic advise study.toml --wider 1.5",
    )
)
@STUDY
@click.option(
    "--task",
    "tasks",
    multiple=True,
    metavar="KIND:COLUMN",
    help="Purpose of the release: mean, shares, linear or classify. May be repeated.",
)
@click.option(
    "--assume",
    "assumed",
    multiple=True,
    metavar="KEY=VALUE|FILE",
    help="Assumption about the people: age.mean=44, age.sd=12, colour.shares=5/3/2, r2=0.2 or a .toml file. "
    "May be repeated.",
)
@click.option(
    "--wider",
    type=float,
    metavar="TIMES",
    help="Find the smallest epsilon at which no interval is more than so many times as wide as on pooled rows.",
)
@JSON
def advise(
    study_file: Path, tasks: tuple[str, ...], assumed: tuple[str, ...], wider: float | None, as_json: bool
) -> None:
    """Predict whether sharing is worth its cost.

    Compares each party alone, all parties together, and pooled rows without privacy; or the methods that could be used;
    or says what noise does to what is published. Reads no row and spends nothing.
    """
    study = Study.load(study_file)
    with show.progress_bar("predict errors", shown=not as_json) as progress:
        assumptions = Assumptions.of(assumed)
        advice = advise_on(study, tasks=tasks or None, assumptions=assumptions, wider=wider, progress=progress)
    show.as_json_or(advice, advice, as_json=as_json)
