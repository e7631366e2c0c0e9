"""Noisy sums over samples: what is rounded, the search, and what is refused."""

from fractions import Fraction
from math import exp
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm

from syndic.errors import InputError
from syndic.privacy.sampled import LEAST_SIGMA, _bracket, _left, sampled_epsilon, sampled_sigma

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("sigma", "chance", "found"), [("0.1", "1/3", 0.7), ("1/3", "0.7", 2.5e-12), ("7/3", "0.1", 3), ("25", "1", 0.1)]
)
def test_numbers_are_rounded_to_the_safe_side_around_the_library(
    sigma: str, chance: str, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is given no more noise and no smaller a sample, and its answer is never rounded down."""
    given: list[tuple[Fraction, Fraction]] = []

    class Loss:
        def self_compose(self, _: int) -> "Loss":
            return self

        def get_epsilon_for_delta(self, delta: float) -> float:
            assert Fraction(delta) <= DELTA - Fraction(1, 10**10)
            return found

    def mechanism(deviation: float, *, sampling_prob: float, **_: Any) -> Loss:
        given.append((Fraction(deviation), Fraction(sampling_prob)))
        return Loss()

    monkeypatch.setattr(privacy_loss_distribution, "from_gaussian_mechanism", mechanism)
    sampled_epsilon.cache_clear()
    claimed = sampled_epsilon(Fraction(sigma), DELTA, Fraction(chance), 3)
    sampled_epsilon.cache_clear()
    assert Fraction(found) < claimed < Fraction(found) * (1 + Fraction(1, 10**8)) + Fraction(3, 10**12)
    near = 1 - Fraction(1, 10**11)
    for deviation, probability in given:
        assert near * Fraction(sigma) < deviation < Fraction(sigma)
        assert near * probability < Fraction(chance) <= probability <= 1
        assert Fraction(chance) < probability or probability == 1


@pytest.mark.parametrize("epsilon", ["0", "0.1", "1", "4", "7.3", "9.2101", "9.21022", "9.210239"])
def test_slack_takes_its_part_of_delta_before_the_noise(epsilon: str) -> None:
    delta, slack = Fraction(1, 10), Fraction(1, 10**5)
    with mpmath.workdps(40):
        exact = mpmath.mpf(1) / 10 - mpmath.mpf(10) ** -10 - (1 + mpmath.exp(mpmath.mpf(epsilon))) / 10**5
        # at the last ones slack takes nearly all of it
        assert exact - 1e-12 < _left(Fraction(epsilon), delta, slack) < exact


@pytest.mark.parametrize("delta", ["1/3", "1/7", "0.1", "0.01", "1e-6", "1e-8"])
def test_what_is_left_of_delta_is_rounded_down(delta: str) -> None:
    exact = Fraction(delta) - Fraction(1, 10**10)
    assert exact * (1 - Fraction(1, 10**11)) < Fraction(_left(Fraction(1), Fraction(delta), Fraction(0))) < exact


@pytest.mark.parametrize(
    ("epsilon", "delta", "slack"),
    [
        ("1", "1e-10", "0"),
        ("1", "1e-11", "0"),
        ("1", "1.0000000001", "0"),
        ("1", "1.5", "0"),
        ("1", "0.1", "0.03"),
        ("500", "0.1", "1e-210"),
    ],
)
def test_a_delta_that_is_used_up_or_too_large_is_refused(epsilon: str, delta: str, slack: str) -> None:
    with pytest.raises(InputError, match="must be below 1 and above"):
        _left(Fraction(epsilon), Fraction(delta), Fraction(slack))


@pytest.mark.parametrize("threshold", [50, 99, 100, 101, 102, 137, 1000, 4001])
def test_the_least_noise_is_found_from_every_start(threshold: int) -> None:
    """In thousandths, and never below the least that is given out."""
    for start in (0, 1, 99, 100, 101, 103, 110, 137, 500, 999, 1000, 1001, 1032, 9000):
        fails, fits = _bracket(lambda sigma: sigma >= threshold, start)
        assert fits >= max(100, threshold)
        assert 99 <= fails < max(100, threshold)


def test_noise_ends_at_a_million() -> None:
    assert _bracket(lambda sigma: sigma >= 10**9, 8 * 10**8)[1] == 10**9
    with pytest.raises(InputError, match="no noise makes so many steps cost so little"):
        _bracket(lambda _: False, 1)


def test_noise_for_a_tiny_budget_is_the_least_of_the_closed_form() -> None:
    """The coarse and the fine search use one grid here, so the second does not repair the first."""
    epsilon, delta = 0.001, 0.001

    def delta_at(sigma: float) -> float:
        # half-lines are the worst sets
        ends = np.linspace(-2 * sigma, 2 * sigma, 4001)
        return float((norm.sf(ends, 1, sigma) - exp(epsilon) * norm.sf(ends, -1, sigma)).max())

    sigma = float(sampled_sigma(Fraction(1, 1000), Fraction(1, 1000), Fraction(1), 1))
    assert delta_at(sigma) <= delta < delta_at(0.9999 * sigma)


@pytest.mark.parametrize(("chance", "steps"), [("0", 1), ("-0.5", 1), ("1.5", 1), ("2", 1), ("0.5", 0), ("0.5", -1)])
def test_samples_that_cannot_be_are_refused(chance: str, steps: int) -> None:
    told = r"chance .* must be in \(0, 1\] and steps .* at least 1"
    with pytest.raises(InputError, match=told):
        sampled_epsilon(LEAST_SIGMA, DELTA, Fraction(chance), steps)
    with pytest.raises(InputError, match=told):
        sampled_sigma(Fraction(1), DELTA, Fraction(chance), steps)
