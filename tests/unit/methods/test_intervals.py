"""Intervals of releases: the file on disk is enough, every method that publishes tables, and what must be left out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from support import VERTICAL, rows, study_text, synthesis_across, vertical_study
from syndic import Release, Study, simulate
from syndic.cli.main import cli
from syndic.errors import InputError
from syndic.methods.synthesis.measured import measured_by_model
from syndic.model.interval import interval_of
from syndic.report.write import method_section
from unit.methods.synthesising import result, sources, study

MUCH = "epsilon = 20\ndelta = 1e-6"
QUESTIONS = (
    "mean(age)",
    "mean(score, given=colour == 'red')",
    "linear(score, age)",
    "quantile(age, 0.5)",
    "mean(score * age, given=colour == 'red')",
)


@pytest.fixture(scope="module")
def released() -> Release:
    return simulate(study(budget=MUCH, people=2000), sources(count=2000), seed=1)


def ages(count: int = 2000) -> float:
    """The mean age of the rows of both parties, each the middle of its bin."""
    every = np.concatenate([rows(count, seed)["age"].to_numpy() for seed in (0, 1)])
    return float((every // 20 * 20 + 9.5).mean())


def test_the_folder_of_a_release_is_enough(released: Release, tmp_path: Path) -> None:
    released.write(tmp_path)
    for name in ("synthetic.parquet", "transcript.json"):
        assert (tmp_path / name).is_file()
    again = Release.load(tmp_path)
    for question in QUESTIONS:
        one, other = (each.interval(question) for each in (released, again))
        assert msgspec.to_builtins(one) == pytest.approx(msgspec.to_builtins(other), nan_ok=True)
    found = released.interval("mean(age)")
    assert found.low is not None
    assert found.high is not None
    assert found.low < ages() < found.high
    told = CliRunner().invoke(cli, ["interval", str(tmp_path), *QUESTIONS, "--json"])
    assert told.exit_code == 0, told.output
    shown = json.loads(told.output)
    assert [one["question"] for one in shown] == list(QUESTIONS)
    assert shown[0]["low"] == pytest.approx(found.low)
    assert "95 % interval" in CliRunner().invoke(cli, ["interval", str(tmp_path), "mean(age)"]).output


def test_a_wrong_question_does_not_take_the_answers_of_others(released: Release, tmp_path: Path) -> None:
    released.write(tmp_path)
    asked = ["interval", str(tmp_path), "mean(nope)", "mean(age)", "mean(colour)"]
    told = CliRunner().invoke(cli, asked)
    assert told.output.startswith("mean(age) = ")
    assert isinstance(told.exception, InputError)
    first, second = str(told.exception).split("\n")
    assert first.startswith("mean(nope): no column 'nope'")
    assert second.startswith("mean(colour): 'colour' is no number")
    told = CliRunner().invoke(cli, [*asked, "--json"])
    assert told.exit_code == InputError.exit_code
    assert [(one["question"], "wrong" in one) for one in json.loads(told.output)] == [
        ("mean(age)", False),
        ("mean(nope)", True),
        ("mean(colour)", True),
    ]


def test_what_is_kept_is_measured() -> None:
    question = "mean(score * age, given=colour == 'red')"
    plain, kept = (
        simulate(study(text, budget=MUCH, people=2000), sources(count=2000), seed=3)
        for text in ("model_cells = 60", 'keep = [["colour", "age", "score"]]')
    )
    assert 'keep = [["colour", "age", "score"]]' in str(plain.interval(question).reason)
    assert kept.interval(question).reason is None


@pytest.mark.parametrize("unit", ["add_remove", "replace"])
def test_marginal_tables_answer_directly(unit: str) -> None:
    agreed = study_text(
        unit=f'neighbours = "{unit}"',
        budget=MUCH,
        protocol='method = "marginals"',
        parties='[[parties]]\nname = "north"\npeople = 2000\n[[parties]]\nname = "south"\npeople = 2000\n',
    )
    release = simulate(Study.loads(agreed), sources(count=2000), seed=1)
    found = release.interval("mean(age)")
    # five standard deviations of the noise: 0.04 over 24 seeds
    assert found.value == pytest.approx(ages(), abs=0.2)
    assert found.wider is not None
    assert 1 < found.wider < 1.1
    assert release.measured.public == (unit == "replace")
    assert "no table has all of" in str(release.interval("mean(score, given=colour == 'red' and age > 40)").reason)


@pytest.mark.parametrize("make", [vertical_study, synthesis_across])
def test_columns_of_two_parties(make: Any) -> None:
    agreed = make(parties=VERTICAL.replace("60", "1500"), budget=MUCH)
    table = rows(1500, 3)
    held = {"north": table.select(["colour", "age"]), "south": table.select(["score"])}
    release = simulate(agreed, held, seed=2)
    red = np.array(table["colour"].to_pylist()) == "red"
    exact = float((np.floor((table["score"].to_numpy()[red] + 1) * 2) / 2 - 0.75).mean())
    found = release.interval("mean(score, given=colour == 'red')")
    assert found.low is not None
    assert found.high is not None
    assert found.low < exact < found.high
    assert found.value == pytest.approx(exact, abs=0.02)
    assert release.measured.public


def test_a_level_that_noise_merged_has_no_interval_and_its_first_counts_are_left_out() -> None:
    """The first counts of merged levels are low because they were merged: an interval from them would be wrong."""
    colours = ["red", "green", "blue", "black", "white", "grey"]
    listed = ", ".join(f'"{one}"' for one in colours)
    columns = (
        f'[[schema.columns]]\nname = "c"\nkind = "categorical"\nvalues = [{listed}]\noutside = {{ value = "red" }}\n'
        'missing = { value = "red" }\n[[schema.columns]]\nname = "y"\nkind = "boolean"\nmissing = { value = false }\n'
    )
    agreed = study(budget="epsilon = 0.5\ndelta = 1e-5", parties=1, people=600, columns=columns)
    generator = np.random.default_rng(1)
    table = {
        "c": generator.choice(colours, 600, p=(0.5, 0.4, 0.04, 0.02, 0.02, 0.02)),
        "y": generator.random(600) < 0.5,
    }
    release = simulate(agreed, {"north": pa.table(table)}, seed=4)
    merged = result(release).model.fitted.grouping.groups[0]
    assert len(set(merged)) < len(colours)
    assert all(one.groups[0].max() == max(merged) for one in release.measured.tables if one.names[0] == "c")
    rare = [colours[level] for level in range(6) if merged.count(merged[level]) > 1]
    assert "were counted in groups" in str(release.interval(f"mean(c == '{rare[0]}')").reason)
    assert release.interval("mean(c == 'red')").reason is None


def test_rounds_of_other_parties_are_left_out(released: Release) -> None:
    made = result(released)
    lost = msgspec.structs.replace(made.note.rounds[0], present=("north",))
    short = replace(made, note=msgspec.structs.replace(made.note, rounds=(lost, *made.note.rounds[1:])))
    whole, part = (measured_by_model(one, public=True, repeated=1) for one in (made, short))
    assert len(part.tables) == len(whole.tables) - len(made.note.rounds[0].tables)
    assert whole.public
    assert not part.public


def test_a_release_without_tables_says_so() -> None:
    text = study_text(protocol='method = "homm"')
    release = simulate(Study.loads(text), {"north": rows(60, 1), "south": rows(40, 2)}, seed=1)
    with pytest.raises(InputError, match="publishes no noisy tables"):
        release.interval("mean(age)")


def test_the_report_asks_about_columns_with_any_name() -> None:
    """A word of Python, two spaces and a text longer than a question: none may stop a report."""
    values = {"class": ["a", "b"], "two  spaces": ["c  d", "e'\"\n f"], "long": ["x" * 600, "y" * 600]}
    columns = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "categorical"\nvalues = {json.dumps(listed)}\n'
        f"outside = {{ value = {json.dumps(listed[0])} }}\nmissing = {{ value = {json.dumps(listed[0])} }}\n"
        for name, listed in values.items()
    )
    agreed = study(budget=MUCH, parties=1, people=600, columns=columns)
    generator = np.random.default_rng(1)
    table = pa.table({name: generator.choice(listed, 600, p=(0.7, 0.3)) for name, listed in values.items()})
    section = method_section(simulate(agreed, {"north": table}, seed=4))
    assert section is not None
    assert [row[0] for row in section.tables[0].rows] == ["mean('class' == 'a')", "mean('two  spaces' == 'c  d')"]


def test_rare_levels_of_a_target_leave_the_other_columns_fine_counts() -> None:
    levels = ", ".join(f'"{one}"' for one in "abcdef")
    columns = (
        f'[[schema.columns]]\nname = "c"\nkind = "categorical"\nvalues = [{levels}]\noutside = {{ value = "a" }}\n'
        'missing = { value = "a" }\n[[schema.columns]]\nname = "x"\nkind = "real"\nlower = 0\nupper = 9\n'
        "missing = { value = 0 }\n"
    )
    agreed = study('target = "c"', budget="epsilon = 1\ndelta = 1e-6", people=600, columns=columns)
    draws = np.random.default_rng(1)
    table = pa.table({"c": draws.choice(["a", "b"], 600), "x": 9 * draws.random(600)})
    release = simulate(agreed, {"north": table, "south": table}, seed=1)
    made = result(release)
    fine = [one for one in release.measured.tables if one.names == ("x",) and one.values.size == 64]
    (counted,) = made.model.fitted.rounds[0]
    assert counted.values.shape == (6, 64)
    assert fine[0].values == pytest.approx(counted.values.sum(axis=0))
    assert fine[0].variance == pytest.approx(6 * counted.variance)
    # if other parties counted the bins than the later tables, nothing says how rows lie within a group of bins
    lost = msgspec.structs.replace(made.note.rounds[0], present=("north",))
    short = replace(made, note=msgspec.structs.replace(made.note, rounds=(lost, *made.note.rounds[1:])))
    refused = interval_of(measured_by_model(short, public=True, repeated=1), "mean(x)")
    assert refused.reason == "the bins of 'x' were counted with other parties than the later tables"
