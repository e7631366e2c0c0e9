"""A release scored from end to end: baselines, marks, refusals, and agreement with brute force."""

import dataclasses
import json
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import support
from syndic import Release, Study, evaluate, simulate
from syndic.cli.main import cli
from syndic.data import ReleasedTable, Schema, Table, open_source
from syndic.document import from_json, to_json
from syndic.errors import InputError, MissingExtraError, RefusedError
from syndic.evaluation import Evaluation
from syndic.evaluation.baselines import PooledSource, alone_study, held_out, own_rows, pooled_study, without_noise
from syndic.evaluation.distance import column_scores, group_scores
from syndic.evaluation.evaluation import BANNER
from syndic.evaluation.prediction import default_target
from syndic.evaluation.rows import pooled, thinned
from syndic.kernel import Result

OWN = ["north's own rows", "south's own rows"]
QUICK = ["independent columns", "real rows", "two halves"]
BASELINES = ["north alone", "south alone", "pooled DP", *OWN, *QUICK]
OWN_BUDGET = support.PARTIES.replace("people = 40", "people = 40\nbudget = { epsilon = 0.5 }")


def study_of(**parts: str) -> Study:
    return Study.loads(support.study_text(**parts))


def real_rows() -> dict[str, pa.Table]:
    return {"north": support.rows(600, 1), "south": support.rows(400, 2)}


@pytest.fixture(scope="module")
def released() -> Release:
    return simulate(study_of(budget="epsilon = 4.0"), real_rows(), seed=7)


@pytest.fixture(scope="module")
def found(released: Release) -> Evaluation:
    return evaluate(released, real_rows(), seed=1, target="score", full=True)


def coded(schema: Schema, arrow: pa.Table) -> list[tuple[int, ...]]:
    columns = [column.encode(arrow[column.name]).tolist() for column in schema.columns]
    return list(zip(*columns, strict=True))


def test_baselines_are_always_there(found: Evaluation) -> None:
    assert [one.name for one in found.scores] == ["release", *BASELINES]
    assert found.rows == 1000
    assert found.parties == ("north", "south")
    for one in found.scores:
        assert [way.columns for way in one.tvd] == [1, 2, 3]
        assert [each.model for each in one.predictions] == ["gradient boosting", "linear regression", "random forest"]
        assert one.overlap is not None
        assert one.pmse_tree is not None
    with pytest.raises(InputError, match="no scores of 'west'"):
        found["west"]


def test_scores_of_the_release_are_those_of_brute_force(found: Evaluation, released: Release) -> None:
    schema = released.study.schema
    real = [row for arrow in real_rows().values() for row in coded(schema, arrow)]
    other = coded(schema, released.table.to_arrow())
    by_set = {}
    for way in (1, 2, 3):
        for axes in combinations(range(3), way):
            counts = [Counter(tuple(row[axis] for axis in axes) for row in rows) for rows in (real, other)]
            cells = set(counts[0]) | set(counts[1])
            distance = sum(abs(counts[0][cell] / len(real) - counts[1][cell] / len(other)) for cell in cells) / 2
            by_set[tuple(schema.names[axis] for axis in axes)] = distance
    assert {one.columns: one.tvd for one in found.sets} == pytest.approx(by_set, abs=1e-12)
    pairs = [distance for names, distance in by_set.items() if len(names) == 2]
    assert found["release"].k_marginal == pytest.approx(1000 * (1 - np.mean(pairs)))
    columns = {one.column: one for one in found.columns}
    assert columns["age"].tvd == pytest.approx(by_set["age",])
    own = [distance for names, distance in by_set.items() if len(names) == 2 and "age" in names]
    assert columns["age"].pairs == pytest.approx(np.mean(own))


