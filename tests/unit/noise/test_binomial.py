"""Noise from fair coins: its law against exact binomials, its delta against whole laws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from syndic.errors import InputError
from syndic.noise import binomial
from syndic.noise.binomial import SLACK, BinomialNoise, binomial_for, binomial_of, upper_law
from syndic.privacy import mu_squared_for

SMALL = BinomialNoise(weights=(1, 3), counts=(40, 80), power=2)


def whole_law(noise: BinomialNoise) -> np.ndarray:
    """Return the law of the sum of all coins, coin by coin."""
    law = np.ones(1)
    for weight in noise.coins:
        law = np.concatenate([law, np.zeros(weight)]) / 2 + np.concatenate([np.zeros(weight), law]) / 2
    return law


def told_apart(laws: list[np.ndarray], shifts: tuple[int, ...], epsilon: float) -> float:
    """Return delta at epsilon of independent values that move by these shifts."""
    one, other = np.ones(1), np.ones(1)
    for law, shift in zip(laws, shifts, strict=True):
        pad = np.zeros(abs(shift))
        here, there = np.concatenate([law, pad]), np.concatenate([pad, law])
        if shift < 0:
            here, there = there, here
        one, other = np.outer(one, here).ravel(), np.outer(other, there).ravel()
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def test_law_is_that_of_exact_binomials() -> None:
    weights, counts = (1, 3, 7), (5, 4, 6)
    exact = [Fraction(0)] * (5 + 12 + 42 + 1)
    for heads in itertools.product(*(range(count + 1) for count in counts)):
        ways = math.prod(math.comb(count, head) for count, head in zip(counts, heads, strict=True))
        exact[sum(w * h for w, h in zip(weights, heads, strict=True))] += Fraction(ways, 2 ** sum(counts))
    assert sum(exact) == 1
    found = upper_law(weights, counts)
    assert all(abs(Fraction(float(a)) - b) <= b * Fraction(1, 2**40) for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize("variance", [3, 60, 500, 2 * 10**4, 7 * 10**5, 10**7, 3 * 10**12])
def test_noise_has_the_variance_asked_for_and_few_coins(variance: int) -> None:
    noise = binomial_of(Fraction(variance))
    assert variance <= noise.variance < 1.05 * variance + 1
    assert len(noise.coins) <= 1600
    assert variance < 10**7 or len(noise.coins) < 810
    assert noise.reach + noise.mean == sum(noise.coins)


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("noise", [SMALL, BinomialNoise(weights=(1,), counts=(200,)), binomial_of(Fraction(900))])
def test_every_smaller_change_is_covered_at_every_epsilon(noise: BinomialNoise) -> None:
    law = whole_law(noise)
    for steps in (1, 5, 13):
        mu = noise.mu(steps)
        assert steps / noise.variance**0.5 < mu < math.inf
        for moved, sign, epsilon in itertools.product(range(1, steps + 1), (1, -1), (0.0, 0.3, 1.0, 3.0, 9.0)):
            exact = told_apart([law], (sign * moved,), epsilon)
            assert exact <= gaussian_delta(mu, epsilon) + (1 + math.exp(epsilon)) * float(SLACK) + 1e-15


def test_several_values_add_their_squares() -> None:
    noise = BinomialNoise(weights=(1,), counts=(80,), power=1)
    law, changes = whole_law(noise), ((3, 1), (2, 1))
    assert noise.mu_squared(changes) == pytest.approx(noise.mu(3) ** 2 + noise.mu(2) ** 2)
    mu = noise.mu_squared(changes) ** 0.5
    for moved, epsilon in itertools.product([(3, 2), (3, -2), (-1, 2), (0, 2)], (0.2, 1.0, 3.0)):
        assert told_apart([law, law], moved, epsilon) <= gaussian_delta(mu, epsilon) + 1e-12


def test_a_law_that_is_not_smooth_has_no_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins of 1 and 20: a person who moves a value by 10 is seen better than one who moves it by 20."""
    noise = BinomialNoise(weights=(1, 20), counts=(8, 90))
    assert noise.mu(20) == math.inf

    def unchecked(weights: tuple[int, ...], counts: tuple[int, ...]) -> np.ndarray:
        law = upper_law(weights, counts)
        lower = ndtri(np.concatenate([[0.0], np.cumsum(law)])[: law.size // 2 + 1])
        return np.concatenate([lower, -lower[: law.size + 1 - lower.size][::-1]])

    monkeypatch.setattr(binomial, "_scores", unchecked)
    assert told_apart([whole_law(noise)], (10,), 1.5) > 2 * gaussian_delta(noise.mu(20), 1.5)


def test_a_value_that_moves_by_more_than_the_noise_has_no_guarantee() -> None:
    assert BinomialNoise(weights=(1,), counts=(40,)).mu(1) == math.inf  # its ends are too likely
    assert BinomialNoise(weights=(1,), counts=(400,)).mu(200) == math.inf


@pytest.mark.parametrize(
    ("changes", "epsilon", "above"),
    [
        (((1, 1),), 1, 1.32),
        (((1023, 104),), 1, 1.06),
        (((1023, 1), (99, 1)), 1, 1.06),
        (((1, 104),), Fraction(1, 2), 1.05),
    ],
)
def test_the_least_noise_is_little_more_than_gaussian(changes: binomial.Changes, epsilon: float, above: float) -> None:
    most = mu_squared_for(Fraction(epsilon), Fraction(1, 10**6))
    noise = binomial_for(changes, most)
    assert 0.97 * most < noise.mu_squared(changes) <= most
    gaussian = float(sum(count * steps**2 for steps, count in changes) / most)
    assert 1 <= (noise.variance / gaussian) ** 0.5 < above
    # a little less noise is not enough
    assert binomial_of(Fraction(noise.variance) * Fraction(97, 100)).mu_squared(changes) > most


def test_noise_that_is_too_wide_is_refused() -> None:
    with pytest.raises(InputError, match="2\\^52"):
        binomial_for(((2**24, 1),), Fraction(0))
