"""Estimates of spreads, shares and covariances from noisy sums whose noise is known. All of it is public."""

from math import sqrt
from typing import Final

import numpy as np

from syndic.model.erm.loss import Numbers

LEAST_ROOT: Final = 1e-5
_PRIOR: Final = 1.0
# standard deviation of a share that is much
_MUCH: Final = 0.1
_HALF: Final = np.concatenate([np.geomspace(1e-5, 1e-3, 30), (np.arange(1, 500) + 0.5) / 1000])
_SHARES: Final = np.concatenate([_HALF, 1 - _HALF[::-1]])


def likely_share(values: Numbers, deviation: float) -> Numbers:
    """Return chances of classes, given noisy shares: posterior means, in much noise nearer to equal chances.

    Before, all shares are equally likely. The posterior mean has the least expected log loss, but in much noise a share
    may look rare that is not, which costs far more than it can gain: there it is moved by a standard deviation.
    """
    chance = np.log(np.gradient(_SHARES)) - 0.5 * np.square((values[:, None] - _SHARES) / deviation)
    chance = np.exp(chance - chance.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    mean, even = chance @ _SHARES, 1 / max(2, len(values))
    wrong = np.sqrt(np.maximum(chance @ _SHARES**2 - mean**2, 0.0))
    nearer = wrong * np.minimum(1.0, wrong / _MUCH)
    return np.asarray(mean + np.clip(even - mean, -nearer, nearer))


def likely_spread(centres: Numbers, deviation: float) -> Numbers:
    """Return standard deviations that numbers in [-1, 1] may have, from noisy means alone; a half at most.

    A number whose mean is r from the nearer bound has at most sqrt(r (2 - r)), if it is always at one of the bounds.
    What is cut at too few deviations is lost, also because the centre itself is noisy: twice its noise is added.
    """
    room = np.minimum(1 - np.abs(centres) + deviation, 1.0)
    return np.asarray(np.sqrt(np.minimum(room * (2 - room), 0.25) + min(1.0, 2 * deviation) ** 2))


def measured_spread(means: Numbers, sizes: Numbers, squares: Numbers, noise: float, believed: Numbers) -> Numbers:
    """Return standard deviations of numbers from noisy means of them, of their absolute values and of their squares.

    The first two of a normal number with mean m and deviation s are about m and sqrt(m^2 + 2 s^2 / pi); they tell a
    small s from less than squares do. The prior is what was believed before, times or over e. Squares are larger where
    a few values are far away: the deviation is raised to what they show for certain.
    """
    places = np.geomspace(0.01, 1.0, 61)
    prior = -0.5 * np.square(np.log(places / believed[:, None]) / _PRIOR)
    expected = np.sqrt(means[:, None] ** 2 + places**2 * 2 / np.pi)
    found = posterior_mean(sizes, np.full(len(sizes), sqrt(2) * noise), expected, places, prior)
    certain = squares - means**2 - 2 * noise * np.sqrt(1 + 4 * means**2)
    return np.sqrt(np.maximum(found**2, certain))


def posterior_mean(
    values: Numbers, deviations: Numbers, places: Numbers, means: Numbers, prior: Numbers | float = 0.0
) -> Numbers:
    """Return the geometric mean of what places mean, given noisy values and the logarithms of the places' chances."""
    chance = prior - 0.5 * np.square((values[:, None] - places) / deviations[:, None])
    chance = np.exp(chance - chance.max(axis=1, keepdims=True))
    return np.asarray(np.exp((chance * np.log(means)).sum(axis=1) / chance.sum(axis=1)))


def correlation(values: Numbers, variances: Numbers, noise: float) -> float:
    """Return the most likely mean square of correlations, given noisy products."""
    squares = np.geomspace(0.01, 0.6, 12) ** 2
    spread = squares[:, None] * variances + noise**2
    return float(squares[np.argmin((np.log(spread) + values**2 / spread).sum(axis=1))])


def raised_to_positive(matrix: Numbers) -> Numbers:
    """Return a symmetric matrix with its roots raised to something positive."""
    roots, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(roots, LEAST_ROOT)) @ axes.T)
