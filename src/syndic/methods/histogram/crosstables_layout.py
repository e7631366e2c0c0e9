"""Which columns of which parties meet in a study of two-way tables, and the noise and rings that follow from it."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from syndic.data import Domain
from syndic.kernel import Terms, schema_of
from syndic.methods.histogram.crosstables_result import Pair
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.mpc.triple import ProductSizes, product_sizes
from syndic.noise import GaussianShare
from syndic.privacy import rho_for

# The noise of one value exceeds what the ring has room for with a chance below this over all values.
_OVERFLOW = 2.0**-64


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """Public. `across` has the tables of a pair of parties, the left party's column first.

    `within` has a party's own tables, `sent` its columns that are in a table across parties, and `groups` how many
    levels of each are sent.
    """

    across: Mapping[Pair, tuple[Pair, ...]]
    within: Mapping[str, tuple[Pair, ...]]
    sent: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[int, ...]]
    domain: Domain
    noise: GaussianShare
    sizes: ProductSizes

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of parties that have a table to count."""
        return tuple(self.across)

    @property
    def tables(self) -> tuple[Pair, ...]:
        """All pairs of columns that are counted: first those across parties, then those within each."""
        across = [pair for parties in self.pairs for pair in self.across[parties]]
        return (*across, *(pair for pairs in self.within.values() for pair in pairs))

    @property
    def cells(self) -> list[int]:
        """How many cells the product of each pair of parties has."""
        return [sum(self.groups[left]) * sum(self.groups[right]) for left, right in self.pairs]

    def domains(self, tables: tuple[Pair, ...]) -> list[Domain]:
        """Return the domains of some tables."""
        return [self.domain.project(pair) for pair in tables]

    def slices(self, party: str) -> dict[str, slice]:
        """Return where each column's levels are in the party's matrix."""
        ends = np.cumsum([0, *self.groups[party]]).tolist()
        spans = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        return dict(zip(self.sent[party], spans, strict=True))


@lru_cache(maxsize=32)
def layout_of(
    terms: Terms, *, pairs: tuple[Pair, ...], local: bool, colluding: int, check_rows: bool, lift: bool
) -> Layout:
    """Return the layout; every message's size follows from it, so it is kept for those who ask again."""
    domain = terms.schema.domain
    held = {party.name: schema_of(terms, party.name).names for party in terms.parties}
    wanted = {frozenset(pair) for pair in pairs}
    named = {name for pair in pairs for name in pair}
    every = {
        (left, right): tuple(
            pair for pair in itertools.product(held[left], held[right]) if not pairs or frozenset(pair) in wanted
        )
        for left, right in itertools.combinations(held, 2)
    }
    across = {parties: tables for parties, tables in every.items() if tables}
    within = {name: tuple(itertools.combinations(columns, 2)) if local else () for name, columns in held.items()}
    sent = {name: tuple(each for each in columns if not pairs or each in named) for name, columns in held.items()}
    dropped = 0 if check_rows else 1
    groups = {name: tuple(domain[each] - dropped for each in columns) for name, columns in sent.items()}
    tables = [pair for found in (*across.values(), *within.values()) for pair in found]
    noise = _noise(terms, len(tables), colluding, sum(domain.project(pair).size for pair in tables))
    sizes = product_sizes(
        rows=terms.parties[0].people or 1,
        entry=1,
        signed=False,
        headroom=noise.tail(_OVERFLOW / noise.dimension, 2),
        columns=[sum(each) for each in groups.values()],
        cells=sum(sum(groups[left]) * sum(groups[right]) for left, right in across),
        lift=lift,
        chunk_bytes=min(1 << 24, terms.limits.message_mb * 10**6 // (4 * len(terms.parties))),
    )
    return Layout(across=across, within=within, sent=sent, groups=groups, domain=domain, noise=noise, sizes=sizes)


def _noise(terms: Terms, tables: int, colluding: int, cells: int) -> GaussianShare:
    return GaussianShare(
        # one person's values at all parties at once: in each table one count goes down and one goes up
        sensitivity_squared=Fraction(2 * tables),
        rho=min(rho_for(budget.epsilon, budget.delta) for budget in budgets_of(terms)),
        parties=2,
        colluding=colluding,
        dimension=cells,
    )
