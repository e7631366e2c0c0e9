"""What Gaussian noise on sums over random samples costs, where a person's values are replaced.

A step draws every person into a sample with one `chance`, independently, sums vectors of at most unit length over the
sample, and adds N(0, sigma^2) to every entry. Let P and P' be the laws of a step whose questioner knows everybody else
and whether they were drawn; with g and g' the person's vectors, P = (1 - q) N(0) + q N(g) and P' = (1 - q) N(0)
+ q N(g'). For a set S with N(g)(S) = p, the lemma of Neyman and Pearson gives N(0)(S) >= Phi(z - 1 / sigma) and
N(g')(S) >= Phi(z - 2 / sigma), where Phi(z) = p, since |g| <= 1 and |g - g'| <= 2. In P(S) - a P'(S), a >= 1, both have
a negative factor or none. So it is largest where both are equal: half-lines and g = -g' = 1. That pair of laws on the
line dominates every step, and adaptive steps cost no more than independent draws of it (Zhu, Dong and Wang 2022).
"""

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, sqrt
from typing import Any, Final

from syndic.errors import InputError
from syndic.privacy.concentrated import PICO
from syndic.privacy.gaussian import left_after, mu_squared_for

LEAST_SIGMA: Final = Fraction(1, 10)
"""No less noise is given out, whatever the budget."""

# of delta, kept for the convolutions of the library, which are in floating point
_NUMERICAL_DELTA: Final = Fraction(1, 10**10)
_STEPS_OF_SIGMA: Final = 1000
_LARGEST_SIGMA: Final = 10**6
# losses are kept on a grid of this many points for each unit of epsilon asked for
_POINTS: Final = 2000
_COARSE: Final = 100
_FINEST: Final = 1e-5
_COARSEST: Final = 0.1


@lru_cache(maxsize=256)
def sampled_sigma(
    epsilon: Fraction, delta: Fraction, chance: Fraction, steps: int, slack: Fraction = Fraction(0)
) -> Fraction:
    """Return the least sigma, in thousandths, at which all steps together are (epsilon, delta)-DP under `replace`.

    `slack` is how far the noise of all steps is from Gaussian in total variation.
    """
    _check(chance, steps)
    if epsilon <= 0:
        raise InputError(f"epsilon ({float(epsilon):g}) must be positive")
    left = _left(epsilon, delta, slack)

    def holds(thousandths: int, points: int) -> bool:
        loss = _loss(Fraction(thousandths, _STEPS_OF_SIGMA), chance, steps, float(epsilon) / points)
        return bool(loss.get_delta_for_epsilon(float(epsilon)) <= left)

    # many steps are nearly one Gaussian release of this mu; a coarse grid is quick and errs to the safe side
    near = 2 * float(chance) * sqrt(steps / mu_squared_for(epsilon, delta))
    fails, fits = _bracket(lambda sigma: holds(sigma, _COARSE), ceil(near * _STEPS_OF_SIGMA))
    fits = bisect_left(range(fits), True, lo=fails + 1, key=lambda sigma: holds(sigma, _COARSE))
    fails, fits = _bracket(lambda sigma: sigma >= fits or holds(sigma, _POINTS), fits)
    sigma = bisect_left(range(fits), True, lo=fails + 1, key=lambda sigma: holds(sigma, _POINTS))
    return Fraction(sigma, _STEPS_OF_SIGMA)


@lru_cache(maxsize=256)
def sampled_epsilon(sigma: Fraction, delta: Fraction, chance: Fraction, steps: int) -> Fraction:
    """Return an epsilon, rounded up to 1e-12, such that all steps together are (epsilon, delta)-DP under `replace`."""
    _check(chance, steps)
    if sigma < LEAST_SIGMA:
        raise InputError(f"sigma ({float(sigma):g}) must be at least {float(LEAST_SIGMA):g}")
    left = _left(Fraction(0), delta, Fraction(0))
    guess = float(_loss(sigma, chance, steps, 1e-3).get_epsilon_for_delta(left))
    epsilon = float(_loss(sigma, chance, steps, guess / _POINTS).get_epsilon_for_delta(left))
    if epsilon == inf:
        raise InputError(f"{steps} steps at sigma {float(sigma):g} have no epsilon at delta {float(delta):g}")
    return Fraction(ceil(Fraction(epsilon * (1 + 1e-9)) * PICO) + 1, PICO)


def _bracket(holds: Callable[[int], bool], start: int) -> tuple[int, int]:
    """Return a number below all that hold, or one below the least that is allowed, and one that holds."""
    least = ceil(LEAST_SIGMA * _STEPS_OF_SIGMA)
    fits = max(least, start)
    while not holds(fits):
        fits = fits * 5 // 4
        if fits > _LARGEST_SIGMA * _STEPS_OF_SIGMA:
            raise InputError("no noise makes so many steps cost so little: use fewer steps or a larger budget")
    fails = fits
    while fails >= least:
        fails = min(fails * 31 // 32, fails - 1)
        if fails < least or not holds(fails):
            break
        fits = fails
    return max(fails, least - 1), fits


def _loss(sigma: Fraction, chance: Fraction, steps: int, grid: float) -> Any:
    """Return the privacy loss of all steps, rounded to the safe side by the library."""
    from dp_accounting import NeighboringRelation  # noqa: PLC0415 (takes a second)
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism  # noqa: PLC0415

    one = from_gaussian_mechanism(
        float(sigma) * (1 - 2.0**-40),
        value_discretization_interval=min(max(grid, _FINEST), _COARSEST),
        sampling_prob=min(1.0, float(chance) * (1 + 2.0**-40)),
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    return one.self_compose(steps)


def _left(epsilon: Fraction, delta: Fraction, slack: Fraction) -> float:
    """Return what delta leaves for the Gaussian law: see `syndic.privacy.gaussian.with_slack`."""
    left = left_after(delta - _NUMERICAL_DELTA, slack, epsilon)
    if not 0 < left < 1:
        raise InputError(
            f"delta ({float(delta):g}) must be below 1 and above {float(delta - left):.3g}, which rounding takes"
        )
    return float(left) * (1 - 2.0**-40)


def _check(chance: Fraction, steps: int) -> None:
    if not 0 < chance <= 1 or steps < 1:
        raise InputError(f"chance ({float(chance):g}) must be in (0, 1] and steps ({steps}) at least 1")
