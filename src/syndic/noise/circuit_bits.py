"""Integer noise built from coins with public probabilities, so that it can be drawn in secure computation.

Each coin compares 128 fair bits with a public threshold, the coin's probability rounded to 128 bits. `distance` bounds
the total variation distance between the noise and its exact distribution, for one value: it is a failure probability,
and is charged as part of delta.

*Laplace.* The difference of two geometric variables of ratio a = exp(-1 / scale) is discrete Laplace noise, and the
bits of a geometric variable are independent: bit i is 1 with probability a^(2^i) / (1 + a^(2^i)).
*Gaussian.* x = min{k : u < F(k)} is the number of k in -reach .. reach - 1 with u >= F(k), minus reach.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import final

from syndic.document import Document
from syndic.noise.interval import Enclosure, bell, bell_sum, divide, exponential

WIDTH = 128
"""Bits of a threshold."""

_WORK = WIDTH + 64
_UNIT = Fraction(1, 2**WIDTH)
_BASE = 3
_DIGIT_SQUARE = Fraction(50)


@final
class BitNoise(Document, frozen=True, kw_only=True):
    """One value's noise: offset + sum of weight_i [u < threshold_i / 2^128], u the fair number `sources[i]`."""

    thresholds: tuple[int, ...]
    sources: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int
    distance: Fraction


@lru_cache(maxsize=64)
def laplace_bits(scale: Fraction) -> BitNoise:
    """Return the coins of discrete Laplace noise, P(x) proportional to exp(-|x| / scale)."""
    chances: list[int] = []
    for place in count():
        power = exponential(2**place / scale, _WORK)
        if power[1] >> (_WORK - WIDTH) == 0:
            break  # this bit or any above is 1 with a probability of at most two units
        chances.append(_rounded(divide(power, ((1 << _WORK) + power[0], (1 << _WORK) + power[1]), _WORK)))
    powers = tuple(2**place for place in range(len(chances)))
    return BitNoise(
        thresholds=(*chances, *chances),
        sources=tuple(range(2 * len(chances))),
        weights=(*powers, *(-power for power in powers)),
        offset=0,
        distance=2 * (len(chances) + 2) * _UNIT,
    )


@lru_cache(maxsize=64)
def gaussian_bits(sigma_squared: Fraction) -> BitNoise:
    """Return the coins of discrete Gaussian noise, P(x) proportional to exp(-x^2 / (2 sigma^2)).

    Wide noise is a sum of digits, Y_0 + 3 Y_1 + 9 Y_2 + ..., each discrete Gaussian: of square 50 below, of what is
    left on top. As in `syndic.noise.shares`, adding 3^j Y to the sum W of the digits below it gives the discrete
    Gaussian of both squares up to a log ratio of 5 exp(-2 pi^2 v / 9^j), v the harmonic sum of both squares. The square
    of W is at least 9^j 50 / 9 and that of 3^j Y at least 9^j 50, so v / 9^j >= 5 and the ratio is below 2^-138.
    """
    digits, left = 0, sigma_squared
    while (left - _DIGIT_SQUARE) / _BASE**2 >= _DIGIT_SQUARE:
        digits, left = digits + 1, (left - _DIGIT_SQUARE) / _BASE**2
    tables = [*(_upper_chances(_DIGIT_SQUARE) for _ in range(digits)), _upper_chances(left)]
    thresholds: list[int] = []
    sources: list[int] = []
    weights: list[int] = []
    for place, above in enumerate(tables):
        # F(-k) = P(x >= k) and F(k) = 1 - P(x >= k + 1)
        thresholds += [*reversed(above), *((1 << WIDTH) - each - 1 for each in above)]
        sources += [place] * 2 * len(above)
        weights += [-(_BASE**place)] * 2 * len(above)
    return BitNoise(
        thresholds=tuple(thresholds),
        sources=tuple(sources),
        weights=tuple(weights),
        offset=sum(_BASE**place * len(above) for place, above in enumerate(tables)),
        distance=(len(thresholds) + 3 * len(tables)) * 2 * _UNIT,
    )


@lru_cache(maxsize=64)
def _upper_chances(square: Fraction) -> tuple[int, ...]:
    """Return P(x >= k) in units of 2^-128 for k = 1, 2, ... until it is 0."""
    rest = bell_sum(square, 1, _WORK)
    whole = (1 << _WORK) + 2 * rest[0], (1 << _WORK) + 2 * rest[1]
    above: list[int] = []
    for place, weight in enumerate(bell(square, _WORK)):
        if place:
            above.append(_rounded(divide((max(0, rest[0]), max(0, rest[1])), whole, _WORK)))
            rest = rest[0] - weight[1], rest[1] - weight[0]
            if above[-1] == 0:
                break
    return tuple(above)


def _rounded(chance: Enclosure) -> int:
    """Return a threshold that differs from the probability by at most one unit."""
    return chance[0] >> (_WORK - WIDTH)
