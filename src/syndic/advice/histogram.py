"""Made-up numbers with declared shares of bins: a smooth shape through them, bent within bins to a mean and spread."""

from typing import Final

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import least_squares

from syndic.advice.scale import Numbers

_PIECES: Final = 64
_STEEPEST: Final = 40.0


def draw_over_bins(
    edges: Numbers, shares: Numbers, moments: tuple[float, float] | None, count: int, generator: np.random.Generator
) -> Numbers:
    """Return numbers with these shares between the edges and, as far as that goes, this mean and standard deviation."""
    places = np.arange(_PIECES * shares.size + 1) / _PIECES
    fine = np.interp(places, np.arange(edges.size), edges)
    sums = PchipInterpolator(edges, np.concatenate([[0.0], shares.cumsum()]))(fine)
    pieces = np.diff(sums).reshape(shares.size, _PIECES)
    if moments is not None:
        pieces = _bent(pieces, ((fine[:-1] + fine[1:]) / 2).reshape(pieces.shape), moments)
    sums = np.concatenate([[0.0], pieces.ravel().cumsum()])
    return np.asarray(np.interp(generator.random(count) * sums[-1], sums, fine))


def _bent(pieces: Numbers, middles: Numbers, moments: tuple[float, float]) -> Numbers:
    """Return the pieces of every bin times exp(a x + b x^2), with a and b that bring about the two moments."""
    mean, sd = moments
    standard = (middles - mean) / sd
    total = pieces.sum(axis=1, keepdims=True)

    def bent(slopes: Numbers) -> Numbers:
        power = slopes[0] * standard + slopes[1] * standard**2
        tilted = pieces * np.exp(power - power.max(axis=1, keepdims=True))
        own = tilted.sum(axis=1, keepdims=True)
        return np.asarray(tilted * np.where(own > 0, total / np.where(own > 0, own, 1), 0))

    def off(slopes: Numbers) -> Numbers:
        found = bent(slopes)
        return np.array([(found * standard).sum(), (found * standard**2).sum() - 1])

    # bounded: moments that no numbers with these shares have are met as nearly as can be
    return bent(least_squares(off, np.zeros(2), bounds=(-_STEEPEST, _STEEPEST)).x)
