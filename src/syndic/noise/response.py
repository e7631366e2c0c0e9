"""Generalised randomised response on codes 0 .. size - 1 (Warner 1965; Kairouz, Bonawitz, Ramage 2016)."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.interval import Enclosure, complement, divide, exponential
from syndic.noise.inverse_cdf import LazyTable, coin, uniform
from syndic.privacy.event import PureEvent, check_positive
from syndic.random import Randomness


@final
class RandomisedResponse(Document, frozen=True, kw_only=True):
    """Report the true code with probability p = e^epsilon q, each other with q = 1 / (e^epsilon + size - 1)."""

    size: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.size <= 2**31:
            raise ValueError(f"size ({self.size}) must be in [2, 2^31]")
        check_positive("epsilon", self.epsilon)

    @property
    def event(self) -> PureEvent:
        """The event of one code if neighbours replace it; a person with r codes costs r of these."""
        return PureEvent(epsilon=self.epsilon, what="randomised response")

    @property
    def kept(self) -> float:
        """Probability p - q that a code is kept without a draw."""
        other = math.exp(-self.epsilon)
        return -math.expm1(-self.epsilon) / (1 + (self.size - 1) * other)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return each code, kept with probability p - q and else drawn uniformly from all codes."""
        if values.dtype.kind not in "iu":
            raise InputError(f"codes are of type {values.dtype}; randomised response needs integer codes")
        if values.size and (int(values.min()) < 0 or int(values.max()) >= self.size):
            raise InputError(f"codes must be in [0, {self.size}): apply the schema's rule for other values first")
        replaced = _replace(self.size, self.epsilon).draw(randomness.words(values.size), randomness)
        others = uniform(self.size, values.size, randomness).view(np.int64)
        return np.where(replaced == 1, others, values.astype(np.int64).ravel()).reshape(values.shape)

    def decode_counts(self, counts: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        """Return unbiased estimates of the true counts along an axis: (count - q total) / (p - q).

        For several columns with one response each, decode a table of joint counts axis by axis.
        """
        if counts.shape[axis] != self.size:
            raise InputError(
                f"axis {axis} must have {self.size} counts, one for each code; it has {counts.shape[axis]}"
            )
        other = math.exp(-self.epsilon) / (1 + (self.size - 1) * math.exp(-self.epsilon))
        totals = np.sum(counts, axis=axis, keepdims=True, dtype=np.float64)
        return np.asarray((counts - other * totals) / self.kept, dtype=np.float64)


@lru_cache(maxsize=256)
def _replace(size: int, epsilon: Fraction) -> LazyTable:
    def probability(bits: int) -> Enclosure:
        ratio = exponential(epsilon, bits)
        whole = (1 << bits) + (size - 1) * ratio[0], (1 << bits) + (size - 1) * ratio[1]
        return complement(divide(complement(ratio, bits), whole, bits), bits)

    return LazyTable(coin(probability))
