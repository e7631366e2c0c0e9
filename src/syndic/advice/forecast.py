"""Forecast sums over the rows that HOMM would release about artificial people, at any factor on the budgets.

A sum is over many cells whose counts are nearly independent, so it is nearly normal. Its mean and covariance follow
from those of every count: cells with artificial people are added one by one, all others by averages over the whole
grid, however large it is. The same standard draws serve every factor, so curves over epsilon are smooth.
"""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Final, NamedTuple, final

import numpy as np
from scipy.special import gammaln, xlogy

from syndic.advice.budgets import scaled
from syndic.advice.population import PEOPLE, Population
from syndic.advice.question import Summand
from syndic.advice.scale import Numbers
from syndic.methods.histogram.homm import HommPlan, PublishedLaplace
from syndic.noise import DiscreteGaussian
from syndic.study import Study

_DRAWS: Final = 2000
_STEPS = 200  # numbers of people that are tried for a cell
_FINE = 500  # steps of the noise within its scale
_REACH = 40  # scales beyond which there is no noise


class InCells(NamedTuple):
    """Numbers of people that cells may have (cells x numbers), and their chances."""

    numbers: Numbers
    chances: Numbers


def people_in_cells(expected: Numbers) -> InCells:
    """Return the numbers of people in cells that expect so many: Poisson distributions, large ones in wider steps."""
    expected = expected[:, None]
    wide = 8 * np.sqrt(expected) + 10
    numbers = np.floor(np.maximum(expected - wide, 0)) + np.ceil(2 * wide / _STEPS) * np.arange(_STEPS)
    chances = np.exp(xlogy(numbers, expected) - expected - gammaln(numbers + 1))
    return InCells(numbers, chances / chances.sum(axis=1, keepdims=True))


def kept_of(plan: HommPlan, party: str, people: InCells) -> Numbers:
    """Return what a party releases of cells with so many people (4 x cells).

    Mean, variance and mean size of the count, and how much the mean grows with each person.
    """
    errors, chances = _noise(plan, party)
    # sums of the chance, of e and of e^2 over all noise e from each place on
    tails = np.stack([chances, chances * errors, chances * errors**2])[:, ::-1].cumsum(axis=1)[:, ::-1]
    tails = np.pad(tails, ((0, 0), (0, 1)))

    def above(least: int, counts: Numbers) -> tuple[Numbers, Numbers]:
        """Return mean and mean square of the noisy counts of at least `least`, 0 where they are less."""
        zero, one, two = tails[:, np.searchsorted(errors, least - counts)]
        return counts * zero + one, counts**2 * zero + 2 * counts * one + two

    numbers = people.numbers
    if plan.clamp:
        mean, square = above(plan.at_least, numbers)
        size, more = mean, above(plan.at_least, numbers + 1)[0]
    else:
        mean, square = numbers, numbers**2 + tails[2, 0]
        size, more = 2 * above(0, numbers)[0] - mean, numbers + 1
    mean, square, size, more = ((one * people.chances).sum(axis=1) for one in (mean, square, size, more))
    return np.stack([mean, square - mean**2, size, more - mean])


def _noise(plan: HommPlan, party: str) -> tuple[Numbers, Numbers]:
    """Return the noise on one count and its chances, in steps of more than 1 where it is wide."""
    noise = plan.noise[party]
    gaussian = isinstance(noise, DiscreteGaussian)
    if isinstance(noise, PublishedLaplace):
        scale = float(1 / noise.epsilon)
    else:
        scale = sqrt(noise.sigma_squared) if isinstance(noise, DiscreteGaussian) else float(noise.scale)
    step = max(1, int(scale / _FINE))
    reach = ceil((_REACH * scale + plan.at_least) / step) + 1
    errors = step * np.arange(-reach, reach + 1.0)
    chances = np.exp(-((errors / scale) ** 2) / 2 if gaussian else -np.abs(errors) / scale)
    return errors, chances / chances.sum()


