"""HOMM's error bounds (Su and Liu 2020): as published, and corrected.

Everything here is a function of public numbers: declared sizes, bins, bounds and budgets. The proofs take the
variance of Laplace noise as 1/epsilon where it is 2/epsilon^2, and the width of a bin as B/m where in p
dimensions it is 2B/m^(1/p); they leave out clamping. Bounds in O-notation are given with constant 1:
they show a direction, never an amount.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray


class Bound(NamedTuple):
    """A bound on a mean squared error, as the paper prints it and corrected."""

    printed: float
    corrected: float


class RoundPlanner(NamedTuple):
    """The three quantities that bounds are made of: of the noise, and of people within and across bins."""

    noise: float
    within: float
    across: float


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Merged:
    """Expected counts of every party's bins (declared, not read off rows), its epsilon, and the dimension p."""

    counts: Sequence[NDArray[np.float64]]
    epsilons: Sequence[float]
    dimensions: int = 1

    def __post_init__(self) -> None:
        if not self.counts or len(self.counts) != len(self.epsilons):
            raise ValueError(
                f"there are counts of {len(self.counts)} parties but {len(self.epsilons)} epsilons: give one for each"
            )
        if self.dimensions < 1 or min(self.epsilons) <= 0:
            raise ValueError("dimensions must be at least 1 and every epsilon above 0")

    @cached_property
    def people(self) -> float:
        """People of all parties, n."""
        return float(sum(counts.sum() for counts in self.counts))

    @cached_property
    def bins(self) -> int:
        """Bins of all parties, m."""
        return sum(counts.size for counts in self.counts)

    @property
    def printed_epsilon(self) -> float:
        """The paper's average of the budgets, harmonic and weighted by bins: eps_bar."""
        return self.bins / sum(c.size / e for c, e in zip(self.counts, self.epsilons, strict=True))

    @property
    def corrected_epsilon(self) -> float:
        """The average that utility follows: sqrt(m / sum_k m_k / eps_k^2)."""
        return math.sqrt(self.bins / sum(c.size / e**2 for c, e in zip(self.counts, self.epsilons, strict=True)))

    @property
    def printed(self) -> RoundPlanner:
        """Return m/eps_bar, n2_bar and nn_bar."""
        return self._spread(self.bins / self.printed_epsilon, [1 / counts.size for counts in self.counts])

    @property
    def corrected(self) -> RoundPlanner:
        """Return sum_k 2 m_k/eps_k^2, and the same sums with bins as wide as they are."""
        noise = sum(2 * c.size / e**2 for c, e in zip(self.counts, self.epsilons, strict=True))
        return self._spread(noise, self.widths)

    @property
    def widths(self) -> list[float]:
        """Width of every party's bins for values from -1 to 1: 2 / m_k^(1/p)."""
        return [2 / counts.size ** (1 / self.dimensions) for counts in self.counts]

    def _spread(self, noise: float, widths: Sequence[float]) -> RoundPlanner:
        within = sum(float((c**2).sum()) * w**2 for c, w in zip(self.counts, widths, strict=True))
        total = sum(float(c.sum()) * w for c, w in zip(self.counts, widths, strict=True))
        # sums over pairs of different bins are the square of the sum less the equal pairs
        return RoundPlanner(noise, within, total**2 - within)


def mean_bound(merged: Merged, *, bound: float, variance: float) -> Bound:
    """Theorem 1, the explicit bound of its proof. `bound` is B with |Y| <= B."""
    people, printed = merged.people, merged.printed
    share = bound**2 / people**2
    width = sum(float(c.sum()) / people * w * bound for c, w in zip(merged.counts, merged.widths, strict=True))
    return Bound(
        share * (12 * printed.noise + 2 * printed.across + 4 * printed.within) + 2 * variance / people,
        12 * share * merged.corrected.noise + 8 * width**2 + 2 * variance / people,
    )


