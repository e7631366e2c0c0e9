import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.noise import RandomisedResponse
from syndic.noise.response import _replace
from syndic.privacy.event import ConcentratedEvent, PureEvent
from syndic.random import SimulationRandomness
from syndic_lab.exponential import ExponentialMechanism, ReportNoisyMax

MECHANISMS = [ExponentialMechanism, ReportNoisyMax]


def noisy_max_law(scores: list[int], ratio: float, reach: int) -> NDArray[np.float64]:
    """The law of the first largest score after geometric noise below `reach`, by enumeration."""
    noise = np.indices((reach,) * len(scores)).reshape(len(scores), -1)
    chances = (1 - ratio) ** len(scores) * ratio ** noise.sum(axis=0)
    chosen = np.argmax(np.array(scores)[:, None] + noise, axis=0)
    return np.bincount(chosen, weights=chances, minlength=len(scores)).astype(np.float64)


@pytest.mark.parametrize("scores", [[0, 0, 0], [2, 1, 0], [0, 1, 1], [3, 0, 0]])
def test_noisy_max_keeps_its_epsilon_with_ties(scores: list[int]) -> None:
    epsilon = 1.5  # sensitivity 1: every score may move by one, in any direction
    reach = 60
    ratio = float(np.exp(-epsilon / 2))
    law = noisy_max_law(scores, ratio, reach)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    for move in itertools.product((-1, 0, 1), repeat=3):
        other = noisy_max_law([a + b for a, b in zip(scores, move, strict=True)], ratio, reach)
        assert float(np.max(np.abs(np.log(law / other)))) <= epsilon + 1e-9


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_far_better_candidate_is_always_chosen(kind: type[ExponentialMechanism | ReportNoisyMax]) -> None:
    mechanism = kind(sensitivity=1, epsilon=Fraction(1))
    scores = np.array([-5000, 10**6, 3, 10**6 - 900])
    assert {mechanism.apply(scores, SimulationRandomness(seed)) for seed in range(50)} == {1}


@pytest.mark.parametrize("kind", MECHANISMS)
def test_selection_handles_extremes(kind: type[ExponentialMechanism | ReportNoisyMax]) -> None:
    mechanism = kind(sensitivity=2**40, epsilon=Fraction(1, 1024))
    assert mechanism.apply(np.array([-(2**61), 2**61]), SimulationRandomness(1)) == 1
    assert mechanism.apply(np.array([7]), SimulationRandomness(1)) == 0


@pytest.mark.parametrize("kind", MECHANISMS)
def test_selection_refuses(kind: type[ExponentialMechanism | ReportNoisyMax]) -> None:
    mechanism = kind(sensitivity=1, epsilon=Fraction(1))
    for scores in (np.zeros(0, dtype=np.int64), np.zeros((2, 2), dtype=np.int64), np.zeros(3)):
        with pytest.raises(InputError, match="one vector of signed integers"):
            mechanism.apply(scores, SimulationRandomness(1))  # type: ignore[arg-type]
    for far in (2**61 + 1, -(2**61) - 1):
        with pytest.raises(InputError, match=r"within 2\^61"):
            mechanism.apply(np.array([0, far, 0]), SimulationRandomness(1))
    with pytest.raises(ValueError, match=r"sensitivity \(0\)"):
        kind(sensitivity=0, epsilon=Fraction(1))
    with pytest.raises(ValueError, match=r"epsilon \(0\)"):
        kind(sensitivity=1, epsilon=Fraction(0))
    for sensitivity, epsilon in [(2**52, Fraction(1)), (1, Fraction(10**400))]:
        with pytest.raises(ValueError, match=r"must be in \[2\^-52, 2\^52\]"):
            kind(sensitivity=sensitivity, epsilon=epsilon)


def test_selection_events() -> None:
    assert ReportNoisyMax(sensitivity=1, epsilon=Fraction(1, 2)).event == PureEvent(
        epsilon=Fraction(1, 2), what="report noisy max"
    )
    exponential = ExponentialMechanism(sensitivity=1, epsilon=Fraction(1, 2))
    assert exponential.event == PureEvent(epsilon=Fraction(1, 2), what="exponential mechanism")
    assert exponential.concentrated_event == ConcentratedEvent(rho=Fraction(1, 32), what="exponential mechanism")


@pytest.mark.parametrize("size", [2, 5, 64])
def test_response_decodes_by_the_inverse_matrix(size: int) -> None:
    response = RandomisedResponse(size=size, epsilon=Fraction(7, 10))
    truth, other = np.exp(0.7) / (np.exp(0.7) + size - 1), 1 / (np.exp(0.7) + size - 1)
    matrix = np.full((size, size), other) + (truth - other) * np.eye(size)
    assert response.kept == pytest.approx(truth - other, rel=1e-12)
    counts = np.random.Generator(np.random.Philox(1)).integers(0, 1000, (3, size, size)).astype(np.float64)
    inverse = np.linalg.inv(matrix)
    assert np.allclose(response.decode_counts(counts), counts @ inverse.T)
    both = response.decode_counts(response.decode_counts(counts, axis=1), axis=2)
    assert np.allclose(both, np.einsum("ai,bj,kij->kab", inverse, inverse, counts))


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(7, 10), Fraction(9)])
@pytest.mark.parametrize("size", [2, 5, 1000])
def test_a_code_is_kept_with_the_exact_chance(size: int, epsilon: Fraction) -> None:
    with mpmath.workdps(60):
        power = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        kept = (power - 1) / (power + size - 1)
        table = _replace(size, epsilon)
        assert table.thresholds.tolist() == [int(mpmath.floor(kept * 2**63))]
        for bits in range(4, 24):
            low, high = next(table._law(bits))
            assert low <= kept * 2**bits <= high


def test_a_code_that_is_not_kept_is_replaced_by_any() -> None:
    codes = np.full(4000, 2)
    reported = RandomisedResponse(size=4, epsilon=Fraction(1, 1000)).apply(codes, SimulationRandomness(1))
    assert all(850 < count < 1150 for count in np.bincount(reported, minlength=4))


def test_response_event_and_shape() -> None:
    response = RandomisedResponse(size=3, epsilon=Fraction(2))
    assert response.event == PureEvent(epsilon=Fraction(2), what="randomised response")
    codes = np.array([[0, 1, 2], [2, 1, 0]])
    reported = response.apply(codes, SimulationRandomness(1))
    assert reported.shape == (2, 3)
    assert reported.dtype == np.int64
    certain = RandomisedResponse(size=3, epsilon=Fraction(200))
    assert np.array_equal(certain.apply(codes, SimulationRandomness(1)), codes)
    assert response.apply(codes[:0], SimulationRandomness(1)).shape == (0, 3)


def test_response_refuses() -> None:
    response = RandomisedResponse(size=3, epsilon=Fraction(2))
    for codes in ([3], [-1], [0, 3], [-1, 0]):
        with pytest.raises(InputError, match=r"codes must be in \[0, 3\)"):
            response.apply(np.array(codes), SimulationRandomness(1))
    with pytest.raises(InputError, match="integer codes"):
        response.apply(np.array([1.0]), SimulationRandomness(1))
    with pytest.raises(InputError, match="axis -1 must have 3 counts, one for each code; it has 4"):
        response.decode_counts(np.zeros(4))
    with pytest.raises(ValueError, match=r"size \(1\)"):
        RandomisedResponse(size=1, epsilon=Fraction(1))
