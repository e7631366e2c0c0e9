"""`demo`: the five-minute tour on embedded data."""

from importlib.resources import as_file, files
from pathlib import Path

import click

from syndic.cli.show import JSON, PATH
from syndic.cli.study import OUT_HELP, run_and_show
from syndic.study import Study, plan
from syndic.study.simulate import RuntimeName


@click.command(epilog="\b\nExample: syndic demo --runtime processes")
@click.option("--out", "folder", type=PATH, default=Path("syndic-demo"), show_default=True, help=OUT_HELP)
@click.option("--runtime", type=click.Choice(["local", "processes"]), default="processes", show_default=True)
@JSON
def demo(folder: Path, runtime: RuntimeName, as_json: bool) -> None:
    """Three clinics publish one synthetic table: plan, run, statement, ledgers."""
    with as_file(files("syndic") / "demo") as data:
        study = Study.load(data / "study.toml")
        if not as_json:
            click.echo(f"{plan(study)}\n")
        sources = {party.name: str(data / f"{party.name}.csv") for party in study.parties}
        run_and_show(study, sources, folder=folder, runtime=runtime, seed=None, as_json=as_json)
    if not as_json:
        book = folder / "parties" / study.parties[0].name / "ledger.sqlite"
        click.echo(f"next: syndic ledger show {book}")