class Kept(NamedTuple):
    """Counts of cells with people and, last, of an empty cell: their means, variances and mean sizes (3 x cells).

    A party's people are a fixed number, so that counts of different cells have a covariance: minus the sum of products
    of `bound` (parties x cells).
    """

    moments: Numbers
    bound: Numbers


@final
class Forecast:
    """The counts that a study would release about a population: in cells with people, and in an empty cell."""

    def __init__(self, study: Study, population: Population) -> None:
        """Count the population in the grid."""
        self._study, self.domain = study, study.schema.domain
        cells, counts = np.unique(self.domain.index(population.codes), return_counts=True)
        self.codes = self.domain.unravel(cells)
        # cells with as many people are alike; the last is one of the empty cells
        self._shares, self._place = np.unique(np.append(counts, 0) / PEOPLE, return_inverse=True)
        self._people = {party.name: people_in_cells((party.people or 0) * self._shares) for party in study.parties}

    def kept(self, factor: float) -> Kept:
        """Return the counts of all parties together, all budgets times `factor`."""
        plan, moments, bound = scaled(self._study, factor).plan_as(HommPlan), np.zeros((3, len(self._shares))), []
        for party in self._study.parties:
            *found, growth = kept_of(plan, party.name, self._people[party.name])
            moments += found
            bound.append(sqrt(party.people or 0) * self._shares * growth)
        return Kept(moments[:, self._place], np.array(bound)[:, self._place[:-1]])

    def rows_of_nobody(self) -> float:
        """Return the expected number of released rows in cells where a party has no people."""
        plan, rows = self._study.plan_as(HommPlan), 0.0
        for name, people in self._people.items():
            vacant = np.where(people.numbers[:, 0] == 0, people.chances[:, 0], 0.0)[self._place]
            empty = self.domain.size - float((1 - vacant).sum())
            rows += empty * float(kept_of(plan, name, people)[2, self._place[-1]])
        return rows


@final
class Sums:
    """Some sums over released rows, drawn from their normal distribution."""

    def __init__(self, forecast: Forecast, summands: Sequence[Summand], generator: np.random.Generator) -> None:
        """Work out the summands at cells with people, and their sums over the grid."""
        count, size = len(summands), float(forecast.domain.size)
        self._first = np.ones((len(forecast.codes[0]), count))
        second = np.ones_like(self._first)
        grid, squares, seconds = np.full(count, size), np.full((count, count), size), np.full(count, size)
        for place, codes in enumerate(forecast.codes):
            parts = [one[place] for one in summands if place in one]
            if not parts:
                continue
            ones = np.ones_like(parts[0].first)
            first = np.column_stack([one[place].first if place in one else ones for one in summands])
            square = np.column_stack([one[place].second if place in one else ones for one in summands])
            self._first *= first[codes]
            second *= square[codes]
            grid, seconds = grid * first.mean(axis=0), seconds * square.mean(axis=0)
            squares = squares * (first.T @ first) / len(first)
        # draws within bins
        self._within = np.maximum(second - self._first**2, 0)
        self._grid, self._squares, self._grid_within = grid, squares, np.maximum(seconds - np.diag(squares), 0)
        # with exactly the mean 0 and the covariance 1, so that few draws are enough
        draws = generator.standard_normal((max(_DRAWS, 2 * count), count))
        self._standard = np.linalg.qr(draws - draws.mean(axis=0))[0] * sqrt(len(draws))

    def drawn(self, kept: Kept) -> Numbers:
        """Return sums of releases with these counts (releases x sums)."""
        empty, bound = kept.moments[:, -1], kept.bound @ self._first
        mean, variance, size = kept.moments[:, :-1] - empty[:, None]
        centre = empty[0] * self._grid + mean @ self._first
        spread = empty[1] * self._squares + (self._first * variance[:, None]).T @ self._first - bound.T @ bound
        spread[np.diag_indices_from(spread)] += empty[2] * self._grid_within + size @ self._within
        values, vectors = np.linalg.eigh(spread)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return np.asarray(centre + self._standard @ root)
