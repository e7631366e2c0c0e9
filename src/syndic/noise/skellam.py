"""What Skellam noise, the difference of two Poisson variables, costs: a rho that holds at every order.

Let P be the law of variance m and P_k its shift by k; P(x) is proportional to the Bessel function I_|x|(m).
Write a(x) = log(P(x-1) / P(x)). It grows (P is log-concave) by at most t = 2 log(I_0(m) / I_1(m)) a step: the
steps are log(P(x)^2 / (P(x-1) P(x+1))), largest at x = 0, and t <= 1/m + 1/(2 m^2) + 1/m^3 for m >= 4 (both
checked numerically in the tests).

Orders 1 + s, s small. The privacy loss L(x) = log(P(x) / P_k(x)) changes by at most c = k t a step, and its mean
is at most k^2 t / 2, since a(1 - x) = -a(x) and P is symmetric. The modified logarithmic Sobolev inequality of the
Poisson law (Wu 2000), for the difference of two of rate m/2 each, says
Ent(exp(s L)) <= m (s c sinh(s c) - cosh(s c) + 1) E exp(s L), and Herbst's argument integrates it to
D_{1+s} <= k^2 t / 2 + m (cosh(s c) - 1) / s <= (1 + s) (m t^2 / 2) k^2 C(s c), C(u) = 2 (cosh(u) - 1) / u^2.
C grows, so over all coordinates sum k^2 becomes the squared L2 sensitivity and k in C the largest change.

Orders above. Agarwal, Kairouz and Liu (2021, Theorem 3.5, from memory) prove at whole orders n
D_n <= n A + B, A = D2^2 / (2 m) (1 + 1/m), B = (6 D1 - D2^2) / (4 m^2). (n - 1) D_n is convex in n, so between
whole orders D <= a A + B + A / (4 (a - 1)), and D / a falls.

The two meet at an order of our choice; the least rho of a few choices is taken.
"""

import math
from fractions import Fraction
from functools import lru_cache

LEAST_TOTAL = 4.0
"""The bound is for a variance of the whole sum of at least this."""

_ROUNDING = 1 + 2.0**-40


def skellam_rho(variance: float, sensitivity: int, sensitivity_squared: float) -> float:
    """Return a rho, rounded up, that holds for Skellam noise of this variance and these L1 and squared L2 bounds."""
    step = 1 / variance + 1 / (2 * variance**2) + 1 / variance**3
    largest = min(float(sensitivity), math.sqrt(sensitivity_squared))
    slope = sensitivity_squared / (2 * variance) * (1 + 1 / variance)
    rest = max(0.0, (6 * sensitivity - sensitivity_squared) / (4 * variance**2))
    best = math.inf
    for power in range(-8, 80):
        above = 2 ** (power / 2)
        change = above * largest * step
        if change > 1:
            break
        near = variance * step**2 / 2 * sensitivity_squared * _curvature(change)
        # whole orders start at 2: below, the bound for small s must do
        far = slope + (rest + slope / (4 * above)) / (1 + above) if above >= 1 else math.inf
        best = min(best, max(near, far))
    return best * _ROUNDING


def _curvature(change: float) -> float:
    """Bound C(u) = 2 (cosh u - 1) / u^2 for u in [0, 1] by its series."""
    return 1 + change**2 / 12 + change**4 / 360 + change**6 / 20000


@lru_cache(maxsize=256)
def skellam_variance(rho: Fraction, sensitivity: int, sensitivity_squared: Fraction) -> Fraction:
    """Return the least variance of the whole sum, to about 1 in 2^30, for which `skellam_rho` is at most rho."""
    target, square = float(rho) / _ROUNDING, float(sensitivity_squared)
    low = high = max(LEAST_TOTAL, square / (2 * target))
    while not skellam_rho(high, sensitivity, square) <= target:
        low, high = high, 2 * high
    for _ in range(32):
        middle = (low + high) / 2
        if skellam_rho(middle, sensitivity, square) <= target:
            high = middle
        else:
            low = middle
    return Fraction(high)
