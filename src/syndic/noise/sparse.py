"""A noisy histogram over a huge public domain: distributed as if every cell had noise and small ones were dropped.

Adding noise only to non-empty cells would reveal which are empty. Here the released distribution is that of noise on
every cell, followed by dropping counts below `at_least`, which is post-processing. No threshold is chosen from data
and no delta is spent. An empty cell is kept with probability q = P(noise >= at_least), independently of all others.
So gaps between kept cells are geometric with ratio 1 - q, and the value of a kept cell has the noise's distribution
conditional on noise >= at_least. Places are drawn over the whole domain; those that hit a non-empty cell are
discarded. This does not change the draws at other cells, because cells are independent.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.gaussian import DiscreteGaussian
from syndic.noise.geometric import Geometric, exponential_geometric
from syndic.noise.interval import Enclosure, bell_sum, complement, divide, exponential, power, rescale
from syndic.noise.inverse_cdf import accept
from syndic.noise.laplace import DiscreteLaplace
from syndic.privacy.event import Event
from syndic.random import Randomness

_DENSE_CHANCE = 1 / 8
_DENSE_CELLS = 4096
_CHUNK = 1 << 20
_SIGMA_SQUARED_LIMIT = 2**32
_SURVIVORS_LIMIT = 2**30


class Cells(NamedTuple):
    """Some cells of a histogram: their linear places, ascending and distinct, and their counts."""

    places: NDArray[np.uint64]
    counts: NDArray[np.int64]


@final
class SparseHistogram(Document, frozen=True, kw_only=True):
    """Noise on all `cells` of a domain; cells with a noisy count of `at_least` or more are released."""

    noise: DiscreteLaplace | DiscreteGaussian
    cells: int
    at_least: int

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= 2**63:
            raise ValueError(f"cells ({self.cells}) must be in [1, 2^63]")
        if not 1 <= self.at_least < 2**62:
            raise ValueError(f"at_least ({self.at_least}) must be in [1, 2^62)")
        if not self._dense and isinstance(self.noise, DiscreteGaussian):
            square = self.noise.sigma_squared
            if square > _SIGMA_SQUARED_LIMIT:
                raise ValueError(
                    f"sigma^2 ({float(square):.3g}) must be at most 2^32 on a domain of {self.cells} cells"
                )

    @property
    def event(self) -> Event:
        """The privacy event of one `apply`: that of the noise."""
        return self.noise.event

    @property
    def expected_survivors(self) -> float:
        """Expected number of released cells if all were empty; `apply` refuses more than 2^30."""
        return self.cells * _chance(self.noise, self.at_least)

    def apply(self, values: tuple[NDArray[np.uint64], NDArray[np.int64]], randomness: Randomness) -> Cells:
        """Return the noisy histogram's cells with counts of `at_least` or more, in ascending order."""
        held = self._checked(values)
        if self._dense:
            return self._apply_dense(held, randomness)
        noisy = self.noise.apply(held.counts, randomness)
        kept = noisy >= self.at_least
        places = _kept_places(self, randomness)
        places = places[~np.isin(places, held.places, assume_unique=True)]
        drawn = _tail_draws(self.noise, self.at_least, places.size, randomness)
        merged = np.concatenate([held.places[kept], places])
        order = np.argsort(merged, kind="stable")
        return Cells(merged[order], np.concatenate([noisy[kept], drawn])[order])

    @property
    def _dense(self) -> bool:
        return self.cells <= _DENSE_CELLS or _chance(self.noise, self.at_least) > _DENSE_CHANCE

    def _checked(self, values: tuple[NDArray[np.uint64], NDArray[np.int64]]) -> Cells:
        places, counts = values
        if places.ndim != 1 or places.shape != counts.shape or (places.dtype.kind, counts.dtype.kind) != ("u", "i"):
            raise InputError("cells must be two vectors of one length: unsigned places and signed integer counts")
        if places.size and (int(places[-1]) >= self.cells or bool((places[1:] <= places[:-1]).any())):
            raise InputError(f"cell places must be ascending, distinct and in [0, {self.cells})")
        if self.expected_survivors > _SURVIVORS_LIMIT:
            raise InputError(
                f"at_least ({self.at_least}) would release {self.expected_survivors:.3g} empty cells: raise it"
            )
        return Cells(places.astype(np.uint64, copy=False), counts)

    def _apply_dense(self, held: Cells, randomness: Randomness) -> Cells:
        parts: list[Cells] = []
        for start in range(0, self.cells, _CHUNK):
            counts = np.zeros(min(_CHUNK, self.cells - start), dtype=np.int64)
            inside = slice(*np.searchsorted(held.places, np.array([start, start + counts.size], dtype=np.uint64)))
            counts[held.places[inside] - np.uint64(start)] = held.counts[inside]
            noisy = self.noise.apply(counts, randomness)
            kept = np.flatnonzero(noisy >= self.at_least)
            parts.append(Cells(kept.astype(np.uint64) + np.uint64(start), noisy[kept]))
        return Cells(np.concatenate([part.places for part in parts]), np.concatenate([part.counts for part in parts]))


