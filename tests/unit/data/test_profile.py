"""Describing columns by their rows: each kind, edge values, and that ids and free text leave no value."""

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Real
from syndic.data.bins import round_bounds, round_days, round_down, round_up
from syndic.data.people import rows_of_people
from syndic.data.profile import ColumnProfile, Kind, named_as_code, named_as_id, profile_column

DRAW = np.random.default_rng(7)
DATE = datetime.date


def described(values: Any, name: str = "x", kind: Kind | None = None) -> ColumnProfile:
    return profile_column(name, [pa.array(values)], kind)


def as_csv(values: Any) -> list[bytes | None]:
    return [None if value is None else str(value).encode() for value in values]


@pytest.mark.parametrize("carrier", [list, as_csv])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False] * 20, "boolean"),
        (["yes", "no", "yes", None] * 20, "boolean"),
        ([0, 1, 1] * 20, "boolean"),
        ([1, 2, 3, 4, 7] * 20, "integer"),
        ([1.5, 2.25, 3.0] * 20, "real"),
        (["red", "green", "blue"] * 20, "categorical"),
        (["low", "high", "medium"] * 20, "ordinal"),
        ([DATE(2020, 5, 1), DATE(2021, 5, 1), None] * 20, "date"),
    ],
)
def test_kinds_do_not_depend_on_the_carrier(values: list[Any], kind: str, carrier: Any) -> None:
    assert described(carrier(values)).kind == kind


def test_bounds_are_widened_to_round_numbers() -> None:
    age = described([19, 33, 94] * 10)
    assert (age.kind, age.lower, age.upper, age.bins, age.scale) == ("integer", 15, 95, None, "linear")
    share = described([0.013, 0.5, 0.987] * 10)
    assert (share.kind, share.lower, share.upper) == ("real", 0.0, 1.0)
    born = described([DATE(1950, 3, 4), DATE(2001, 7, 8)] * 10)
    assert (born.lower, born.upper, born.bins) == (DATE(1950, 1, 1), DATE(2001, 12, 31), 40)
    summer = described(["2024-06-03", "2024-07-20"] * 10)
    assert (summer.lower, summer.upper, summer.bins) == (DATE(2024, 6, 1), DATE(2024, 7, 31), None)


def test_skewed_numbers_get_a_logarithmic_scale() -> None:
    money = np.exp(DRAW.normal(8, 1.5, 2000))
    found = described(money)
    assert found.scale == "log"
    assert isinstance(found.lower, float)
    assert 0 < found.lower <= money.min()
    assert described(np.append(money, 0)).scale == "symlog"
    debts = described(np.rint(money - 200).astype(int))
    assert (debts.kind, debts.scale, debts.bins) == ("integer", "symlog", None)
    assert described(DRAW.normal(100, 10, 2000)).scale == "linear"
    assert described(DRAW.poisson(0.3, 2000)).scale == "linear"


def test_many_whole_numbers_are_binned() -> None:
    assert described(DRAW.integers(20_000, 60_000, 500)).bins == 32


def test_missing_values_and_words_for_them() -> None:
    ages = described(as_csv([20, 30, 41, None, "NA", "unknown"] * 20))
    assert (ages.kind, ages.rows, ages.missing) == ("integer", 120, 60)
    # a study takes what is no number as missing, and so does its draft
    crp = described([f"{place / 10}" for place in range(92)] + ["<0.5"] * 3 + ["hemolyt.", None, "NA", "", "1e999"])
    assert (crp.kind, crp.rows, crp.missing, crp.odd) == ("real", 100, 7, 4)
    assert crp.remark.startswith("4.0% of its values are no numbers")
    column = Real(name="x", lower=0, upper=10, bins=10)
    assert (column.encode(pa.array(["<0.5", "hemolyt.", None, "NA", "", "1e999"])) == column.missing_code).sum() == 5
    colours = described(["red", "blue", "NA", None, ""] * 20)
    assert (colours.values, colours.missing, colours.absent) == (("blue", "red"), 60, True)
    pain = described(["none", "mild", "severe"] * 20)
    assert (pain.kind, pain.values) == ("ordinal", ("none", "mild", "severe"))