def gaussian_mean_bound(merged: Merged, *, mean: float, variance: float) -> Bound:
    """Corollary 1: Theorem 1 with B = |mu| + sigma sqrt(2 ln n), the expected largest of n normal values."""
    largest = abs(mean) + math.sqrt(2 * variance * math.log(merged.people))
    return mean_bound(merged, bound=largest, variance=variance)


def _bracket(merged: Merged, spread: RoundPlanner) -> float:
    """Return the bracket of Corollary 2: (m/eps_bar + n2_bar/m + nn_bar) / n^2."""
    return (spread.noise + spread.within / merged.bins + spread.across) / merged.people**2


def linear_bound(
    merged: Merged, *, coefficients: NDArray[np.float64], bounds: NDArray[np.float64], variance: float
) -> Bound:
    """Theorem 2: coefficients by least squares, |X_j| <= bounds[j], unbounded Y with residual variance."""
    reach = float(coefficients @ bounds)
    size = (reach**2 + variance * math.log(merged.people)) ** 2 * float(bounds @ bounds)
    return _scaled(merged, size, variance / merged.people)


def bounded_linear_bound(
    merged: Merged, *, bounds: NDArray[np.float64], outcome_bound: float, variance: float
) -> Bound:
    """Corollary 2: as Theorem 2 with a global |Y| <= outcome_bound."""
    return _scaled(merged, float(bounds @ bounds) * outcome_bound**2, variance / merged.people)


def prediction_bound(
    merged: Merged,
    *,
    point: NDArray[np.float64],
    bounds: NDArray[np.float64],
    outcome_bound: float,
    variance: float,
) -> Bound:
    """Corollary 3: the prediction at `point`, |point|^2 times Corollary 2."""
    whole = bounded_linear_bound(merged, bounds=bounds, outcome_bound=outcome_bound, variance=variance)
    return Bound(float(point @ point) * whole.printed, float(point @ point) * whole.corrected)


def kernel_bound(
    merged: Merged, *, bandwidth: float, upper: float, weight_bound: float, outcome_bound: float, variance: float
) -> Bound:
    """Theorem 3: box-kernel regression, X uniform on [0, upper]; the window holds n_0 = 2 n h / upper people."""
    share = 2 * bandwidth / upper
    if not 0 < share <= 1:
        raise ValueError(f"bandwidth ({bandwidth}) must be above 0 and at most half of upper ({upper})")
    window = Merged(
        counts=[counts * share for counts in merged.counts], epsilons=merged.epsilons, dimensions=merged.dimensions
    )
    return _scaled(window, (weight_bound * outcome_bound) ** 2, variance / window.people)


def generalised_linear_bound(
    merged: Merged, *, coefficients: NDArray[np.float64], bounds: NDArray[np.float64], outcome_bound: float
) -> Bound:
    """Theorem 4: squared change of a GLM's loss (canonical link) at its coefficients."""
    fourth = float((bounds**4).sum())
    reach = float((coefficients**2) @ (bounds**2))
    # the only eigenvalue of beta beta' that is not zero
    eigenvalue = float(coefficients @ coefficients)

    def loss(spread: RoundPlanner) -> float:
        linear = (6 * spread.noise + spread.within + 2 * spread.across) * bounds.size * reach * outcome_bound**2
        square = eigenvalue**2 * fourth * (6 * spread.noise + spread.across + 2 * spread.within)
        return (linear + square) / merged.people**2

    return Bound(loss(merged.printed), loss(merged.corrected))


def clamping_surplus(count: float, scale: float) -> float:
    """Return E max(n + Lap(b), 0) - n = (b/2) e^(-n/b): the rows of nobody that clamping adds to a bin."""
    return scale / 2 * math.exp(-count / scale)


def rounded_surplus(count: int, scale: float) -> float:
    """Return the same surplus where the noise is rounded first, as the paper's tables need."""
    return math.exp(-(count + 0.5) / scale) / 2 / -math.expm1(-1 / scale)


def _scaled(merged: Merged, size: float, sampling: float) -> Bound:
    return Bound(
        _bracket(merged, merged.printed) * size + sampling, _bracket(merged, merged.corrected) * size + sampling
    )