@lru_cache(maxsize=256)
def _chance(noise: DiscreteLaplace | DiscreteGaussian, at_least: int) -> float:
    """Compute P(noise >= at_least) to about six digits: for planning only, never for drawing."""
    if isinstance(noise, DiscreteLaplace):
        scale = float(noise.scale)
        return math.exp(-at_least / scale) / (1 + math.exp(-1 / scale))
    sigma = math.sqrt(noise.sigma_squared)
    if sigma > 1e4:
        return math.erfc((at_least - 0.5) / (sigma * math.sqrt(2))) / 2
    steps = np.arange(math.ceil(40 * sigma) + 2, dtype=np.float64)
    tail, half = (float(np.exp(-(((steps + start) / sigma) ** 2) / 2).sum()) for start in (at_least, 1))
    return tail / (1 + 2 * half)


def _kept_places(histogram: SparseHistogram, randomness: Randomness) -> NDArray[np.uint64]:
    """Draw the cells whose noise alone reaches the bound, each with the same probability, by their gaps."""
    gaps = _gaps(histogram.noise, histogram.at_least)
    chance = _chance(histogram.noise, histogram.at_least)
    end = np.uint64(histogram.cells)
    parts: list[NDArray[np.uint64]] = []
    start = 0  # first cell not yet decided
    while start < histogram.cells:
        expected = (histogram.cells - start) * chance
        steps = gaps.draw(randomness.words(min(_CHUNK, int(expected + 6 * math.sqrt(expected)) + 8)), randomness)
        # a gap past the end ends the domain; kept below 2^63 + 1, sums of two fit 64 bits
        steps = np.minimum(steps, end)
        # the error of doubles is far below the factor two between the end and the overflow of 64 bits
        fits = np.cumsum(steps + np.uint64(1), dtype=np.float64) + start < 1.5 * 2.0**63
        count = int(np.argmin(fits)) if not fits.all() else fits.size
        places = np.cumsum(steps[:count] + np.uint64(1)) + np.uint64(start) - np.uint64(1)
        inside = places < end
        parts.append(places[inside])
        if count < fits.size or not inside.all():
            break
        start = int(places[-1]) + 1
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


@lru_cache(maxsize=64)
def _gaps(noise: DiscreteLaplace | DiscreteGaussian, at_least: int) -> Geometric:
    """The number of cells dropped before one is kept: geometric with ratio P(noise < at_least)."""

    def ratio_power(exponent: int, bits: int) -> Enclosure:
        # one precision for all digits, because the underlying sums are the expensive part
        work = bits + 256
        return rescale(power(complement(_tail_chance(noise, at_least, work), work), exponent, work), work, bits)

    return Geometric(ratio_power, 1 / max(_chance(noise, at_least), 2.0**-64))


def _tail_chance(noise: DiscreteLaplace | DiscreteGaussian, at_least: int, bits: int) -> Enclosure:
    """Enclose P(noise >= at_least) for at_least >= 1."""
    one = 1 << bits
    if isinstance(noise, DiscreteLaplace):
        ratio = exponential(1 / noise.scale, bits)
        return divide(exponential(at_least / noise.scale, bits), (one + ratio[0], one + ratio[1]), bits)
    rest = bell_sum(noise.sigma_squared, 1, bits)
    whole = one + 2 * rest[0], one + 2 * rest[1]
    return divide(bell_sum(noise.sigma_squared, at_least, bits), whole, bits)


def _tail_draws(
    noise: DiscreteLaplace | DiscreteGaussian, at_least: int, count: int, randomness: Randomness
) -> NDArray[np.int64]:
    """Draw from the law of the noise given noise >= at_least.

    Discrete Laplace is memoryless: at_least plus a geometric variable. For the discrete Gaussian that is the
    proposal, with ratio exp(-at_least / sigma^2), and a step k is kept with probability exp(-k^2 / (2 sigma^2)):
    the product is the weight of at_least + k up to a constant.
    """
    if isinstance(noise, DiscreteLaplace):
        geometric = exponential_geometric(noise.scale)
        return geometric.draw(randomness.words(count), randomness).view(np.int64) + at_least
    square = noise.sigma_squared
    geometric = exponential_geometric(square / at_least)
    result = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        steps = geometric.draw(randomness.words(open_places.size), randomness).view(np.int64)
        result[open_places] = steps + at_least
        exponents = steps.astype(np.float64) ** 2 / (2 * float(square))

        def exactly(place: int, steps: NDArray[np.int64] = steps) -> Fraction:
            return int(steps[place]) ** 2 / (2 * square)

        kept = accept(exponents, exactly, randomness.words(open_places.size), 64, randomness)
        open_places = open_places[~kept]
    return result
