"""Means, standard deviations, quantiles and their differences between groups, from noisy sums.

`sums` are those of `Sums.of_numbers`: the number, sum and sum of squares of every group. Numbers are counted from the
middle of their bounds, so `middle` is added to a mean.
"""

from math import sqrt

import numpy as np

from syndic.model.describe.sums import CLEAR, ChiSquared, Floats, Statistic, Sums, quadratic
from syndic.model.interval.one_step import crossing
from syndic.model.interval.question import MATHS, Estimate
from syndic.model.interval.wilson import wilson


@np.errstate(all="ignore")
def mean(sums: Sums, group: int, middle: float = 0.0) -> Statistic:
    """Return the mean of a group."""
    found = sums.statistic(_mean(sums, group) + Estimate(middle))
    return Statistic(found.value, found.lower, found.upper, None, found.widened)


@np.errstate(all="ignore")
def deviation(sums: Sums, group: int) -> Statistic:
    """Return the standard deviation of a group; its ends are the roots of those of the variance."""
    found = sums.statistic(_variance(sums, group))
    if found.value is None or found.lower is None or found.upper is None or found.upper <= 0:
        return Statistic()
    value, lower, upper = (sqrt(max(end, 0.0)) for end in (found.value, found.lower, found.upper))
    return Statistic(value, lower, upper, None, found.widened)


@np.errstate(all="ignore")
def mean_difference(sums: Sums, group: int, other: int) -> Statistic:
    """Return how much larger the mean of a group is than that of another."""
    return sums.statistic(_mean(sums, group) - _mean(sums, other))


@np.errstate(all="ignore")
def standardised_difference(sums: Sums, group: int, other: int) -> Statistic:
    """Return the difference of two means in standard deviations, the root of the mean of both variances."""
    pooled = Estimate(0.5) * (_variance(sums, group) + _variance(sums, other))
    if pooled.value <= 0:
        return Statistic()
    difference = _mean(sums, group) - _mean(sums, other)
    return sums.statistic(difference / pooled.through(*MATHS["sqrt"]))


@np.errstate(all="ignore")
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
    people: float,
    variance: float,
    edges: Floats,
    chance: float,
    *,
    whole: bool,
    repeated: int = 1,
) -> Statistic:
    """Return where the share below reaches `chance`; its ends are where the intervals of the shares contain it.

    `people`: how many there are, with the noise of one count that is not among `counts`. The people below an edge are
    counted from both sides, which are weighted by how many counts they take.
    """
    if people <= CLEAR * sqrt(max(people, 0.0) * repeated + variance):
        return Statistic()
    inside, size = np.arange(counts.size + 1), counts.size
    weight = (size - inside + 1) / (size + 1)
    upwards = np.concatenate([[0.0], np.cumsum(counts)])
    below = (weight * upwards + (1 - weight) * (people - counts.sum() + upwards)) / people
    noise = weight**2 * inside + (1 - weight) ** 2 * (size - inside) + (1 - weight - below) ** 2
    shares = np.clip(np.maximum.accumulate(below), 0.0, 1.0)
    lower, upper = wilson(shares, np.full(shares.shape, people / repeated), variance * noise / people**2)
    for side in (shares, lower, upper):
        side[0], side[-1] = 0.0, 1.0
    value, first, last = (crossing(chance, edges, side, whole=whole) for side in (shares, upper, lower))
    return Statistic(value, first, last)


def _mean(sums: Sums, group: int) -> Estimate:
    return sums[3 * group + 1] / sums[3 * group]


def _variance(sums: Sums, group: int) -> Estimate:
    people, total, squares = (sums[3 * group + power] for power in range(3))
    return (squares - total * total / people) / (people - Estimate(1.0))
