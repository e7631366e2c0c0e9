"""Which columns are encoded, in which bins, and which pairs of them together. Public: made of the study alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, final

from syndic.kernel import Terms
from syndic.methods.vertimrf.model import equal_width
from syndic.model.markov import Grouping

Names = tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """Columns by party, bins by column, and what is encoded.

    `coded`: columns of two bins or more; the others have nothing to tell. `large`: columns with more values than bins.
    `pairs`: pairs of coded columns whose tables are wanted, of different parties, or all where parties have no models.
    """

    people: int
    neighbours: Literal["add_remove", "replace"]
    grouping: Grouping
    held: Mapping[str, Names]
    coded: Names
    large: Names
    pairs: tuple[Names, ...]

    @property
    def bins(self) -> dict[str, int]:
        """How many bins every column has."""
        domain = self.grouping.domain_of_groups
        return dict(zip(domain.names, domain.sizes, strict=True))

    @property
    def sketches(self) -> int:
        """How many sketches the widest table across parties is a union of."""
        return max((sum(self.bins[name] - 1 for name in names) for names in self.pairs), default=1)

    def coded_of(self, party: str) -> Names:
        """Return a party's encoded columns, in the schema's order."""
        return tuple(name for name in self.coded if name in self.held[party])

    def large_of(self, party: str) -> Names:
        """Return a party's columns with more values than bins, in the schema's order."""
        return tuple(name for name in self.large if name in self.held[party])

    def sketched_of(self, party: str) -> tuple[tuple[Names, Names], ...]:
        """Return for every pair that a party has a part in the pair and the party's columns of it."""
        own = self.held[party]
        parts = [(names, tuple(name for name in names if name in own)) for names in self.pairs]
        return tuple((names, part) for names, part in parts if part)


def layout_of(terms: Terms, bins: int, *, local_models: bool) -> Layout:
    """Lay the study's columns out."""
    domain = terms.schema.domain
    grouping = equal_width(domain, bins)
    held = {
        party.name: tuple(name for name in domain.names if name in (party.columns or ())) for party in terms.parties
    }
    home = {name: party for party, columns in held.items() for name in columns}
    coded = tuple(name for name in domain.names if grouping.domain_of_groups[name] > 1)
    return Layout(
        people=terms.parties[0].people or 1,
        neighbours=terms.unit.neighbours,
        grouping=grouping,
        held=held,
        coded=coded,
        large=tuple(name for name in domain.names if domain[name] > bins),
        pairs=tuple(pair for pair in combinations(coded, 2) if not local_models or home[pair[0]] != home[pair[1]]),
    )
