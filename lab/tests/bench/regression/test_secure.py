"""The measurement of secure Gram matrices, on a small one."""

import pytest

from syndic_lab.bench.regression.secure import made_up, measure, rows


def test_a_small_matrix_is_exact_and_counted() -> None:
    found = measure(700, 7, 3)
    assert found["wrong"] == 0
    # every party sends its rows once, and everybody's rows reach two partners
    assert found["once"] < found["relayed"] < 4 * found["once"]
    assert 7 / 3 * found["own"] < found["once"]  # the largest party has three of seven columns
    # of three shares two protect: three halves of a curator's variance
    assert found["sigma"] / found["curator"] == pytest.approx(1.5**0.5, rel=1e-6)


def test_a_study_of_the_published_shape_fits_the_usual_limits() -> None:
    study, _ = made_up(412_276, 91, 10)
    study.plan.check()
    assert study.plan.resources.memory_bytes < 10**9


def test_columns_are_spread_evenly() -> None:
    study, tables = made_up(10, 91, 10)
    assert sorted(len(party.columns or ()) for party in study.parties) == [9] * 9 + [10]
    assert {table.rows for table in tables.values()} == {10}


def test_rows_are_named_by_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic_lab.bench.regression.secure._SMALL", (300, 5, 2))
    found = {row.metric: row for row in rows(True)}
    assert {row.row for row in found.values()} == {"secure gram, 300 rows, 5 columns, 2 parties"}
    assert found["wrong sums before noise"].value == 0