def test_groups_are_those_of_brute_force(found: Evaluation, released: Release) -> None:
    schema = released.study.schema
    real = [row for arrow in real_rows().values() for row in coded(schema, arrow)]
    other = coded(schema, released.table.to_arrow())
    for group in found.groups:
        axis = schema.names.index(group.column)
        level = schema[group.column].labels().index(group.level)
        members = [[row for row in rows if row[axis] == level] for rows in (real, other)]
        assert group.rows == len(members[0]) >= 50
        assert group.share == pytest.approx(len(members[0]) / 1000)
        distances = []
        for place in {0, 1, 2} - {axis}:
            counts = [Counter(row[place] for row in rows) for rows in members]
            cells = set(counts[0]) | set(counts[1])
            sizes = [len(rows) for rows in members]
            distances.append(sum(abs(counts[0][cell] / sizes[0] - counts[1][cell] / sizes[1]) for cell in cells) / 2)
        assert group.tvd == pytest.approx(np.mean(distances))
    excess = [group.tvd - group.halves for group in found.groups]
    assert excess == sorted(excess, reverse=True)


def test_a_perfect_copy_scores_zero_and_a_thousand() -> None:
    real = real_rows()
    copy = ReleasedTable(pa.concat_tables(real.values()))
    scored = evaluate(copy, real, study_of(), seed=1, target="colour")["release"]
    assert [(way.mean, way.worst) for way in scored.tvd] == [(0, 0)] * 3
    assert scored.k_marginal == 1000
    assert scored.pmse_logistic == pytest.approx(0, abs=1e-12)
    assert scored.overlap is not None
    assert scored.overlap.mean == pytest.approx(1)


def test_a_missing_group_is_as_far_as_can_be() -> None:
    schema = Schema.from_domain({"a": 2, "b": 2})
    whole = pooled([Table(schema, open_source(pa.table({"a": [0, 1] * 100, "b": [0, 1] * 100})))])
    without = pooled([Table(schema, open_source(pa.table({"a": [0] * 50, "b": [0] * 50})))])
    halves = (whole, whole)
    scores = group_scores(whole, without, halves, [("a", "b")])
    assert {(one.column, one.level): one.tvd for one in scores}["a", "1"] == 1
    ordered = column_scores(["a", "b"], {("a",): 0.1, ("b",): 0.4}, {("a",): 0.0, ("b",): 0.0}, [])
    assert [(one.column, one.pairs) for one in ordered] == [("b", None), ("a", None)]


def test_the_private_baselines_cost_what_they_should() -> None:
    study = study_of(unit='neighbours = "add_remove"\nrows = 2\nparties = 2', parties=OWN_BUDGET)
    alone, together = alone_study(study, "south"), pooled_study(study, ("north", "south"))
    alone.check()
    together.check()
    assert (alone.budget.epsilon, alone.unit.rows, alone.unit.parties) == (study.parties[1].budget.epsilon, 2, 1)  # type: ignore[union-attr]  # given above
    assert float(alone.joint.epsilon(alone.delta)) == 0.5
    assert (together.unit.rows, together.unit.parties, together.parties[0].people) == (4, 1, 100)
    assert float(together.joint.epsilon(together.delta)) == 1.0
    assert pooled_study(study, ("north",)).unit.rows == 2


def test_people_are_told_apart_within_a_party_only() -> None:
    schema = Schema.from_domain({"a": 5})
    sources = [pa.table({"a": [0, 1, 2], "id": [7, 7, 8]}), pa.table({"a": [3, 4], "id": [7, 7]})]
    tables = tuple(Table(schema, open_source(one), person="id") for one in sources)
    kept = [value for batch in PooledSource(tables).batches(["a"]) for value in batch.column("a").to_pylist()]
    assert kept == [0, 2, 3]
    assert pooled(tables).size() == 3


def test_no_training_has_seen_a_test_row() -> None:
    schema = Schema.from_domain({"number": 1000, "a": 2})
    arrow = pa.table({"number": np.arange(1000), "a": np.arange(1000) % 2})
    real = pooled([Table(schema, open_source(arrow))])
    tested = set(held_out(real, seed=1).take(1000, seed=1, label="test")["number"].tolist())
    assert 200 < len(tested) < 400
    for one in without_noise(real, seed=1):
        training = set(one.training.take(5000, seed=1, label="training")["number"].tolist())
        assert len(training) > 100
        assert not training & tested, one.name
    assert thinned(real, seed=1, label="fold", lower=0.3, upper=1.0).size() == 1000 - len(tested)


