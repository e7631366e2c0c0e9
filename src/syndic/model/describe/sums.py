"""Noisy sums over people, and functions of them with an interval.

A function of the sums is computed with its derivatives (`syndic.model.interval.question.Estimate`). With z what a
person adds to the sums, its error has the variance d' (sum of z z') d of sampling, for functions that do not change if
all people are there twice, and d' V d of the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Final, Self, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.model.interval.question import Estimate
from syndic.model.interval.wilson import WIDTH

Floats = NDArray[np.float64]

CLEAR: Final = 4.0
"""How many standard errors what is divided by must be from 0: closer, a normal interval does not cover."""
NORMAL: Final = (0.0, 3.0)
"""Skewness and kurtosis of a normal distribution."""


@final
@dataclass(frozen=True)
class Statistic:
    """A number with its interval and, where it compares, the p-value of no difference; None where noise hides it.

    `widened`: how many times as wide as without noise.
    """

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    widened: float | None = None


@final
@dataclass(frozen=True)
class ChiSquared:
    """A test's statistic, about chi-squared with `degrees` of freedom if nothing differs."""

    statistic: float
    degrees: int

    @property
    def p_value(self) -> float:
        """The probability of so large a statistic if nothing differs."""
        return float(scipy.special.chdtrc(self.degrees, self.statistic))


@final
@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums, the sum of z z' over people, and the covariance of the noise."""

    values: Floats
    sampling: Floats
    noise: Floats

    @classmethod
    def of_counts(cls, counts: Floats, variances: Floats, repeated: int = 1) -> Self:
        """Return counts of different people; `repeated`: how many rows one person may have."""
        return cls(counts, np.diag(np.maximum(counts, 0.0) * repeated), np.diag(variances))

    @classmethod
    def of_numbers(cls, cells: Floats, noise: Floats, shapes: Sequence[tuple[float, float]], repeated: int = 1) -> Self:
        """Return the number, sum and sum of squares of each cell's people (a row), with their skewness and kurtosis."""
        sampling = np.zeros((cells.size, cells.size))
        for place, ((count, total, squares), (skewness, kurtosis)) in enumerate(zip(cells, shapes, strict=True)):
            people = max(float(count), 1.0)
            centre = total / people
            spread = max(squares / people - centre**2, 0.0)
            third = skewness * spread**1.5 + 3 * centre * spread + centre**3
            fourth = kurtosis * spread**2 + 4 * centre * skewness * spread**1.5 + 6 * centre**2 * spread + centre**4
            second = spread + centre**2
            raw = np.array([[1.0, centre, second], [centre, second, third], [second, third, fourth]])
            here = slice(3 * place, 3 * place + 3)
            sampling[here, here] = repeated * people * raw
        return cls(cells.ravel(), sampling, np.asarray(np.kron(np.eye(len(cells)), noise), np.float64))

    def __getitem__(self, place: int) -> Estimate:
        return Estimate(float(self.values[place]), np.eye(self.values.size)[place])

    def errors(self, found: Estimate) -> tuple[float, float]:
        """Return the variances of a function of the sums, of sampling and of the noise."""
        slope = np.broadcast_to(found.influence, self.values.shape)
        return max(float(slope @ self.sampling @ slope), 0.0), float(slope @ self.noise @ slope)

    def clear(self, *found: Estimate) -> bool:
        """Return whether functions of the sums are known well enough to divide by them."""
        return all(np.isfinite(one.value) and abs(one.value) > CLEAR * sqrt(sum(self.errors(one))) for one in found)

    def statistic(self, found: Estimate, *, logarithm: bool = False) -> Statistic:
        """Return the interval of a function of the sums, and the p-value of 0; none if a divisor is not clear.

        `logarithm`: `found` is the logarithm of what is returned.
        """
        if not self.clear(*found.divisors):
            return Statistic()
        sampling, noise = self.errors(found)
        widened = sqrt(1 + noise / sampling) if sampling > 0 else None
        return statistic_of(found.value, sqrt(sampling + noise), widened, logarithm=logarithm)


def statistic_of(value: float, error: float, widened: float | None, *, logarithm: bool) -> Statistic:
    """Return a number with this standard error, and the p-value of 0; of a `logarithm`, what it is of."""
    ends = (value, value - WIDTH * error, value + WIDTH * error)
    middle, lower, upper = (exp(min(end, 700.0)) for end in ends) if logarithm else ends
    p_value = float(2 * scipy.special.ndtr(-abs(value) / error)) if error > 0 else None
    return Statistic(middle, lower, upper, p_value, widened)


def quadratic(values: Floats, covariance: Floats) -> ChiSquared | None:
    """Return the test that all values are 0, given the covariance of their errors; None if it is not positive."""
    if not values.size or not np.isfinite(covariance).all():
        return None
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    if np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() <= 1e-12:
        return None
    return ChiSquared(float(values @ np.linalg.solve(covariance, values)), values.size)