def test_codes_are_listed_and_rare_values_are_not() -> None:
    assert described(as_csv(["0101", "0205", "1107"] * 20)).values == ("0101", "0205", "1107")
    assert described([1, 2, 8] * 20, "admission_type_id").values == ("1", "2", "8")
    codes = ["V58"] * 300 + ["E11"] * 200 + [f"S{place}" for place in range(40)]
    found = described(codes)
    assert (found.values, found.unlisted) == (("E11", "V58"), 40)
    # the same value in two forms is listed once
    assert described(["3", "3.0", "A", "B"] * 20).values == ("3", "A", "B")


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("x", [], "no row has a value"),
        ("x", [None, None], "no row has a value"),
        ("x", ["", " ", "NA"], "no row has a value"),
        ("x", ["only"], "same value"),
        ("x", [5] * 30, "same value"),
        ("x", [[1, 2], [3]], "lists"),
        ("patient_id", [f"P{place}" for place in range(200)], "identifies"),
        ("patient", [f"P{place % 90}" for place in range(400)], "identifies"),
        ("x", list(range(1000, 1200)), "own value"),
        ("x", list(DRAW.integers(2**60, 2**62, 200)), "own value"),
        ("x", [2**60 + place % 7 for place in range(200)], "2^52"),
        ("x", [f"Anna Meier {place}" for place in range(100)], "occur once"),
        ("x", ["a", "b", "c"], "occur once"),
        ("x", ["a remark that goes on and on, with one person's whole history"] * 3 + ["b" * 80] * 3, "long"),
        ("x", ["03.04.2020", "13.05.2021"] * 30, "2024-12-31"),
        ("x", [f"C{place % 300}" for place in range(3000)], "less than half"),
        ("x", [1.5, 1e308, -1e308], "cannot be bounded"),
        ("x", [float("nan"), float("inf")] * 3, "same value"),
    ],
)
def test_columns_left_out(name: str, values: list[Any], reason: str) -> None:
    found = described(values, name)
    assert found.kind is None
    assert reason in found.reason
    assert (found.values, found.lower, found.upper) == ((), None, None)


def test_unicode_and_broken_text() -> None:
    assert described(["größer", "kleiner", "日本"] * 20).values == ("größer", "kleiner", "日本")
    assert described([b"\xff\xfe", b"ok"] * 20).kind == "categorical"


def test_chunks_of_different_types() -> None:
    chunks = [
        pa.array(["1", "2"] * 20),
        pa.array([3, 4] * 20),
        pa.array([b"5", None]),
        pa.array(["6"]).dictionary_encode(),
    ]
    found = profile_column("x", chunks)
    assert (found.kind, found.lower, found.upper, found.missing) == ("integer", 1, 6, 1)


def test_a_known_kind_is_used() -> None:
    assert described([0, 1, 1] * 20, kind="integer").kind == "integer"
    assert described([1, 2, 3] * 20, kind="categorical").values == ("1", "2", "3")
    assert described(["2020-01-05"] * 9, kind="date").kind == "date"
    assert described(["a", "b"] * 9, kind="date").kind is None
    assert described(["a", "b"] * 9, kind="real").kind is None
    assert described([], kind="boolean").kind == "boolean"


@pytest.mark.parametrize("name", ["id", "patient_id", "PatientID", "caseNo", "customer", "patient_nbr", "e-mail email"])
def test_names_of_ids(name: str) -> None:
    assert named_as_id(name)


@pytest.mark.parametrize("name", ["", "customer_age", "account_balance", "paid", "number_of_visits", "!"])
def test_names_that_are_no_ids(name: str) -> None:
    assert not named_as_id(name)


def test_names_of_codes_and_rows_of_people() -> None:
    assert named_as_code("zipCode")
    assert not named_as_code("encode")
    rows, nobody = rows_of_people([pa.array([1, 1, 2]), pa.array(["01", "3", None])])
    assert (sorted(rows.values()), nobody) == ([1, 1, 3], 1)
    assert rows_of_people([]) == ({}, 0)
    # lists are nobody's ids
    assert rows_of_people([pa.array([[1]])]) == ({}, 1)


def test_round_numbers() -> None:
    assert [round_up(one) for one in (1, 1.01, 16, 301, 999, 0.7)] == [1, Fraction(3, 2), 20, 500, 1000, 1]
    assert [round_down(one) for one in (1, 1.6, 49, 0.07)] == [1, Fraction(3, 2), 30, Fraction(5, 100)]
    assert [*round_bounds(-7.3, 88.1, whole=False)] == [Fraction(-10), Fraction(90)]
    assert [*round_bounds(3, 3, whole=True)] == [Fraction(3), Fraction(3)]
    lower, upper = round_bounds(0.0, 5e-324, whole=False)
    assert lower == 0 < upper
    assert round_days(DATE(9999, 12, 1), DATE(9999, 12, 5)) == (DATE(9999, 12, 1), DATE(9999, 12, 31))
