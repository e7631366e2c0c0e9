"""`check`, `plan`, `simulate`, `json-schema`: everything about a study file."""

from collections.abc import Mapping
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.data import Schema
from syndic.document import json_schema as json_schema_of
from syndic.errors import InputError
from syndic.privacy import Ledger, Price, Spending, shown
from syndic.study import PartyFile, Release, Study
from syndic.study import plan as plan_of
from syndic.study import simulate as run_simulation
from syndic.study.price import price_of
from syndic.study.simulate import RuntimeName

STUDY = click.argument("study_file", metavar="STUDY", type=PATH)
OUT_HELP = "Where the release and the parties' folders go."


@click.command(epilog="\b\nExample: syndic check study.toml")
@STUDY
@JSON
def check(study_file: Path, as_json: bool) -> None:
    """Is the study coherent? Reads no row."""
    study = Study.load(study_file)
    study.check()
    facts = {"study": study.name, "digest": study.digest, "parties": [party.name for party in study.parties]}
    told = f"{study_file.name} is coherent: {study.name}, {len(study.parties)} parties\ndigest {study.digest}"
    show.as_json_or(told, facts, as_json=as_json)


@click.command(epilog="\b\nExample: syndic plan study.toml --json")
@STUDY
@JSON
def plan(study_file: Path, as_json: bool) -> None:
    """What would the study cost, reveal and need? Reads no row, spends nothing."""
    planned = plan_of(Study.load(study_file))
    show.as_json_or(planned, planned, as_json=as_json)


@click.command(
    epilog="\b\nExamples:\n"
    "  syndic simulate study.toml -s north=north.csv -s south=south.parquet --out run\n"
    "  syndic simulate study.toml -s north=north/party.toml ... --runtime processes --out run"
)
@STUDY
@click.option(
    "-s",
    "--source",
    "sources",
    multiple=True,
    metavar="PARTY=FILE",
    help="A party's rows: .csv, .parquet, .arrow, or its party.toml. Once for each party.",
)
@click.option("--out", "folder", type=PATH, default=Path("syndic-run"), show_default=True, help=OUT_HELP)
@click.option(
    "--runtime",
    type=click.Choice(["local", "processes"]),
    default="local",
    show_default=True,
    help="All in one process, or one process per party.",
)
@click.option("--seed", type=int, help="Make the run repeat itself. It then protects nobody, and says so.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="How long a step may take before a party counts as silent.",
)
@JSON
def simulate(
    study_file: Path,
    sources: tuple[str, ...],
    folder: Path,
    runtime: RuntimeName,
    seed: int | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Run the study with every party on this machine; leave release, statement and ledgers in a folder.

    A run that was stopped goes on where it was when the same command is given again.
    """
    study = Study.load(study_file)
    run_and_show(study, named(sources), folder=folder, runtime=runtime, seed=seed, seconds=seconds, as_json=as_json)


@click.command("json-schema", epilog="\b\nExample: syndic json-schema study > study.schema.json")
@click.argument("document", type=click.Choice(["study", "columns", "party"]))
def json_schema(document: str) -> None:
    """Print the JSON Schema of a study file, a column file or a party file, for editors."""
    kinds = {"study": Study, "columns": Schema, "party": PartyFile}
    show.as_json(json_schema_of(kinds[document]))


def run_and_show(
    study: Study,
    sources: dict[str, str],
    *,
    folder: Path,
    runtime: RuntimeName,
    seed: int | None,
    as_json: bool,
    seconds: float = 600.0,
) -> None:
    """Simulate, write the release, and show it with what each ledger now says."""
    with show.progress_bar(shown=not as_json) as progress:
        release = run_simulation(
            study, sources, seed=seed, runtime=runtime, folder=folder, progress=progress, seconds=seconds
        )
    spendings = {}
    for party in study.parties:
        with Ledger.open(folder / "parties" / party.name / "ledger.sqlite") as book:
            spendings[party.name] = [book.spent(dataset) for dataset in book.datasets()]
    costs = {party.name: price_of(study, party.name) for party in study.parties}
    show_release(release, folder, as_json=as_json, ledgers=spendings, costs=costs)


def show_release(
    release: Release,
    folder: Path,
    *,
    as_json: bool,
    ledgers: Mapping[str, list[Spending]] | None = None,
    costs: Mapping[str, Price] | None = None,
) -> None:
    """Write a release with its report into a folder, and show it with what each ledger says."""
    paths = [*release.write(folder), release.report(folder / "report.html")]
    if as_json:
        facts = {"files": [str(path) for path in paths], "summary": release.summary(), "statement": release.statement}
        show.as_json(facts if ledgers is None else {**facts, "ledgers": ledgers})
        return
    show.as_lines(release.summary())
    if ledgers is not None and costs is not None:
        show.as_table(
            "ledgers",
            ("party", "data set", "this study costs", "spent after it", "cap"),
            (
                (name, one.dataset, str(costs[name]), shown(one.epsilon), shown(one.cap.epsilon))
                for name, spending in ledgers.items()
                for one in spending
            ),
        )
    for path in paths:
        click.echo(f"wrote {path}")


def named(sources: tuple[str, ...]) -> dict[str, str]:
    """Return what was given as PARTY=FILE, by party."""
    files: dict[str, str] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or not name or not path:
            raise InputError(f"--source {source}: write it as PARTY=FILE")
        if name in files:
            raise InputError(f"--source: party '{name}' is given twice")
        files[name] = path
    return files
