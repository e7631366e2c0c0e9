"""The interface to noisy counts. Tables are selected in the same way, whoever counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov.field import MarkovField
from syndic.model.markov.measurement import Measurement
from syndic.model.selection.grouping import Grouping

Names = tuple[str, ...]
Room = Callable[[Names], bool]
Sent = Mapping[tuple[str, Names], int]
"""What parties send for a table, and how much of each. What several tables of a round need is sent once."""


def endless(names: Names) -> bool:
    """Take every table."""
    del names
    return True


class Countable(Protocol):
    """Which tables can be counted, and how well."""

    def noisier(self, table: Domain) -> float | None:
        """Return the variance of a cell of this table relative to that; None if it cannot be counted."""
        ...

    def sends(self, table: Domain) -> Sent:
        """Return what is sent for this table."""
        ...

    def room(self, tables: int, domain: Domain) -> "Room":
        """Return what says of one table after another if the next round, of so many, can have it beside those before.

        Tables are over the groups of `domain`.
        """
        ...


class Counts(Countable, Protocol):
    """Rows that can be counted with noise: a curator's, or many parties' through masked sums.

    Only tables of counts and parities are requested, because they are sums over rows: those of all parties add up, and
    one copy of noise is enough. A distance between tables is not such a sum.
    """

    @property
    def domain(self) -> Domain:
        """The columns with all their levels."""
        ...

    @property
    def people(self) -> int | None:
        """The number of rows if it is public, else None."""
        ...

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of a cell of one table that is measured with this budget."""
        ...

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Return noisy tables over groups of levels: one round, an equal share of its budget each."""
        ...

    def parities(self, sets: Sequence[Names], mu_squared: Fraction, halves: Grouping) -> "Parities":
        """Return noisy parities of sets of columns, whose levels are in one or two groups: one round."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Parities:
    """Noisy sums over rows of the product of signs of each set of columns, and their variances. Public: of noise.

    The sets may be fewer than those asked for.
    """

    sets: Sequence[Names]
    values: NDArray[np.float64]
    variances: NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Synthesis:
    """A model of all columns with the noisy tables it was fitted to. As public as the tables in `rounds`.

    `one_way` has the noisy count of every level; `field` is over groups of levels; `found` are the sets of columns that
    were measured because their parity stood out.
    """

    field: MarkovField
    grouping: Grouping
    one_way: dict[str, NDArray[np.float64]]
    rounds: tuple[tuple[Measurement, ...], ...]
    found: tuple[Names, ...] = ()

    @property
    def total(self) -> float:
        """The number of rows, public or estimated."""
        return self.field.total

    def marginal(self, names: Sequence[str]) -> Factor:
        """Return the expected counts over `names`, with all their levels."""
        return self.grouping.spread(self.field.marginal(tuple(names)), self.one_way)

    def sample(
        self, rows: int, generator: np.random.Generator, given: dict[str, int] | None = None
    ) -> dict[str, NDArray[np.integer]]:
        """Draw rows: a code array for each column; `given` fixes the codes of some columns."""
        given = given or {}
        for name, code in given.items():
            if not 0 <= code < self.grouping.domain[name]:
                raise InputError(f"given code of {name!r} ({code}) must be below {self.grouping.domain[name]}")
        places = {name: int(self.grouping.by_column[name][code]) for name, code in given.items()}
        drawn = self.grouping.expand(self.field.sample(rows, generator, given=places or None), self.one_way, generator)
        for name, code in given.items():
            drawn[name][:] = code
        return drawn
