"""Means, standard deviations, quantiles and their differences between groups, from noisy sums.

`sums` are those of `Sums.of_numbers`: the number, sum and sum of squares of every group. Numbers are counted from the
middle of their bounds, so `middle` is added to a mean.
"""

from math import sqrt
from typing import Any

import numpy as np
from scipy.stats import norm

from syndic.model.describe.sums import CLEAR, ChiSquared, Floats, Statistic, Sums, logarithm_of, quadratic
from syndic.model.interval.one_step import crossing
from syndic.model.interval.question import Estimate
from syndic.model.interval.wilson import wilson


def mean(sums: Sums, group: int, middle: float = 0.0, level: float = 0.95) -> Statistic:
    """Return the mean of a group."""
    found = sums.statistic(_mean(sums, group) + Estimate(middle), level=level)
    return Statistic(found.value, found.lower, found.upper, None, found.widened)


def deviation(sums: Sums, group: int, level: float = 0.95) -> Statistic:
    """Return the standard deviation of a group; its interval is on the scale of the logarithm."""
    spread = _variance(sums, group)
    found = sums.statistic(Estimate(0.5) * logarithm_of(spread), through=(spread,), logarithm=True, level=level)
    return Statistic(found.value, found.lower, found.upper, None, found.widened)


def mean_difference(sums: Sums, group: int, other: int, level: float = 0.95) -> Statistic:
    """Return how much larger the mean of a group is than that of another."""
    return sums.statistic(_mean(sums, group) - _mean(sums, other), level=level)


def standardised_difference(sums: Sums, group: int, other: int, level: float = 0.95) -> Statistic:
    """Return the difference of two means in standard deviations, the root of the mean of both variances."""
    pooled = Estimate(0.5) * (_variance(sums, group) + _variance(sums, other))
    if pooled.value <= 0:
        return Statistic()
    difference = _mean(sums, group) - _mean(sums, other)
    return sums.statistic(difference / pooled.through(np.sqrt, _root_slope), level=level)


def equal_means(sums: Sums, groups: int) -> ChiSquared | None:
    """Test that all groups have the same mean, whatever their variances."""
    means = [_mean(sums, group) for group in range(groups)]
    if groups < 2 or not sums.clear(*(sums[3 * group] for group in range(groups))):
        return None
    slopes = np.array([one.influence - means[-1].influence for one in means[:-1]])
    covariance = slopes @ (sums.sampling + sums.noise) @ slopes.T
    return quadratic(np.array([one.value - means[-1].value for one in means[:-1]]), covariance)


def quantile(
    counts: Floats,
    variance: float,
    edges: Floats,
    chance: float,
    *,
    whole: bool,
    repeated: int = 1,
    level: float = 0.95,
) -> Statistic:
    """Return where the share below reaches `chance`; its ends are where the intervals of the shares contain it."""
    people = float(counts.sum())
    if people < CLEAR * sqrt(max(people, 0.0) * repeated + variance * counts.size):
        return Statistic()
    below = np.concatenate([[0.0], np.cumsum(counts) / people])
    inside = np.arange(counts.size + 1)
    # of k cells below and m - k above, each with the same noise
    noise = variance * (inside * (1 - below) ** 2 + (counts.size - inside) * below**2) / people**2
    shares = np.clip(np.maximum.accumulate(below), 0.0, 1.0)
    lower, upper = wilson(shares, np.full(shares.shape, people / repeated), noise, float(norm.ppf(0.5 + level / 2)))
    lower[0] = upper[0] = 0.0
    lower[-1] = upper[-1] = 1.0
    value, first, last = (crossing(chance, edges, side, whole=whole) for side in (shares, upper, lower))
    return Statistic(value, first, last)


def _mean(sums: Sums, group: int) -> Estimate:
    return sums[3 * group + 1] / sums[3 * group]


def _variance(sums: Sums, group: int) -> Estimate:
    people, total, squares = (sums[3 * group + power] for power in range(3))
    return (squares - total * total / people) / (people - Estimate(1.0))


def _root_slope(value: Any) -> Any:
    return 0.5 / np.sqrt(value)
