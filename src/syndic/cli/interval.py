"""`interval`: values of a release with intervals that account for sampling and noise."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import example
from syndic.cli.show import JSON, PATH
from syndic.study import Release


@click.command(
    epilog=example(
        "syndic interval run 'mean(age)' 'mean(ill, given=smoker)'",
        "syndic interval run 'logistic(ill, age, sex)' --confidence 0.9 --json",
    )
)
@click.argument("folder", type=PATH)
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How often intervals cover.")
@JSON
def interval(folder: Path, questions: tuple[str, ...], confidence: float, as_json: bool) -> None:
    """Answer questions from a release with intervals. Reads no row and spends nothing.

    A QUESTION has mean, odds, linear, logistic or quantile of columns, with given=CONDITION. Intervals account for
    sampling and noise. If the noisy tables do not answer, the reason is printed.
    """
    release = Release.load(folder)
    found = [release.interval(question, confidence=confidence) for question in questions]
    show.as_json_or("\n".join(map(str, found)), found, as_json=as_json)
