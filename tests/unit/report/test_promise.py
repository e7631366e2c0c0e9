"""The odds, against Bayes' rule and against the best test between two outcome laws written out."""

from itertools import product
from math import exp

import numpy as np
import pytest

from syndic.report.promise import percent, posterior
from syndic.study.statement import best_guess


def right(first: np.ndarray, second: np.ndarray) -> float:
    """Return the chance of the best guess between two laws at even odds: the larger one at every outcome."""
    return float(np.maximum(first, second).sum() / 2)


@pytest.mark.parametrize(("epsilon", "delta"), list(product([0.01, 0.5, 1.0, 3.0, 12.0], [0.0, 1e-6, 0.01, 0.3])))
def test_the_bound_on_a_guess_is_reached_by_the_worst_pair(epsilon: float, delta: float) -> None:
    # Kairouz, Oh and Viswanath: every (epsilon, delta) mechanism is a post-processing of this one
    likely, unlikely = (1 - delta) * exp(epsilon) / (1 + exp(epsilon)), (1 - delta) / (1 + exp(epsilon))
    first = np.array([delta, likely, unlikely, 0.0])
    assert best_guess(epsilon, delta) == pytest.approx(right(first, first[::-1]))


def test_real_noise_stays_below_the_bound() -> None:
    for epsilon in (0.2, 1.0, 2.5):
        places = np.arange(-200, 201)
        law = np.exp(-epsilon * np.abs(places))
        law /= law.sum()
        assert right(law[:-1], law[1:]) <= best_guess(epsilon, 0.0) + 1e-12


def test_beliefs_follow_bayes() -> None:
    for epsilon, prior in product([0.1, 1.0, 4.0], [0.001, 0.1, 0.5]):
        odds = prior / (1 - prior) * exp(epsilon)
        assert posterior(prior, epsilon) == pytest.approx(odds / (1 + odds))
    assert posterior(0.5, 1.0) == pytest.approx(best_guess(1.0, 0.0))


def test_huge_epsilons_are_near_certainty_and_no_error() -> None:
    assert best_guess(1e6, 0.0) == 1.0
    assert posterior(0.01, 1e6) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.5, "50.0\u00a0%"), (0.7310586, "73.1\u00a0%"), (0.99999, "over 99.9\u00a0%"), (1.0, "100.0\u00a0%")],
)
def test_certainty_is_not_rounded_to(share: float, text: str) -> None:
    assert percent(share) == text
