"""Laws of the samplers against closed forms; every threshold leaves a chance of at most 1e-6 for a false alarm."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import chi2

from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    RandomisedResponse,
)
from syndic.noise.geometric import Geometric, exponential_geometric
from syndic.noise.inverse_cdf import uniform
from syndic.random import SystemRandomness
from syndic_lab.exponential import ExponentialMechanism, ReportNoisyMax

pytestmark = pytest.mark.statistical

DRAWS = 1_000_000
ALARM = 1e-7
SYSTEM = SystemRandomness()


def fits(observed: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Pearson's test of counts against a law; cells that expect fewer than 20 are put together."""
    expected = law * observed.sum()
    rare = expected < 20
    together = np.append(observed[~rare], observed[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    statistic = sum((o - e) ** 2 / max(e, 1.0) for o, e in zip(*together, strict=True))
    return bool(chi2.sf(statistic, max(1, int((~rare).sum()))) > ALARM)


def law_of(weight: Callable[[int], mpmath.mpf], reach: int) -> NDArray[np.float64]:
    weights = [weight(k) for k in range(-reach, reach + 1)]
    whole = mpmath.fsum(weights)
    return np.array([float(w / whole) for w in weights])


def counts_of(drawn: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    return np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)


def laplace(scale: Fraction) -> DiscreteLaplace:
    return DiscreteLaplace(sensitivity=1, epsilon=1 / scale)


def gaussian(square: Fraction) -> DiscreteGaussian:
    return DiscreteGaussian(sensitivity_squared=square, rho=Fraction(1, 2))


@pytest.mark.parametrize(
    "scale", [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(20, 3), Fraction(50), Fraction(70)]
)
def test_laplace_law(scale: Fraction) -> None:
    reach = int(40 * scale) + 3
    law = law_of(lambda k: mpmath.exp(-mpmath.mpf(abs(k) * scale.denominator) / scale.numerator), reach)
    assert fits(counts_of(laplace(scale).draw(DRAWS, SYSTEM), reach), law)


@pytest.mark.parametrize(
    "square", [Fraction(1, 100), Fraction(1, 4), Fraction(1), Fraction(100, 3), Fraction(200**2), Fraction(600**2)]
)
def test_gaussian_law(square: Fraction) -> None:
    reach = int(9 * float(square) ** 0.5) + 3
    law = law_of(lambda k: mpmath.exp(-mpmath.mpf(k * k * square.denominator) / (2 * square.numerator)), reach)
    assert fits(counts_of(gaussian(square).draw(DRAWS, SYSTEM), reach), law)


@pytest.mark.parametrize("noise", [laplace(Fraction(1)), gaussian(Fraction(1))])
def test_chance_of_zero_and_signs(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    drawn = noise.draw(DRAWS, SYSTEM)
    if isinstance(noise, DiscreteLaplace):
        zero = float((1 - mpmath.exp(-1)) / (1 + mpmath.exp(-1)))
    else:
        zero = float(1 / mpmath.jtheta(3, 0, mpmath.exp(-0.5)))
    for count, chance in [(drawn == 0, zero), (drawn > 0, (1 - zero) / 2), (drawn < 0, (1 - zero) / 2)]:
        assert abs(count.sum() - DRAWS * chance) < 5.4 * np.sqrt(DRAWS * chance * (1 - chance))


@pytest.mark.parametrize(
    ("noise", "distribution"),
    [
        *[
            (
                laplace(Fraction(scale)),
                lambda x, s=scale: np.where(x < 0, np.exp((x + 0.5) / s) / 2, 1 - np.exp(-(x + 0.5) / s) / 2),
            )
            for scale in (1000, 10**6, 10**15)
        ],
        *[
            (gaussian(Fraction(sigma**2)), lambda x, s=sigma: ndtr((x + 0.5) / s))
            for sigma in (1000, 10**6, 10**7, 10**15)
        ],
    ],
)
def test_wide_laws(
    noise: DiscreteLaplace | DiscreteGaussian, distribution: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> None:
    drawn = np.sort(noise.draw(DRAWS, SYSTEM))
    expected = distribution(drawn.astype(np.float64))
    # the continuous law at half integers is off by less than 1e-6; Dvoretzky, Kiefer, Wolfowitz, Massart for the rest
    above = np.searchsorted(drawn, drawn, side="right") / DRAWS
    assert np.max(np.abs(above - expected)) < np.sqrt(np.log(2 / ALARM) / (2 * DRAWS)) + 1e-6
    # the lowest bits of a wide law are uniform, for small and for large magnitudes alike
    rounds = drawn >> 4
    small = np.abs(2 * rounds + 1) < np.sqrt(noise.variance) / 16
    for part in (drawn[small], drawn[~small]):
        assert fits(np.bincount(part & 15, minlength=16), np.full(16, 1 / 16))
    assert noise.tail(1e-6 / DRAWS) > np.abs(drawn).max()


@pytest.mark.slow
def test_wide_gaussian_near_zero() -> None:
    # inside the first blocks, where the acceptance of places inside a block shows
    sigma = 600
    drawn = np.abs(gaussian(Fraction(sigma**2)).draw(4 * DRAWS, SYSTEM))
    near = drawn[(drawn > 0) & (drawn < 2 * sigma)]
    law = np.exp(-(np.arange(2.0 * sigma) ** 2) / (2 * sigma**2))
    law[0] = 0
    assert fits(np.bincount(near, minlength=2 * sigma), law / law.sum())


def test_digits_are_independent() -> None:
    scale = 1000.0
    drawn = exponential_geometric(Fraction(1000)).draw(SYSTEM.words(DRAWS), SYSTEM).astype(np.int64)
    law = np.exp(-np.arange(64 * 1024) / scale) * -np.expm1(-1 / scale)
    # eighths of the lower digit against the upper one
    classes = np.minimum(np.arange(64 * 1024) >> 10, 7) * 8 + (np.arange(64 * 1024) >> 7 & 7)
    joint = np.bincount(classes, weights=law, minlength=64).astype(np.float64)
    seen = np.minimum(drawn >> 10, 7) * 8 + (drawn >> 7 & 7)
    assert fits(np.bincount(seen, minlength=64), joint)
    table = np.bincount(seen, minlength=64).reshape(8, 8)[:4]
    product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    assert chi2.sf(((table - product) ** 2 / product).sum(), 21) > ALARM


def test_geometric_of_a_rational_ratio() -> None:
    def powers(exponent: int, bits: int) -> tuple[int, int]:
        floor = (Fraction(99, 100) ** exponent * 2**bits).__floor__()
        return floor, floor + 1

    drawn = Geometric(powers, 99.5).draw(SYSTEM.words(DRAWS), SYSTEM).astype(np.int64)
    law = 0.01 * 0.99 ** np.arange(2000.0)
    assert fits(np.bincount(np.minimum(drawn, 1999), minlength=2000), law / law.sum())


@pytest.mark.parametrize("size", [3, 1000, 4096])
def test_uniform(size: int) -> None:
    drawn = uniform(size, DRAWS, SYSTEM).astype(np.int64)
    assert fits(np.bincount(drawn, minlength=size), np.full(size, 1 / size))


def test_exponential_mechanism_law() -> None:
    scores = np.array([3, 0, 7, 7, -2])
    mechanism = ExponentialMechanism(sensitivity=2, epsilon=Fraction(3, 2))
    chosen = [mechanism.apply(scores, SYSTEM) for _ in range(20_000)]
    law = np.exp(1.5 * scores / 4)
    assert fits(np.bincount(chosen, minlength=5), law / law.sum())


@pytest.mark.slow
def test_report_noisy_max_law() -> None:
    scores = np.array([1, 0, 2])
    mechanism = ReportNoisyMax(sensitivity=1, epsilon=Fraction(1))
    chosen = [mechanism.apply(scores, SYSTEM) for _ in range(40_000)]
    ratio, noise = np.exp(-0.5), np.indices((70, 70, 70)).reshape(3, -1)
    first = np.argmax(scores[:, None] + noise, axis=0)
    law = np.bincount(first, weights=ratio ** noise.sum(axis=0).astype(np.float64))
    assert fits(np.bincount(chosen, minlength=3), law / law.sum())


@pytest.mark.parametrize(("size", "epsilon"), [(2, Fraction(1, 10)), (5, Fraction(1)), (300, Fraction(4))])
def test_randomised_response_law(size: int, epsilon: Fraction) -> None:
    response = RandomisedResponse(size=size, epsilon=epsilon)
    reported = response.apply(np.ones(DRAWS, dtype=np.int64), SYSTEM)
    law = np.full(size, 1 / (np.exp(float(epsilon)) + size - 1))
    law[1] *= np.exp(float(epsilon))
    assert fits(np.bincount(reported, minlength=size), law)
    assert response.decode_counts(np.bincount(reported, minlength=size).astype(np.float64)).sum() == pytest.approx(
        DRAWS
    )
