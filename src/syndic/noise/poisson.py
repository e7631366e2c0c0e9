"""Exact Poisson draws, and sums of a Poisson number of logarithmic jumps.

A negative binomial variable of any real shape r, P(k) proportional to (r)_k / k! a^k, is a sum of N jumps: N is
Poisson of rate -r log(1 - a) and a jump is j with probability proportional to a^j / j. Differences of two such
sums are one sum of signed jumps at twice the rate.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.noise.integer import signed
from syndic.noise.interval import Enclosure, complement, divide, exponential, logarithm
from syndic.noise.inverse_cdf import Law, LazyTable, accept
from syndic.random import Randomness

TABLE_RATE = 2**14
"""Above this rate a Poisson variable is drawn as a sum of several."""

_BLOCKS = 62


def poisson(rate: Callable[[int], Enclosure]) -> Law:
    """Return the Poisson law of a rate given by its enclosures."""

    def law(bits: int) -> Iterator[Enclosure]:
        yield from _cumulative(*_weights(rate(bits), bits), bits)

    return law


def _cumulative(weights: list[Enclosure], rest: int, bits: int) -> Iterator[Enclosure]:
    """Yield the distribution function of weights; omitted weights sum to at most `rest`."""
    whole = sum(low for low, _ in weights), sum(high for _, high in weights) + rest
    low = high = 0
    for least, most in weights:
        low, high = low + least, high + most
        yield divide((low, high), whole, bits)
    while True:
        yield divide((low, high), whole, bits)[0], 1 << bits


def _weights(rate: Enclosure, bits: int) -> tuple[list[Enclosure], int]:
    """Enclose P(k) / P(mode) for k = 0, 1, ... and bound the sum of all omitted ones."""
    mode = rate[0] >> bits
    down: list[Enclosure] = []
    value: Enclosure = (1 << bits, 1 << bits)
    for place in range(mode, 0, -1):  # P(k - 1) = P(k) k / rate
        value = (value[0] * place << bits) // rate[1], -((-value[1] * place << bits) // rate[0])
        down.append(value)
    weights = [*reversed(down), (1 << bits, 1 << bits)]
    place, value = mode, weights[-1]
    while True:
        place += 1
        step = place << bits
        value = value[0] * rate[0] // step, -(-value[1] * rate[1] // step)
        if value[0] == 0 and step > rate[1]:
            # ratios fall from here on, so a geometric series bounds what is left
            return weights, -(-value[1] * step // (step - rate[1]))
        weights.append(value)


@lru_cache(maxsize=64)
def _poisson_table(rate: Fraction) -> LazyTable:
    def enclosed(bits: int) -> Enclosure:
        floor = (rate.numerator << bits) // rate.denominator
        return floor, floor + 1

    return LazyTable(poisson(enclosed))


def draw_poisson(rate: Fraction, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Draw independent Poisson variables of a rational rate."""
    pieces = max(1, -(-rate.numerator // (rate.denominator * TABLE_RATE)))
    table = _poisson_table(rate / pieces)
    result = np.zeros(count, dtype=np.int64)
    for _ in range(pieces):
        result += table.draw(randomness.words(count), randomness)
    return result


@final
class SignedJumps:
    """Differences of two negative binomial variables of shape 1 / `shares` and ratio a = exp(-1 / scale)."""

    def __init__(self, scale: Fraction, shares: int) -> None:
        """Store the parameters; tables are built at the first draw."""
        self._scale = scale
        self._numbers = LazyTable(poisson(lambda bits: _jump_rate(scale, shares, bits)))
        self._blocks = LazyTable(_block_law(scale))

    def draw(self, count: int, randomness: Randomness) -> NDArray[np.int64]:
        """Draw independent differences."""
        numbers = self._numbers.draw(randomness.words(count), randomness)
        jumps = self._jumps(int(numbers.sum()), randomness)
        ends = np.cumsum(np.append(0, signed(jumps, randomness.words(jumps.size))))
        last = np.cumsum(numbers)
        result: NDArray[np.int64] = ends[last] - ends[last - numbers]
        return result

    def _jumps(self, count: int, randomness: Randomness) -> NDArray[np.int64]:
        """Draw jumps by rejection: block i with weight a^(2^i), a place j in [2^i, 2^(i+1)) uniformly.

        It is kept with chance 2^i / j times a^(j - 2^i): the product of all four is a^j / j.
        """
        result = np.empty(count, dtype=np.int64)
        open_places = np.arange(count)
        while open_places.size:
            blocks = self._blocks.draw(randomness.words(open_places.size), randomness).view(np.uint64)
            starts = np.left_shift(np.uint64(1), blocks)
            inside = randomness.words(open_places.size) & (starts - np.uint64(1))
            places = (starts + inside).view(np.int64)
            result[open_places] = places
            rest = inside.view(np.int64)

            def exactly(place: int, rest: NDArray[np.int64] = rest) -> Fraction:
                return int(rest[place]) / self._scale

            words = randomness.words(open_places.size)
            kept = accept(rest / float(self._scale), exactly, words, 64, randomness)
            kept &= _below_each(places.view(np.uint64), starts, randomness)
            open_places = open_places[~kept]
        return result


@lru_cache(maxsize=64)
def signed_jumps(scale: Fraction, shares: int) -> SignedJumps:
    """Return the law of one of `shares` shares of discrete Laplace noise of that scale."""
    return SignedJumps(scale, shares)


def _jump_rate(scale: Fraction, shares: int, bits: int) -> Enclosure:
    """Enclose -2 log(1 - a) / shares."""
    low, high = logarithm(complement(exponential(1 / scale, bits), bits), bits)
    return 2 * low // shares, -(-2 * high // shares)


def _block_law(scale: Fraction) -> Law:
    """The law on i = 0, 1, ... with weight a^(2^i)."""

    def law(bits: int) -> Iterator[Enclosure]:
        weights = [exponential(2**place / scale, bits) for place in range(bits.bit_length() + _BLOCKS)]
        # by here exponents exceed `bits` and at least double: each weight left is below the square of the last
        yield from _cumulative(weights, 1, bits)

    return law


def _below_each(sizes: NDArray[np.uint64], bounds: NDArray[np.uint64], randomness: Randomness) -> NDArray[np.bool_]:
    """Toss coins that show true with probability bound / size, each size in [bound, 2 bound), bound a power of two.

    A uniform number below 2 bound is drawn again until it is below size.
    """
    drawn = randomness.words(sizes.size) & (2 * bounds - np.uint64(1))
    while (again := np.flatnonzero(drawn >= sizes)).size:
        drawn[again] = randomness.words(again.size) & (2 * bounds[again] - np.uint64(1))
    result: NDArray[np.bool_] = drawn < bounds
    return result
