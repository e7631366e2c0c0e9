"""The sparse histogram gives out what noise on every cell and dropping small ones would."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from syndic.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram, sparse
from syndic.random import SystemRandomness

pytestmark = pytest.mark.statistical

ALARM = 1e-7
SYSTEM = SystemRandomness()
NOISES = [
    DiscreteLaplace(sensitivity=1, epsilon=Fraction(1)),
    DiscreteGaussian(sensitivity_squared=Fraction(3), rho=Fraction(1, 2)),
]


def mass(noise: DiscreteLaplace | DiscreteGaussian, places: NDArray[np.int64]) -> NDArray[np.float64]:
    def weight(x: NDArray[np.int64]) -> NDArray[np.float64]:
        if isinstance(noise, DiscreteLaplace):
            return np.exp(-np.abs(x) / float(noise.scale))
        return np.exp(-(x.astype(np.float64) ** 2) / (2 * float(noise.sigma_squared)))

    return np.asarray(weight(places) / weight(np.arange(-400, 401)).sum())


def alarm(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> bool:
    return bool(chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1) <= ALARM)


@pytest.mark.parametrize("noise", [DiscreteLaplace(sensitivity=1, epsilon=Fraction(1, 2)), NOISES[1]])
def test_joint_law_on_three_cells(noise: DiscreteLaplace | DiscreteGaussian, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "_DENSE_CELLS", 0)
    monkeypatch.setattr(sparse, "_DENSE_CHANCE", 1.0)

    def seen(triples: int, runs: int, most: int) -> NDArray[np.int64]:
        """Return how often three cells came out as what; triples in one histogram are independent of each other."""
        histogram = SparseHistogram(noise=noise, cells=3 * triples, at_least=1)
        held = np.arange(1, 3 * triples, 3, dtype=np.uint64), np.full(triples, 2, dtype=np.int64)
        observed = np.zeros((most + 1,) * 3, dtype=np.int64)
        for _ in range(runs):
            found = histogram.apply(held, SYSTEM)
            full = np.zeros(3 * triples, dtype=np.int64)
            full[found.places.astype(np.int64)] = np.minimum(found.counts, most)
            np.add.at(observed, tuple(full.reshape(triples, 3).T), 1)
        return observed

    def law(true: int) -> NDArray[np.float64]:
        one, two = mass(noise, np.array([1, 2]) - true)
        least = mass(noise, np.arange(-300, 1) - true).sum()
        return np.array([least, one, two, 1 - least - one - two])

    expected = 30_000 * np.einsum("i,j,k->ijk", law(0), law(2), law(0))
    assert expected.min() > 20
    assert not alarm(seen(100, 300, 3).ravel(), expected.ravel())
    # three cells alone, where every cell is near an end: given out or not
    given_out = [np.array([each[0], each[1:].sum()]) for each in (law(0), law(2), law(0))]
    expected = 3_000 * np.einsum("i,j,k->ijk", *given_out)
    assert expected.min() > 20
    assert not alarm(seen(1, 3_000, 1).ravel(), expected.ravel())


@pytest.mark.parametrize("noise", NOISES)
def test_same_law_as_the_dense_mechanism(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    size, at_least = 400_000, 4
    histogram = SparseHistogram(noise=noise, cells=size, at_least=at_least)
    assert not histogram._dense
    places = np.arange(7, size, 1000, dtype=np.uint64)
    counts = np.arange(places.size, dtype=np.int64) % 5
    full = np.zeros(size, dtype=np.int64)
    full[places] = counts
    noisy = noise.apply(full, SYSTEM)
    kept = np.flatnonzero(noisy >= at_least)
    found = histogram.apply((places, counts), SYSTEM)
    for ours, theirs in [
        (np.minimum(found.counts, 8), np.minimum(noisy[kept], 8)),
        (found.places.astype(np.int64) * 20 // size, kept * 20 // size),
    ]:
        table = np.array([np.bincount(ours, minlength=20), np.bincount(theirs, minlength=20)])
        table = table[:, table.sum(axis=0) > 0]
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        assert chi2.sf(((table - product) ** 2 / product).sum(), table.shape[1] - 1) > ALARM
    # the totals too: contingency tables do not see them
    assert abs(found.places.size - kept.size) < 5.4 * np.sqrt(2 * histogram.expected_survivors)


@pytest.mark.parametrize("noise", NOISES)
def test_gaps_places_and_values_of_empty_cells(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    size, at_least = 10**8, 8 if isinstance(noise, DiscreteLaplace) else 6
    histogram = SparseHistogram(noise=noise, cells=size, at_least=at_least)
    empty = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    found = histogram.apply(empty, SYSTEM)
    chance = mass(noise, np.arange(at_least, 300)).sum()
    total = found.places.size
    assert abs(total - size * chance) < 5.4 * np.sqrt(size * chance)
    assert not alarm(
        np.bincount((found.places * np.uint64(50) // np.uint64(size)).astype(np.int64), minlength=50),
        np.full(50, total / 50),
    )
    gaps = (found.places[1:] - found.places[:-1]).astype(np.int64)
    twentieths = np.minimum((-np.expm1((gaps - 0.5) * np.log1p(-chance)) * 20).astype(np.int64), 19)
    assert not alarm(np.bincount(twentieths, minlength=20), _gap_law(chance) * gaps.size)
    values = mass(noise, np.arange(at_least, at_least + 3)) / chance
    law = np.append(values, 1 - values.sum())
    assert not alarm(np.bincount(np.minimum(found.counts - at_least, 3), minlength=4), law * total)


def _gap_law(chance: float) -> NDArray[np.float64]:
    gaps = np.arange(1, int(60 / chance))
    twentieths = np.minimum((-np.expm1((gaps - 0.5) * np.log1p(-chance)) * 20).astype(np.int64), 19)
    return np.bincount(twentieths, weights=chance * (1 - chance) ** (gaps - 1.0), minlength=20).astype(np.float64)
