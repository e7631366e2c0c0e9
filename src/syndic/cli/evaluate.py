"""`evaluate`: compare a release with real rows, for their owner only."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import example
from syndic.cli.show import JSON, PATH
from syndic.cli.study import named
from syndic.evaluation import evaluate as evaluate_release
from syndic.evaluation.evaluation import check_target
from syndic.study import Release


@click.command(
    epilog=example(
        "syndic evaluate run -s north=north.csv -s south=south.csv",
        "syndic evaluate run -s north=north.csv --target smoker --out mine.html",
    )
)
@click.argument("folder", type=PATH)
@click.option(
    "-s",
    "--source",
    "sources",
    multiple=True,
    metavar="PARTY=FILE",
    help="A party's real rows: .csv, .parquet, .arrow or its party.toml. For some or all parties.",
)
@click.option(
    "--target", metavar="COLUMN", help="Column to predict; default: the study's, else the last of two values."
)
@click.option("--full", is_flag=True, help="All scores: private baselines, more models and sets. Takes minutes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of splits, resamples and baselines.")
@click.option("--out", "target_file", metavar="FILE", type=PATH, help="Also write a .json, .txt or .html file.")
@JSON
def evaluate(
    folder: Path,
    sources: tuple[str, ...],
    target: str | None,
    full: bool,
    seed: int,
    target_file: Path | None,
    as_json: bool,
) -> None:
    """Compare a release with real rows, for their owner only.

    Scores the release in FOLDER beside baselines, in seconds; notes say what was sampled. Adds no noise and
    spends nothing, so the scores are not private.
    """
    if target_file is not None:
        check_target(target_file)
    with show.progress_bar("evaluate", shown=not as_json) as progress:
        release = Release.load(folder)
        evaluation = evaluate_release(release, named(sources), seed=seed, target=target, full=full, progress=progress)
    show.as_json_or(evaluation, evaluation, as_json=as_json)
    if target_file is not None:
        evaluation.write(target_file)
        click.echo(f"wrote {target_file}", err=as_json)
