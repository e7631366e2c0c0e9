"""Which empty cells of a sparse histogram are given out, and with what: gap by gap, against sums done by hand."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram, sparse
from syndic.noise.geometric import Geometric
from syndic.noise.sparse import _gaps, _kept_places, _tail_chance, _tail_draws
from syndic.random import Randomness, SimulationRandomness

Noise = DiscreteLaplace | DiscreteGaussian

LAPLACE = DiscreteLaplace(sensitivity=1, epsilon=Fraction(1))
NOISES: list[Noise] = [
    LAPLACE,
    DiscreteLaplace(sensitivity=20, epsilon=Fraction(3)),
    DiscreteLaplace(sensitivity=1, epsilon=Fraction(2)),
    DiscreteGaussian(sensitivity_squared=Fraction(25), rho=Fraction(1, 2)),
    DiscreteGaussian(sensitivity_squared=Fraction(2, 3), rho=Fraction(1, 2)),
]
LIMIT = 2**63


class Script:
    """Gives out fixed gaps in place of geometric ones, and zeros after them."""

    def __init__(self, gaps: list[int]) -> None:
        self.left = gaps

    def draw(self, words: NDArray[np.uint64], randomness: Randomness) -> NDArray[np.uint64]:
        assert randomness.simulated
        given, self.left = self.left[: words.size], self.left[words.size :]
        return np.array([*given, *[0] * (words.size - len(given))], dtype=np.uint64)


@pytest.mark.parametrize(
    ("cells", "gaps", "expected"),
    [
        # several rounds, and the domain ends inside one
        (100, [0, 3, 2, 0, 10, 30, 4, 4, 9, 9, 17, 50], [0, 4, 7, 8, 19, 50, 55, 60, 70, 80, 98]),
        # it ends with the last gap of a round, or with the last cell
        (60, [0, 3, 2, 0, 10, 30, 4, 4], [0, 4, 7, 8, 19, 50, 55]),
        (51, [0, 3, 2, 0, 10, 30], [0, 4, 7, 8, 19, 50]),
        (1, [1], []),
        (1, [0, 7], [0]),
        # the last cells of the largest domain, which doubles do not tell apart
        (LIMIT, [2**62, 2**62 - 3, 0, 0], [2**62, LIMIT - 2, LIMIT - 1]),
        # gaps past the end whose sums pass 2^64
        (LIMIT, [LIMIT, LIMIT, 5, 5], []),
        (LIMIT, [2**62, LIMIT, 5, 5], [2**62]),
        (LIMIT, [7, LIMIT, LIMIT, 5], [7]),
        # also where a round starts far out
        (LIMIT, [2**62, 2**61, *[0] * 6, LIMIT, LIMIT, 5, 5], [2**62, *range(3 * 2**61 + 1, 3 * 2**61 + 8)]),
    ],
)
@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
def test_places_are_where_the_gaps_lead(
    cells: int, gaps: list[int], expected: list[int], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "_CHUNK", chunk)
    monkeypatch.setattr(sparse, "_gaps", lambda *_: Script([*gaps, *[LIMIT] * 8]))
    # rare enough that few gaps are drawn at once, however long the domain is
    histogram = SparseHistogram(noise=LAPLACE, cells=cells, at_least=60)
    assert _kept_places(histogram, SimulationRandomness(1)).tolist() == expected


def tail_of(noise: Noise, at_least: int) -> mpmath.mpf:
    if isinstance(noise, DiscreteLaplace):
        slope = mpmath.mpf(noise.scale.denominator) / noise.scale.numerator
        weights = [mpmath.exp(-slope * k) for k in range(1500)]
    else:
        half = mpmath.mpf(noise.sigma_squared.denominator) / (2 * noise.sigma_squared.numerator)
        weights = [mpmath.exp(-half * k * k) for k in range(150)]
    return mpmath.fsum(weights[at_least:]) / (2 * mpmath.fsum(weights) - 1)


@pytest.mark.parametrize("at_least", [1, 2, 5, 12])
@pytest.mark.parametrize(
    "noise", [*NOISES, *(DiscreteLaplace(sensitivity=n, epsilon=Fraction(7)) for n in (50, 60, 110))]
)
def test_the_chance_to_reach_the_bound_is_enclosed(noise: Noise, at_least: int) -> None:
    with mpmath.workdps(60):
        exact = tail_of(noise, at_least)
        for bits in [*range(3, 20), 100]:
            low, high = _tail_chance(noise, at_least, bits)
            assert low <= exact * 2**bits <= high
        assert high - low < 1000


@pytest.mark.parametrize("noise", NOISES)
def test_gaps_are_geometric_with_the_chance_of_the_noise(noise: Noise) -> None:
    gaps = _gaps(noise, 3)
    assert isinstance(gaps, Geometric)
    with mpmath.workdps(60):
        ratio = 1 - tail_of(noise, 3)
        above = ratio ** (1 << gaps._shifts[-1])
        assert int(gaps._rest.thresholds[0]) == int(mpmath.floor((1 - above) * 2**63))
        if gaps._digits:
            chances = (1 - ratio) / (1 - ratio ** (1 << (gaps._shifts[1] - gaps._shifts[0])))
            assert int(gaps._digits[0].thresholds[0]) == int(mpmath.floor(chances * 2**63))


@pytest.mark.parametrize("at_least", [1, 8])
@pytest.mark.parametrize("noise", NOISES)
def test_what_an_empty_cell_shows_has_the_law_of_noise_from_the_bound_on(noise: Noise, at_least: int) -> None:
    drawn = _tail_draws(noise, at_least, 4000, SimulationRandomness(1))
    assert drawn.size == 4000
    assert drawn.min() >= at_least
    whole = float(tail_of(noise, at_least))
    for more in (1, 2, 5):
        chance = float(tail_of(noise, at_least + more)) / whole
        # seven standard deviations
        assert abs((drawn >= at_least + more).sum() - 4000 * chance) <= 7 * (4000 * chance * (1 - chance)) ** 0.5 + 1
