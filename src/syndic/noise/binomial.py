"""Integer noise as a weighted sum of fair coins, which two servers can toss without either of them knowing a coin.

Z = 2^power T + U less its mean: T sums coins of several weights, U is uniform on 0 .. 2^power - 1 (a coin for each
bit). *Guarantee*: a value that moves by at most so many steps is `mu`-GDP but for a slack; values add mu^2 and slacks.

*Why it holds.* T, but for a mass of 2^-110, is log-concave; that is checked on its computed law. So thresholds are the
best tests between T and T + a, and their power grows with a. A shift of Z by a 2^power - r, 0 <= r < 2^power, leaves
the last bits uniform, and in view of them moves T by a or a - 1: a is worse. Let S(t) = P(T >= t), z(t) =
-Phi^-1(S(t)). The threshold t has level S(t) and power S(t - a). At this level the best test between N(0, 1) and
N(mu, 1) has no less power if z(t) - z(t - a) <= mu. Let mu be the largest of these differences where S(t - a) is from
c = 2^-70 to 1 - c. Between the first and the last such threshold no test is better than a Gaussian one, as the power of
the latter, g, is concave in the level. Let r be the greatest power of tests of T. min(r, g) is concave as well: it is
that of T and of another law in place of T + a, at a distance of at most what r gains outside, c at either end.

Binomial tails are lighter than Gaussian ones, so mu is some 4 % above shift / standard deviation. A Renyi divergence
does not exist, as neighbours differ in their possible results.

*Weights.* 30 coins each of 1, 3, 9, .., 243 below some 600 of a larger weight (at most 729): wide noise from few coins.
The law is smooth, since what remains of a period of 3^(i + 1) after the coins of 3^i is |cos(pi / 3)|^30 = 2^-30.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.integer import SCALE_LIMIT

Changes = tuple[tuple[int, int], ...]
"""By how many steps a person's values may move, each with the number of such values."""

SLACK: Final = Fraction(1, 2**68)
"""The slack of each value: twice 2^-70, and what is cut off the law."""

_BASE: Final = 3
_DIGITS: Final = 6
_LOWER: Final = 30
_UPPER: Final = 600
_END: Final = 2.0**-70
_TAIL: Final = 2.0**-110
# of probabilities, sums of a few hundred positive numbers, and of quantiles of sums of up to a million
_ROUNDING: Final = 2.0**-40
_MARGIN: Final = 2.0**-34
_PRECISION: Final = Fraction(1, 2**9)

Floats = NDArray[np.float64]


@final
class BinomialNoise(Document, frozen=True, kw_only=True):
    """Noise of each value: `counts` coins of the `weights`, times 2^`power`, and one coin for each lower bit."""

    weights: tuple[int, ...]
    counts: tuple[int, ...]
    power: int = 0

    @property
    def coins(self) -> tuple[int, ...]:
        """The weight of every coin of one value."""
        groups = zip(self.weights, self.counts, strict=True)
        upper = (weight << self.power for weight, count in groups for _ in range(count))
        return (*upper, *(1 << place for place in range(self.power)))

    @property
    def variance(self) -> float:
        """The variance of one value, in squared units of the values."""
        return sum(weight**2 for weight in self.coins) / 4

    @property
    def mean(self) -> int:
        """What is subtracted from the sum of the coins: their mean, or a half less."""
        return self._largest // 2

    @property
    def reach(self) -> int:
        """The largest absolute value."""
        return self._largest - self.mean

    @property
    def _largest(self) -> int:
        """The sum of all coins if each is 1."""
        upper = sum(weight * count for weight, count in zip(self.weights, self.counts, strict=True))
        return ((upper + 1) << self.power) - 1

    def mu(self, steps: int) -> float:
        """Return mu for a value that moves by so many steps at most; infinity where none is known."""
        scores, shift = _scores(self.weights, self.counts), -(-steps >> self.power)
        if scores is None:
            return math.inf
        last = scores.size - 1
        end = int(np.searchsorted(scores, scipy.special.ndtri(_END), side="right")) - 1
        # beyond the largest value there is no score
        if shift >= end:
            return math.inf
        moved = scores[end + shift : last - end + shift + 1] - scores[end : last - end + 1]
        return float(moved.max()) + _MARGIN

    def mu_squared(self, changes: Changes) -> float:
        """Return mu^2 for values that move by so many steps at most."""
        return sum(count * self.mu(steps) ** 2 for steps, count in changes)


def upper_law(weights: tuple[int, ...], counts: tuple[int, ...]) -> Floats:
    """Return the probabilities of T from its least value on, each exact but for a part of 2^-40."""
    law = np.ones(1)
    for weight, count in zip(weights, counts, strict=True):
        found = np.zeros(law.size + weight * count)
        for heads in range(count + 1):
            found[weight * heads : weight * heads + law.size] += law * (math.comb(count, heads) / 2**count)
        law = found
    return law


@lru_cache(maxsize=4)
def _scores(weights: tuple[int, ...], counts: tuple[int, ...]) -> Floats | None:
    """Return Phi^-1(P(T < t)) for every t, without the tails of T, if its law is log-concave there."""
    law = upper_law(weights, counts)
    first = int(np.searchsorted(np.cumsum(law), _TAIL / 2))
    inner = law[first : law.size - first]
    smooth = inner[1:-1] ** 2 >= inner[2:] * inner[:-2] * (1 + 4 * _ROUNDING)
    # a zero between others would pass for smooth
    if inner.size < 2 or not inner.all() or not smooth.all():
        return None
    # the law is symmetric, and small probabilities are exact
    lower = scipy.special.ndtri(np.concatenate([[0.0], np.cumsum(inner)])[: inner.size // 2 + 1])
    return np.concatenate([lower, -lower[: inner.size + 1 - lower.size][::-1]])


def binomial_of(variance: Fraction) -> BinomialNoise:
    """Return noise of at least this variance, or about so much."""
    if variance > SCALE_LIMIT**2:
        raise InputError(
            "the noise must have a standard deviation of at most 2^52: use fewer bits, or a larger epsilon"
        )
    power = 0
    while 4 * variance / 4**power > _UPPER * _BASE ** (2 * _DIGITS):
        power += 1
    left = variance / 4**power
    # at least two thirds of them
    top = max(1, int(math.sqrt(4 * left / _UPPER) + 0.37))
    below = [_BASE**place for place in range(_DIGITS) if _BASE**place < top]
    rest = 4 * left - _LOWER * sum(weight**2 for weight in below)
    count = max(1, math.ceil(rest / top**2))
    count += count % 2  # so that the mean is a whole number, but for lower bits
    return BinomialNoise(weights=(*below, top), counts=(*(_LOWER for _ in below), count), power=power)


@lru_cache(maxsize=64)
def binomial_for(changes: Changes, mu_squared: Fraction) -> BinomialNoise:
    """Return about the least noise of at most this mu^2 for values that move by so many steps at most."""

    def found(factor: Fraction) -> BinomialNoise | None:
        noise = binomial_of(least * factor)
        return noise if noise.mu_squared(changes) <= mu_squared else None

    # Gaussian noise of this variance would do
    least = sum(count * steps**2 for steps, count in changes) / max(mu_squared, Fraction(1, SCALE_LIMIT**2))
    low, high, step, best = Fraction(1), Fraction(1), Fraction(1, 16), None
    while best is None:
        low, high, step = high, high + step, 2 * step
        best = found(high)
    while high - low > _PRECISION:
        middle = (low + high) / 2
        tried = found(middle)
        low, high, best = (low, middle, tried) if tried else (middle, high, best)
    return best
