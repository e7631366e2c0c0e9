"""Many runs of an estimate at once, through the functions that a study uses; rows are drawn as counts of grid cells."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Integer, Real
from syndic.methods.estimate.plan import Law, Layout
from syndic.methods.histogram.marginals_plan import Share
from syndic.model.families.estimate import Estimated, Noisy, estimate_by_blocks, estimate_by_statistics
from syndic.model.families.family import Array
from syndic.random import Randomness


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """`repeats` studies of `parties` parties with `people` rows each, whose codes have these `chances`."""

    layout: Layout
    chances: Array
    parties: int
    people: int
    repeats: int
    draws: np.random.Generator
    randomness: Randomness

    def _sums(self, rows: int, *shape: int) -> NDArray[np.int64]:
        counts = self.draws.multinomial(rows, self.chances, size=(self.repeats, self.parties, *shape))
        return np.asarray(counts @ self.layout.steps)

    def by_statistics(self, law: Law) -> Estimated:
        """Run DSSA: noise on every party's sums."""
        sums = self._sums(self.people)
        return self._estimated(sums + law.draw(sums.shape, self.randomness), self.people, law.variance, law)

    def masked(self, share: Share) -> Estimated:
        """Run the masked sum: a share of one noise at every party."""
        sums = self._sums(self.people)
        total = (sums + share.draw(sums.shape, self.randomness)).sum(axis=1, keepdims=True)
        return self._estimated(total, self.parties * self.people, share.total_variance(self.parties), share)

    def by_blocks(self, law: Law, blocks: int) -> Estimated:
        """Run DSaA with blocks of equal size: noise on the sum of corrected, projected block estimates."""
        layout, rows = self.layout, self.people // blocks
        sums = self._sums(rows, blocks)
        means = layout.start + layout.unit * sums / rows
        steps = layout.block_steps(layout.model.corrected(means, np.full(means.shape[:-1], rows))).sum(axis=2)
        noisy = steps + law.draw(steps.shape, self.randomness)
        unit = layout.block_unit
        given = Noisy(
            means=layout.model.least + unit * noisy / blocks,
            people=np.full(self.parties, float(rows * blocks)),
            noise=np.tile(law.variance * (unit / blocks) ** 2, (self.parties, 1)),
            peaked=np.full(self.parties, 3.0),
            unit=unit,
        )
        return estimate_by_blocks(layout.model, given)

    def _estimated(self, sums: NDArray[np.int64], people: int, variance: float, law: Law | Share) -> Estimated:
        layout, parties = self.layout, sums.shape[1]
        given = Noisy(
            means=layout.start + layout.unit * sums / people,
            people=np.full(parties, float(people)),
            noise=np.tile(variance * (layout.unit / people) ** 2, (parties, 1)),
            peaked=np.full(parties, 3.0 if hasattr(law, "epsilon") else 0.0),
            unit=layout.unit,
        )
        return estimate_by_statistics(layout.model, given)


def chances_of(column: Any, law: Any) -> Array:
    """Return the chance of every code under a frozen law of scipy, values outside the bounds clipped."""
    if not isinstance(column, Integer | Real):
        raise TypeError(f"{type(column).__name__}: chances are of integer and real columns")
    inner = np.asarray(column.bin_edges[1:-1], dtype=np.float64) - (1 if isinstance(column, Integer) else 0)
    below = np.concatenate([[0.0], law.cdf(inner), [1.0]])
    return np.diff(below)


def squared_error(estimated: Estimated, theta: Array) -> Array:
    """Return the mean squared error of every parameter over all runs."""
    return np.asarray(((estimated.theta - theta) ** 2).mean(axis=0))


def error_of_squares(estimated: Estimated, theta: Array) -> Array:
    """Return the standard error of that mean."""
    return np.asarray(((estimated.theta - theta) ** 2).std(axis=0) / len(estimated.theta) ** 0.5)
