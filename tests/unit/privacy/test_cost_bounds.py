"""Costs of mixed events against the exact loss of mechanisms that have these guarantees, and calibration by costs."""

from fractions import Fraction
from itertools import product
from math import exp

import mpmath
import numpy as np
import pytest

from syndic.errors import InputError
from syndic.privacy.cost import Cost, pure_for
from syndic.privacy.event import ConcentratedEvent, Event, GaussianEvent, PureEvent

DELTA = Fraction(1, 10**5)


def hockey_stick(first: dict[object, float], second: dict[object, float], epsilon: float) -> float:
    return sum(max(0.0, p - exp(epsilon) * second.get(key, 0.0)) for key, p in first.items())


def likelihoods(epsilon: float) -> list[tuple[float, float]]:
    """The outcomes of the worst epsilon-DP mechanism: probabilities under both neighbours."""
    likely, unlikely = 1 / (1 + exp(-epsilon)), 1 / (1 + exp(epsilon))
    return [(likely, unlikely), (unlikely, likely)]


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**5)])
def test_costs_bound_real_discrete_laplace_noise(delta: Fraction) -> None:
    epsilons = [Fraction(1, 2), Fraction(4, 5)]
    reach = range(-60, 61)
    releases: list[dict[object, float]] = []
    for shift in (0, 1):
        law: dict[object, float] = {(): 1.0}
        for epsilon in epsilons:
            ratio = exp(-epsilon)
            law = {
                (*key, value): p * (1 - ratio) / (1 + ratio) * ratio ** abs(value - shift)
                for key, p in law.items()
                for value in reach
                if isinstance(key, tuple)
            }
        releases.append(law)
    claimed = Cost.of([PureEvent(epsilon=epsilon) for epsilon in epsilons]).epsilon(delta)
    assert hockey_stick(releases[0], releases[1], float(claimed)) <= float(delta)
    assert hockey_stick(releases[1], releases[0], float(claimed)) <= float(delta)


@pytest.mark.parametrize(("pures", "sigma"), [([1.0], 4.0), ([0.5] * 4, 2.0), ([0.1] * 6, 10.0)])
def test_mixtures_with_gaussian_noise_are_bounded(pures: list[float], sigma: float) -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(str(e))) for e in pures]
    events.append(ConcentratedEvent(rho=1 / (2 * Fraction(str(sigma)) ** 2)))
    claimed = float(Cost.of(events).epsilon(DELTA))
    total = mpmath.mpf(0)
    for outcome in product(*(likelihoods(e) for e in pures)):
        p, q = (float(np.prod([pair[side] for pair in outcome])) for side in (0, 1))
        total += p * gaussian_delta(1 / sigma, claimed - float(np.log(p / q)))
    assert total <= float(DELTA)


@pytest.mark.parametrize(("pures", "mu"), [([1.0], 0.25), ([0.5] * 4, 0.5), ([0.1] * 6, 0.1), ([0.001], 2.0)])
def test_mixtures_with_gaussian_events_are_bounded(pures: list[float], mu: float) -> None:
    events: list[Event] = [PureEvent(epsilon=Fraction(str(e))) for e in pures]
    events += [GaussianEvent(mu_squared=Fraction(str(mu)) ** 2 / 2)] * 2
    claimed = float(Cost.of(events).epsilon(DELTA))
    total = mpmath.mpf(0)
    for outcome in product(*(likelihoods(e) for e in pures)):
        p, q = (float(np.prod([pair[side] for pair in outcome])) for side in (0, 1))
        total += p * gaussian_delta(mu, claimed - float(np.log(p / q)))
    assert total <= float(DELTA)


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_pure_calibration_uses_the_whole_budget(count: int, delta: Fraction) -> None:
    each = pure_for(Fraction(1), delta, count)
    assert Cost.of([PureEvent(epsilon=each)] * count).epsilon(delta) <= 1
    more = each + Fraction(1, 10**9)
    assert Cost.of([PureEvent(epsilon=more)] * count).epsilon(delta) > 1
    assert each >= Fraction(1, count) - Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [("0", "1e-5", 1), ("-0.5", "1e-5", 1), ("1", "-0.5", 1), ("1", "1", 1), ("1", "1.5", 1), ("1", "1e-5", 0)],
)
def test_pure_calibration_names_what_is_wrong(epsilon: str, delta: str, count: int) -> None:
    with pytest.raises(InputError, match=rf"and count \({count}\) at least 1"):
        pure_for(Fraction(epsilon), Fraction(delta), count)


def test_a_budget_below_one_step_for_each_of_many_buys_nothing() -> None:
    assert pure_for(Fraction(3, 10**12), Fraction(0), 10) == 0
    assert pure_for(Fraction(30, 10**12), Fraction(0), 10) == Fraction(3, 10**12)
    assert pure_for(Fraction(30, 10**12), Fraction(0)) == Fraction(30, 10**12)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["3", "8", "40"])
def test_pure_calibration_of_large_budgets_fits_a_ledger_and_one_step_more_does_not(epsilon: str, count: int) -> None:
    """Above 2 the rho of a pure event is its epsilon, not half its square."""
    budget = Fraction(epsilon)
    each = pure_for(budget, DELTA, count)
    assert Cost.of([PureEvent(epsilon=each)] * count).epsilon(DELTA) <= budget
    assert Cost.of([PureEvent(epsilon=each + Fraction(1, 10**12))] * count).epsilon(DELTA) > budget
