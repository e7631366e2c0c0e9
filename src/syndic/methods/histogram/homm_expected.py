"""Expected errors of a merged table, from its noisy histograms alone.

A cell that nobody is in is dropped with a known chance, so the dropped cells tell how many are empty, and how many rows
of the table are nobody's; both also for the cells behind a cell of one or two columns. The error of such a cell is the
distance of its share from the one without these rows, and the noise of all cells behind it. If `at_least` drops cells
with people, the table has fewer rows than the study has people, and their values are unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.kernel import people_of
from syndic.methods.histogram.homm import HommPlan, MergedTable, Noise, PublishedLaplace
from syndic.methods.synthesis.expected import Floats, limit_of, mean_width, strength_of
from syndic.methods.synthesis.trust import DIGITS, ColumnTrust, ExpectedError, PairTrust, Reliability
from syndic.model.selection.score import MEAN_ABSOLUTE
from syndic.noise import DiscreteGaussian

# larger columns are compared by groups of neighbouring levels
_MOST_LEVELS: Final = 512
_STEPS: Final = 500
_REACH: Final = 40


def reliability_of_grid(plan: HommPlan, merged: MergedTable) -> Reliability:
    """Return the expected errors of every column and pair of a merged table."""
    grid, schema = _Grid(plan, merged), plan.terms.schema
    columns = []
    for name in schema.names:
        error, table = grid.expected((name,))
        width = mean_width(schema[name], np.arange(schema[name].size) // grid.step(name), table)
        columns.append(ColumnTrust(column=name, expected=error, merged=0.0, width=width))
    pairs = []
    for pair in combinations(schema.names, 2):
        error, table = grid.expected(pair)
        pairs.append(
            PairTrust(
                columns=pair,
                expected=error,
                strength=round(strength_of(table), DIGITS),
                limit=round(limit_of(table), DIGITS),
                measured=True,
                held=True,
            )
        )
    return Reliability(columns=tuple(columns), pairs=tuple(pairs))


@final
@dataclass(frozen=True)
class _Empty:
    """What the public rule keeps of the noise on an empty cell: its mean and variance; the chance of being dropped."""

    mean: float
    variance: float
    dropped: float


class _Grid:
    """The noisy histograms of all parties, summed to tables of a few columns."""

    def __init__(self, plan: HommPlan, merged: MergedTable) -> None:
        self._plan, self._domain = plan, plan.terms.schema.domain
        self._counts = {name: one.counts.astype(np.float64) for name, one in merged.histograms.items()}
        self._codes: dict[str, Mapping[str, NDArray[np.int64]]] = {
            name: dict(zip(self._domain.names, self._domain.unravel(one.cells), strict=True))
            for name, one in merged.histograms.items()
        }
        self._empty = {name: _empty(noise, plan) for name, noise in plan.noise.items()}

    def step(self, name: str) -> int:
        """Return how many neighbouring levels of a column are taken together."""
        return -(-self._domain[name] // _MOST_LEVELS)

    def expected(self, names: tuple[str, ...]) -> tuple[ExpectedError, Floats]:
        """Return the expected error of a table, and its counts without the rows of nobody."""
        sizes = {name: np.bincount(np.arange(self._domain[name]) // self.step(name)) for name in names}
        part = Domain.of({name: len(one) for name, one in sizes.items()})
        behind = np.full(1, self._domain.size / self._domain.project(names).size)
        for levels in sizes.values():
            behind = np.outer(behind, levels).ravel()
        found, nobody, variance = np.zeros((3, part.size))
        for party, counts in self._counts.items():
            cells = part.index([self._codes[party][name] // self.step(name) for name in names])
            empty, one = self._empty[party], self._plan.noise[party].variance
            dropped = behind - np.bincount(cells, minlength=part.size)
            vacant = np.clip(dropped / empty.dropped, 0, behind) if empty.dropped else np.zeros(part.size)
            found += np.bincount(cells, weights=counts, minlength=part.size)
            nobody += vacant * empty.mean
            variance += vacant * empty.variance + (behind - vacant) * one
        people = np.maximum(found - nobody, 0.0)
        rows, total = max(float(found.sum()), 1.0), max(float(people.sum()), 1.0)
        off, deviation = np.abs(found / rows - people / total), np.sqrt(variance) / rows
        even = np.abs(people / total - behind / behind.sum()).sum() / 2
        noise = min(1.0, float(np.hypot(off, MEAN_ABSOLUTE * deviation).sum()) / 2)
        declared = people_of(self._plan.terms)
        # of the people whose cells were dropped; nobody's are unless `at_least` drops more than noise alone
        lost = 0.0 if self._plan.at_least == 1 or not declared else max(0.0, 1 - total / declared)
        error = ExpectedError.of(noise=noise, model=lost * float(even))
        return error, people.reshape(part.sizes)


def _empty(noise: Noise, plan: HommPlan) -> _Empty:
    """Return what is kept of the noise on an empty cell, summed over its distribution in steps of at least 1."""
    deviation = noise.variance**0.5
    if not plan.clamp:
        return _Empty(0.0, noise.variance, 0.0)
    step = max(1.0, deviation / _STEPS)
    reach = np.arange(-_REACH * max(deviation, 1.0), _REACH * max(deviation, 1.0) + step, step).round()
    if isinstance(noise, DiscreteGaussian):
        chances = np.exp(-np.square(reach) / (2 * float(noise.sigma_squared)))
    else:
        scale = 1 / noise.epsilon if isinstance(noise, PublishedLaplace) else noise.scale
        chances = np.exp(-np.abs(reach) / float(scale))
    chances /= chances.sum()
    kept = np.where(reach >= plan.at_least, reach, 0.0)
    mean = float(chances @ kept)
    return _Empty(mean, float(chances @ np.square(kept)) - mean**2, float(chances[reach < plan.at_least].sum()))
