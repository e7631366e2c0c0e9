"""Exact geometric draws, P(G = k) = (1 - a) a^k, for any ratio a whose powers can be enclosed.

In base 2^w, G = r + 2^w q, the factors a^r and (a^(2^w))^q separate: the digits of a geometric variable are
independent. Each digit is a truncated geometric variable with its own small table, and the part above the digits is
geometric again, with a ratio for which a small table suffices.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.noise.interval import Enclosure, complement, divide, exponential, multiply
from syndic.noise.inverse_cdf import Law, LazyTable, coin
from syndic.random import Randomness

Powers = Callable[[int, int], Enclosure]
"""For an exponent n and a precision in bits, an enclosure of a^n."""

LIMIT_BITS = 63
_DIGIT_BITS = 10


@final
class Geometric:
    """Geometric draws from 0 up to 2^63; every larger one is returned as at least 2^63."""

    def __init__(self, powers: Powers, scale: float) -> None:
        """Take the powers of the ratio a; `scale`, about -1 / log(a), only decides the number of digits."""
        total = min(LIMIT_BITS, int(np.ceil(np.log2(max(scale, 1.0)))))
        self._shifts = [*range(0, total, _DIGIT_BITS), total]
        self._digits = [
            LazyTable(_truncated(powers, 1 << low, 1 << (high - low)))
            for low, high in zip(self._shifts, self._shifts[1:], strict=False)
        ]
        # at the limit it only matters whether the draw exceeds it
        above = coin(lambda bits: powers(1 << total, bits)) if total == LIMIT_BITS else _unbounded(powers, 1 << total)
        self._rest = LazyTable(above)

    def draw(self, words: NDArray[np.uint64], randomness: Randomness) -> NDArray[np.uint64]:
        """Draw one number for each word; the lowest bit of the words stays unused."""
        top = self._shifts[-1]
        rest = self._rest.draw(words, randomness).view(np.uint64)
        result = np.minimum(rest, np.uint64(1 << (LIMIT_BITS - top))) << np.uint64(top)
        if result.size and result.min() >> np.uint64(LIMIT_BITS):
            return result  # all beyond the limit, as for gaps between events of negligible probability
        for shift, digit in zip(self._shifts, self._digits, strict=False):
            drawn = digit.draw(randomness.words(words.size), randomness).view(np.uint64)
            result += drawn << np.uint64(shift)
        return result


@lru_cache(maxsize=64)
def exponential_geometric(scale: Fraction) -> Geometric:
    """Return the geometric law with ratio exp(-1 / scale)."""
    return Geometric(lambda exponent, bits: exponential(exponent / scale, bits), float(scale))


def _unbounded(powers: Powers, unit: int) -> Law:
    def law(bits: int) -> Iterator[Enclosure]:
        ratio = power = powers(unit, bits)
        while True:
            yield complement(power, bits)
            power = multiply(power, ratio, bits)

    return law


def _truncated(powers: Powers, unit: int, base: int) -> Law:
    def law(bits: int) -> Iterator[Enclosure]:
        ratio = power = powers(unit, bits)
        whole = complement(powers(unit * base, bits), bits)
        for _ in range(base - 1):
            yield divide(complement(power, bits), whole, bits)
            power = multiply(power, ratio, bits)
        yield 1 << bits, 1 << bits

    return law
