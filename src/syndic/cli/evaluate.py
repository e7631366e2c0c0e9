"""`evaluate`: what a release is worth to the owner of the real rows."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.cli.study import named
from syndic.evaluation import evaluate as evaluate_release
from syndic.evaluation.evaluation import check_target
from syndic.study import Release


@click.command(
    epilog="\b\nExample: syndic evaluate run -s north=north.csv -s south=south.csv --target smoker --out mine.html"
)
@click.argument("folder", type=PATH)
@click.option(
    "-s",
    "--source",
    "sources",
    multiple=True,
    metavar="PARTY=FILE",
    help="A party's real rows: .csv, .parquet, .arrow, or its party.toml. For some or all parties.",
)
@click.option("--target", metavar="COLUMN", help="A column to predict and to compare regressions of.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of splits, resamples and baselines.")
@click.option("--out", "target_file", metavar="FILE", type=PATH, help="Also write .json, .txt or .html.")
@JSON
def evaluate(
    folder: Path, sources: tuple[str, ...], target: str | None, seed: int, target_file: Path | None, as_json: bool
) -> None:
    """Score the release in FOLDER against real rows, beside baselines. OWNER ONLY: spends nothing, protects nobody."""
    if target_file is not None:
        check_target(target_file)
    release = Release.load(folder)
    with show.progress_bar(shown=not as_json) as progress:
        evaluation = evaluate_release(release, named(sources), seed=seed, target=target, progress=progress)
    show.as_json_or(evaluation, evaluation, as_json=as_json)
    if target_file is not None:
        evaluation.write(target_file)
        click.echo(f"wrote {target_file}", err=as_json)
