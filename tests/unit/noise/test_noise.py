from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.document import from_json, to_json
from syndic.errors import InputError
from syndic.noise import DiscreteGaussian, DiscreteLaplace, Mechanism
from syndic.noise.laplace import _magnitudes
from syndic.privacy.event import ConcentratedEvent, PureEvent
from syndic.random import SimulationRandomness, SystemRandomness

LAPLACES = [
    DiscreteLaplace(sensitivity=1, epsilon=Fraction(10)),
    DiscreteLaplace(sensitivity=1, epsilon=Fraction(1)),
    DiscreteLaplace(sensitivity=2, epsilon=Fraction(3, 10)),
    DiscreteLaplace(sensitivity=100, epsilon=Fraction(1, 3)),
]
GAUSSIANS = [
    DiscreteGaussian(sensitivity_squared=Fraction(1), rho=Fraction(50)),
    DiscreteGaussian(sensitivity_squared=Fraction(1), rho=Fraction(1)),
    DiscreteGaussian(sensitivity_squared=Fraction(2), rho=Fraction(1, 100)),
    DiscreteGaussian(sensitivity_squared=Fraction(2), rho=Fraction(1, 10_000)),
]
HUGE: list[DiscreteLaplace | DiscreteGaussian] = [
    DiscreteLaplace(sensitivity=10**6, epsilon=Fraction(1, 10**6)),
    DiscreteGaussian(sensitivity_squared=Fraction(10**14), rho=Fraction(1, 2)),
]


def weights(noise: DiscreteLaplace | DiscreteGaussian) -> list[mpmath.mpf]:
    """P(|x| = 0), P(|x| = 1), ... from the definition, normalised by summing."""
    if isinstance(noise, DiscreteLaplace):
        slope = mpmath.mpf(noise.epsilon.numerator) / noise.epsilon.denominator / noise.sensitivity
        raw = [mpmath.exp(-slope * k) for k in range(int(60 / slope) + 3)]
    else:
        half = mpmath.mpf(noise.rho.numerator) / noise.rho.denominator / int(noise.sensitivity_squared)
        raw = [mpmath.exp(-half * k * k) for k in range(int(mpmath.sqrt(60 / half)) + 3)]
    whole = 2 * mpmath.fsum(raw) - 1
    return [raw[0] / whole, *(2 * weight / whole for weight in raw[1:])]


def test_events_carry_the_parameters() -> None:
    scale = float(LAPLACES[2].scale)
    assert LAPLACES[2].event == PureEvent(epsilon=Fraction(3, 10), what=f"discrete Laplace, scale {scale:g}")
    sigma = float(GAUSSIANS[2].sigma_squared) ** 0.5
    assert GAUSSIANS[2].event == ConcentratedEvent(rho=Fraction(1, 100), what=f"discrete Gaussian, sigma {sigma:.6g}")
    assert LAPLACES[2].scale == Fraction(20, 3)
    assert GAUSSIANS[2].sigma_squared == 100


