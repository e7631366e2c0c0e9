"""A trusted curator: one place holds all rows, counts them and adds the noise."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov.measurement import Measurement
from syndic.model.selection.counts import Names, Parities, Room, Sent, endless
from syndic.model.selection.grouping import Grouping
from syndic.model.selection.parity import parity_sums
from syndic.noise import FineGaussian
from syndic.privacy import GaussianEvent
from syndic.random import Randomness

Integers = NDArray[np.int64]
# scores are rounded to this part of a row; rounding at both neighbours changes a difference by at most one step
SCORE_STEP = Fraction(1, 1024)


@final
class Curator:
    """Noisy tables and scores of rows in one place. Each person has one row.

    Under add/remove one row changes one cell of a table by 1, under replace two cells, so the squared L2 sensitivity
    of k tables is k or 2 k. `charge` is called with every cost before noise is drawn; it may raise.
    """

    def __init__(
        self,
        codes: Mapping[str, NDArray[Any]],
        domain: Domain,
        randomness: Randomness,
        *,
        neighbours: Literal["add_remove", "replace"] = "add_remove",
        charge: Callable[[GaussianEvent], None],
    ) -> None:
        """Start with coded rows, one array for each column of the domain."""
        lengths = {len(codes[name]) for name in domain.names}
        if len(lengths) != 1:
            raise InputError("every column must have the same number of rows")
        (self._rows,) = lengths
        self._codes = {name: codes[name] for name in domain.names}
        self._randomness, self._charge = randomness, charge
        self._changed = 1 if neighbours == "add_remove" else 2
        self.domain = domain
        # under replace the number of rows is the same for neighbours
        self.people = self._rows if neighbours == "replace" else None

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of a cell of one table that is measured with this budget."""
        return self._noise(1, mu_squared).variance

    def noisier(self, table: Domain) -> float | None:
        """Return 1: every table has the same noise."""
        del table
        return 1.0

    def sends(self, table: Domain) -> Sent:
        """Return nothing: all rows are here."""
        del table
        return {}

    def room(self, tables: int, domain: Domain) -> Room:
        """Return what takes every table."""
        del tables, domain
        return endless

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Return noisy tables over groups of levels: one round, an equal share of the budget each."""
        noise = self._noise(len(tables), mu_squared)
        noisy = self._apply(noise, np.concatenate([one.reshape(-1) for one in self._count(tables, grouping)]))
        domain = grouping.domain_of_groups
        places = np.cumsum([0, *(domain.project(names).size for names in tables)])
        return [
            Measurement(names, noisy[begin:end].reshape(domain.project(names).sizes), noise.variance)
            for names, begin, end in zip(tables, places, places[1:], strict=False)
        ]

    def parities(self, sets: Sequence[Names], mu_squared: Fraction, halves: Grouping) -> Parities:
        """Return noisy parities: a row that comes or goes moves each by 1, one that is replaced by up to 2."""
        squared = Fraction(len(sets) * self._changed**2)
        noise = FineGaussian(sensitivity_squared=squared, mu_squared=mu_squared, changed=len(sets))
        sums = parity_sums(halves, sets, lambda tables: halves.count(self._codes, tables))
        return Parities(sets, self._apply(noise, sums), np.full(len(sets), noise.variance))

    def noisy_people(self, mu_squared: Fraction) -> float:
        """Return the noisy number of rows; under replace the exact number, at no cost."""
        if self.people is not None:
            return float(self.people)
        return float(self._apply(self._noise(1, mu_squared), np.array([self._rows]))[0])

    def associations(self, pairs: Sequence[Names], mu_squared: Fraction) -> NDArray[np.float64]:
        """Return the noisy distance of each pair of columns from independence."""
        scores = [independence_gap(table) for table in self._count(pairs, Grouping.none(self.domain))]
        return self._scores(scores, Fraction(self._changed + 1), mu_squared)

    def distances(
        self, tables: Sequence[Names], expected: Sequence[NDArray[np.float64]], mu_squared: Fraction
    ) -> NDArray[np.float64]:
        """Return the noisy l1 distance of each table from public expected counts. Its sensitivity is 1 or 2."""
        counted = self._count(tables, Grouping.none(self.domain))
        scores = [float(np.abs(table - model).sum()) for table, model in zip(counted, expected, strict=True)]
        return self._scores(scores, Fraction(self._changed), mu_squared)

    def _scores(self, scores: Sequence[float], each: Fraction, mu_squared: Fraction) -> NDArray[np.float64]:
        steps = np.round(np.array(scores) / float(SCORE_STEP)).astype(np.int64)
        squared = len(scores) * (each / SCORE_STEP + 1) ** 2
        noise = FineGaussian(sensitivity_squared=squared, mu_squared=mu_squared, changed=len(scores), fraction_bits=0)
        return self._apply(noise, steps) * float(SCORE_STEP)

    def _count(self, tables: Sequence[Names], grouping: Grouping) -> list[Integers]:
        return [one.values for one in grouping.count(self._codes, tables)]

    def _noise(self, tables: int, mu_squared: Fraction) -> FineGaussian:
        changed = tables * self._changed
        return FineGaussian(sensitivity_squared=Fraction(changed), mu_squared=mu_squared, changed=changed)

    def _apply(self, noise: FineGaussian, values: Integers) -> NDArray[np.float64]:
        self._charge(noise.event)
        return noise.apply(values, self._randomness) / noise.scale


def independence_gap(table: Integers) -> float:
    """Return half the l1 distance between an exact two-way table and the product of its margins, in rows. Private.

    One row added to cell (a, b) of n rows changes the difference of table and product by
    (n - T_a)(n - T_b) / (n (n + 1)) in all of cell (a, b), the rest of row a, the rest of column b, and all other
    cells: below 4 in sum, 2 after halving. One row replaced changes two cells of the table by 1, and the product
    T_x T_y / n by at most 2 for the margin of x and 2 for that of y: 6 in sum, 3 after halving.
    """
    product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(int(table.sum()), 1)
    return 0.5 * float(np.abs(table - product).sum())
