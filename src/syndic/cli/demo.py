"""`demo`: a study of three clinics with made-up patients, and what they gain by it."""

from collections.abc import Mapping
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import msgspec

from syndic.cli import show
from syndic.cli.groups import command
from syndic.cli.show import JSON, PATH
from syndic.cli.study import OUT_HELP, facts_of, spendings_of, write_release
from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.evaluation.distance import column_sets, distances
from syndic.evaluation.rows import kept, pooled, released
from syndic.privacy import Spending, cost_sentence
from syndic.study import Release, Study, simulate
from syndic.study.document import price_of
from syndic.study.draft_text import sections
from syndic.study.simulate import RuntimeName
from syndic.study.statement import odds_for

_TOGETHER = "together"


@command("syndic demo", "syndic demo --runtime local --out my-demo")
@click.option("--out", "folder", type=PATH, default=Path("syndic-demo"), help=OUT_HELP)
@show.runtime("processes")
@click.option("--files", type=PATH, help="Only write the clinics' tables and their study, to run it yourself.")
@JSON
def demo(folder: Path, runtime: RuntimeName, files: Path | None, as_json: bool) -> None:
    """Run a study of three clinics with made-up patients.

    Compares the synthetic table of all clinics with the tables that each clinic could publish alone.
    """
    if files is not None:
        show.as_json_or(f"wrote {files}", {"files": _write_files(files)}, as_json=as_json)
        return
    with (
        as_file(resources("syndic") / "demo") as data,
        show.progress_bar("three clinics", shown=not as_json) as progress,
    ):
        study = Study.load(data / "study.toml")
        sources = {party.name: data / f"{party.name}.csv" for party in study.parties}
        joint = simulate(study, sources, runtime=runtime, folder=folder, progress=progress)
        paths = write_release(joint, folder)
        gains = _gains(study, sources, joint)
    ledgers = spendings_of(study, folder)
    following = [
        f"syndic ledger show {folder / 'parties' / study.parties[0].name / 'ledger.sqlite'}",
        f"syndic plan {folder / 'study.json'}",
    ]
    if as_json:
        facts = {"gains": gains, "cost": _costs(joint, ledgers), "report": str(paths[-1]), "next": following}
        show.as_json({**facts_of(joint, paths, ledgers), **facts})
        return
    _show(joint, gains, _costs(joint, ledgers))
    click.echo(f"\nReport: {paths[-1]} (open it in a browser)")
    click.echo("\n".join(f"{start} {line}" for start, line in zip(("Next:  ", "       "), following, strict=True)))


def _write_files(folder: Path) -> list[str]:
    """Write tables, study, and the study without its parties: `coordinator fill` adds those who joined."""
    folder.mkdir(parents=True, exist_ok=True)
    with as_file(resources("syndic") / "demo") as data:
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(data.glob("*.*"))}
    lines = texts["study.toml"].split("\n")
    for one in reversed(sections(texts["study.toml"])):
        if one.table == "parties":
            del lines[one.first : one.end]
    texts["draft.toml"] = "\n".join(lines)
    for name, text in texts.items():
        if (folder / name).exists() and (folder / name).read_bytes() != text.encode():
            raise InputError(f"{folder / name} is not the demo's: choose another folder. Nothing was written")
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return list(texts)


def _gains(study: Study, sources: Mapping[str, Path], joint: Release) -> list[dict[str, Any]]:
    """Run the same study with each clinic alone, and compare every synthetic table with the rows of all clinics.

    `misplaced` is the share of people in the wrong cell, averaged over all tables of two columns: the mean total
    variation distance. `rows` is the number of rows behind the table. Both are exact, so for made-up rows only.
    """
    tables = {name: Table(study.schema, open_source(path)) for name, path in sources.items()}
    sizes = {name: pooled([table]).size() for name, table in tables.items()}
    releases = {}
    for party in study.parties:
        alone = msgspec.structs.replace(study, parties=(party,))
        releases[party.name] = simulate(alone, {party.name: sources[party.name]})
    releases[_TOGETHER] = joint
    found = distances(
        kept(pooled(list(tables.values()))),
        {name: released(release.table, study.schema) for name, release in releases.items()},
        column_sets(study.schema.names, 2),
    )
    return [
        {"by": name, "rows": sizes.get(name, sum(sizes.values())), "misplaced": fmean(found[name].values())}
        for name in releases
    ]


def _costs(release: Release, ledgers: Mapping[str, list[Spending]]) -> dict[str, str]:
    """Return for each party what the study costs, and what its ledger says after it."""
    return {
        party.name: cost_sentence(price_of(release.study, party.name), one)
        for party in release.study.parties
        for one in ledgers[party.name]
    }


def _show(release: Release, gains: list[dict[str, Any]], costs: Mapping[str, Any]) -> None:
    columns = len(release.study.schema.names)
    click.echo(
        f"Three clinics publish one synthetic table of {columns} columns. No row leaves a clinic.\n\n"
        "How well does a synthetic table describe the patients of all clinics?\n"
        f"Share of patients in the wrong cell, mean of the {columns * (columns - 1) // 2} tables of two columns:"
    )
    for gain in gains:
        name = gain["by"] if gain["by"] == _TOGETHER else f"{gain['by']} alone"
        click.echo(f"  {name:<13}{100 * gain['misplaced']:5.1f} %   from {gain['rows']:,} patients")
    click.echo(
        "Each table has the same epsilon and delta. These shares are exact: they may be\n"
        "shown here only because the patients are made up.\n"
    )
    for sentence in dict.fromkeys(costs.values()):
        parties = ", ".join(name for name, one in costs.items() if one == sentence)
        show.wrapped("", f"Cost at {parties}: {sentence}.")
    show.wrapped("", f"This means: {odds_for(release.statement.epsilon, release.statement.delta)}.")
