"""Convert zero-concentrated privacy (rho) to epsilon at a delta and back, rounded to the safe side.

The tight conversion (Canonne, Kamath and Steinke 2020, Proposition 12, at Renyi divergence a rho of order a):
epsilon = a rho + log(1 - 1/a) + (log(1/delta) - log a) / (a - 1) holds for EVERY order a > 1. So the order
may be searched in floating point; only the value at that order has to be rounded up.
"""

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log, log1p, sqrt

from syndic.errors import InputError

PICO = 10**12

# every term below is a few operations, each with a relative error of at most 2^-52
_ROUNDING = 2.0**-44


@lru_cache(maxsize=4096)
def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon, rounded up to 1e-12, such that `rho`-zCDP implies (epsilon, delta)-DP."""
    check_open_delta(delta)
    if rho < 0:
        raise InputError(f"rho ({float(rho):g}) must not be negative")
    if rho == 0:
        return Fraction(0)
    above = best_order(rho, delta)
    return renyi_epsilon((1 + Fraction(above)) * rho, above, delta)


def renyi_epsilon(divergence: Fraction, above: float, delta: Fraction) -> Fraction:
    """Return an epsilon, rounded up to 1e-12, at delta, from a bound on the Renyi divergence of order 1 + `above`."""
    gain = log1p(1 / above)
    order = log1p(above)
    tail = (log(delta.denominator) - log(delta.numerator) - order) / above
    size = float(divergence) + gain + (log(delta.denominator) + log(delta.numerator) + order) / above
    return Fraction(max(0, ceil(Fraction(float(divergence) - gain + tail + _ROUNDING * size) * PICO)), PICO)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, in steps of 1e-12, whose `zcdp_epsilon` at delta is at most epsilon."""
    check_open_delta(delta)
    if epsilon <= 0:
        raise InputError(f"epsilon ({float(epsilon):g}) must be positive and finite")

    def too_much(amount: int) -> bool:
        return zcdp_epsilon(Fraction(amount, PICO), delta) > epsilon

    most = 1
    while not too_much(most):
        most *= 2
    return Fraction(bisect_left(range(most // 2 + 1, most), True, key=too_much) + most // 2, PICO)


def best_order(rho: Fraction, delta: Fraction) -> float:
    """Return a - 1 for the order a at which the derivative, rho - (log(1/delta) - log a) / (a - 1)^2, is zero."""
    slope, tail = float(rho), log(delta.denominator) - log(delta.numerator)
    low, high = 0.0, sqrt(tail / slope)
    for _ in range(60):
        middle = (low + high) / 2
        if slope * middle * middle + log1p(middle) < tail:
            low = middle
        else:
            high = middle
    return high


def check_open_delta(delta: Fraction) -> None:
    """Refuse a delta of 0 or less, and of 1 or more."""
    if not 0 < delta < 1:
        raise InputError(f"delta ({float(delta):g}) must be in (0, 1)")


def part_of(amount: Fraction, parts: int) -> Fraction:
    """Return one of so many equal parts, cut to whole units of the ledger: parts never add up to more."""
    return Fraction(floor(amount * PICO / parts), PICO)
