"""Discrete Laplace noise, P(x) = (1 - a)/(1 + a) a^|x| with a = exp(-epsilon / sensitivity), drawn exactly.

Ghosh, Roughgarden, Sundararajan (2009): pure epsilon-DP for integer vectors of that L1 sensitivity.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.noise.geometric import exponential_geometric
from syndic.noise.integer import NEVER, SCALE_LIMIT, checked, signed
from syndic.noise.interval import Enclosure, complement, divide, exponential, multiply
from syndic.noise.inverse_cdf import LazyTable
from syndic.privacy.event import PureEvent, check_positive
from syndic.random import Randomness

_TABLE_SCALE = 64


@final
class DiscreteLaplace(Document, frozen=True, kw_only=True, tag_field="kind", tag="discrete_laplace"):
    """Integer noise of scale sensitivity / epsilon; `sensitivity` is in L1, over the whole vector."""

    sensitivity: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.sensitivity < 1:
            raise ValueError(f"sensitivity ({self.sensitivity}) must be at least 1")
        check_positive("epsilon", self.epsilon)
        if not 1 / SCALE_LIMIT <= self.scale <= SCALE_LIMIT:
            raise ValueError(f"scale sensitivity / epsilon ({self.scale}) must be in [2^-52, 2^52]")

    @property
    def scale(self) -> Fraction:
        """-1 / log(a), in units of the values."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> PureEvent:
        """The privacy event of one `apply`."""
        return PureEvent(epsilon=self.epsilon, what=f"discrete Laplace, scale {float(self.scale):g}")

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        half = 0.5 / float(self.scale)
        return 2 * math.exp(-2 * half) / math.expm1(-2 * half) ** 2

    def tail(self, probability: float) -> int:
        """Return a magnitude that one draw exceeds with at most this probability."""
        if not 0 < probability <= 1:
            raise ValueError(f"probability ({probability}) must be in (0, 1]")
        scale = float(self.scale)
        # P(|x| > m) = 2 a^(m + 1) / (1 + a); solved with a small margin, so that rounding never makes it too small
        needed = scale * (math.log(2 / (1 + math.exp(-1 / scale))) - math.log(probability))
        return max(0, math.ceil(needed * (1 + 2.0**-40)) - 1)

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw independent noise."""
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        sample = _draw_by_table if self.scale <= _TABLE_SCALE else _draw_by_digits
        return sample(self.scale, count, randomness).reshape(shape)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with fresh noise on every entry."""
        return checked(values, self.tail(NEVER)) + self.draw(values.shape, randomness)


def _draw_by_table(scale: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    words = randomness.words(count)
    return signed(_magnitudes(scale).draw(words, randomness), words)


def _draw_by_digits(scale: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    # a signed geometric variable that is not "minus zero" is discrete Laplace: draw those few again
    geometric = exponential_geometric(scale)
    result = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        words = randomness.words(open_places.size)
        magnitudes = geometric.draw(words, randomness).view(np.int64)
        result[open_places] = signed(magnitudes, words)
        open_places = open_places[(magnitudes == 0) & (words & np.uint64(1) == 1)]
    return result


@lru_cache(maxsize=64)
def _magnitudes(scale: Fraction) -> LazyTable:
    """The law of |x|: F(k) = 1 - 2 a^(k + 1) / (1 + a)."""

    def law(bits: int) -> Iterator[Enclosure]:
        ratio = exponential(1 / scale, bits)
        half_sum = ((1 << bits) + ratio[0]) >> 1, ((1 << bits) + ratio[1] + 1) >> 1
        power = ratio
        while True:
            yield complement(divide(power, half_sum, bits), bits)
            power = multiply(power, ratio, bits)

    return LazyTable(law)
