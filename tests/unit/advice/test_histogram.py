"""People with declared shares of bins: what is declared is what they have."""

import datetime

import numpy as np
import pytest

from syndic import Schema
from syndic.advice import Assumptions
from syndic.advice.assume import ColumnAssumption
from syndic.advice.population import PEOPLE, draw_over_bins, draw_population
from syndic.data import Boolean, Date, Instead, Integer, Real
from syndic.data.schema import Column

MANY = 400_000


def drawn(
    shares: tuple[float, ...], moments: tuple[float, float] | None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float, float]:
    edges = np.linspace(0, 1, len(shares) + 1)
    values = draw_over_bins(edges, np.array(shares), moments, MANY, np.random.default_rng(1))
    return np.histogram(values, edges)[0] / MANY, float(values.mean()), float(values.std())


@pytest.mark.statistical
@pytest.mark.parametrize("mean", [0.40, 0.435, 0.47])
def test_shares_mean_and_spread_are_the_declared_ones(mean: float) -> None:
    """Six standard errors: false alarms below 2e-9 each."""
    wanted = (0.17, 0.53, 0.15, 0.15)
    shares, found, sd = drawn(wanted, (mean, 0.22))
    assert shares == pytest.approx(wanted, abs=6 * 0.5 / MANY**0.5)
    assert found == pytest.approx(mean, abs=6 * 0.22 / MANY**0.5)
    assert sd == pytest.approx(0.22, abs=6 * 0.22 / MANY**0.5)


@pytest.mark.statistical
def test_without_moments_the_curve_is_smooth_and_keeps_the_shares() -> None:
    """Of equal shares that is the uniform law."""
    shares, mean, sd = drawn((0.25,) * 4, None)
    assert shares == pytest.approx([0.25] * 4, abs=6 * 0.5 / MANY**0.5)
    assert (mean, sd) == pytest.approx((0.5, 12**-0.5), abs=6 * 0.3 / MANY**0.5)


@pytest.mark.statistical
def test_moments_that_cannot_be_are_met_as_nearly_as_can_be() -> None:
    """All people below 1/4 have a mean below it; the shares come first."""
    shares, mean, _ = drawn((1.0, 0.0, 0.0, 0.0), (0.6, 0.1))
    assert shares == pytest.approx([1, 0, 0, 0])
    assert 0.2 < mean < 0.25


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("column", "mean", "sd"),
    [
        (Real(name="x", lower=-1.0, upper=3.0, bins=4), 0.7, 0.9),
        (Integer(name="x", lower=0, upper=99, bins=4), 44.0, 22.0),
        (Date(name="x", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 4, 9), bins=4), None, None),
    ],
    ids=["real", "integer", "date"],
)
def test_a_column_has_its_declared_shares(column: Column, mean: float | None, sd: float | None) -> None:
    shares = (0.2, 0.5, 0.2, 0.1)
    told = Assumptions(columns={"x": ColumnAssumption(mean=mean, sd=sd, shares=shares)})
    people = draw_population(Schema(columns=(column,)), told, np.random.default_rng(2))
    assert np.bincount(people.codes[0]) / PEOPLE == pytest.approx(shares, abs=6 * 0.5 / PEOPLE**0.5)
    if mean is not None and sd is not None:
        assert people.numbers[0].mean() == pytest.approx(mean, abs=6 * sd / PEOPLE**0.5)
        assert people.numbers[0].std() == pytest.approx(sd, rel=0.02)


@pytest.mark.statistical
def test_a_say_is_a_columns_part_of_what_is_explained() -> None:
    real = [Real(name=name, lower=0.0, upper=1.0, bins=4, missing=Instead(value=0.5)) for name in ("a", "b", "y")]
    told = Assumptions(columns={"a": ColumnAssumption(say=3.0)}, r2=0.4)
    people = draw_population(Schema(columns=tuple(real)), told, np.random.default_rng(3), outcome="y")
    a, b, y = people.numbers
    parts = [np.corrcoef(column, y)[0, 1] ** 2 for column in (a, b)]
    # six standard errors of a squared correlation are below 0.01; that y is bent to its own shape takes a little
    assert parts == pytest.approx([0.3, 0.1], abs=0.02)


def test_shares_must_fit_the_bins_and_says_be_possible() -> None:
    schema = Schema(columns=(Boolean(name="y"),))
    Assumptions(columns={"y": ColumnAssumption(say=0.0)}).check(schema)
    with pytest.raises(ValueError, match="say"):
        ColumnAssumption(say=-1.0)
    assert Assumptions.of(("age.say=2", "age.shares=1/2")).columns["age"].say == 2.0
