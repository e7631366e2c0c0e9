"""Privacy losses of many repetitions, added up on a grid with proven errors on both sides.

The delta at epsilon of T independent repetitions is E[(1 - exp(epsilon) Q_1 ... Q_T)_+], where Q = exp(-loss).

Upper bound: the expression is convex in each Q, so a Q may be replaced by two neighbours on the grid with the same
mean, and losses may be raised. Losses above `REACH` count as infinite, which adds at most exp(-REACH) of their mass.

Lower bound: losses above REACH are lowered to it, those below -REACH dropped. Putting a loss on its two neighbours
moves it by a random amount within one step; by Hoeffding's inequality the sum of T such moves is within
step sqrt(T log(2 / MISS) / 2) of its mean, except with probability MISS. The sum of losses is lower than that on the
grid by no more than mean + this.

Floating point: each coefficient of a discrete Fourier transform of N points is off by at most 7 u log2(N) times the sum
of its input (Higham 2002, section 24.1; u = 2^-53), which the T-th power multiplies by T times the (T-1)-th power of
the coefficient. The error of the sum over all points is at most sqrt(N) times that of their Euclidean norm. Sums
outside the window wrap around; Chernoff's bound is added for them.
"""

from dataclasses import dataclass
from math import exp, log, log2, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

Losses = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Probabilities, and the privacy loss of each."""
REACH: Final = 9.0
"""How far from epsilon losses are still tracked."""
MISS: Final = 1e-10
POINTS: Final = 2**21
_UNIT: Final = 2.0**-53
# of the window, below 0
_NEGATIVE: Final = 0.25


@final
@dataclass(frozen=True)
class Bracket:
    """A number proven to be from `lower` to `upper`."""

    lower: float
    upper: float


def delta_below(law: Losses, *, repetitions: int, epsilon: float, points: int = POINTS) -> float:
    """Return a lower bound on the delta at `epsilon` of independent repetitions of one privacy loss distribution."""
    (chances, losses), limit = law, epsilon + REACH
    kept = losses >= -limit
    grid = _grid(chances[kept], np.minimum(losses[kept], limit), epsilon, repetitions, points)
    moved = repetitions * grid.drift + grid.step * sqrt(repetitions * log(2 / MISS) / 2)
    found, rounding = grid.delta(epsilon + moved, repetitions)
    return max(0.0, found - grid.invented(repetitions) - rounding - MISS)


def delta_above(law: Losses, *, repetitions: int, epsilon: float, points: int = POINTS) -> float:
    """Return an upper bound on that delta."""
    (chances, losses), limit = law, epsilon + REACH
    infinite = float(chances[losses > limit].sum())
    finite = losses <= limit
    grid = _grid(chances[finite], np.maximum(losses[finite], -limit), epsilon, repetitions, points)
    lost = float(-np.expm1(repetitions * np.log1p(-infinite)))
    found, rounding = grid.delta(epsilon, repetitions)
    return min(1.0, found + grid.hidden(repetitions) + rounding + lost)


def _grid(
    chances: NDArray[np.float64], losses: NDArray[np.float64], epsilon: float, repetitions: int, points: int
) -> "_Grid":
    """Return the distribution on the finest grid of this many points that almost no sum leaves."""
    if epsilon < 0 or repetitions < 1 or points < 2:
        raise InputError(f"epsilon ({epsilon:g}) must not be negative and repetitions ({repetitions}) at least 1")
    width, widest = max(2 * epsilon, 2.0**-6), 4 * (epsilon + REACH)
    while width < widest:
        grid = _Grid(chances, losses, width / points, points)
        if grid.hidden(repetitions) + grid.invented(repetitions) < MISS:
            return grid
        width *= 2
    return _Grid(chances, losses, widest / points, points)


class _Grid:
    """A privacy loss distribution, each loss put on its two neighbours on a grid."""

    def __init__(self, chances: NDArray[np.float64], losses: NDArray[np.float64], step: float, points: int) -> None:
        self.step, self.points = step, points
        self.chances = chances
        self.places = np.floor(losses / step).astype(np.int64)
        # the share on the upper neighbour that keeps the mean of exp(-loss)
        self.upward = np.expm1(self.places * step - losses) / np.expm1(-step)
        self.drift = float(np.sum(chances * ((self.places + self.upward) * step - losses)))

    def delta(self, epsilon: float, repetitions: int) -> tuple[float, float]:
        """Return the delta of the distribution on the grid, and a bound on the floating-point error."""
        masses = np.zeros(self.points)
        np.add.at(masses, self.places % self.points, self.chances * (1 - self.upward))
        np.add.at(masses, (self.places + 1) % self.points, self.chances * self.upward)
        spectrum = np.fft.rfft(masses)
        sums = np.fft.irfft(_power(spectrum, repetitions), n=self.points)
        transform = 7 * _UNIT * log2(self.points) + 4 * _UNIT
        # half of the spectrum is stored; the other half has the same absolute values
        steep = sqrt(2 * float(np.sum(np.abs(spectrum) ** (2 * repetitions - 2))))
        back = sqrt(self.points) * float(np.linalg.norm(sums))
        # the last term is for the probabilities and losses themselves, each accurate to about 1e-13
        rounding = 2 * transform * (repetitions * steep + back) + 1e3 * _UNIT * repetitions
        first = int(np.floor(epsilon / self.step)) + 1
        values = np.arange(first, max(first, int(self.points * (1 - _NEGATIVE)))) * self.step
        return float(np.dot(sums[first : first + len(values)], -np.expm1(epsilon - values))), rounding

    def hidden(self, repetitions: int) -> float:
        """Bound the probability that a large sum wraps around and looks small."""
        return self._chernoff(repetitions, self.points * self.step * (1 - _NEGATIVE), 1)

    def invented(self, repetitions: int) -> float:
        """Bound the probability that a sum wraps around and looks large: from below, or by a whole turn."""
        width = self.points * self.step
        return self._chernoff(repetitions, width * _NEGATIVE, -1) + self._chernoff(repetitions, width, 1)

    def _chernoff(self, repetitions: int, reach: float, sign: int) -> float:
        """Bound the probability that the sum of this many losses on the grid, times the sign, is `reach` or more."""
        found = 1.0
        for tilt in sign * 2.0 ** np.arange(-3, 13):
            exponents = tilt * self.step * self.places
            if not exponents.size or float(exponents.max()) > 600:
                continue  # beyond a double
            grown = np.exp(exponents)
            moment = float(np.sum(self.chances * grown * (1 + self.upward * np.expm1(tilt * self.step))))
            found = min(found, exp(min(0.0, repetitions * log(moment) - abs(tilt) * reach)))
        return found


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return every value to the power, by squaring."""
    result: NDArray[np.complex128] | None = None
    while True:
        if exponent & 1:
            result = values.copy() if result is None else result * values
        exponent >>= 1
        if not exponent:
            assert result is not None  # noqa: S101 (the exponent is at least 1)
            return result
        values = values * values
