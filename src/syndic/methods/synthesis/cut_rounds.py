"""Rounds of a synthesis over any cut: which tables groups of people can count, by which sums and products."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import PARTNERS, Group, Terms, covered
from syndic.methods.layout import Counts, Names, TableLayout, TableNoise, layout_of
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.measure import Question, RoundLimits
from syndic.methods.synthesis.vertical_rounds import alone, opens_in_word, room_for
from syndic.mpc.product import SecureProduct
from syndic.mpc.ring import Integers
from syndic.mpc.triple import ProductSizes


@final
@dataclass(frozen=True, kw_only=True)
class CutRound:
    """What everybody works out alike from the study and a question: who counts what, and in which ring it is added."""

    layout: TableLayout
    product: SecureProduct | None
    share: RoundNoise
    whole: RoundNoise
    ring: Integers

    @property
    def counts(self) -> Counts:
        """What each party adds to the sum."""
        return Counts(layout=self.layout, product=self.product)

    def noise_at(self, party: str) -> TableNoise:
        """Return the noise that a party adds: its share, and the whole on tables that it alone counts."""
        shared, own = self.layout.marked(lambda who: len(who) > 1), self.layout.marked(lambda who: who == {party})
        return TableNoise(self.share.event, self.share.noise, self.whole.noise, shared, own, self.share.scale)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of a count of every table."""
        parties = sum(len(group.parties) for group in self.layout.groups)
        shared, single = self.share.variance(parties), self.whole.variance(1)
        return tuple(shared if len(parties) > 1 else single for parties in self.layout.counting)

    def scaled_up(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[float, ...]]:
        """Return counts and variances as if of all people: of tables that some groups lack, those of the others."""
        groups = self.layout.groups
        whole = sum(group.people for group in groups)
        factors = [whole / covered(groups, names) for names in self.layout.tables]
        sizes = [self.layout.size(names) for names in self.layout.tables]
        variances = tuple(one * factor**2 for one, factor in zip(self.variances, factors, strict=True))
        return values * np.repeat(factors, sizes), variances


@final
@dataclass(frozen=True, kw_only=True)
class CutReach:
    """Which tables the groups of a study can count, and how well. People that a table lacks count as the others do."""

    terms: Terms
    groups: tuple[Group, ...]
    account: Account
    proven: bool
    rooms: tuple[RoundLimits, ...]

    @property
    def people(self) -> int:
        """The number of all people."""
        return sum(group.people for group in self.groups)

    def noisier(self, table: Domain) -> float | None:
        """Return how many times the variance of a count that all parties share a table has, as if of all people."""
        people = covered(self.groups, table.names)
        counting = [group.counted_by(table.names) for group in self.groups]
        if not people or any(_one_sided(group, table) for group in self.groups):
            return None
        single = sum(map(len, counting)) == 1
        return (self.people / people) ** 2 / (self.account.shares_to_whole if single else 1.0)

    def takes(self, number: int, tables: Sequence[Names], domain: Domain) -> bool:
        """Return whether a round can count all these tables over groups of levels."""
        if any(self.noisier(domain.project(names)) is None for names in tables):
            return False
        layout = layout_of(self.groups, tables, domain)
        if not layout.across:
            return True
        noise = self.account.noise_of(number, len(tables), layout.dimension)
        try:
            sizes = self.sizes(layout, noise)
        except InputError:  # more noise than any field has room for
            return False
        return opens_in_word(sizes, noise) and layout.traffic(sizes) <= self.rooms[number - 1].traffic

    def sizes(self, layout: TableLayout, noise: RoundNoise) -> ProductSizes:
        """Return a ring or field that has room for the sum over all people."""
        return layout.sizes(self.terms, room_for(noise, layout) + self.people, proven=self.proven)

    def round_of(self, question: Question) -> CutRound:
        """Return how a question that was checked is answered."""
        return _round_of(self, question)

    def __hash__(self) -> int:
        """Plans of one process differ in their terms."""
        return hash((self.terms, self.proven))


@lru_cache(maxsize=4)
def _round_of(reach: CutReach, question: Question) -> CutRound:
    domain = question.grouping(reach.terms.schema.domain).domain_of_groups
    layout = layout_of(reach.groups, question.tables, domain)
    account, asked = reach.account, (question.number, len(question.tables), layout.dimension)
    share, whole = account.noise_of(*asked), alone(account).noise_of(*asked)
    if not layout.across:
        ring = share.ring(reach.people, layout.dimension)
        return CutRound(layout=layout, product=None, share=share, whole=whole, ring=ring)
    sizes = reach.sizes(layout, share)
    product = SecureProduct(
        # partners who were asked different things cannot read each other's mail
        label=f"round {question.number}, {question.digest.hex()}",
        sizes=sizes,
        pairs=tuple(layout.across),
        groups=layout.widths,
        proven=reach.proven,
        cells={pair: layout.cells(pair) for pair in layout.across},
    )
    return CutRound(layout=layout, product=product, share=share, whole=whole, ring=sizes.ring.scaled(share.scale))


def _one_sided(group: Group, table: Domain) -> bool:
    """Return whether two parties would count a table of which one has a single value."""
    parties = group.counted_by(table.names)
    sides = [table.project(name for name in table.names if group.holders[name] == party).size for party in parties]
    return len(parties) == PARTNERS and min(sides) == 1
