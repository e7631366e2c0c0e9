"""Synthesis: tables and models that are valid, silent parties, and runs that are begun again."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from runtimes import run_lossy
from support import ONE, Case, charges, study_text, two_parties
from syndic import Release, Study, evaluate
from syndic.errors import InputError, PartyError
from syndic.methods.synthesis.result import SyntheticTable
from syndic.model.markov import Measurement
from syndic.study import simulate
from unit.methods.synthesising import FLAGS, exact, planned, result, sources, study


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("selector", ["adaptive", "one_shot"])
def test_the_table_and_the_model_are_valid_and_come_back_from_disk(parties: int, selector: str, tmp_path: Path) -> None:
    agreed = study(f'selector = "{selector}"', parties=parties)
    release = simulate(agreed, sources(parties), seed=3)
    made, schema = result(release), agreed.schema
    assert made.table.names == schema.names
    for column in schema.columns:
        values = made.table.to_arrow()[column.name]
        assert (column.encode(values) < column.size).all()
    ages = made.table.to_arrow()["age"].to_pylist()
    assert all(isinstance(age, int) and 0 <= age <= 99 for age in ages)
    release.write(tmp_path)
    back = result(Release.load(tmp_path))
    assert back.table.to_arrow().equals(made.table.to_arrow())
    assert back.note == made.note
    assert back.model.total == made.model.total
    for one, other in zip(back.tables, made.tables, strict=True):
        assert isinstance(one, Measurement)
        assert one.names == other.names
        assert one.variance == pytest.approx(other.variance)
        assert np.array_equal(one.values, other.values)
    assert np.allclose(back.model.marginal(("age", "colour")).values, made.model.marginal(("age", "colour")).values)
    assert release.model is made.model


def test_with_little_noise_the_model_is_the_data() -> None:
    agreed, held = study(budget="epsilon = 12\ndelta = 1e-6", parties=3, people=500), sources(3, 500)
    made = result(simulate(agreed, held, seed=3))
    for table in made.tables:
        off = np.abs(table.values - exact(agreed, held, table.names)).max()
        assert off < 6 * table.variance**0.5
    for name in agreed.schema.names:
        off = np.abs(made.model.marginal((name,)).values - exact(agreed, held, (name,))).max()
        assert off < 0.03 * 1500
    assert abs(len(made.table) - 1500) < 50


def test_a_model_answers_and_draws_with_values_given() -> None:
    agreed = study(parties=1)
    model = simulate(agreed, sources(1), seed=3).model
    counts = model.table(("colour", "age"))
    assert counts.column_names == ["colour", "age", "count"]
    assert sum(counts["count"].to_pylist()) == pytest.approx(model.total)
    assert set(counts["colour"].to_pylist()) == {"red", "green", "blue", "other"}
    drawn = model.sample(200, given={"colour": "green", "age": 47}).to_arrow()
    assert set(drawn["colour"].to_pylist()) == {"green"}
    assert {age // 20 for age in drawn["age"].to_pylist()} == {2}
    nothing = model.sample(50, given={"score": None}).to_arrow()
    assert nothing["score"].null_count == 50
    one, other = (model.sample(50, generator=np.random.default_rng(1)).to_arrow() for _ in range(2))
    assert one.equals(other)
    assert not one.equals(model.sample(50).to_arrow())
    with pytest.raises(InputError, match="unknown columns"):
        model.marginal(("secret",))
    with pytest.raises(InputError, match=r"rows \(-1\)"):
        model.sample(-1)
    with pytest.raises(InputError, match="given"):
        model.sample(1, given={"age": object()})
    with pytest.raises(InputError, match="given"):
        model.sample(1, given={"colour": ["red"]})
    with pytest.raises(InputError, match="at least one column"):
        model.table(())


def test_a_column_that_is_called_count_is_not_lost() -> None:
    agreed = study(parties=1, columns=FLAGS.replace('"flag"', '"count"'))
    made = result(simulate(agreed, {"north": pa.table({"count": ["no"] * 60, "mark": ["yes"] * 60})}, seed=1))
    assert made.model.table(("count",)).column_names == ["count", "(count)"]
    assert made.model.table(("mark",)).column_names == ["mark", "count"]


def test_what_is_declared_impossible_does_not_occur() -> None:
    cells = '[["red", "0-19"], ["green", "0-19"]]'
    agreed = study(f'zeros = [{{ columns = ["colour", "age"], cells = {cells} }}]', parties=1)
    made = result(simulate(agreed, sources(1), seed=3))
    counts = made.model.marginal(("colour", "age")).values
    assert (counts[:2, 0] == 0).all()
    assert (counts[2:, 0] > 0).any()
    table = made.table.to_arrow()
    pairs = zip(table["colour"].to_pylist(), table["age"].to_pylist(), strict=True)
    assert not [1 for colour, age in pairs if colour in {"red", "green"} and age < 20]


def test_rows_are_as_many_as_asked_or_as_the_counts_say() -> None:
    assert len(simulate(study("rows = 7"), sources(), seed=1).table) == 7
    assert len(simulate(study("rows = 0"), sources(), seed=1).table) == 0
    agreed = study(unit='neighbours = "replace"')
    assert len(simulate(agreed, sources(), seed=1).table) == 120
    # a party with fewer rows than it declared adds rows of missing values
    assert len(simulate(agreed, sources(count=59), seed=1).table) == 120


def run_without(step: str, time: int, folder: Path, missing: int = 1) -> SyntheticTable:
    """Run with a party that does not answer the step when it is asked for this time."""
    agreed = study(f"missing = {missing}", parties=5)
    case = Case("here", agreed, sources(5))
    made = run_lossy(case, folder, lambda *asked: asked == (step, "south", time - 1))
    assert isinstance(made, SyntheticTable)
    return made


def test_a_party_may_be_silent_in_one_round_and_be_back_in_the_next(tmp_path: Path) -> None:
    rounds = run_without("count", 2, tmp_path).note.rounds
    assert [len(one.present) for one in rounds] == [5, 4, *[5] * (len(rounds) - 2)]
    with pytest.raises(PartyError, match="south: lost"):
        run_without("count", 2, tmp_path / "none", missing=0)


def test_a_round_that_was_lost_says_nothing(tmp_path: Path) -> None:
    made = run_without("sum_open", 2, tmp_path)
    assert made.note.rounds[1].present == ()
    assert made.note.rounds[1].standard_deviation > 1e6
    assert abs(made.note.total - 300) < 100


def test_without_the_first_round_no_value_is_taken_to_be_rare(tmp_path: Path) -> None:
    made = run_without("sum_open", 1, tmp_path)
    assert made.note.rounds[0].present == ()
    assert [len(set(groups)) for groups in made.note.groups] == [4, 5, 5]
    assert abs(made.note.total - 300) < 100


def test_a_release_is_evaluated_beside_each_party_alone_and_a_curator() -> None:
    agreed, held = study(parties=3), sources(3)
    found = evaluate(simulate(agreed, held, seed=1), held, seed=1, full=True)
    names = [one.name for one in found.scores]
    assert {"release", "north alone", "south alone", "east alone", "pooled DP"} <= set(names)
    assert all(0 < one.tvd[0].mean < 1 for one in found.scores)


@pytest.mark.parametrize("parties", [1, 3])
def test_a_run_that_is_begun_again_gets_the_stored_answers_and_pays_nothing(parties: int, tmp_path: Path) -> None:
    """The coordinator chooses the same tables from the same answers, so every call has the id and body it had."""
    agreed = study(parties=parties)
    first, again = (result(simulate(agreed, sources(parties), folder=tmp_path)) for _ in range(2))
    assert again.note == first.note
    for one, other in zip(first.tables, again.tables, strict=True):
        assert np.array_equal(one.values, other.values)
    assert len(charges(tmp_path, "north")) == len(first.note.rounds) + 1
    assert first.note.parities is not None


def test_the_statement_of_a_large_epsilon_can_be_read_back(tmp_path: Path) -> None:
    """Slack takes more than a small delta at a large epsilon; there is no such point on the curve."""
    release = simulate(study(budget="epsilon = 12\ndelta = 1e-5"), sources(), seed=1)
    release.write(tmp_path)
    statement = Release.load(tmp_path).statement
    assert statement == release.statement
    assert all(np.isfinite(epsilon) for epsilon, _ in statement.curve)


@pytest.mark.parametrize(("parties", "note"), [(2, "1 neighbour per party"), (3, "2 neighbours per party")])
def test_the_plan_counts_neighbours(parties: int, note: str) -> None:
    assert note in planned(study(parties=parties)).resources.notes


def test_the_plan_warns_of_more_open_bins_than_noise_allows() -> None:
    def said(people: int, extra: str = "") -> str:
        column = f'[[schema.columns]]\nname = "income"\nkind = "integer"\nlower = 1\nupper = 30_000\n{extra}'
        return " ".join(planned(study(people=people, columns=column)).resources.notes)

    assert "'income' has 30,000 open bins" in said(2000)
    assert "open bins" not in said(2000, 'scale = "log"')
    assert "open bins" not in said(2000, "bins = 64")
    assert "open bins" not in said(200_000)


def test_two_parties_of_support_fit_too() -> None:
    assert len(simulate(Study.loads(study_text(protocol='method = "synthesis"', budget=ONE)), two_parties()).table)
