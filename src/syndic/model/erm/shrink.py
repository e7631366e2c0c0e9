"""Estimates of spreads, shares and covariances from noisy sums whose noise is known. All of it is public."""

from typing import Final

import numpy as np

from syndic.model.erm.loss import Numbers

LEAST_ROOT: Final = 1e-5
_LEAST_VARIANCE: Final = 3e-4
_PRIOR: Final = 0.7


def spread_of(variances: Numbers, centres: Numbers, deviation: float) -> Numbers:
    """Return standard deviations of numbers from noisy variances and means.

    Under the prior a number spreads about as far as its mean lies from the nearer bound, times or over 2. What is cut
    at too few deviations is lost, also because the centre itself is noisy: twice its noise is added.
    """
    places = np.geomspace(_LEAST_VARIANCE, 1.0, 61)
    room = 1 - np.abs(centres) + deviation
    prior = -0.5 * np.square(np.log(np.sqrt(places) / room[:, None]) / _PRIOR)
    found = posterior_mean(variances, deviation * np.sqrt(1 + 4 * centres**2), places, places, prior)
    return np.asarray(np.sqrt(found + min(1.0, 2 * deviation) ** 2))


def measured_spread(variances: Numbers, noise: Numbers, units: Numbers, cuts: Numbers, errors: Numbers) -> Numbers:
    """Return standard deviations from noisy variances in units of `cuts` times those believed before, times 4 / 3.

    The prior is that belief, times or over 2. Twice the noise `errors` of the centre is added.
    """
    places, believed = np.geomspace(1e-3, 1.0, 61), (3 / 4 / cuts) ** 2
    prior = -0.125 * np.square(np.log(places / believed[:, None]) / _PRIOR)
    found = posterior_mean(variances, noise, places, places, prior)
    return np.asarray(np.sqrt(found * units**2 + np.minimum(1.0, 2 * errors) ** 2))


def posterior_mean(
    values: Numbers, deviations: Numbers, places: Numbers, means: Numbers, prior: Numbers | float = 0.0
) -> Numbers:
    """Return the geometric mean of what places mean, given noisy values and the logarithms of the places' chances."""
    chance = prior - 0.5 * np.square((values[:, None] - places) / deviations[:, None])
    chance = np.exp(chance - chance.max(axis=1, keepdims=True))
    return np.asarray(np.exp((chance * np.log(means)).sum(axis=1) / chance.sum(axis=1)))


def on_simplex(values: Numbers) -> Numbers:
    """Return the nearest shares that are not negative and add up to 1."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - over[np.nonzero(falling > over)[0][-1]], 0.0))


def correlation(values: Numbers, variances: Numbers, noise: float) -> float:
    """Return the most likely mean square of correlations, given noisy products."""
    squares = np.geomspace(0.01, 0.6, 12) ** 2
    spread = squares[:, None] * variances + noise**2
    return float(squares[np.argmin((np.log(spread) + values**2 / spread).sum(axis=1))])


def raised_to_positive(matrix: Numbers) -> Numbers:
    """Return a symmetric matrix with its roots raised to something positive."""
    roots, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(roots, LEAST_ROOT)) @ axes.T)
