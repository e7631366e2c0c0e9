"""`report`, `interval`, `evaluate`, `compare`, `recompute`, `export`: what can be done with a release."""

import sys
from pathlib import Path
from typing import Any

import click

from syndic.cli import show
from syndic.cli.groups import command
from syndic.cli.show import FOLDER, JSON, PATH
from syndic.cli.study import named
from syndic.errors import InputError, IntegrityError
from syndic.model.interval import Interval
from syndic.study import Release, Study, verify
from syndic.study.differences import differences
from syndic.study.party_folder import party_file


@command("syndic report run", "syndic report run --party north --source north.csv --ledger ledger.sqlite")
@FOLDER
@click.option(
    "--out", "path", type=PATH, help="File to write.  [default: FOLDER/report.html, or owner-report-PARTY.html]"
)
@click.option("--party", help="Write this party's private report, outside the release's folder.")
@click.option(
    "--source", type=PATH, help="That party's rows or its party.toml, shown as exact shares beside the released ones."
)
@click.option("--ledger", type=PATH, help="That party's ledger, shown after it was verified.")
@JSON
def report(
    folder: Path, path: Path | None, party: str | None, source: Path | None, ledger: Path | None, as_json: bool
) -> None:
    """Write the report of a release as one HTML file.

    Anybody can open it. With --party it is the report for that data owner. It contains private numbers.
    """
    # other verbs need no pictures
    from syndic.report import owner_report  # noqa: PLC0415
    from syndic.report import report as public_report  # noqa: PLC0415

    if party is None and (source is not None or ledger is not None):
        raise InputError("--source and --ledger show private numbers of one party: name it with --party")
    with show.progress_bar("write the report", shown=not as_json):
        release = Release.load(folder)
        if party is None:
            written = public_report(release, path or folder / "report.html")
        else:
            target = path or Path(f"owner-report-{party}.html")
            own = party_file(source)
            rows = source if own is None else own.source
            written = owner_report(release, target, party=party, source=rows, ledger=ledger)
    text = f"wrote {written}" + (f" - OWNER ONLY, for {party} alone" if party else "")
    facts = {"file": str(written), "owner": party, "digest": release.statement.digest}
    show.as_json_or(text, facts, as_json=as_json)


@command(
    "syndic interval run 'mean(age)' 'mean(ill, given=smoker)'",
    "syndic interval run 'logistic(ill, age, sex)' --confidence 0.9 --json",
)
@FOLDER
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@click.option("--confidence", type=float, default=0.95, help="How often intervals cover.")
@JSON
def interval(folder: Path, questions: tuple[str, ...], confidence: float, as_json: bool) -> None:
    """Answer questions from a release with intervals. Reads no row and spends nothing.

    A QUESTION has mean, odds, linear, logistic or quantile of columns, with given=CONDITION. Intervals account for
    sampling and noise. If the noisy tables do not answer, the reason is printed. A wrong QUESTION gives an error
    after the other answers, and exit status 2.
    """
    release = Release.load(folder)
    found: list[Interval] = []
    wrong: dict[str, str] = {}
    for question in questions:
        try:
            found.append(release.interval(question, confidence=confidence))
        except InputError as error:
            wrong[question] = str(error)
    if as_json:
        show.as_json([*found, *({"question": question, "wrong": error} for question, error in wrong.items())])
        sys.exit(InputError.exit_code if wrong else 0)
    for one in found:
        click.echo(str(one))
    if wrong:
        raise InputError("\n".join(dict.fromkeys(wrong.values())))


@command(
    "syndic evaluate run -s north=north.csv -s south=south.csv",
    "syndic evaluate run -s north=north.csv --target smoker --out mine.html",
)
@FOLDER
@show.sources("A party's real rows: .csv, .parquet, .arrow or its party.toml. For some or all parties.")
@click.option(
    "--target", metavar="COLUMN", help="Column to predict; default: the study's, else the last of two values."
)
@click.option("--full", is_flag=True, help="All scores: private baselines, more models and sets. Takes minutes.")
@click.option("--seed", type=int, default=1, help="Seed of splits, resamples and baselines.")
@click.option("--out", "target_file", metavar="FILE", type=PATH, help="Also write a .json, .txt or .html file.")
@JSON
def evaluate(folder: Path, sources: tuple[str, ...], target_file: Path | None, as_json: bool, **options: Any) -> None:
    """Compare a release with real rows, for their owner only.

    Scores the release in FOLDER beside baselines, in seconds; notes say what was sampled. Adds no noise and
    spends nothing, so the scores are not private.
    """
    # other verbs need no scores
    from syndic.evaluation import evaluate as evaluate_release  # noqa: PLC0415
    from syndic.evaluation.evaluation import check_target  # noqa: PLC0415

    if target_file is not None:
        check_target(target_file)
    with show.progress_bar("evaluate", shown=not as_json) as progress:
        release = Release.load(folder)
        evaluation = evaluate_release(release, named(sources), progress=progress, **options)
    show.as_json_or(evaluation, evaluation, as_json=as_json)
    if target_file is not None:
        evaluation.write(target_file)
        click.echo(f"wrote {target_file}", err=as_json)


