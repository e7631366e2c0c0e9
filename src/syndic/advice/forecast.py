"""Simulate HOMM's release about artificial people many times, at any common factor on the budgets.

The same people and the same standard draws serve every factor, so curves over epsilon are smooth. Grids of up to
1024 cells are drawn cell by cell. On larger grids this is done for cells with people only. Empty cells are drawn one
by one where few survive, else by a normal approximation of their sums, whose moments are exact for any size of grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from syndic.advice.budgets import scaled
from syndic.advice.law import Law, law_of
from syndic.advice.population import Population
from syndic.advice.question import Summand
from syndic.advice.scale import Numbers
from syndic.data import Domain
from syndic.study import Study

DENSE_CELLS: Final = 1024
FEW_SURVIVORS: Final = 500
_DENSE_DRAWS: Final = 1_500_000
_DENSE_REPEATS: Final = 4000
_SPARSE_DRAWS: Final = 4_000_000


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class _Cells:
    """Summands at some cells: their means and their variances over draws within the bins (cells x summands)."""

    first: Numbers
    variance: Numbers

    @classmethod
    def of(cls, summands: Sequence[Summand], codes: Sequence[NDArray[np.int64]], count: int) -> "_Cells":
        first, second = np.ones((count, len(summands))), np.ones((count, len(summands)))
        for number, summand in enumerate(summands):
            for place, part in summand.items():
                first[:, number] *= part.first[codes[place]]
                second[:, number] *= part.second[codes[place]]
        return cls(first=first, variance=np.maximum(second - first**2, 0))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class _Sample:
    """One party's people in every repeat: counts (repeats x cells) and the draws that its noise is made of."""

    name: str
    seed: int
    counts: Numbers
    held: sparse.csr_array | None  # on large grids: ones at the cells that `counts` are of
    standard: Numbers
    within: Numbers
    beyond: Numbers

    @property
    def occupied(self) -> float:
        """Mean number of cells with people."""
        return float(np.count_nonzero(self.counts)) / len(self.within)