def test_every_rendering_says_owner_only(found: Evaluation, tmp_path: Path) -> None:
    assert str(found).startswith(BANNER)
    assert str(found).endswith(BANNER)
    assert BANNER in repr(found)
    assert BANNER in found._repr_html_()
    assert json.loads(to_json(found))["owner_only"] is True
    for suffix in ("json", "txt", "html"):
        written = found.write(tmp_path / f"mine.{suffix}").read_text()
        assert BANNER in written
    assert json.loads((tmp_path / "mine.json").read_text())["owner_only"] is True
    page = (tmp_path / "mine.html").read_text()
    assert page.count("OWNER ONLY - private to the owners of the rows") == 7  # the bar, and every section
    assert "Predicting score" in page
    assert "<script" not in page
    assert to_json(Evaluation.load(tmp_path / "mine.json")) == to_json(found)
    with pytest.raises(InputError, match=r"\.json, \.txt or \.html"):
        found.write(tmp_path / "mine.csv")
    with pytest.raises(InputError, match="cannot be written"):
        found.write(tmp_path / "nowhere" / "mine.json")


def test_the_mark_cannot_be_taken_off(found: Evaluation) -> None:
    with pytest.raises(ValueError, match="always marked"):
        msgspec.structs.replace(found, owner_only=False)
    with pytest.raises(InputError, match="always marked"):
        from_json(to_json(found).replace(b'"owner_only":true', b'"owner_only":false'), Evaluation, where="mine.json")


