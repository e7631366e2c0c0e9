"""Describing columns by their rows: each kind, edge values, and that ids and free text leave no value."""

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Integer, Real
from syndic.data.bins import Scale, round_bounds, round_days, round_down, round_up
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
    age = described([19, 94, *[33, 40] * 15])
    assert (age.kind, age.lower, age.upper, age.bins, age.scale) == ("integer", 15, 95, None, "linear")
    share = described([0.013, 0.5, 0.987] * 10)
    assert (share.kind, share.lower, share.upper) == ("real", 0.0, 1.0)
    born = described([DATE(1950, 3, 4), DATE(2001, 7, 8)] * 10)
    assert (born.lower, born.upper, born.bins) == (DATE(1950, 1, 1), DATE(2001, 12, 31), 40)
    summer = described(["2024-06-03", "2024-07-20"] * 10)
    assert (summer.lower, summer.upper, summer.bins) == (DATE(2024, 6, 1), DATE(2024, 7, 31), None)


@pytest.mark.parametrize(("least", "most"), [(1, 5), (1, 12), (1, 31), (0, 23), (0, 59), (0, 100), (1, 366)])
def test_bounds_that_several_rows_have_are_natural_and_not_widened(least: int, most: int) -> None:
    found = described([*[least, most] * 5, *range(least, most + 1)] * 3)
    assert (found.lower, found.upper) == (least, most)


def test_days_and_hours_of_a_small_table_are_not_widened() -> None:
    day = described([1, 31, *[2, 17, 20] * 20])
    assert (day.lower, day.upper) == (1, 31)
    # one person's largest value is
    stays = described([*range(30)] * 5 + [73])
    assert (stays.lower, stays.upper) == (0, 75)


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


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (DRAW.integers(20_000, 60_000, 500), "linear"),
        (DRAW.integers(0, 1440, 500), "linear"),
        (DRAW.normal(0, 500, 500).round(), "linear"),
        # weights at birth: of the logarithmic bins that begin at 0, four have most rows
        (np.append(DRAW.normal(3300, 500, 500).round(), 0), "linear"),
        (np.exp(DRAW.normal(10, 0.8, 500)).round(), "log"),
        (np.exp(DRAW.normal(10, 0.8, 500)).round() * (DRAW.random(500) < 0.9), "symlog"),
        # most rows are within 1 % of the range, and some far away
        (np.append(DRAW.integers(300, 900, 450), DRAW.integers(40_000, 90_000, 50)), "log"),
        # most rows are 0: the others decide
        (DRAW.normal(1900, 350, 500).round() * (DRAW.random(500) < 0.2), "linear"),
        (np.exp(DRAW.normal(8, 1.5, 500)).round() * (DRAW.random(500) < 0.2), "symlog"),
    ],
)
def test_wide_whole_numbers_get_the_scale_that_tells_rows_apart(values: Any, scale: Scale) -> None:
    values = np.tile(values, 20)
    found = described(values.astype(int))
    assert (found.kind, found.scale, found.bins) == ("integer", scale, 32 if scale == "linear" else None)
    column = Integer(name="x", lower=found.lower, upper=found.upper, scale=scale, bins=found.bins)  # type: ignore[arg-type]
    codes = column.encode(pa.array(values.astype(int)))
    rows = np.bincount(codes)
    most = values == 0 if (values == 0).mean() > 0.05 else values == np.inf
    assert rows[rows > 0].size >= 12
    assert np.bincount(codes[~most]).max() < 0.2 * (~most).sum()


def test_few_rows_get_fewer_fixed_bins_or_open_ones() -> None:
    minutes, weights = DRAW.integers(0, 1440, 500), DRAW.normal(3300, 500, 500).round().astype(int)
    weights[:2] = 250, 5400
    few, many = (described(np.tile(minutes, times)) for times in (1, 20))
    assert (few.scale, few.bins, many.scale, many.bins) == ("linear", 16, "linear", 32)
    few, many = (described(np.tile(weights, times)) for times in (1, 20))
    assert (few.scale, few.bins, many.scale, many.bins) == ("log", None, "linear", 32)


def test_dates_have_open_days_or_weeks_months_quarters_or_years() -> None:
    last = {
        "2024-04-16": None,
        "2024-09-30": 39,
        "2024-12-31": 12,
        "2026-12-31": 36,
        "2032-12-31": 36,
        "2060-12-31": 37,
    }
    for end, bins in last.items():
        day = DATE.fromisoformat(end)
        days = [DATE(2024, 1, 1), day, *[DATE(2024, 1, 1) + (day - DATE(2024, 1, 1)) / 2] * 20]
        assert described(days).bins == bins, end


def test_an_end_that_few_rows_make_is_remarked() -> None:
    speeds = DRAW.normal(12, 5, 2000).clip(0, 40)
    assert "a few rows alone" not in described(speeds).remark
    assert "a few rows alone" in described(np.append(speeds, 1048.0)).remark
    assert "a few rows alone" in described(np.append(speeds, [-9999.0] * 3)).remark
    assert "a few rows alone" not in described(np.append(speeds, [99.0] * 40)).remark
    assert described(DRAW.integers(0, 9, 500)).remark == ""


def test_a_number_of_many_rows_is_remarked() -> None:
    costs = DRAW.gamma(2.0, 50.0, 500)
    assert "same number" in described(np.where(DRAW.random(500) < 0.3, 0.0, costs)).remark
    assert described(costs).remark == ""
    assert described(DRAW.choice([0.5, 1.5, 2.5], 500)).remark == ""


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
    assert described([1, 2, 8] * 20, "flight").values == ("1", "2", "8")
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


@pytest.mark.parametrize(
    "name", ["zipCode", "ZIP", "flight", "flight_no", "FlightNumber", "room number", "dept", "home_region", "icd_9"]
)
def test_names_of_codes(name: str) -> None:
    assert named_as_code(name)


@pytest.mark.parametrize(
    "name",
    ["", "!", "encode", "age", "year", "amount", "number", "number_of_rooms", "rooms_no", "store_size", "no_children",
     "flight_time", "region_sales", "class_size", "num", "beds_number", "account_balance"],
)  # fmt: skip
def test_names_of_quantities(name: str) -> None:
    assert not named_as_code(name)


@pytest.mark.parametrize(
    ("values", "coded"),
    [
        ([101, 117, 203, 305, 477, 811, 999] * 30, True),
        ([8001, 8610, 3011, 4051, 6900, 1203] * 30, True),
        # prices, ages, years, amounts and counts
        ([1000, 2000, 5000, 3000, 7500, 9900] * 30, False),
        ([19, 49, 99, 199, 499, 999] * 30, False),
        (list(range(18, 80)) * 20, False),
        (list(range(1990, 2024)) * 20, False),
        ([0, 1, 2, 3, 4, 5, 200] * 30, False),
        ([12, 24, 36, 60, 72] * 30, False),
        (DRAW.integers(1000, 9999, 900), False),
    ],
)
def test_numbers_that_look_like_codes_are_remarked(values: list[int], *, coded: bool) -> None:
    found = described(values)
    assert (found.kind, found.coded) == ("integer", coded)
    assert ("look like codes" in found.remark) == coded


def test_rows_of_people() -> None:
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
