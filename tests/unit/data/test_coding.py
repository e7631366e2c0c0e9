"""Columns as whole numbers: what each code becomes, and what a row can never exceed."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Boolean, Categorical, Date, Instead, Integer, Real
from syndic.data.coding import Coding, coded_rows, coding_of, product_of
from syndic.data.schema import Column
from syndic.errors import InputError

BITS = 8
ONE = 1 << BITS

REAL = Real(name="r", lower=-3.0, upper=5.0, bins=16)
WHOLE = Integer(name="i", lower=10, upper=19, missing=Instead(value=10))
BINNED = Integer(name="b", lower=0, upper=99, bins=7)
TRUTH = Boolean(name="t", missing=Instead(value=False))
MAYBE = Boolean(name="m")
LIST = Categorical(name="c", values=("x", "y"), missing=Instead(value="x"), outside=Instead(value="y"))
DAY = Date(
    name="d",
    lower=datetime.date(2020, 1, 1),
    upper=datetime.date(2020, 1, 11),
    missing=Instead(value=datetime.date(2020, 1, 1)),
)
EVERY: tuple[Column, ...] = (REAL, WHOLE, BINNED, TRUTH, MAYBE, LIST, DAY)


def coded(column: Column, values: list[object]) -> np.ndarray:
    return coding_of(column, BITS).rows({column.name: column.encode(pa.array(values))})


def test_numbers_are_scaled_by_their_bounds() -> None:
    assert coded(WHOLE, [10, 19, 14, 15, None]).ravel().tolist() == [-256, 256, -28, 28, -256]
    (feature,) = coding_of(WHOLE, BITS).features
    assert (feature.middle, feature.half, feature.values) == (14.5, 4.5, "number")
    # the middle of a bin of width one half, from -3 to 5; missing values are a feature of their own
    assert coded(REAL, [-3.0, 5.0, 1.1, None]).tolist() == [[-240, 0], [240, 0], [16, 0], [0, 256]]


def test_dates_are_days() -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 6), datetime.date(2020, 1, 11)]
    assert coded(DAY, list(days)).ravel().tolist() == [-256, 0, 256]
    (feature,) = coding_of(DAY, BITS).features
    assert feature.middle == (datetime.date(2020, 1, 6) - datetime.date(1970, 1, 1)).days
    assert feature.half == 5


def test_truth_is_a_sign_and_lists_are_indicators() -> None:
    assert coded(TRUTH, [False, True, None]).ravel().tolist() == [-256, 256, -256]
    assert coding_of(TRUTH, BITS).features[0].values == "sign"
    assert coded(MAYBE, [False, True, None]).tolist() == [[-256, 0], [256, 0], [0, 256]]
    assert [each.values for each in coding_of(MAYBE, BITS).features] == ["number", "indicator"]
    assert coded(LIST, ["x", "y", None, "z"]).tolist() == [[256, 0], [0, 256], [256, 0], [0, 256]]
    assert [each.name for each in coding_of(LIST, BITS).features] == ["c=x", "c=y"]


def drawn(seed: int, count: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {column.name: generator.integers(0, column.size, count) for column in EVERY}


def codings() -> list[Coding]:
    plain = [coding_of(column, BITS) for column in EVERY]
    return plain + [product_of(one, other) for one in plain for other in plain if one is not other]


def test_no_row_is_larger_than_its_bound_and_a_block_has_one_feature_at_most() -> None:
    codes = drawn(0, 500)
    for coding in codings():
        rows = coding.rows(codes)
        assert rows.shape == (500, len(coding.features))
        assert np.abs(rows).max() <= ONE
        assert (rows != 0).sum(axis=1).max() <= 1
        if coding.complete:
            assert (rows.sum(axis=1) == ONE).all()
        for column, feature in zip(rows.T, coding.features, strict=True):
            allowed = {"indicator": {0, ONE}, "sign": {-ONE, ONE}}.get(feature.values)
            assert allowed is None or set(column.tolist()) <= allowed


def test_products_are_products() -> None:
    codes = drawn(1, 300)
    for one in EVERY:
        for other in EVERY:
            if one is other:
                continue
            first, second = coding_of(one, BITS), coding_of(other, BITS)
            product = product_of(first, second)
            wanted = (first.rows(codes)[:, :, None] / ONE * second.rows(codes)[:, None, :] / ONE).reshape(300, -1)
            assert np.abs(product.rows(codes) / ONE - wanted).max() <= 0.5 / ONE
            assert [each.parts for each in product.features] == [
                (a.name, b.name) for a in first.features for b in second.features
            ]


def test_blocks_stand_side_by_side() -> None:
    codes: dict[str, Any] = {"i": np.array([0, 9]), "t": np.array([1, 0])}
    rows = coded_rows([coding_of(WHOLE, BITS), coding_of(TRUTH, BITS)], codes)
    assert rows.tolist() == [[-256, 256], [256, -256]]


def test_what_cannot_be_coded_is_refused() -> None:
    with pytest.raises(InputError, match="set fewer bins"):
        coding_of(Integer(name="n", lower=0, upper=2**30), BITS)
    with pytest.raises(InputError, match="only one level"):
        coding_of(Integer(name="n", lower=1, upper=1), BITS)
    first = coding_of(WHOLE, BITS)
    with pytest.raises(InputError, match="two different columns"):
        product_of(first, first)


def test_the_largest_bounds_stay_within_their_own() -> None:
    column = Real(name="r", lower=1.2e308, upper=1.7e308, bins=4, missing=Instead(value=1.2e308))
    coding = coding_of(column, BITS)
    assert coding.rows({"r": np.arange(4, dtype=np.uint8)})[:, 0].tolist() == [-192, -64, 64, 192]
