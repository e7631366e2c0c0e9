"""Bounds against the laws they are made of."""

from itertools import product
from math import comb, exp, inf, log

import pytest
from scipy import stats

from syndic_lab.audit.bound import epsilon_shown, least_chance, most_chance, one_run_chance, one_run_epsilon


@pytest.mark.parametrize(("hits", "tries"), [(0, 10), (1, 10), (7, 10), (10, 10), (30, 400)])
@pytest.mark.parametrize("miss", [0.05, 1e-9])
def test_bounds_are_where_the_observation_becomes_as_unlikely_as_stated(hits: int, tries: int, miss: float) -> None:
    least, most = least_chance(hits, tries, miss), most_chance(hits, tries, miss)
    assert least <= hits / tries <= most
    if hits:
        assert stats.binom.sf(hits - 1, tries, least) == pytest.approx(miss)
    else:
        assert least == 0
    if hits < tries:
        assert stats.binom.cdf(hits, tries, most) == pytest.approx(miss)
    else:
        assert most == 1


def test_an_epsilon_is_shown_by_two_chances() -> None:
    assert epsilon_shown(0.5, 0.1, 0.0) == pytest.approx(log(5))
    assert epsilon_shown(0.5, 0.1, 0.3) == pytest.approx(log(2))
    assert epsilon_shown(0.5, 0.1, 0.6) == 0
    assert epsilon_shown(0.1, 0.5, 0.0) == 0
    assert epsilon_shown(0.5, 0.0, 0.0) == inf


def test_without_delta_guesses_are_right_no_more_often_than_by_randomised_response() -> None:
    """Enumerate all outcomes of randomised response on a few canaries, the mechanism for which the bound is exact."""
    epsilon, canaries = 1.2, 5
    right = exp(epsilon) / (1 + exp(epsilon))
    for wanted in range(canaries + 1):
        exactly = sum(
            right ** sum(kept) * (1 - right) ** (canaries - sum(kept))
            for kept in product((0, 1), repeat=canaries)
            if sum(kept) >= wanted
        )
        assert one_run_chance(canaries, canaries, wanted, epsilon, 0.0) == pytest.approx(exactly)


def test_delta_adds_what_the_theorem_says() -> None:
    canaries, guesses, right, epsilon, delta = 50, 20, 18, 0.7, 1e-3
    kept = 1 / (1 + exp(-epsilon))
    law = [comb(guesses, k) * kept**k * (1 - kept) ** (guesses - k) for k in range(guesses + 1)]
    best = max(sum(law[right - i : right]) / i for i in range(1, right + 1))
    wanted = sum(law[right:]) + 2 * canaries * delta * best
    assert one_run_chance(canaries, guesses, right, epsilon, delta) == pytest.approx(wanted)


def test_one_run_shows_the_epsilon_at_which_chance_would_allow_it() -> None:
    found = one_run_epsilon(canaries=2000, guesses=2000, right=1600, delta=0.0, miss=1e-6)
    assert one_run_chance(2000, 2000, 1600, found, 0.0) == pytest.approx(1e-6, rel=1e-3)
    assert 0 < found < log(0.8 / 0.2)
    assert one_run_epsilon(canaries=10, guesses=10, right=5, delta=0.0, miss=1e-6) == 0
    assert one_run_epsilon(canaries=2000, guesses=2000, right=1600, delta=1e-6, miss=1e-6) < found


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="in that order"):
        one_run_chance(10, 5, 6, 1.0, 0.0)
