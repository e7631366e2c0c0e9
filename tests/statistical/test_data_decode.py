"""Rows drawn from a bin are uniform within it (HOMM, step 3)."""

import datetime

import numpy as np
import pytest
from scipy import stats

from syndic.data import Date, Integer, Real

pytestmark = pytest.mark.statistical
DRAWS = 200_000
ALLOWED = 1e-6


def test_reals_are_uniform_in_their_bin() -> None:
    column = Real(name="r", lower=-3.0, upper=5.0, bins=4)
    drawn = column.decode(np.full(DRAWS, 2), np.random.default_rng()).to_numpy()
    assert stats.kstest(drawn, stats.uniform(loc=1.0, scale=2.0).cdf).pvalue > ALLOWED


def test_integers_and_days_are_uniform_in_their_bin() -> None:
    generator = np.random.default_rng()
    integers = Integer(name="i", lower=0, upper=9, bins=3).decode(np.full(DRAWS, 2), generator).to_numpy()
    assert stats.chisquare(np.bincount(integers - 6, minlength=4)).pvalue > ALLOWED
    first = datetime.date(2020, 1, 1)
    column = Date(name="d", lower=first, upper=datetime.date(2020, 1, 10), bins=2)
    days = [(day - first).days - 5 for day in column.decode(np.full(DRAWS, 1), generator).to_pylist()]
    assert stats.chisquare(np.bincount(days, minlength=5)).pvalue > ALLOWED
