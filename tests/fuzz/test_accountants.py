"""Costs against figures that share no code with it: never below what is true, and not far above.

The truth is that of mechanisms that have exactly the guarantee that was charged, and nothing better: randomised answers
for pure and approximate events (Kairouz, Oh and Viswanath 2015), a Gaussian for Gaussian and concentrated ones. What
they lose together is a finite sum of normal profiles, by scipy; for samples it is a convolution of our own, rounded
down for a bound from below and up for one from above.
"""

from fractions import Fraction
from itertools import product
from math import inf, log, prod, sqrt
from typing import Any

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import expit, log_ndtr
from scipy.stats import norm

from fuzzing import fuzz
from syndic.privacy import (
    ApproximateEvent,
    ConcentratedEvent,
    Cost,
    Event,
    GaussianEvent,
    PureEvent,
    mu_squared_for,
    pure_for,
    rho_for,
    zcdp_epsilon,
)
from syndic.privacy.sampled import sampled_epsilon, sampled_sigma

pytestmark = pytest.mark.fuzz

DELTAS = st.floats(3, 9).map(lambda digits: Fraction(round(10**12 * 10**-digits), 10**12))
SMALL = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=200)
PURE = st.builds(PureEvent, epsilon=SMALL)
APPROXIMATE = st.builds(ApproximateEvent, epsilon=SMALL, delta=st.just(Fraction(1, 10**11)))
GAUSSIAN = st.builds(GaussianEvent, mu_squared=SMALL)
CONCENTRATED = st.builds(ConcentratedEvent, rho=SMALL.map(lambda rho: rho / 2))


def profile(mu: float, epsilon: NDArray[np.float64]) -> Any:
    """Return delta of the Gaussian at any epsilon, also at negative ones."""
    if mu == 0:
        return np.maximum(0, -np.expm1(np.minimum(0, epsilon)))
    near, far = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return np.exp(near) * -np.expm1(np.minimum(0, far - near))


def true_epsilon(events: list[Event], delta: float) -> float:
    """Return the least epsilon at delta of the worst mechanisms that have the guarantees of the events."""
    bounded = [event for event in events if isinstance(event, PureEvent | ApproximateEvent)]
    squares = [event.mu_squared for event in events if isinstance(event, GaussianEvent)]
    squares += [2 * event.rho for event in events if isinstance(event, ConcentratedEvent)]
    mu = sqrt(sum(squares))
    kept = prod(1 - float(event.delta) for event in bounded if isinstance(event, ApproximateEvent))
    signs = np.array(list(product((1, -1), repeat=len(bounded))), dtype=np.float64)
    each = signs * np.array([float(event.epsilon) for event in bounded])
    chances, losses = np.prod(expit(each), axis=1), each.sum(axis=1)

    def excess(epsilon: float) -> float:
        return 1 - kept + kept * float((chances * profile(mu, epsilon - losses)).sum()) - delta

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, high, xtol=1e-13))


ANY = st.lists(st.one_of(PURE, APPROXIMATE, GAUSSIAN, CONCENTRATED), min_size=1, max_size=6)


@fuzz(0.5)
@given(ANY, DELTAS)
def test_no_cost_is_below_the_truth(events: list[Event], delta: Fraction) -> None:
    assert float(Cost.of(events).epsilon(delta)) >= true_epsilon(events, float(delta)) * (1 - 1e-7) - 1e-9


@fuzz(0.5)
@given(st.lists(CONCENTRATED, min_size=1, max_size=3), DELTAS)
def test_what_is_concentrated_costs_little_more_than_a_gaussian(events: list[Event], delta: Fraction) -> None:
    assert float(Cost.of(events).epsilon(delta)) <= 1.6 * true_epsilon(events, float(delta)) + 0.01


@fuzz(0.5)
@given(st.lists(GAUSSIAN, min_size=1, max_size=5), DELTAS)
def test_a_ledger_counts_gaussian_events_exactly(events: list[Event], delta: Fraction) -> None:
    truth = true_epsilon(events, float(delta))
    found = float(Cost.of(events).epsilon(delta))
    assert truth * (1 - 1e-9) - 1e-12 <= found <= truth * (1 + 1e-6) + 1e-9


@fuzz(0.5)
@given(
    st.floats(-12, 3).map(lambda power: Fraction(10**power)), st.floats(1, 30).map(lambda digits: Fraction(10**-digits))
)
def test_conversion_of_rho_is_that_of_the_accounting_library(rho: Fraction, delta: Fraction) -> None:
    tail = log(delta.denominator) - log(delta.numerator)
    # around the best order, which is near 1 + sqrt(tail / rho)
    orders = 1 + np.geomspace(sqrt(tail / float(rho)) / 50, sqrt(tail / float(rho)) * 1.5, 4000)
    published, _ = compute_epsilon(orders, float(rho) * orders, float(delta))
    found = float(zcdp_epsilon(rho, delta))
    assert published * (1 - 1e-4) - 1e-9 <= found <= published * (1 + 1e-9) + 2e-12
    assert found >= true_epsilon([GaussianEvent(mu_squared=2 * rho)], float(delta)) * (1 - 1e-9) - 1e-12


