"""Bounds that shares of noise state, each held against its formula in higher precision."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from syndic.noise import GaussianShare, LaplaceShare, SkellamShare
from syndic.noise.shares import log_ratio, sum_rho
from syndic.noise.skellam import skellam_rho, skellam_variance
from syndic.random import SimulationRandomness

Share = GaussianShare | SkellamShare | LaplaceShare

FIELDS: dict[str, Any] = {"parties": 4, "dimension": 1}
GAUSSIAN = GaussianShare(sensitivity_squared=Fraction(50), rho=Fraction(1, 10), **FIELDS)
SKELLAM = SkellamShare(sensitivity=10, sensitivity_squared=Fraction(50), rho=Fraction(1, 10), **FIELDS)
LAPLACE = LaplaceShare(sensitivity=3, epsilon=Fraction(1, 2), **FIELDS)


@pytest.mark.parametrize("share", [GAUSSIAN, SKELLAM, LAPLACE])
def test_nobody_is_missing_less_than_not_at_all(share: Share) -> None:
    """Minus one missing would be one honest share more than there is, and each share that much too narrow."""
    fields = {name: getattr(share, name) for name in type(share).__struct_fields__}
    with pytest.raises(ValueError, match="not negative"):
        type(share)(**{**fields, "missing": -1})
    with pytest.raises(ValueError, match="not negative"):
        type(share)(**{**fields, "colluding": -1, "missing": 1})


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1)])
@pytest.mark.parametrize("name", ["sensitivity_squared", "rho"])
@pytest.mark.parametrize("share", [GAUSSIAN, SKELLAM])
def test_shares_are_not_made_for_nothing_or_less(
    share: GaussianShare | SkellamShare, name: str, value: Fraction
) -> None:
    fields = {each: getattr(share, each) for each in type(share).__struct_fields__}
    with pytest.raises(ValueError, match=rf"{name} .* must be positive"):
        type(share)(**{**fields, name: value})


@pytest.mark.parametrize("share", [GAUSSIAN, SKELLAM, LAPLACE])
def test_tails_are_for_probabilities(share: Share) -> None:
    assert share.tail(1.0, 4) > 0
    for wrong in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"must be in \(0, 1\]"):
            share.tail(wrong, 4)


@pytest.mark.parametrize("probability", [1.0, 0.1, 1e-9, 2.0**-200])
@pytest.mark.parametrize("present", [1, 3, 4])
def test_tails_of_gaussian_shares_are_those_of_a_sub_gaussian_sum(present: int, probability: float) -> None:
    """P(|x| > m) <= 2 exp(-m^2 / (2 present sigma^2))."""
    with mpmath.workdps(40):
        square = 2 * present * mpmath.mpf(float(GAUSSIAN.sigma_squared)) * mpmath.log(2 / mpmath.mpf(probability))
        assert GAUSSIAN.tail(probability, present) == int(mpmath.ceil(mpmath.sqrt(square)))


def skellam_cumulant(total: float, slope: float) -> float:
    return total * (math.cosh(slope) - 1)


def polya_cumulant(rate: float, shape: float, slope: float) -> float:
    """Of the difference of two negative binomial variables: E exp(t x) = ((1 - a)^2 / (1 - a e^t)(1 - a e^-t))^r."""
    ratio = math.exp(-rate)
    above, below = 1 - ratio * math.exp(slope), 1 - ratio * math.exp(-slope)
    return shape * math.log((1 - ratio) ** 2 / (above * below))


@pytest.mark.parametrize("probability", [0.1, 1e-9, 2.0**-200])
@pytest.mark.parametrize("present", [1, 4])
def test_tails_of_other_shares_are_the_best_exponential_bound(present: int, probability: float) -> None:
    cases: list[tuple[Share, Callable[[float], float], float]] = [
        (SKELLAM, lambda slope: skellam_cumulant(present * SKELLAM.variance, slope), 20.0),
        (LAPLACE, lambda slope: polya_cumulant(1 / 6, present / 4, slope), 1 / 6 * (1 - 1e-9)),
    ]
    for share, cumulant, end in cases:
        best = minimize_scalar(
            lambda slope, cumulant=cumulant: (math.log(2 / probability) + cumulant(slope)) / slope,
            bounds=(1e-6, end),
            method="bounded",
            options={"xatol": 1e-12},
        ).fun
        # the slopes that are tried are not quite the best one
        assert best <= share.tail(probability, present) <= best * 1.01 + 1


@pytest.mark.parametrize("honest", [1, 2, 3])
def test_too_few_laplace_shares_cost_their_steepest_step_rounded_up(honest: int) -> None:
    """log(P(0) / P(1)) for each unit of sensitivity, by the sums that P(0) and P(1) are."""
    with mpmath.workdps(60):
        ratio, shape = mpmath.exp(-mpmath.mpf(1) / 6), mpmath.mpf(honest) / 4
        one = [mpmath.rf(shape, k) / mpmath.factorial(k) * ratio**k for k in range(700)]
        steps = 3 * mpmath.log(mpmath.fsum(p * p for p in one) / mpmath.fsum(p * q for p, q in pairwise(one)))
        claimed = LAPLACE.event_if(honest).epsilon
        assert steps * 10**12 <= int(claimed * 10**12) <= steps * 10**12 + 2
    assert claimed.denominator <= 10**12


@pytest.mark.parametrize("dimension", [1, 50])
@pytest.mark.parametrize("honest", [1, 2, 7])
@pytest.mark.parametrize("share", [Fraction(1, 5), Fraction(1, 2), Fraction(1)])
def test_the_cost_of_a_sum_counts_its_distance_from_the_discrete_gaussian(
    share: Fraction, honest: int, dimension: int
) -> None:
    """(D / sqrt(h s) + 2 g sqrt(dimension))^2 / 2, for shares so small that g shows."""
    with mpmath.workdps(60):
        gap = 2 * mpmath.mpf(log_ratio(float(share), honest)) * mpmath.sqrt(dimension)
        root = mpmath.sqrt(3 / (honest * mpmath.mpf(share.numerator) / share.denominator))
        exact = (root + gap) ** 2 / 2
        found = sum_rho(Fraction(3), share, honest, dimension)
        found_exactly = mpmath.mpf(found.numerator) / found.denominator
        assert exact * (1 - mpmath.mpf(10) ** -50) <= found_exactly <= exact * (1 + 1e-11)


def test_the_distance_of_a_sum_of_shares_is_never_nothing() -> None:
    assert log_ratio(1e6, 2) > 0
    assert sum_rho(Fraction(1), Fraction(10**6), 2, 1) > Fraction(1, 4 * 10**6)


def test_a_skellam_share_is_the_difference_of_its_poisson_variables() -> None:
    drawn = SKELLAM.draw((40, 50), SimulationRandomness(1))
    assert abs(drawn.mean()) < 5 * math.sqrt(SKELLAM.variance / drawn.size)
    assert drawn.var() == pytest.approx(SKELLAM.variance, rel=0.2)
    assert np.array_equal(drawn.ravel(), SKELLAM.draw(2000, SimulationRandomness(1)))


def test_the_variance_of_skellam_noise_is_rounded_so_that_it_never_costs_more() -> None:
    """For some of these the search ends so close that rounding the other way would show."""
    for number in (118, 270, 1300, 1350, 1474):
        rho = Fraction(number, 3000)
        variance = skellam_variance(rho, 2, Fraction(4))
        assert skellam_rho(float(variance), 2, 4.0) <= rho
        assert skellam_rho(float(variance) * (1 - 1e-8), 2, 4.0) > rho