@command("syndic compare run-2025 run-2026")
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


@command("syndic recompute run --replies replies")
@FOLDER
@click.option("--replies", required=True, type=PATH, help="The file that `syndic run --replies` wrote.")
@click.option("--rehearsal", type=int, metavar="SEED", help="The seed, if the run was a rehearsal.")
def recompute(folder: Path, replies: Path, rehearsal: int | None) -> None:
    """Check that a release follows from the parties' signed replies.

    FOLDER is the release. Ends with status 5 if a signature or a published file is wrong.
    """
    with show.progress_bar("recompute", shown=True):
        differ = verify.differences(Release.load(folder), replies, seed=rehearsal)
    if differ:
        raise IntegrityError(f"{', '.join(differ)}: does not follow from the signed replies, or was drawn at random")
    click.echo("every published file follows from the signed replies")


@command(
    "syndic export run --about about.toml --croissant croissant.json",
    "syndic export study.toml --dossier dossier --audit audit.json",
)
@click.argument("folder", metavar="RUN", type=PATH)
@click.option("--about", "words", type=PATH, help="Who publishes it, where and what for: .toml or .json.")
@click.option("--registry", type=PATH, help="Write an entry for the DP Deployments Registry: .yaml or .json.")
@click.option("--croissant", type=PATH, help="Write Croissant 1.0 metadata of the table: .json or .jsonld.")
@click.option("--healthdcat", type=PATH, help="Write HealthDCAT-AP metadata of the table: .json or .jsonld.")
@click.option("--dossier", type=PATH, help="Folder for documents for the privacy officer: .html and .md.")
@click.option("--audit", type=PATH, help="For --dossier: what `syndic audit METHOD --out audit.json` found.")
@click.option("--log", type=PATH, help="For --dossier: a party folder or coordinator's, for its audit log.")
@JSON
def export(folder: Path, words: Path | None, as_json: bool, **given: Path | None) -> None:
    """Write a release's metadata for catalogues, and documents for a privacy officer.

    RUN is the folder of a release; for --dossier also a study file, before the run. Reads no row.
    """
    # other verbs need no catalogue
    from syndic.report import About, write_catalogue  # noqa: PLC0415
    from syndic.report.dossier import Attacks, Case, write_dossier  # noqa: PLC0415

    dossier, audit, log = given.pop("dossier"), given.pop("audit"), given.pop("log")
    catalogues = {kind: path for kind, path in given.items() if path is not None}
    if not catalogues and dossier is None:
        raise InputError("nothing to write: give --registry, --croissant, --healthdcat or --dossier")
    about = None if words is None else About.load(words)
    written: list[Path] = []
    with show.progress_bar("export", shown=not as_json):
        if catalogues:
            if about is None:
                raise InputError("catalogues ask who publishes the release: give --about FILE")
            release = Release.load(folder)
            written += [write_catalogue(kind, release, folder, about, path) for kind, path in catalogues.items()]
        if dossier is not None:
            case = Case.load(folder, about=about, attacks=None if audit is None else Attacks.load(audit), log_of=log)
            written += write_dossier(case, dossier)
    lines = [f"wrote {path}" for path in written]
    if "healthdcat" in catalogues and about is not None and about.missing_for_health:
        lines.append(f"a HealthDCAT-AP catalogue also requires {', '.join(about.missing_for_health)} in {words}")
    digest = Study.load(folder / "study.json" if folder.is_dir() else folder).digest
    show.as_json_or("\n".join(lines), {"files": list(map(str, written)), "digest": digest}, as_json=as_json)
