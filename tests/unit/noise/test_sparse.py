from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from syndic.errors import InputError
from syndic.noise import Cells, DiscreteGaussian, DiscreteLaplace, SparseHistogram
from syndic.random import SimulationRandomness, SystemRandomness

LAPLACE = DiscreteLaplace(sensitivity=1, epsilon=Fraction(1))
WIDER = DiscreteLaplace(sensitivity=20, epsilon=Fraction(3))
GAUSSIAN = DiscreteGaussian(sensitivity_squared=Fraction(2), rho=Fraction(1, 25))  # sigma 5


def cells(places: list[int], counts: list[int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    return np.array(places, dtype=np.uint64), np.array(counts, dtype=np.int64)


@pytest.mark.parametrize(
    ("noise", "at_least"), [(LAPLACE, 3), (LAPLACE, 30), (WIDER, 20), (GAUSSIAN, 8), (GAUSSIAN, 40)]
)
def test_expected_survivors_is_the_tail_of_the_law(noise: DiscreteLaplace | DiscreteGaussian, at_least: int) -> None:
    places = np.arange(-400, 401)
    slope = np.abs(places) / float(noise.scale) if isinstance(noise, DiscreteLaplace) else places**2 / 50
    law = np.exp(-slope.astype(np.float64))
    chance = law[places >= at_least].sum() / law.sum()
    histogram = SparseHistogram(noise=noise, cells=10**9, at_least=at_least)
    assert histogram.expected_survivors == pytest.approx(1e9 * chance, rel=1e-6)
    assert histogram.event == noise.event


@pytest.mark.parametrize("sigma", [5000, 20_000])
def test_expected_survivors_of_wide_gaussian_noise_are_those_of_the_normal_law(sigma: int) -> None:
    noise = DiscreteGaussian(sensitivity_squared=Fraction(sigma**2), rho=Fraction(1, 2))
    histogram = SparseHistogram(noise=noise, cells=10**9, at_least=4 * sigma)
    assert histogram.expected_survivors == pytest.approx(1e9 * float(norm.sf(4 - 0.5 / sigma)), rel=1e-5)


@pytest.mark.parametrize(("noise", "at_least"), [(LAPLACE, 35), (GAUSSIAN, 35)])
def test_largest_domain(noise: DiscreteLaplace | DiscreteGaussian, at_least: int) -> None:
    noise = (
        noise
        if isinstance(noise, DiscreteLaplace)
        else DiscreteGaussian(sensitivity_squared=Fraction(1), rho=Fraction(1, 30))
    )
    histogram = SparseHistogram(noise=noise, cells=2**63, at_least=at_least)
    held = cells([0, 2**62, 2**63 - 1], [10**6, 10**6, 10**6])
    found = histogram.apply(held, SystemRandomness())
    assert isinstance(found, Cells)
    assert np.all(np.diff(found.places.astype(object)) > 0)
    assert found.places.dtype == np.uint64
    assert int(found.places[-1]) == 2**63 - 1
    assert np.all(found.counts >= at_least)
    expected = histogram.expected_survivors
    assert abs(len(found.places) - 3 - expected) < 5.2 * np.sqrt(expected) + 5


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("size", [4000, 6000])
def test_non_empty_cells_have_their_own_noise(noise: DiscreteLaplace | DiscreteGaussian, size: int) -> None:
    histogram = SparseHistogram(noise=noise, cells=size, at_least=12)
    places = np.arange(0, size, 2, dtype=np.uint64)
    counts = np.full(places.size, 1000, dtype=np.int64)
    found = histogram.apply((places, counts), SimulationRandomness(1))
    even = found.places % np.uint64(2) == 0
    assert np.array_equal(found.places[even], places)
    noise_seen = found.counts[even] - 1000
    assert abs(noise_seen.mean()) < 5 * np.sqrt(noise.variance / places.size)
    assert noise_seen.var() == pytest.approx(noise.variance, rel=0.3)
    assert np.all(found.counts[~even] < 200)


def test_all_cells_held_gives_only_held_cells() -> None:
    histogram = SparseHistogram(noise=LAPLACE, cells=5000, at_least=4)
    places = np.arange(5000, dtype=np.uint64)
    found = histogram.apply((places, np.full(5000, -(10**6))), SimulationRandomness(1))
    assert found.places.size == 0


def test_events_that_never_happen_cost_nothing() -> None:
    histogram = SparseHistogram(noise=LAPLACE, cells=2**63, at_least=2**40)
    assert histogram.apply(cells([], []), SystemRandomness()).places.size == 0


def test_dense_path_covers_several_chunks() -> None:
    histogram = SparseHistogram(noise=LAPLACE, cells=2**21 + 5, at_least=1)
    held = cells([2**20 - 1, 2**20, 2**21 + 4], [500, 600, 700])
    found = histogram.apply(held, SystemRandomness())
    large = found.counts > 400
    assert found.places[large].tolist() == [2**20 - 1, 2**20, 2**21 + 4]
    expected = histogram.expected_survivors
    assert abs(found.places.size - expected) < 5.2 * np.sqrt(expected)
    assert np.all(np.diff(found.places.astype(np.int64)) > 0)


@pytest.mark.parametrize(
    ("places", "counts"),
    [
        (np.array([2, 1], dtype=np.uint64), np.array([1, 1])),
        (np.array([1, 1], dtype=np.uint64), np.array([1, 1])),
        (np.array([10**6], dtype=np.uint64), np.array([1])),
        (np.array([1], dtype=np.uint64), np.array([1, 2])),
        (np.array([1], dtype=np.uint64), np.array([1.5])),
        (np.array([-1]), np.array([1])),
        # wrong in one place only, and not in the first
        (np.array([1, 10**6], dtype=np.uint64), np.array([1, 1])),
        (np.array([1, 3, 2], dtype=np.uint64), np.array([1, 1, 1])),
        (np.array([1, 3, 3], dtype=np.uint64), np.array([1, 1, 1])),
        (np.array([[1]], dtype=np.uint64), np.array([[1]])),
    ],
)
def test_malformed_cells_are_refused(places: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    histogram = SparseHistogram(noise=LAPLACE, cells=10**6, at_least=10)
    with pytest.raises(InputError, match="cell"):
        histogram.apply((places, counts), SimulationRandomness(1))


def test_parameters_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="cells"):
        SparseHistogram(noise=LAPLACE, cells=2**63 + 1, at_least=1)
    with pytest.raises(ValueError, match="at_least"):
        SparseHistogram(noise=LAPLACE, cells=5, at_least=0)
    with pytest.raises(InputError, match="raise it"):
        SparseHistogram(noise=LAPLACE, cells=2**63, at_least=5).apply(cells([], []), SimulationRandomness(1))
    wide = DiscreteGaussian(sensitivity_squared=Fraction(10**12), rho=Fraction(1, 2))
    with pytest.raises(ValueError, match=r"sigma\^2"):
        SparseHistogram(noise=wide, cells=10**9, at_least=5 * 10**6)
    # where every cell is noised by itself, any noise will do
    assert SparseHistogram(noise=wide, cells=4096, at_least=5 * 10**6).cells == 4096


def test_parameters_reach_to_their_ends_and_no_further() -> None:
    assert SparseHistogram(noise=LAPLACE, cells=1, at_least=2**62 - 1).at_least == 2**62 - 1
    with pytest.raises(ValueError, match="cells"):
        SparseHistogram(noise=LAPLACE, cells=0, at_least=1)
    with pytest.raises(ValueError, match="at_least"):
        SparseHistogram(noise=LAPLACE, cells=1, at_least=2**62)
    widest = DiscreteGaussian(sensitivity_squared=Fraction(2**32), rho=Fraction(1, 2))
    assert SparseHistogram(noise=widest, cells=10**9, at_least=5 * 2**16).noise == widest


def test_a_held_cell_is_given_out_from_the_same_count_on_as_an_empty_one() -> None:
    """Were counts of just `at_least` kept in empty cells only, such a count would say that nobody is there."""
    histogram = SparseHistogram(noise=LAPLACE, cells=10**5, at_least=12)
    places = np.arange(0, 2000, 2, dtype=np.uint64)
    found = histogram.apply((places, np.full(1000, 12)), SimulationRandomness(1))
    held = found.counts[np.isin(found.places, places)]
    # P(noise = 0) = (e - 1) / (e + 1) and P(noise > 0) = 1 / (e + 1), within six standard deviations
    assert held.min() == 12
    assert 370 < np.count_nonzero(held == 12) < 555
    assert 185 < np.count_nonzero(held > 12) < 355
