"""The experiments of `bench vertical`: each by name, on any table, with what the paper says beside what is measured."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from made import made_table

from syndic.cli.main import cli
from syndic.errors import InputError
from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical import claims
from syndic_lab.bench.vertical import plan as vertical_plan
from syndic_lab.bench.vertical.advice import of_advice
from syndic_lab.bench.vertical.claims import (
    FEW_SHARES,
    claim,
    of_budget,
    of_consistency,
    of_cost,
    of_distance,
    of_local,
    of_recovery,
    smaller,
)
from syndic_lab.bench.vertical.methods import (
    CURATOR,
    GLUED,
    ORACLE_PRINTED,
    PRIVMRF,
    SHARES,
    SKETCH_PRINTED,
    found,
    found_with,
)
from syndic_lab.bench.vertical.runs import Found
from syndic_lab.bench.vertical.svm import misclassified, of_svm
from syndic_lab.bench.vertical.table import BINS, coded_table

SIZES = {"a": 3, "b": 9, "c": 2, "d": 5, "e": 3}


def coded(count: int = 2000) -> Coded:
    return made_table(SIZES, count)


def by_row(rows: list[Row]) -> dict[tuple[str, str], Row]:
    return {(row.row, row.metric): row for row in rows}


@pytest.mark.bench
def test_printed_variants_are_ordered_and_held_against_the_paper() -> None:
    data = coded()
    methods = (CURATOR, PRIVMRF, SHARES, SKETCH_PRINTED, ORACLE_PRINTED, GLUED)
    rows = by_row(list(of_distance(data, ("2",), [0], methods)))
    begin = "made, epsilon 2, 2 parties"
    means = {name: np.mean([rows[f"{begin}, {name}", f"tvd{ways}"].value for ways in (3, 4, 5)]) for name in methods}
    # one run has no spread: nothing is decided
    for text in (f"{SKETCH_PRINTED}, better than {ORACLE_PRINTED}", "a trusted curator is best"):
        assert rows[f"{begin}, {text}", "as published"].value == 0.5
    # columns hang together across parties: who ignores it is far off
    assert means[GLUED] > 2 * means[SHARES]


def test_cost_stands_beside_the_published_table_for_adult_only() -> None:
    data = coded(500)
    adult = Coded("adult", data.schema, data.table)
    other = by_row(list(of_cost(data, [0], "2", (ORACLE_PRINTED,))))
    rows = by_row(list(of_cost(adult, [0], "2", (ORACLE_PRINTED, GLUED))))
    sent = rows[f"adult, epsilon 2, 2 parties, {ORACLE_PRINTED}", "megabytes"]
    assert sent.published == 18
    assert all(row.published is None for row in other.values())
    # every person's five codes, a byte each, and little more
    assert 500 * 5 < 1e6 * sent.value == found(adult, ORACLE_PRINTED, "2", 0).sent < 500 * 5 + 60_000


@pytest.mark.parametrize(("apart", "decided"), [(0.1, True), (0.01, None), (-0.1, False)])
def test_an_order_is_decided_beyond_two_standard_errors(apart: float, decided: bool | None) -> None:
    some = [Found({3: 0.2 + noise}, 0.0, 0) for noise in (-0.02, 0.0, 0.02)]
    others = [Found({3: 0.2 + apart + noise}, 0.0, 0) for noise in (-0.02, 0.0, 0.02)]
    assert smaller(some, others) is decided
    assert smaller(some[:1], others) is None


@pytest.mark.bench
def test_ablations_say_which_variant_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    data, ways = coded(800), ("oracle",)
    # every run three times: means without a spread decide every order
    monkeypatch.setattr(claims, "found_with", lambda data, protocol, epsilon, _: found_with(data, protocol, epsilon, 0))
    experiments = {
        "consistency helps": (of_consistency(data, ("2",), range(3), ways), "made consistent", "not made consistent"),
        "local models help": (of_local(data, "2", range(3), ways), "with local models", "without local models"),
    }
    for text, (rows, better, worse) in experiments.items():
        some = by_row(list(rows))
        begin = "made, epsilon 2, printed randomised response"
        means = [np.mean([some[f"{begin}, {name}", f"tvd{w}"].value for w in (3, 4, 5)]) for name in (better, worse)]
        assert means[0] != means[1]
        assert some[f"{begin}: {text}", "as published"].value == float(means[0] < means[1])
    assert sum(row.metric == "as published" for row in of_recovery(data, ("0.8", "3.2"), [0], ways)) == 2
    budget = list(of_budget(data, "2", [0], ways, FEW_SHARES))
    assert len({row.row for row in budget}) == 5


def test_a_claim_is_yes_or_no() -> None:
    assert [claim("x", holds).value for holds in (True, False, None)] == [1.0, 0.0, 0.5]


def test_classifier_learns_from_rows_and_is_tested_on_others() -> None:
    draws = np.random.default_rng(3)
    first = draws.integers(0, 4, 3000)
    codes = {"a": first, "b": draws.integers(0, 4, 3000), "label": (first > 1).astype(np.int64)}
    half = [{name: column[part] for name, column in codes.items()} for part in (slice(0, 1500), slice(1500, 3000))]
    assert misclassified(half[0], half[1], "label") < 0.02
    shuffled = {**half[0], "label": draws.permutation(half[0]["label"])}
    assert misclassified(shuffled, half[1], "label") > 0.3
    one_class = {**half[0], "label": np.ones(1500, dtype=np.int64)}
    assert misclassified(one_class, half[1], "label") == pytest.approx(np.mean(half[1]["label"] != 1))


def test_folds_of_the_classifier_stand_beside_real_rows() -> None:
    rows = {row.row.rpartition(" on ")[2]: row for row in of_svm(coded(1000), "e", "2", (SHARES,), folds=2, most=300)}
    assert set(rows) == {"real rows", "always the most frequent", SHARES}
    assert rows["real rows"].value < rows["always the most frequent"].value
    assert rows[SHARES].baseline == rows["real rows"].value
    assert rows[SHARES].value < rows["always the most frequent"].value


@pytest.mark.bench
def test_advice_is_held_against_what_is_measured() -> None:
    rows = list(of_advice(coded(20_000), ("4",), (SHARES, GLUED)))
    within = [row for row in rows if row.metric.endswith("as advised")]
    assert len(within) == 6
    assert all(row.value in (0.0, 1.0) for row in within)
    (chosen,) = [row for row in rows if row.metric == "best method advised"]
    assert "best shares" in chosen.row
    assert chosen.value == 1.0


def test_any_table_can_be_measured(tmp_path: Path) -> None:
    draws = np.random.default_rng(5)
    table = pa.table(
        {
            "age": draws.integers(0, 100, 400),
            "colour": draws.choice(["red", "green"], 400),
            "name": [f"person {place}" for place in range(400)],
            "height": pa.array([None, *draws.normal(170, 10, 399)]),
        }
    )
    pq.write_table(table, tmp_path / "own.parquet")
    found_table = coded_table(tmp_path / "own.parquet")
    # names are no categories, numbers are cut
    assert dict(zip(found_table.domain.names, found_table.domain.sizes, strict=True)) == {
        "age": BINS,
        "colour": 2,
        "height": BINS,
    }
    ages = np.asarray(found_table.table["age"])
    assert np.all(np.diff(ages[np.argsort(np.asarray(table["age"]), kind="stable")]) >= 0)
    options = ["bench", "vertical", "--quick", "--only", "consistency", "--table", str(tmp_path / "own.parquet")]
    result = CliRunner().invoke(cli, [*options, "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert {row["metric"] for row in rows} == {"tvd3", "as published"}
    with pytest.raises(InputError, match=r"csv or \.parquet"):
        coded_table(tmp_path / "none.txt")


def test_options_are_for_this_bench_only() -> None:
    result = CliRunner().invoke(cli, ["bench", "noise", "--only", "svm"])
    assert result.exit_code == 2
    assert "bench vertical" in result.output
    with pytest.raises(InputError, match="no experiment 'nothing'"):
        list(vertical_plan.rows(True, ("nothing",)))


def test_without_data_there_is_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    assert list(BENCHES["vertical"](True)) == []
    assert "SYNDIC_DATA" in capsys.readouterr().err
