"""Errors that HOMM's Theorems 1 to 4 bound, simulated as they state them: noise on every bin, no clamping, one party.

Counts are drawn from their multinomial distribution, so the number of people costs nothing. Released values are spread
evenly within bins: squares of a value have the twelfth of a squared width added, which is exact for many people.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic_lab.bench.homm import bounds
from syndic_lab.bench.homm.bounds import Bound, Merged
from syndic_lab.bench.row import Row, standard_error

Numbers = NDArray[np.float64]
PEOPLE: Final = 1_000_000
# where noise dominates, a factor of ten apart
EPSILONS: Final = (0.02, 0.002)
_SIDE, _SLOPE, _NOISE, _BAND = 24, 0.6, 0.2, 0.25


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """A histogram of x and y in [-1, 1], the centres of its cells and their chances."""

    x: Numbers
    y: Numbers
    chances: Numbers
    width: float

    def released(self, epsilon: float, draws: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Return true and noisy counts of one data set."""
        counts = draws.multinomial(PEOPLE, self.chances.ravel()).reshape(self.chances.shape).astype(np.float64)
        return counts, counts + draws.laplace(0, 1 / epsilon, counts.shape)

    def merged(self, epsilon: float, dimensions: int) -> Merged:
        """Return what the bounds are made of."""
        return Merged(counts=[PEOPLE * self.chances], epsilons=[epsilon], dimensions=dimensions)


def _plane() -> Grid:
    """Return x spread evenly, y = slope x + noise, cut at the edges."""
    edges = np.linspace(-1, 1, _SIDE + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    x, y = np.meshgrid(centres, centres, indexing="ij")
    density = np.exp(-0.5 * ((y - _SLOPE * x) / _NOISE) ** 2)
    return Grid(x, y, density / density.sum(), float(edges[1] - edges[0]))


def _line() -> Grid:
    centres = (np.arange(1000) + 0.5) / 500 - 1
    return Grid(np.zeros(1000), centres, np.full(1000, 1e-3), 2e-3)


def _labels() -> Grid:
    """Return x spread evenly and a label with the chances of a logistic model."""
    centres = (np.arange(400) + 0.5) / 200 - 1
    one = 1 / (1 + np.exp(-_SLOPE * centres))
    x, y = np.repeat(centres[:, None], 2, axis=1), np.tile([0.0, 1.0], (400, 1))
    return Grid(x, y, np.column_stack([1 - one, one]) / 400, 0.005)


def _mean(grid: Grid, counts: Numbers) -> float:
    return float((counts * grid.y).sum() / counts.sum())


def _slope(grid: Grid, counts: Numbers) -> float:
    return float((counts * grid.x * grid.y).sum() / (counts * (grid.x**2 + grid.width**2 / 12)).sum())


def _kernel(grid: Grid, counts: Numbers) -> float:
    near = np.abs(grid.x) <= _BAND
    return float((counts * grid.y)[near].sum() / counts[near].sum())


def _loss(grid: Grid, counts: Numbers) -> float:
    each = np.logaddexp(0, _SLOPE * grid.x) - grid.y * _SLOPE * grid.x
    return float((counts * each).sum() / PEOPLE)


_VARIANCE: Final = _NOISE**2
_ONE: Final = np.array([1.0])
# what is estimated on which grid, and the theorem's bound
THEOREMS: Final[dict[int, tuple[Grid, Callable[[Grid, Numbers], float], Callable[[Grid, float], Bound]]]] = {
    1: (_line(), _mean, lambda grid, e: bounds.mean_bound(grid.merged(e, 1), bound=1.0, variance=1 / 3)),
    2: (_plane(), _slope, lambda grid, e: bounds.linear_bound(
        grid.merged(e, 2), coefficients=np.array([_SLOPE]), bounds=_ONE, variance=_VARIANCE)),
    3: (_plane(), _kernel, lambda grid, e: bounds.kernel_bound(
        grid.merged(e, 2), bandwidth=_BAND, upper=2.0, weight_bound=1.0, outcome_bound=1.0, variance=_VARIANCE)),
    4: (_labels(), _loss, lambda grid, e: bounds.generalised_linear_bound(
        grid.merged(e, 1), coefficients=np.array([_SLOPE]), bounds=_ONE, outcome_bound=1.0)),
}  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """Yield the mean squared error over the printed bound, beside that over the corrected one.

    The error is that of the release against the estimate without noise. Theorem 1 has constants: its ratio may be at
    most 1. The others are orders: their ratios may not grow as epsilon falls.
    """
    repeats = 300 if quick else 3000
    for number, (grid, estimate, bound) in THEOREMS.items():
        for epsilon in EPSILONS:
            draws = np.random.default_rng([2020, number])
            pairs = (grid.released(epsilon, draws) for _ in range(repeats))
            squares = [(estimate(grid, noisy) - estimate(grid, counts)) ** 2 for counts, noisy in pairs]
            at = bound(grid, epsilon)
            yield Row(
                bench="homm",
                row=f"Theorem {number}, epsilon {epsilon:g}",
                metric="error over the printed bound",
                value=float(np.mean(squares)) / at.printed,
                unit="ratio",
                baseline=float(np.mean(squares)) / at.corrected,
                published=1.0 if number == 1 else None,
                error=standard_error(squares) / at.printed,
                runs=repeats,
            )
