"""What is concluded from trials of which the truth is known."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.privacy import Cost, GaussianEvent, PureEvent, gaussian_epsilon
from syndic_lab.audit.fraction import claimed
from syndic_lab.audit.observation import Chance, Fact, Finding, KnownLaw, Neighbours, OneRun, Trial, numbers
from syndic_lab.audit.verdict import broken, judge

PURE = Cost.of([PureEvent(epsilon=Fraction(1))])
GAUSSIAN = Cost.of([GaussianEvent(mu_squared=Fraction(1))])
MISS = 1e-7


def laplace(shift: float, scale: float, count: int = 20_000, seed: int = 0) -> NDArray[np.float64]:
    return shift + np.random.default_rng([seed, int(shift)]).laplace(0, scale, count)


def neighbours(one: NDArray[np.float64], other: NDArray[np.float64], cost: Cost = PURE, delta: float = 0.0) -> Finding:
    (found,) = judge("x", [Neighbours(view="v", one=one, other=other, cost=cost, delta=delta)], MISS)
    return found


def test_sound_noise_is_not_accused_and_comes_near() -> None:
    found = neighbours(laplace(1, 1), laplace(0, 1))
    assert found.holds
    assert found.shown is not None
    assert 0.8 < found.shown <= 1
    assert (found.epsilon, found.runs) == (1, 40_000)


def test_half_the_noise_is_accused() -> None:
    found = neighbours(laplace(1, 0.5), laplace(0, 0.5))
    assert not found.holds
    assert found.tight_shown is not None
    assert 1 < found.tight_shown <= 2


def test_an_event_in_the_middle_is_found_too() -> None:
    """Scores that are equal under both tables but for one value."""
    draws = np.random.default_rng(1)
    one = draws.choice([0.0, 1.0, 2.0], 5000, p=[0.3, 0.4, 0.3])
    other = draws.choice([0.0, 1.0, 2.0], 5000, p=[0.5, 0.0, 0.5])
    assert not neighbours(one, other).holds


def test_a_leak_with_a_small_chance_shows_at_a_larger_delta_only() -> None:
    """With chance 0.2 the person is shown: at delta 0.001 that is broken, at 0.3 it is allowed."""
    one, other = np.zeros(5000), np.zeros(5000)
    one[np.random.default_rng(2).random(5000) < 0.2] = 1
    assert not neighbours(one, other, delta=0.001).holds
    loose = Cost(delta_approximate=3 * 10**17, epsilon_approximate=1)
    assert neighbours(one, other, cost=loose, delta=0.3).holds


def test_thresholds_that_were_fixed_use_all_runs() -> None:
    one, other = laplace(1, 1, 300), laplace(0, 1, 300)
    trials = [Neighbours(view="v", one=one, other=other, cost=PURE, delta=0.0, cuts=cuts) for cuts in ((), (0.5,))]
    without, fixed = judge("x", trials, MISS)
    assert (fixed.shown or 0) > (without.shown or 0)


def test_two_equal_laws_show_nothing() -> None:
    found = neighbours(laplace(0, 1, seed=3), laplace(0, 1, seed=4))
    assert (found.holds, found.shown) == (True, 0)


def test_known_gaussian_noise_shows_its_size() -> None:
    def judged(sigma: float) -> Finding:
        noise = np.random.default_rng(5).normal(0, sigma, 4000)
        trial = KnownLaw(view="v", parts=((noise, 1.0),), runs=10, cost=GAUSSIAN, delta=1e-3)
        (found,) = judge("x", [trial], MISS)
        return found

    sound, half = judged(1.0), judged(0.5)
    claim = float(gaussian_epsilon(Fraction(1), Fraction(1, 1000)))
    assert sound.holds
    assert sound.epsilon == pytest.approx(claim)
    assert 0.8 * claim < (sound.shown or 0) < claim
    assert not half.holds


@pytest.mark.slow
def test_known_noise_is_accused_seldom() -> None:
    """At a chance to miss of a tenth, some of 150 sound trials are accused; 37 is six deviations above a tenth."""
    draws = np.random.default_rng(6)
    accused = 0
    for _ in range(150):
        noise = draws.normal(0, 1, 50)
        trial = KnownLaw(view="v", parts=((noise, 1.0),), runs=1, cost=GAUSSIAN, delta=1e-3)
        accused += len(broken(judge("x", [trial], 0.1)))
    assert 2 < accused < 37


def test_one_run_of_canaries() -> None:
    coins = 2 * np.random.default_rng(7).integers(0, 2, 20_000) - 1
    scores = numbers(coins / 2) + np.random.default_rng(8).laplace(0, 1, 20_000)
    (sound,) = judge("x", [OneRun(view="v", coins=coins, scores=scores, cost=PURE, delta=0.0)], MISS)
    (faulty,) = judge("x", [OneRun(view="v", coins=coins, scores=numbers(coins), cost=PURE, delta=0.0)], MISS)
    assert sound.holds
    assert 0.7 < (sound.shown or 0) <= 1
    assert not faulty.holds


def test_chances_and_facts() -> None:
    trials: list[Trial] = [
        Chance(view="v", kind="uniform", chance=1e-12, runs=3),
        Chance(view="v", kind="same law", chance=0.3, runs=3),
        Fact(view="v", kind="same coins", holds=False, runs=2, text="differs"),
        Fact(view="v", kind="charge", holds=True, runs=2),
    ]
    found = judge("x", trials, MISS)
    assert [each.holds for each in found] == [False, True, False, True]
    assert [each.test for each in broken(found)] == ["uniform", "same coins"]
    assert found[0].confidence == pytest.approx(1 - MISS / 4)


def test_a_claim_is_of_every_delta() -> None:
    assert claimed(PURE, 0.0) == 1
    # pure differential privacy is no more than a bounded distance between two laws
    assert claimed(PURE, 0.8) == 0
    assert claimed(GAUSSIAN, 0.0) == np.inf
