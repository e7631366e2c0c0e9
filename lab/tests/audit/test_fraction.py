"""How much of a charge chances refute: the bound itself for pure costs, mu for Gaussian ones."""

from fractions import Fraction
from math import exp

import pytest
from scipy.stats import norm

from syndic.privacy import ApproximateEvent, ConcentratedEvent, Cost, GaussianEvent, PureEvent
from syndic_lab.audit.fraction import part_epsilon, refuted_part
from syndic_lab.audit.verdict import DELTAS

PURE = Cost.of([PureEvent(epsilon=Fraction(2))])
GAUSSIAN = Cost.of([GaussianEvent(mu_squared=Fraction(4))])


def gaussian_box(mu: float, cut: float = 0.0) -> tuple[float, float]:
    return float(norm.sf(cut - mu / 2)), float(norm.sf(cut + mu / 2))


def test_of_a_pure_cost_it_is_the_bound() -> None:
    part = refuted_part(PURE, [(0.5, 0.5 / exp(1))], DELTAS)
    assert part == pytest.approx(0.5, abs=0.002)
    assert part_epsilon(PURE, part, 0.0) == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize("cut", [-1.0, 0.0, 2.0])
def test_of_a_gaussian_cost_it_is_mu_squared_wherever_the_event_lies(cut: float) -> None:
    assert refuted_part(GAUSSIAN, [gaussian_box(1.0, cut)], DELTAS) == pytest.approx(0.25)
    assert refuted_part(GAUSSIAN, [gaussian_box(2.2, cut)], DELTAS) > 1


def test_of_a_concentrated_cost_it_is_the_largest_divergence_of_two_coins() -> None:
    """Two laws of mu apart are mu^2 / 2-zCDP: two coins made of them show about two thirds, and never more than all."""
    cost = Cost.of([ConcentratedEvent(rho=Fraction(2))])
    for cut in (-1.0, 0.0, 1.0):
        one, other = gaussian_box(2.0, cut)
        assert 0.4 < refuted_part(cost, [(one, other), (1 - other, 1 - one)], DELTAS) < 1
    almost = Cost.of(
        [ConcentratedEvent(rho=Fraction(2)), ApproximateEvent(epsilon=Fraction(1, 10), delta=Fraction(1, 10))]
    )
    assert refuted_part(almost, [gaussian_box(2.0)], DELTAS) < refuted_part(cost, [gaussian_box(2.0)], DELTAS)
    assert refuted_part(cost, [gaussian_box(6.0)], DELTAS) > 1


def test_slack_is_taken_off() -> None:
    loose = Cost.of([GaussianEvent(mu_squared=Fraction(4), slack=Fraction(1, 10))])
    assert refuted_part(loose, [(0.3, 0.1)], DELTAS) == 0
    assert 0 < refuted_part(loose, [gaussian_box(2.0)], DELTAS) < 0.9


@pytest.mark.parametrize(
    "cost",
    [
        Cost.of([ConcentratedEvent(rho=Fraction(2))]),
        Cost.of([ApproximateEvent(epsilon=Fraction(2), delta=Fraction(1, 1000))]),
        Cost.of([GaussianEvent(mu_squared=Fraction(1)), PureEvent(epsilon=Fraction(1))]),
    ],
    ids=["concentrated", "approximate", "mixed"],
)
def test_other_costs_have_parts_too(cost: Cost) -> None:
    parts = [refuted_part(cost, [gaussian_box(mu)], DELTAS) for mu in (0.0, 0.8, 1.4, 8.0)]
    assert parts[0] == 0
    assert 0 < parts[1] < parts[2] < 1
    assert parts[3] > 1
    delta = 0.01
    assert part_epsilon(cost, parts[2], delta) < float(cost.epsilon(Fraction(1, 100)))


def test_nothing_seen_refutes_nothing() -> None:
    assert refuted_part(PURE, [], DELTAS) == refuted_part(GAUSSIAN, [], DELTAS) == 0
    assert refuted_part(GAUSSIAN, [(0.0, 1.0), (0.2, 1.0)], DELTAS) == 0
    assert refuted_part(GAUSSIAN, [(0.5, 0.0)], DELTAS) > 1
