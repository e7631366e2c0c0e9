"""Exact draws by inverse transform, with uniform reals whose bits are read only as far as needed.

Why the laws are exact. A draw is X = min{k : U < F(k)} for a uniform real U and the distribution function F.
The first 63 bits of U are an integer v, so v <= U 2^63 < v + 1. With T_k = floor(F(k) 2^63):
v < T_k implies U < F(k), and v > T_k implies U >= F(k). Hence if v is none of the T_k, X is the number of T_k
below v, found in a table. If v is one of them (one word in 2^63 for each entry) X is undecided: more bits
of U are drawn and compared with enclosures of F at matching precision until they separate, which happens with
probability one. The table stops at the first T_k = 2^63 - 1, so the tail beyond it, however long, is such an
undecided word too. T_k comes from enclosures by integers (`interval.py`); where one does not settle the
floor, precision doubles. Nothing is rounded, truncated or approximated.

The 64th bit of the word is an independent coin, which callers use as a sign.

`accept` compares in floating point first. For a double x^ of relative error e, the double p^ of exp(-x^) has
|p^ - exp(-x)| <= e / 2 + 2^-50, as x exp(-x) < 1/2 and numpy's exp() errs by a few units in the last place:
far less than the margin 2^-40. A word further from p^ than the margin is thus decided correctly; the rest is
decided with integers. The filter changes the time taken, never the result.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.noise.interval import Enclosure, complement, exponential
from syndic.random import Randomness

Law = Callable[[int], Iterator[Enclosure]]
"""For a precision in bits, enclosures of F(0), F(1), ...; ends with an exact 1 where the law is finite."""

_FIRST_BITS = 256
_MARGIN = 2.0**-40


@final
class LazyTable:
    """A law on 0, 1, 2, ... ready for drawing; the table is built at the first draw."""

    def __init__(self, law: Law) -> None:
        """Store the law; nothing is computed yet."""
        self._law = law

    def draw(self, words: NDArray[np.uint64], randomness: Randomness) -> NDArray[np.int64]:
        """Turn uniform words into independent draws; the lowest bit of each word stays unused.

        `randomness` gives further bits for undecided words.
        """
        guide, shift = self._guide
        result: NDArray[np.int64] = guide[words >> shift]
        hard = np.flatnonzero(result < 0)
        if hard.size:
            values = words[hard] >> np.uint64(1)
            places = np.searchsorted(self.thresholds, values, side="left")
            result[hard] = places
            for place in np.flatnonzero(places != np.searchsorted(self.thresholds, values, side="right")):
                result[hard[place]] = self._resolve(int(values[place]), randomness)
        return result

    @cached_property
    def thresholds(self) -> NDArray[np.uint64]:
        """T_k for every k up to the first that is 2^63 - 1 or, for a finite law, to the last but one."""
        bits = _FIRST_BITS
        while (found := self._floors(bits)) is None:
            bits *= 2
        return np.array(found, dtype=np.uint64)

    def _floors(self, bits: int) -> list[int] | None:
        found: list[int] = []
        for low, high in self._law(bits):
            floor = low >> (bits - 63)
            if floor == 1 << 63:
                return found
            if floor == (1 << 63) - 1:
                return [*found, floor]
            if high >> (bits - 63) != floor:
                return None
            found.append(floor)
        return found

    @cached_property
    def _guide(self) -> tuple[NDArray[np.int64], np.uint64]:
        # the first bits of a word determine most draws: one look-up instead of a search
        bits = 10 if len(self.thresholds) < 16 else 16
        starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(63 - bits)
        ends = starts | np.uint64((1 << (63 - bits)) - 1)
        first = np.searchsorted(self.thresholds, starts, side="left")
        last = np.searchsorted(self.thresholds, ends, side="right")
        return np.where(first == last, first, -1).astype(np.int64), np.uint64(64 - bits)

    def _resolve(self, value: int, randomness: Randomness) -> int:
        width = 63
        while True:
            value, width = value << 64 | int(randomness.words(1)[0]), width + 64
            for place, (low, high) in enumerate(self._law(width + 64)):
                if (value + 1) << 64 <= low:
                    return place
                if value << 64 < high:
                    break


def coin(probability: Callable[[int], Enclosure]) -> Law:
    """Return the law of a coin that shows 1 with a probability given by its enclosures, else 0."""

    def law(bits: int) -> Iterator[Enclosure]:
        yield complement(probability(bits), bits)
        yield 1 << bits, 1 << bits

    return law


def uniform(size: int, count: int, randomness: Randomness) -> NDArray[np.uint64]:
    """Draw `count` independent numbers, each of 0 .. size - 1 equally likely (size at most 2^64)."""
    words = randomness.words(count)
    if size & (size - 1) == 0:
        return words & np.uint64(size - 1)
    # words from the last, incomplete round of `size` would favour small numbers: draw those again
    last = np.uint64((1 << 64) // size * size - 1)
    while (again := np.flatnonzero(words > last)).size:
        words[again] = randomness.words(again.size)
    return words % np.uint64(size)


def accept(
    exponents: NDArray[np.float64],
    exactly: Callable[[int], Fraction],
    values: NDArray[np.uint64],
    width: int,
    randomness: Randomness,
) -> NDArray[np.bool_]:
    """Toss coins that show true with probability exp(-x), one for each x.

    Args:
        exponents: x in double precision, relative error at most 2^-45.
        exactly: gives the x of a place as a fraction.
        values: `width` uniform bits for each place.
        width: how many bits; further ones come from `randomness` when needed.
        randomness: where these come from.
    """
    chances = np.exp(-exponents)
    points = values.astype(np.float64) * 2.0**-width
    result = points < chances
    unsure = np.abs(points - chances) <= _MARGIN + 2.0**-width
    for place in np.flatnonzero(unsure):
        result[place] = _below(int(values[place]), width, exactly(int(place)), randomness)
    return result


def _below(value: int, width: int, exponent: Fraction, randomness: Randomness) -> bool:
    """Return whether the uniform real that begins with these bits is below exp(-exponent)."""
    while True:
        low, high = exponential(exponent, width + 64)
        if (value + 1) << 64 <= low:
            return True
        if value << 64 >= high:
            return False
        value, width = value << 64 | int(randomness.words(1)[0]), width + 64