@fuzz(0.5)
@given(st.fractions(min_value=Fraction(1, 20), max_value=8, max_denominator=100), DELTAS, st.integers(1, 5))
def test_noise_for_a_budget_keeps_it(epsilon: Fraction, delta: Fraction, count: int) -> None:
    """A budget that is spent on calibrated noise is never exceeded by the truth."""
    spent: list[list[Event]] = [
        [GaussianEvent(mu_squared=mu_squared_for(epsilon, delta) / count)] * count,
        [ConcentratedEvent(rho=rho_for(epsilon, delta) / count)] * count,
        [PureEvent(epsilon=pure_for(epsilon, delta, count))] * count,
    ]
    for events in spent:
        assert true_epsilon(events, float(delta)) <= float(epsilon) * (1 + 1e-9) + 1e-12


def step_losses(sigma: float, chance: float, grid: float, *, up: bool) -> tuple[int, NDArray[np.float64], float]:
    """Return the law of one step's loss on a grid, its first place, and what is beyond it."""
    lower, upper = -9 * sigma - 1, 9 * sigma + 2

    def density(x: Any, shift: float) -> Any:
        return np.logaddexp(
            np.log1p(-chance) + norm.logpdf(x, 0, sigma) if chance < 1 else -inf,
            log(chance) + norm.logpdf(x, shift, sigma),
        )

    def loss(x: Any) -> Any:
        return density(x, 1.0) - density(x, -1.0)

    first, last = int(np.ceil(loss(lower) / grid)), int(np.floor(loss(upper) / grid))
    wanted = np.arange(first, last + 1) * grid
    low, high = np.full(len(wanted), lower), np.full(len(wanted), upper)
    for _ in range(60):
        middle = (low + high) / 2
        below = loss(middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # the loss grows with x, so a cell of losses is an interval
    edges = np.concatenate([[lower], high if up else low, [upper]])
    masses = np.diff(chance * norm.cdf(edges, 1, sigma) + (1 - chance) * norm.cdf(edges, 0, sigma))
    beyond = chance * norm.sf(upper, 1, sigma) + (1 - chance) * norm.sf(upper, 0, sigma)
    return first - (0 if up else 1), masses, float(beyond)


def many_steps(sigma: float, chance: float, steps: int, delta: float, *, up: bool) -> float:
    """Return epsilon of many steps, from below or from above."""
    grid = 0.02 / steps
    start, law, beyond = step_losses(sigma, chance, grid, up=up)
    total, place, lost = np.ones(1), 0, 0.0
    power, power_place, power_lost = law, start, beyond
    while steps:
        if steps & 1:
            total, place, lost = _trimmed(fftconvolve(total, power), place + power_place, lost + power_lost)
        power, power_place, power_lost = _trimmed(fftconvolve(power, power), 2 * power_place, 2 * power_lost)
        steps >>= 1
    losses = (place + np.arange(len(total))) * grid

    def excess(epsilon: float) -> float:
        found = float((total * np.maximum(0, -np.expm1(np.minimum(0, epsilon - losses)))).sum())
        return found + (lost if up else 0.0) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, max(1.0, losses[-1] + 1)))


def _trimmed(law: NDArray[np.float64], place: int, lost: float) -> tuple[NDArray[np.float64], int, float]:
    """Return the law without tails of 1e-14: small losses, and large ones that count as lost."""
    law = np.maximum(law, 0)
    first = int(np.searchsorted(np.cumsum(law), 1e-14))
    last = len(law) - int(np.searchsorted(np.cumsum(law[::-1]), 1e-14))
    return law[first:last], place + first, lost + 2e-14


SIGMAS = st.floats(0.7, 6).map(lambda sigma: Fraction(round(sigma * 1000), 1000))
CHANCES = st.floats(-3, 0).map(lambda power: Fraction(round(10**power * 10**4), 10**4))


@fuzz(0.05)
@given(SIGMAS, CHANCES, st.sampled_from([1, 2, 5, 20, 64]), st.sampled_from([Fraction(1, 10**4), Fraction(1, 10**6)]))
def test_samples_cost_what_a_convolution_says(sigma: Fraction, chance: Fraction, steps: int, delta: Fraction) -> None:
    low, high = (many_steps(float(sigma), float(chance), steps, float(delta), up=up) for up in (False, True))
    found = float(sampled_epsilon(sigma, delta, chance, steps))
    assert low - 1e-6 <= found <= 1.01 * high + 2e-3


@fuzz(0.01)
@given(
    st.fractions(min_value=Fraction(1, 5), max_value=5, max_denominator=20),
    CHANCES,
    st.sampled_from([1, 8, 40]),
)
def test_noise_for_samples_keeps_its_budget(epsilon: Fraction, chance: Fraction, steps: int) -> None:
    sigma = sampled_sigma(epsilon, Fraction(1, 10**5), chance, steps)
    assert many_steps(float(sigma), float(chance), steps, 1e-5, up=False) <= float(epsilon) + 1e-6
