"""Draws by rejection: what is compared in floating point is the number that exact arithmetic would compare.

A million draws do not show a chance that is wrong by a hundredth inside a block, and exact arithmetic decides one word
in 2^40: so both are held against the definition here.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    LaplaceShare,
    SparseHistogram,
    gaussian,
    poisson,
    sparse,
)
from syndic.noise.geometric import exponential_geometric
from syndic.noise.integer import signed
from syndic.noise.inverse_cdf import accept
from syndic.random import Randomness, SimulationRandomness
from syndic_lab import exponential
from syndic_lab.exponential import ExponentialMechanism, ReportNoisyMax
from unit.noise.scripted import Scripted

Exactly = Callable[[int], Fraction]


def watched(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[tuple[list[Fraction], Exactly]]:
    """Let a module compare as ever, and note what it compared."""
    seen: list[tuple[list[Fraction], Exactly]] = []

    def checking(
        exponents: NDArray[np.float64], exactly: Exactly, values: NDArray[np.uint64], width: int, source: Randomness
    ) -> NDArray[np.bool_]:
        exact = [exactly(place) for place in range(len(exponents))]
        np.testing.assert_allclose(exponents, [float(each) for each in exact], rtol=1e-12)
        # the chances are those of numbers of that many bits: with more than there are, small chances would all be kept
        assert values.size < 8 or int(values.max()).bit_length() == width
        seen.append((exact, exactly))
        return accept(exponents, exactly, values, width, source)

    monkeypatch.setattr(module, "accept", checking)
    return seen


def bound_to(exactly: Exactly) -> tuple[NDArray[np.int64], ...]:
    """Return the draws that a comparison was made for: its defaults."""
    bound: tuple[NDArray[np.int64], ...] = getattr(exactly, "__defaults__", ())
    return bound


@pytest.mark.parametrize("square", [Fraction(600**2), Fraction(10**7, 3), Fraction(10**12 + 1)])
def test_wide_gaussian_noise_is_kept_with_the_chance_of_its_place_in_the_block(
    square: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch, gaussian)
    DiscreteGaussian(sensitivity_squared=square, rho=Fraction(1, 2)).draw(300, SimulationRandomness(1))
    assert seen
    for exact, exactly in seen:
        starts, inside = bound_to(exactly)
        for each, start, rest in zip(exact, starts.tolist(), inside.tolist(), strict=True):
            assert each == Fraction((start + rest) ** 2 - start**2) / (2 * square)
        assert inside.any()


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7])
def test_the_exponential_mechanism_keeps_by_half_of_epsilon_for_each_sensitivity(
    sensitivity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch, exponential)
    scores = np.array([0, 5, 9, 20])
    ExponentialMechanism(sensitivity=sensitivity, epsilon=Fraction(3, 7)).apply(scores, SimulationRandomness(1))
    chances = {gap * Fraction(3, 7) / (2 * sensitivity) for gap in (20, 15, 11, 0)}
    assert {each for exact, _ in seen for each in exact} <= chances
    assert len({each for exact, _ in seen for each in exact}) > 1


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7])
def test_report_noisy_max_draws_at_twice_the_sensitivity_by_epsilon(
    sensitivity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[Fraction] = []

    def noted(scale: Fraction) -> Any:
        scales.append(scale)
        return exponential_geometric(scale)

    monkeypatch.setattr(exponential, "exponential_geometric", noted)
    ReportNoisyMax(sensitivity=sensitivity, epsilon=Fraction(3, 7)).apply(np.arange(4), SimulationRandomness(1))
    assert scales == [2 * sensitivity / Fraction(3, 7)]


def test_tails_of_sparse_gaussian_noise_are_kept_by_the_square_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch, sparse)
    noise = DiscreteGaussian(sensitivity_squared=Fraction(50), rho=Fraction(1, 2))
    histogram = SparseHistogram(noise=noise, cells=10**6, at_least=22)
    empty = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    cells = histogram.apply(empty, SimulationRandomness(1))
    assert cells.counts.size
    assert seen
    for exact, exactly in seen:
        (steps,) = bound_to(exactly)
        assert exact == [Fraction(step**2, 100) for step in steps.tolist()]


def test_jumps_of_laplace_shares_are_kept_by_their_place_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch, poisson)
    share = LaplaceShare(sensitivity=20, epsilon=Fraction(1), parties=3, dimension=400)
    share.draw(400, SimulationRandomness(1))
    assert any(any(exact) for exact, _ in seen)


@pytest.mark.parametrize("count", [1, 7])
def test_every_jump_is_in_some_share_and_none_twice(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[NDArray[np.int64]] = []

    def noted(magnitudes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        drawn.append(signed(magnitudes, words))
        return drawn[-1]

    monkeypatch.setattr(poisson, "signed", noted)
    for seed in range(20):
        share = LaplaceShare(sensitivity=20, epsilon=Fraction(1), parties=2, dimension=count)
        assert share.draw(count, SimulationRandomness(seed)).sum() == drawn[-1].sum()
    assert any(jumps.any() for jumps in drawn)


@pytest.mark.parametrize(
    ("size", "bound", "words", "expected"),
    [
        (5, 4, [3], True),
        (5, 4, [4], False),
        (5, 4, [5, 3], True),
        (5, 4, [7, 6, 12], False),
        (7, 4, [6], False),
        (7, 4, [7, 8], True),
        (4, 4, [4, 11], True),
        (1, 1, [1, 3, 2], True),
    ],
)
def test_a_jump_is_kept_by_a_number_below_its_size(size: int, bound: int, words: list[int], expected: bool) -> None:
    """Bits above those of twice the bound are not read, and a number that is not below the size is drawn again."""
    source = Scripted(*words)
    found = poisson._below_each(np.array([size], dtype=np.uint64), np.array([bound], dtype=np.uint64), source)
    assert found.tolist() == [expected]
    assert source.left == []


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(20, 3)])
def test_jumps_have_the_logarithmic_law(scale: Fraction) -> None:
    jumps = poisson.SignedJumps(scale, 3)._jumps(6000, SimulationRandomness(1))
    sizes = np.arange(1.0, 2000.0)
    law = np.exp(-sizes / float(scale)) / sizes
    law /= law.sum()
    for size, chance in enumerate(law[:6], start=1):
        # seven standard deviations
        assert abs((jumps == size).sum() - 6000 * chance) < 7 * (6000 * chance * (1 - chance)) ** 0.5 + 1
    assert jumps.mean() == pytest.approx(float(sizes @ law), rel=0.15)


def test_a_poisson_variable_beyond_the_table_is_a_sum_of_several() -> None:
    drawn = poisson.draw_poisson(Fraction(2 * poisson.TABLE_RATE + 1), 200, SimulationRandomness(1))
    mean = 2 * poisson.TABLE_RATE + 1
    assert abs(drawn.mean() - mean) < 7 * (mean / 200) ** 0.5


def test_the_first_and_the_last_cells_of_a_sparse_domain_are_given_out_as_often_as_others() -> None:
    """An empty cell has the chance 0.0990; 300 draws without it happen once in 10^13."""
    histogram = SparseHistogram(noise=DiscreteLaplace(sensitivity=1, epsilon=Fraction(1)), cells=4097, at_least=2)
    assert not histogram._dense
    empty = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    counted = np.zeros(4097, dtype=np.int64)
    for seed in range(300):
        counted[histogram.apply(empty, SimulationRandomness(seed)).places] += 1
    assert (counted > 0).all()
    ends = counted[[0, 1, 2, 4094, 4095, 4096]].sum()
    # 1800 draws: seven standard deviations
    assert abs(ends - 1800 * 0.0990) < 7 * (1800 * 0.0990 * 0.901) ** 0.5