def test_it_is_not_written_into_a_release(found: Evaluation, released: Release, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    released.write(folder)
    (folder / "more").mkdir()
    (tmp_path / "link").symlink_to(folder / "more")
    for place in (folder, folder / "more", tmp_path / "link", folder / "more" / ".."):
        for suffix in ("json", "txt", "html"):
            with pytest.raises(RefusedError, match="private_scores"):
                found.write(place / f"mine.{suffix}")
    assert not list(folder.rglob("mine.*"))


def test_some_parties_rows_are_enough(released: Release) -> None:
    one = evaluate(released, {"south": real_rows()["south"]}, seed=1, full=True)
    assert [each.name for each in one.scores] == ["release", "south alone", "pooled DP", *QUICK]
    assert (one.parties, one.rows, one.target) == (("south",), 400, "score")
    assert "real rows are the rows of south alone" in one.notes


def test_a_table_needs_a_schema_and_a_schema_gives_no_private_baselines(released: Release, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the study or its schema"):
        evaluate(released.table, real_rows(), seed=1)
    one = evaluate(released.table, real_rows(), released.study.schema, seed=1, full=True)
    assert [each.name for each in one.scores] == ["release", *OWN, *QUICK]
    assert one.digest is None
    assert "no study is given, so there are no private baselines" in one.notes
    whole = evaluate(released.table, real_rows(), released.study, seed=1)
    other = evaluate(released, real_rows(), seed=1)
    # only a release says what it expects of itself
    assert all(pair.expected is not None for pair in other.pairs)
    assert other.relied_on.startswith(f"{whole.relied_on}; the release calls ")
    assert other.relied_on in str(other)
    assert "Pairs, worst first" in other.write(tmp_path / "own.html").read_text()
    assert msgspec.structs.replace(other, pairs=whole.pairs, relied_on=whole.relied_on) == whole


def test_the_seed_decides(released: Release) -> None:
    one, same, other = (evaluate(released, real_rows(), seed=seed) for seed in (1, 1, 2))
    assert to_json(one) == to_json(same)
    assert one["release"].tvd == other["release"].tvd
    assert one["two halves"].tvd != other["two halves"].tvd


def test_the_default_is_quick_and_says_what_it_sampled(released: Release, found: Evaluation) -> None:
    one = evaluate(released, real_rows(), seed=1, target="score")
    assert (one.full, found.full) == (False, True)
    assert [each.name for each in one.scores] == ["release", *OWN, *QUICK]
    assert one["release"].tvd == found["release"].tvd
    assert [each.model for each in one["real rows"].predictions] == ["gradient boosting"]
    assert one["release"].pmse_tree is None
    assert one.notes[-1].startswith("quick scores: at most 150 pairs and 50 triples")
    assert "at most 20,000 rows" in one.notes[-1]
    shown = str(one)
    assert "root mean squared error" in shown
    assert "gradient boosting of score has R squared" in one.verdict
    assert "north's own rows" in one.verdict


def test_own_rows_are_those_of_the_party_outside_the_test_fold() -> None:
    schema = Schema.from_domain({"number": 1000, "a": 2})
    arrow = pa.table({"number": np.arange(1000), "a": np.arange(1000) % 2})
    real = pooled([Table(schema, open_source(part)) for part in (arrow.slice(0, 300), arrow.slice(300))])
    tested = set(held_out(real, seed=1).take(1000, seed=1, label="test")["number"].tolist())
    first, second = own_rows(real, {"north": 300, "south": 700}, seed=1)
    for one, whole in ((first, range(300)), (second, range(300, 1000))):
        assert set(one.rows.take(1000, seed=1, label="all")["number"].tolist()) == set(whole)
        assert set(one.training.take(1000, seed=1, label="t")["number"].tolist()) == set(whole) - tested
    assert own_rows(real, {"north": 1000}, seed=1) == []


def test_the_target_is_the_studys_or_else_the_last_with_two_values(released: Release) -> None:
    schema = Schema.from_domain({"a": 2, "b": 3, "c": 2, "d": 4})
    assert default_target(schema, None)[0] == "c"
    assert default_target(schema, "b") == ("b", "target b: the study's own")
    assert default_target(Schema.from_domain({"a": 3, "b": 4}), None)[0] == "b"
    assert default_target(Schema.from_domain({"a": 3}), None)[0] is None
    one = evaluate(released, real_rows(), seed=1)
    assert one.target == "score"
    assert one.notes[0].startswith("target score: the last column;")


HOMM = [case for case in support.CASES if case.name.startswith("homm")]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if place > 1 else [])
        for place, case in enumerate(HOMM)
    ],
)
def test_every_variant_can_be_evaluated(case: support.Case) -> None:
    made = simulate(case.study, case.sources, seed=3)
    one = evaluate(made, case.sources, seed=1, full=True)
    # under replace, sizes are public, and a pooled table has the sum; south alone may lack a column
    lacking = {"south alone"} if case.name == "homm own columns" else set()
    assert [each.name for each in one.scores] == ["release", *(one for one in BASELINES if one not in lacking)], (
        one.notes
    )
    signed = case.name == "homm unclamped"
    assert (one["release"].pmse_tree is None) == signed
    assert any("negative weights" in note for note in one.notes) == signed
    assert all(0 <= way.mean <= way.worst <= 1 for each in one.scores for way in each.tvd)


def test_a_pooled_baseline_counts_people_of_each_party_apart() -> None:
    unit = 'neighbours = "add_remove"\nperson = "id"'
    study = study_of(unit=unit, budget="epsilon = 100.0")
    # the same ids at both parties, two rows each: 100 rows of each party count
    real = {name: arrow.slice(0, 200) for name, arrow in real_rows().items()}
    real = {name: arrow.append_column("id", pa.array(np.arange(200) % 100)) for name, arrow in real.items()}
    one = evaluate(simulate(study, real, seed=1), real, seed=1, full=True)
    assert one.rows == 200
    assert one["pooled DP"].rows == 200  # at this epsilon noise is 0
    assert one["pooled DP"].tvd[2].worst == 0


def test_a_release_without_a_table_is_refused(released: Release) -> None:
    bare = dataclasses.replace(released, result=cast("Result", object()))
    with pytest.raises(InputError, match="publishes no table"):
        evaluate(bare, real_rows(), seed=1)


