"""Discrete Gaussian noise, P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers, drawn exactly.

Canonne, Kamath, Steinke (2020): rho-zCDP for integer vectors of L2 sensitivity s when
sigma^2 = s^2 / (2 rho).
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.noise.integer import NEVER, SCALE_LIMIT, checked, signed
from syndic.noise.interval import Enclosure, bell, bell_sum, divide
from syndic.noise.inverse_cdf import LazyTable, accept
from syndic.privacy.event import ConcentratedEvent, check_positive
from syndic.random import Randomness

_TABLE_SIGMA = 512
_BLOCKS_PER_SIGMA = 64


@final
class DiscreteGaussian(Document, frozen=True, kw_only=True, tag_field="kind", tag="discrete_gaussian"):
    """Integer noise with sigma^2 = sensitivity_squared / (2 rho); the L2 sensitivity is of the whole vector.

    The square is given because it is exact: replacing one row in a histogram has sensitivity sqrt(2).
    """

    sensitivity_squared: Fraction
    rho: Fraction

    def __post_init__(self) -> None:
        check_positive("sensitivity_squared", self.sensitivity_squared)
        check_positive("rho", self.rho)
        if not 1 / SCALE_LIMIT <= self.sigma_squared <= SCALE_LIMIT**2:
            raise ValueError(f"sigma^2 ({self.sigma_squared}) must be in [2^-52, 2^104]")

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter sigma^2, in squared units of the values; the variance is at most this."""
        return self.sensitivity_squared / (2 * self.rho)

    @property
    def event(self) -> ConcentratedEvent:
        """The privacy event of one `apply`."""
        return ConcentratedEvent(rho=self.rho, what=f"discrete Gaussian, sigma {float(self.sigma_squared) ** 0.5:.6g}")

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        square = float(self.sigma_squared)
        if square > 100:  # the difference is below exp(-2 pi^2 100)
            return square
        places = np.arange(1.0, 402.0)
        weights = np.exp(-(places**2) / (2 * square))
        return float(2 * (places**2 @ weights) / (1 + 2 * weights.sum()))

    def tail(self, probability: float) -> int:
        """Return a magnitude that one draw exceeds with at most this probability."""
        if not 0 < probability <= 1:
            raise ValueError(f"probability ({probability}) must be in (0, 1]")
        # P(x >= m + 1) <= P(N(0, sigma^2) >= m) (Canonne, Kamath, Steinke)
        quantile = -NormalDist().inv_cdf(probability / 2)
        return math.ceil(math.sqrt(self.sigma_squared) * quantile * (1 + 2.0**-40))

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw independent noise."""
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        sample = _draw_by_table if self.sigma_squared <= _TABLE_SIGMA**2 else _draw_by_blocks
        return sample(self.sigma_squared, count, randomness).reshape(shape)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with fresh noise on every entry."""
        return checked(values, self.tail(NEVER)) + self.draw(values.shape, randomness)


def _draw_by_table(square: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    words = randomness.words(count)
    return signed(_half_bell(square, 2).draw(words, randomness), words)


def _draw_by_blocks(square: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Draw by rejection: the weight at the start of a block of 2^shift magnitudes bounds those inside.

    Block q is drawn with weight exp(-(2^shift q)^2 / (2 sigma^2)), the place r inside uniformly, and
    m = 2^shift q + r is kept with probability exp(-r (2^(shift + 1) q + r) / (2 sigma^2)): the product is
    exp(-m^2 / (2 sigma^2)). "Minus zero" is rejected. Blocks are small against sigma: 99 of 100 are kept.
    """
    shift = (math.isqrt(math.floor(square)) // _BLOCKS_PER_SIGMA).bit_length() - 1
    blocks = _half_bell(square / 4**shift, 1)
    double = 2 * float(square)
    result = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        words = randomness.words(open_places.size)
        starts = blocks.draw(words, randomness) << shift
        more = randomness.words(open_places.size)
        inside = (more >> np.uint64(64 - shift)).view(np.int64)
        exponents = inside * (2.0 * starts + inside) / double

        def exactly(place: int, starts: NDArray[np.int64] = starts, inside: NDArray[np.int64] = inside) -> Fraction:
            start, rest = int(starts[place]), int(inside[place])
            return rest * (2 * start + rest) / (2 * square)

        rest = more & np.uint64((1 << (64 - shift)) - 1)
        kept = accept(exponents, exactly, rest, 64 - shift, randomness)
        magnitudes = starts + inside
        result[open_places] = signed(magnitudes, words)
        open_places = open_places[~kept | ((magnitudes == 0) & (words & np.uint64(1) == 1))]
    return result


@lru_cache(maxsize=64)
def _half_bell(square: Fraction, sides: int) -> LazyTable:
    """The law on k >= 0 with weight exp(-k^2 / (2 square)), every k > 0 counted `sides` times."""

    def law(bits: int) -> Iterator[Enclosure]:
        rest = bell_sum(square, 1, bits)
        whole = (1 << bits) + sides * rest[0], (1 << bits) + sides * rest[1]
        low = high = 0
        for place, (least, most) in enumerate(bell(square, bits)):
            times = sides if place else 1
            low, high = low + times * least, high + times * most
            yield divide((low, high), whole, bits)

    return LazyTable(law)
