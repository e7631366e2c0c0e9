"""Noisy sums over samples: the account against closed forms, an own convolution, and pairs that are not the worst."""

from fractions import Fraction
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.signal import fftconvolve
from scipy.stats import norm

from syndic.errors import InputError
from syndic.privacy import gaussian_epsilon
from syndic.privacy.sampled import LEAST_SIGMA, sampled_epsilon, sampled_sigma

DELTA = Fraction(1, 10**6)


def stick(sigma: float, chance: float, epsilon: float) -> float:
    """Return the largest P(x > t) - e^epsilon P'(x > t) over all t, for the pair on the line."""

    def below(point: Any) -> Any:
        one = chance * norm.sf(point, 1, sigma) + (1 - chance) * norm.sf(point, 0, sigma)
        other = chance * norm.sf(point, -1, sigma) + (1 - chance) * norm.sf(point, 0, sigma)
        return exp(epsilon) * other - one

    starts = np.linspace(-2, 30 * sigma, 400)
    best = starts[int(np.argmin(below(starts)))]
    found = minimize_scalar(below, bounds=(best - sigma, best + sigma), method="bounded", options={"xatol": 1e-9})
    return -float(found.fun)


@pytest.mark.parametrize(("sigma", "chance"), [("0.7", "0.01"), ("1", "0.2"), ("4", "0.5")])
def test_one_step_is_the_closed_form(sigma: str, chance: str) -> None:
    exact = brentq(lambda epsilon: stick(float(sigma), float(chance), epsilon) - 1e-6, 1e-3, 40)
    found = float(sampled_epsilon(Fraction(sigma), DELTA, Fraction(chance), 1))
    assert exact <= found <= 1.01 * exact + 1e-3


@pytest.mark.parametrize("steps", [1, 30])
def test_a_sample_of_everybody_is_the_gaussian_mechanism(steps: int) -> None:
    exact = float(gaussian_epsilon(Fraction(4 * steps, 25**2), DELTA))
    found = float(sampled_epsilon(Fraction(25), DELTA, Fraction(1), steps))
    assert exact <= found <= 1.005 * exact


@pytest.mark.slow
def test_many_steps_are_an_own_convolution() -> None:
    # losses of one step, by masses between points of the line; no library, no rounding to a side
    sigma, chance, steps, grid = 1.1, 0.01, 64, 2e-4
    points = np.linspace(-9, 10, 400_001)
    middle = (points[1:] + points[:-1]) / 2

    def masses(shift: float) -> np.ndarray:
        edges = chance * norm.cdf(points, shift, sigma) + (1 - chance) * norm.cdf(points, 0, sigma)
        return np.diff(edges)

    def density(shift: float) -> np.ndarray:
        return np.asarray(chance * norm.pdf(middle, shift, sigma) + (1 - chance) * norm.pdf(middle, 0, sigma))

    loss = np.rint(np.log(density(1) / density(-1)) / grid).astype(int)
    half = int(np.abs(loss).max())
    law = np.bincount(loss + half, weights=masses(1))
    for _ in range(6):
        law = np.maximum(fftconvolve(law, law), 0)
    losses = (np.arange(len(law)) - 64 * half) * grid

    def delta(epsilon: float) -> float:
        return float((law * np.maximum(0, 1 - np.exp(np.minimum(0, epsilon - losses)))).sum())

    exact = brentq(lambda epsilon: delta(epsilon) - 1e-6, 0.01, 10)
    found = float(sampled_epsilon(Fraction("1.1"), DELTA, Fraction(1, 100), steps))
    assert found == pytest.approx(exact, rel=0.01)


def test_no_pair_of_vectors_is_worse_than_opposite_ones() -> None:
    sigma, chance, epsilon = 0.8, 0.3, 0.7
    axis = np.linspace(-7, 7, 281)
    plane = np.stack(np.meshgrid(axis, axis), axis=-1)
    area = (axis[1] - axis[0]) ** 2

    def law(vector: np.ndarray) -> np.ndarray:
        def bell(centre: np.ndarray) -> np.ndarray:
            gone = ((plane - centre) ** 2).sum(axis=-1)
            return np.asarray(np.exp(-gone / (2 * sigma**2)) / (2 * np.pi * sigma**2))

        return chance * bell(vector) + (1 - chance) * bell(np.zeros(2))

    worst = stick(sigma, chance, epsilon)
    draws = np.random.default_rng(3)
    found = []
    for _ in range(60):
        angles, lengths = draws.uniform(0, 2 * np.pi, 2), np.sqrt(draws.uniform(0, 1, 2))
        one, other = (
            length * np.array([np.cos(angle), np.sin(angle)]) for angle, length in zip(angles, lengths, strict=True)
        )
        found.append(float(np.maximum(law(one) - exp(epsilon) * law(other), 0).sum() * area))
    assert max(found) <= worst + 1e-6
    opposite = float(np.maximum(law(np.array([1, 0])) - exp(epsilon) * law(np.array([-1, 0])), 0).sum() * area)
    assert opposite == pytest.approx(worst, rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.3", "2"])
def test_the_noise_is_the_least_that_is_enough(epsilon: str) -> None:
    budget, chance = Fraction(epsilon), Fraction(1, 50)
    sigma = sampled_sigma(budget, DELTA, chance, 200)
    assert sampled_epsilon(sigma, DELTA, chance, 200) <= budget * Fraction("1.0001")
    assert sampled_epsilon(sigma * Fraction("0.99"), DELTA, chance, 200) > budget


@pytest.mark.slow
def test_more_steps_and_slack_take_more_noise() -> None:
    found = [sampled_sigma(Fraction(1), DELTA, Fraction(1, 20), steps) for steps in (1, 10)]
    assert all(few < many for few, many in pairwise(found))
    assert sampled_sigma(Fraction(1), DELTA, Fraction(1, 20), 10, DELTA / 8) > found[1]


def test_there_is_a_least_noise() -> None:
    assert sampled_sigma(Fraction(10**5), DELTA, Fraction(1, 20), 2) == LEAST_SIGMA
    with pytest.raises(InputError, match="must be at least"):
        sampled_epsilon(LEAST_SIGMA / 2, DELTA, Fraction(1, 20), 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"delta": Fraction(1, 10**11)}, "delta"),
        ({"slack": DELTA}, "delta"),
        ({"chance": Fraction(0)}, "chance"),
        ({"steps": 0}, "steps"),
        ({"epsilon": Fraction(0)}, "epsilon"),
    ],
)
def test_what_has_no_answer_is_refused(change: dict[str, Fraction], says: str) -> None:
    asked = {"epsilon": Fraction(1), "delta": DELTA, "chance": Fraction(1, 2), "steps": 3, **change}
    with pytest.raises(InputError, match=says):
        sampled_sigma(**asked)  # type: ignore[arg-type]  # steps is a number of its own


def test_a_delta_that_rounding_takes_nearly_whole_has_no_epsilon() -> None:
    with pytest.raises(InputError, match=r"1 steps at sigma 0\.1 have no epsilon"):
        sampled_epsilon(LEAST_SIGMA, Fraction(1, 10**10) + Fraction(1, 10**24), Fraction(1), 1)