def test_a_baseline_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object, **_options: object) -> Release:
        raise InputError("no room")

    study = study_of(unit='neighbours = "replace"')
    made = simulate(study, support.two_parties(), seed=1)
    monkeypatch.setattr("syndic.evaluation.baselines.simulate", refused)
    # the rest is scored all the same
    one = evaluate(made, real_rows(), seed=1, full=True)
    assert [each.name for each in one.scores] == ["release", *OWN, *QUICK]
    assert [note.partition(" is left out: ")[0] for note in one.notes[1:4]] == [
        "north alone",
        "south alone",
        "pooled DP",
    ]


def test_no_rows_at_all_are_no_error(released: Release) -> None:
    empty = {"north": support.rows(0), "south": support.rows(0)}
    one = evaluate(released, empty, seed=1, target="score")
    assert one.rows == 0
    assert one["release"].tvd[0].mean == 1
    assert one["release"].predictions == ()
    assert one.groups == ()
    assert BANNER in str(one)


@pytest.mark.parametrize(
    ("real", "target", "text"),
    [
        ({}, None, "no real rows"),
        ({"west": support.rows(5)}, None, "no party called west; the study's parties are north, south"),
        ({"north": support.rows(5)}, "height", "target 'height' is not a column"),
        ({"north": support.rows(5).drop_columns(["age"])}, None, "party 'north': .*age"),
        ({"north": 3}, None, "party 'north': a int is not a source"),
    ],
)
def test_wrong_input_is_refused(released: Release, real: Any, target: str | None, text: str) -> None:
    with pytest.raises(InputError, match=text):
        evaluate(released, real, seed=1, target=target)


def test_different_columns_of_the_same_people_are_refused_with_a_way_out() -> None:
    case = next(case for case in support.CASES if case.name == "synthesis across")
    release = simulate(case.study, case.sources, seed=1)
    with pytest.raises(InputError, match="different columns of the same people"):
        evaluate(release, case.sources, seed=1)
    joined = support.rows(60, 3).select(release.table.names)
    assert evaluate(release.table, {"joined": joined}, case.study.schema, seed=1)["release"].rows


def test_without_scikit_learn_distances_still_work(released: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    one = evaluate(released, real_rows(), seed=1, full=True)
    assert one.target is None
    assert one["release"].pmse_tree is None
    assert one["release"].pmse_logistic is not None
    assert any("pip install 'syndic[evaluate]'" in note for note in one.notes)
    with pytest.raises(MissingExtraError, match=r"syndic\[evaluate\]"):
        evaluate(released, real_rows(), seed=1, target="score")


def test_the_verdict_names_who_gained(found: Evaluation) -> None:
    release = found["release"].tvd[1].mean
    for party in found.parties:
        gained = found[f"{party} alone"].tvd[1].mean > release
        before, _, after = found.verdict.partition("; not closer than")
        assert (party in before) == gained
        assert (party in after) == (not gained)


def test_the_command_line_evaluates_a_folder(released: Release, tmp_path: Path) -> None:
    released.write(tmp_path / "run")
    sources = []
    for name, arrow in real_rows().items():
        ReleasedTable(arrow).write(tmp_path / f"{name}.csv")
        (tmp_path / f"{name}-party.toml").write_text(
            f'name = "{name}"\ndataset = "{name}"\nsource = {{ path = "{name}.csv" }}\ncap = {{ epsilon = 1 }}\n'
        )
        sources += ["-s", f"{name}={tmp_path / name}-party.toml"]
    words = ["evaluate", str(tmp_path / "run"), *sources, "--target", "colour", "--seed", "4"]
    shown = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "mine.txt")], catch_exceptions=False)
    assert shown.exit_code == 0
    assert BANNER in shown.output
    assert (tmp_path / "mine.txt").read_text().strip() in shown.output
    told = CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False)
    expected = evaluate(released, real_rows(), seed=4, target="colour")
    assert from_json(told.stdout, Evaluation, where="output") == expected
    with pytest.raises(RefusedError, match="private_scores"):
        CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "run" / "mine.txt")], catch_exceptions=False)
    assert not (tmp_path / "run" / "mine.txt").exists()