@final
class Forecast:
    """Simulated releases of one study about one population."""

    def __init__(
        self, study: Study, population: Population, summands: Sequence[Summand], generator: np.random.Generator
    ) -> None:
        """Draw every party's people and the standard noise, once for all factors."""
        self._study, self._summands, self._generator = study, tuple(summands), generator
        self._domain: Domain = study.schema.domain
        self._dense = self._domain.size <= DENSE_CELLS
        cells = self._domain.index(population.codes)
        people = sum(party.people or 0 for party in study.parties)
        if self._dense:
            self._index = np.arange(self._domain.size)
            shares = np.bincount(cells, minlength=self._domain.size) / cells.size
            self.repeats = int(np.clip(_DENSE_DRAWS // (self._domain.size * len(study.parties)), 60, _DENSE_REPEATS))
        else:
            self._index, places = np.unique(cells, return_inverse=True)
            shares = np.bincount(places) / cells.size
            self.repeats = int(np.clip(_SPARSE_DRAWS // people, 40, 200))
        self._cells = _Cells.of(self._summands, self._domain.unravel(self._index), self._index.size)
        self._samples = [self._sample(party.name, party.people or 0, shares) for party in study.parties]

    def released(self, factor: float) -> tuple[Numbers, Numbers | None]:
        """Return sums over released rows (repeats x summands) and, on small grids, the counts of all cells.

        All budgets are times `factor`.
        """
        study = scaled(self._study, factor)
        sums = np.zeros((self.repeats, len(self._summands)))
        counts = np.zeros((self.repeats, self._domain.size if self._dense else 0))
        for sample in self._samples:
            law = law_of(study, sample.name)
            if sample.held is not None:
                sums += self._sparse_sums(sample, sample.held, law)
                continue
            kept = law.kept(sample.counts + law.noise(sample.standard))
            counts += kept
            sums += kept @ self._cells.first + np.sqrt(np.abs(kept) @ self._cells.variance) * sample.within
        return sums, counts if self._dense else None

    def rows_of_nobody(self) -> float:
        """Return the expected number of released rows in cells where a party has no people."""
        return sum(
            (self._domain.size - sample.occupied) * law_of(self._study, sample.name).moments[3]
            for sample in self._samples
        )

    def _sample(self, name: str, people: int, shares: Numbers) -> _Sample:
        generator, law = self._generator, law_of(self._study, name)
        shape = self.repeats, len(self._summands)
        held = None if self._dense else self._people_in_cells(people, shares)
        if held is None:
            counts = generator.multinomial(people, shares, self.repeats).astype(np.float64)
        else:
            counts = np.asarray(held.data)
            held = _like(held, np.ones_like(counts))
        return _Sample(
            name=name,
            seed=int(generator.integers(2**62)),
            counts=counts,
            held=held,
            standard=law.standard(counts.shape, generator),
            within=generator.standard_normal(shape),
            beyond=generator.standard_normal(shape),
        )

    def _people_in_cells(self, people: int, shares: Numbers) -> sparse.csr_array:
        found = []
        ends = shares.cumsum()
        for _ in range(self.repeats):
            if people > 4 * shares.size:
                counts = self._generator.multinomial(people, shares)
                cells = np.flatnonzero(counts)
                found.append((cells, counts[cells]))
            else:
                places = np.searchsorted(ends, self._generator.random(people) * ends[-1], side="right")
                found.append(np.unique(places, return_counts=True))
        lengths = np.cumsum([0, *(cells.size for cells, _ in found)])
        data = np.concatenate([counts for _, counts in found]).astype(np.float64)
        indices = np.concatenate([cells for cells, _ in found])
        return sparse.csr_array((data, indices, lengths), shape=(self.repeats, shares.size))

    def _sparse_sums(self, sample: _Sample, held: sparse.csr_array, law: Law) -> Numbers:
        shown = _like(held, law.kept(sample.counts + law.noise(sample.standard)))
        spread = np.sqrt(abs(shown) @ self._cells.variance)
        return np.asarray(shown @ self._cells.first + spread * sample.within) + self._empty_sums(sample, held, law)

    def _empty_sums(self, sample: _Sample, held: sparse.csr_array, law: Law) -> Numbers:
        chance, mean, variance, size = law.moments
        if self._domain.size * chance <= FEW_SURVIVORS:
            return self._survivor_sums(sample, held, law)
        first, squares, seconds = (self._domain.size * average for average in self._averages)
        summed = first - held @ self._cells.first
        squared = np.maximum(squares - held @ self._cells.first**2, 0)
        within = np.maximum(seconds - squares - held @ self._cells.variance, 0)
        return np.asarray(mean * summed + np.sqrt(variance * squared + size * within) * sample.beyond)

    def _survivor_sums(self, sample: _Sample, held: sparse.csr_array, law: Law) -> Numbers:
        # the same stream for every factor
        generator = np.random.default_rng(sample.seed)
        numbers = generator.poisson(self._domain.size * law.moments[0], self.repeats)
        repeat = np.repeat(np.arange(self.repeats), numbers)
        places = generator.integers(self._domain.size, size=repeat.size)
        # survivors are drawn over the whole grid: those where people are do not count
        known = np.minimum(np.searchsorted(self._index, places), self._index.size - 1)
        rows = np.repeat(np.arange(self.repeats), np.diff(held.indptr))
        here = np.isin(repeat * self._index.size + known, rows * self._index.size + held.indices)
        taken = (self._index[known] == places) & here
        repeat, places = repeat[~taken], places[~taken]
        cells = _Cells.of(self._summands, self._domain.unravel(places), places.size)
        weights = law.survivors(places.size, generator)[:, None]
        shown = weights * cells.first + np.sqrt(weights * cells.variance) * generator.standard_normal(cells.first.shape)
        adder = sparse.csr_array(
            (np.ones(places.size), (repeat, np.arange(places.size))), shape=(self.repeats, places.size)
        )
        return np.asarray(adder @ shown)

    @cached_property
    def _averages(self) -> tuple[Numbers, Numbers, Numbers]:
        """Averages over all cells of the grid: of the summands' means, of their squares, of their mean squares."""
        first, squares, seconds = (np.ones(len(self._summands)) for _ in range(3))
        for number, summand in enumerate(self._summands):
            for part in summand.values():
                first[number] *= part.first.mean()
                squares[number] *= (part.first**2).mean()
                seconds[number] *= part.second.mean()
        return first, squares, seconds


def _like(held: sparse.csr_array, data: Numbers) -> sparse.csr_array:
    return sparse.csr_array((data, held.indices, held.indptr), shape=held.shape)