@pytest.mark.parametrize("noise", [*LAPLACES, *GAUSSIANS])
def test_variance_is_that_of_the_definition(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    expected = mpmath.fsum(k * k * weight for k, weight in enumerate(weights(noise)))
    assert noise.variance == pytest.approx(float(expected), rel=1e-9)


def test_laplace_variance_at_one_is_less_than_of_the_continuous_law() -> None:
    assert LAPLACES[1].variance == pytest.approx(1.841, abs=5e-4)


@pytest.mark.parametrize("probability", [1.0, 0.3, 0.01, 1e-9])
@pytest.mark.parametrize("noise", [*LAPLACES, *GAUSSIANS])
def test_tail_holds_and_is_not_idle(noise: DiscreteLaplace | DiscreteGaussian, probability: float) -> None:
    # beyond[m] = P(|x| >= m); after 60 nats nothing is left that could matter against 1e-9
    beyond = [mpmath.mpf(0)]
    for mass in reversed(weights(noise)):
        beyond.insert(0, beyond[0] + mass)
    bound = noise.tail(probability)
    assert beyond[bound + 1] <= probability
    least = next(m for m in range(len(beyond)) if beyond[m + 1] <= probability)
    assert bound - least <= (0 if isinstance(noise, DiscreteLaplace) else 1)


@pytest.mark.parametrize("probability", [0.0, -1.0, 1.5])
@pytest.mark.parametrize("noise", [LAPLACES[0], GAUSSIANS[0]])
def test_tail_refuses_what_is_no_probability(noise: DiscreteLaplace | DiscreteGaussian, probability: float) -> None:
    with pytest.raises(ValueError, match=r"must be in \(0, 1\]"):
        noise.tail(probability)


@pytest.mark.parametrize("noise", [*LAPLACES, *GAUSSIANS, *HUGE])
def test_same_seed_same_noise(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    first, again, other = (noise.draw((20, 50), SimulationRandomness(seed)) for seed in (1, 1, 2))
    assert first.shape == (20, 50)
    assert first.dtype == np.int64
    assert np.array_equal(first, again)
    assert noise.variance < 0.1 or not np.array_equal(first, other)


@pytest.mark.parametrize("noise", [LAPLACES[3], GAUSSIANS[3], *HUGE])
def test_system_randomness_never_repeats(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    assert not np.array_equal(noise.draw(1000, SystemRandomness()), noise.draw(1000, SystemRandomness()))


@pytest.mark.parametrize("noise", [*LAPLACES, *GAUSSIANS, *HUGE])
def test_apply_adds_the_drawn_noise(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    mechanism: Mechanism[NDArray[np.int64], NDArray[np.int64]] = noise
    values = np.arange(-30, 30, dtype=np.int64).reshape(6, 10)
    noisy = mechanism.apply(values, SimulationRandomness(3))
    assert np.array_equal(noisy - values, noise.draw((6, 10), SimulationRandomness(3)))


@pytest.mark.parametrize("noise", [LAPLACES[1], GAUSSIANS[1], *HUGE])
def test_apply_refuses_what_could_overflow(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    room = 2**63 - 1 - noise.tail(2.0**-200)
    for value in (room, -room):
        noise.apply(np.array([0, value]), SimulationRandomness(1))
    for value in (room + 1, -room - 1, 2**63 - 1, -(2**63)):
        with pytest.raises(InputError, match="clip them first"):
            noise.apply(np.array([0, value]), SimulationRandomness(1))


@pytest.mark.parametrize("kind", [np.float64, np.uint64, np.bool_])
def test_apply_refuses_other_numbers(kind: type[np.generic]) -> None:
    with pytest.raises(InputError, match="signed integers"):
        LAPLACES[0].apply(np.zeros(3, dtype=kind), SimulationRandomness(1))


def test_empty_values_stay_empty() -> None:
    noises: list[DiscreteLaplace | DiscreteGaussian] = [*LAPLACES, *GAUSSIANS, *HUGE]
    for noise in noises:
        assert noise.apply(np.zeros((0, 4), dtype=np.int64), SimulationRandomness(1)).shape == (0, 4)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "text"),
    [
        (0, Fraction(1), r"sensitivity \(0\)"),
        (1, Fraction(0), r"epsilon \(0\)"),
        (1, Fraction(1, 2**53), r"must be in \[2\^-52, 2\^52\]"),
        (1, Fraction(2**53), r"must be in \[2\^-52, 2\^52\]"),
    ],
)
def test_laplace_refuses_parameters(sensitivity: int, epsilon: Fraction, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DiscreteLaplace(sensitivity=sensitivity, epsilon=epsilon)


@pytest.mark.parametrize(
    ("square", "rho", "text"),
    [
        (Fraction(0), Fraction(1), r"sensitivity_squared \(0\)"),
        (Fraction(1), Fraction(-1), r"rho \(-1\)"),
        (Fraction(2**105), Fraction(1, 2), r"must be in \[2\^-52, 2\^104\]"),
    ],
)
def test_gaussian_refuses_parameters(square: Fraction, rho: Fraction, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DiscreteGaussian(sensitivity_squared=square, rho=rho)


@pytest.mark.parametrize("noise", [LAPLACES[2], GAUSSIANS[2]])
def test_noise_is_a_document(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    assert from_json(to_json(noise), type(noise), where="noise") == noise
    assert hash(from_json(to_json(noise), type(noise), where="noise")) == hash(noise)


def naive_laplace(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Textbook inverse transform in doubles: what Mironov (2012) breaks."""
    return _naive(((words >> np.uint64(12)) + np.uint64(1)).astype(np.float64) * 2.0**-52, words)


def _naive(point: NDArray[np.float64], words: NDArray[np.uint64]) -> NDArray[np.float64]:
    return np.where(words & np.uint64(1) == 1, -1.0, 1.0) * np.log(point)


def test_doubles_tell_the_count_and_integers_do_not() -> None:
    """Mironov's trap: which outputs for count 0 could also come from count 1?"""
    words = SimulationRandomness(4).words(4000)
    released = 0.0 + naive_laplace(words)
    # every noise value that could lead from 1 to the released number lies within a few steps of exp(-|released - 1|)
    wanted = np.rint(np.exp(-np.abs(released - 1.0)) * 2.0**52)
    steps = np.arange(-64, 65)[:, None]
    points = np.clip(wanted + steps, 1, 2.0**52) * 2.0**-52
    possible = (1.0 + np.sign(released - 1.0) * -np.log(points) == released).any(axis=0)
    assert 0.17 < possible.mean() < 0.23  # 80.1% impossible in the audit

    noise = LAPLACES[1]
    drawn = noise.draw(100_000, SimulationRandomness(5))
    edges = _magnitudes(noise.scale).thresholds.astype(object)
    masses = np.diff(np.array([0, *edges], dtype=object))
    ratio = [masses[k] / masses[k + 1] for k in range(1, 20)]
    assert int(np.abs(drawn - 1).max()) < len(masses)
    assert all(mass > 0 for mass in masses)
    assert [float(value) for value in ratio] == pytest.approx([float(mpmath.e)] * 19, rel=1e-8)
