"""`plan`, `simulate`, `advise`, `json-schema`: what is done with a study file on one machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from syndic.advice import Assumptions, warning
from syndic.advice import advise as advise_on
from syndic.cli import show
from syndic.cli.groups import command
from syndic.cli.show import JSON, PATH, STUDY
from syndic.data import Schema
from syndic.document import json_schema as json_schema_of
from syndic.document import to_builtins
from syndic.errors import InputError
from syndic.privacy import Ledger, Price, Spending, at_delta
from syndic.report import coefficient_tables
from syndic.study import PartyFile, PartyFolder, Release, Study
from syndic.study import plan as plan_of
from syndic.study import simulate as run_simulation
from syndic.study.document import price_of
from syndic.study.draft_text import unconfirmed
from syndic.study.fit import COLUMN_HEAD, Fit, fit_of
from syndic.study.fit_people import BOUND_HEAD, FORM_HEAD
from syndic.study.machine import machine_in_words

OUT_HELP = "Folder for the release and the parties' folders."


@command("syndic plan study.toml", "syndic plan study.toml -s north=north.csv")
@STUDY
@show.sources("Also compare a party's own rows with the study. Private output: nothing is written or sent.")
@JSON
def plan(study_file: Path, sources: tuple[str, ...], as_json: bool) -> None:
    """Check a study file; show what it costs, reveals and needs.

    Spends nothing, and reads no row without --source. Ends with status 2 if the study cannot run.
    """
    study, files = Study.load(study_file), named(sources)
    if count := len(unconfirmed(study_file.read_text(encoding="utf-8", errors="replace"))):
        click.echo(
            f"warning: {study_file.name} is a private draft: {count} values were read from rows and are not confirmed. "
            f"Do not share it. Next: syndic init --confirm {study_file}",
            err=True,
        )
    unknown = [name for name in files if name not in {party.name for party in study.parties}]
    if unknown:
        raise InputError(f"--source: the study has no party called {', '.join(unknown)}")
    with show.progress_bar("plan", shown=not as_json):
        planned, told = plan_of(study), warning(study)
    with show.progress_bar("read rows", shown=not as_json and bool(files)):
        fits = {name: fit_of(study, name, path) for name, path in files.items()}
    names = [party.name for party in study.parties]
    parties = "1 party" if len(names) == 1 else f"{len(names)} parties"
    valid = f"{study_file.name} is valid: {study.name}, {parties}\ndigest {study.digest}"
    facts = {**to_builtins(planned), "parties": names, "warning": told, **({"owner_only": fits} if fits else {})}
    added = added_lines(planned.resources.likely_bytes, planned.resources.memory_bytes, told)
    show.as_json_or(f"{planned}{added}\n\n{valid}", facts, as_json=as_json)
    if not as_json:
        for fit in fits.values():
            show_fit(fit)


@command(
    "syndic simulate study.toml -s north=north.csv -s south=south.csv --out run",
    "syndic simulate study.toml -s north=clinic/party.toml -s south=south.csv",
)
@STUDY
@show.sources("A party's rows: .csv, .parquet, .arrow or its party.toml. Once for each party.")
@click.option("--out", "folder", type=PATH, default=Path("syndic-run"), help=OUT_HELP)
@show.runtime("local")
@click.option("--seed", type=int, help="Seed for a reproducible run. Its output is not private and says so.")
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    help="Time limit for each step of a party. Ignored by the local runtime.",
)
@JSON
def simulate(study_file: Path, sources: tuple[str, ...], folder: Path, as_json: bool, **options: Any) -> None:
    """Run a study with all parties on this machine.

    Writes the release, its statement and report, and every party's ledger. The same command continues a run that was
    stopped.
    """
    study = Study.load(study_file)
    reported = set[str]()
    with show.progress_bar(f"simulate {study.name}", shown=not as_json) as progress:

        def report(what: str, done: int, total: int) -> None:
            reported.add(what)
            progress(what, done, total)

        release = run_simulation(study, named(sources), folder=folder, progress=report, **options)
        files = write_release(release, folder)
    costs = {party.name: price_of(study, party.name) for party in study.parties}
    show_release(release, files, as_json=as_json, ledgers=spendings_of(study, folder), costs=costs)
    if as_json:
        return
    if reported.isdisjoint(study.steps):
        click.echo("stored release: no row was read, nothing was charged")
    click.echo(f"to see how rows fit the study: syndic plan {study_file} -s PARTY=FILE")


@command(
    "syndic advise study.toml",
    "syndic advise study.toml --task mean:age --assume age.mean=44",
    "syndic advise study.toml --task classify:diabetes --assume r2=0.2",
    "syndic advise study.toml --wider 1.5",
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


@command("syndic json-schema study > study.schema.json", name="json-schema")
@click.argument("document", type=click.Choice(["study", "columns", "party"]))
def json_schema(document: str) -> None:
    """Print the JSON Schema of study, column or party files."""
    kinds = {"study": Study, "columns": Schema, "party": PartyFile}
    show.as_json(json_schema_of(kinds[document]))


def added_lines(expected: int, most: int, told: str) -> str:
    """Return the lines of a plan on whether this machine has the memory for it, and on a poor forecast."""
    here = machine_in_words(expected, most)
    lines = f"\n  this machine has {here}" if here else ""
    return f"{lines}\n  WARNING      the forecast is {told}" if told else lines


def write_release(release: Release, folder: Path) -> list[Path]:
    """Write a release with its report into a folder; return the paths. Say where an earlier release was moved."""
    before = set(folder.glob("earlier/*"))
    files = [*release.write(folder), release.report(folder / "report.html")]
    for place in set(folder.glob("earlier/*")) - before:
        click.echo(f"the earlier release in {folder} was moved to {place}", err=True)
    return files


def spendings_of(study: Study, folder: Path) -> dict[str, list[Spending]]:
    """Return what each party's ledger in a simulation's folder says was spent."""
    spendings = {}
    for party in study.parties:
        with Ledger.open(PartyFolder(folder=folder / "parties" / party.name).ledger, create=False) as book:
            spendings[party.name] = [book.spent(dataset) for dataset in book.datasets()]
    return spendings


def show_release(
    release: Release,
    files: list[Path],
    *,
    as_json: bool,
    ledgers: Mapping[str, list[Spending]] | None = None,
    costs: Mapping[str, Price] | None = None,
) -> None:
    """Show a release that was written to `files`, and the state of each ledger."""
    if as_json:
        show.as_json(facts_of(release, files, ledgers))
        return
    show.as_lines(release.summary())
    for table in coefficient_tables(release):
        show.as_table(table.caption, table.head, table.rows)
    if ledgers is not None and costs is not None:
        show.as_table(
            "ledgers",
            ("party", "data set", "this study costs", "spent after it", "cap"),
            (
                (
                    name,
                    one.dataset,
                    str(costs[name]),
                    at_delta(one.epsilon, one.delta),
                    at_delta(one.cap.epsilon, one.cap.delta),
                )
                for name, spending in ledgers.items()
                for one in spending
            ),
        )
    for path in files:
        click.echo(f"wrote {path}")


def facts_of(
    release: Release, files: list[Path], ledgers: Mapping[str, list[Spending]] | None = None
) -> dict[str, Any]:
    """Return what programs read about a release."""
    facts = {"files": [str(path) for path in files], "summary": release.summary(), "statement": release.statement}
    if tables := coefficient_tables(release):
        facts["coefficients"] = [{"head": one.head, "rows": one.rows} for one in tables]
    return facts if ledgers is None else {**facts, "ledgers": ledgers}


def show_fit(fit: Fit, *, most: int | None = None) -> None:
    """Show an owner how the rows fit the study: all columns, or at most so many of the worst."""
    click.echo()
    title = f"PRIVATE, for the data owner only: {fit.party}, {fit.source}, {fit.rows:,} rows, compared with the study"
    columns = fit.columns if most is None else fit.worst[:most]
    if columns:
        show.as_table(title, COLUMN_HEAD, (one.row() for one in columns))
    else:
        click.echo(f"{title}: every value fits")
    if fit.bounds:
        title = f"{fit.people:,} people, {fit.nobody:,} rows without a person"
        show.as_table(title, BOUND_HEAD, fit.bound_rows())
    if fit.ids is not None:
        click.echo(f"ids by {', '.join(fit.ids.columns)}")
        show.as_lines(fit.ids.lines())
        show.as_table("examples", FORM_HEAD, (one.row() for one in fit.ids.forms))
    for text in fit.advice:
        show.wrapped("  LOOK AT  ", text)


def named(texts: tuple[str, ...], option: str = "--source", what: str = "FILE") -> dict[str, str]:
    """Return what was given as PARTY=FILE, or as PARTY= something else, by party."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{option} {text}: write it as PARTY={what}")
        if name in found:
            raise InputError(f"{option}: party '{name}' is given twice: write PARTY={what}")
        found[name] = value
    return found
