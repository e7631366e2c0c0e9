"""What a two-party specialisation fixes before any row is read, and how the leaves of a cut are counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Schema
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import Terms
from syndic.methods.synthesis.account import Account, RoundNoise, account_of
from syndic.methods.synthesis.vertical_layout import Cross, RoundLayout
from syndic.methods.synthesis.vertical_round import PARTNERS, Round, alone
from syndic.model.latent.diffgen import Cut, Nested, Tree, balanced, tree_of
from syndic.model.markov import Grouping
from syndic.noise import FineGaussian

MOST_SIDE: Final = 1024
"""The most cells of one party's side: its one-hot matrix has a column for each."""

MOST_LEAVES: Final = 1 << 16
"""The most cells of both sides together."""

# The noise of one count exceeds what the ring has room for with a chance below this over all counts.
_OVERFLOW: Final = 2.0**-64
_MOST_BITS: Final = 62


class Branch(Document):
    """A group of a taxonomy: values that stand by themselves, and groups below it."""

    values: tuple[str, ...] = ()
    branches: tuple["Branch", ...] = ()

    def nested(self, codes: Mapping[str, int]) -> Nested:
        """Return the group by code."""
        unknown = [value for value in self.values if value not in codes]
        if unknown:
            raise InputError(f"there is no value '{unknown[0]}'; the labels are {', '.join(codes)}")
        return (*(one.nested(codes) for one in self.branches), *(codes[value] for value in self.values))


class Taxonomy(Document):
    """The tree of one column's values, by their labels: what stands directly below the root."""

    column: str
    values: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()

    def tree(self, schema: Schema) -> Tree:
        """Return the tree by code."""
        codes = {label: code for code, label in enumerate(schema[self.column].labels())}
        try:
            tree = tree_of(Branch(values=self.values, branches=self.branches).nested(codes))
        except InputError as error:
            raise InputError(f"taxonomies of '{self.column}': {error}") from None
        if len(tree.levels[0]) != len(codes):
            raise InputError(f"taxonomies of '{self.column}': every value must be in it: {', '.join(codes)}")
        return tree


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Public, and the same at everybody. `trees` has the columns of each party in order, without the label.

    `classes` is the label's number of levels, `scored` the noise of all scores of both parties together.
    """

    terms: Terms
    account: Account
    trees: Mapping[str, Mapping[str, Tree]]
    label: str
    classes: int
    scored: RoundNoise
    scores: int

    @property
    def left(self) -> str:
        """The party that counts its cells by class."""
        return next(iter(self.trees))

    def every(self) -> dict[str, Tree]:
        """Return the trees of all columns."""
        return {name: tree for own in self.trees.values() for name, tree in own.items()}

    def domain(self, party: str, cut: Cut) -> Domain:
        """Return the cells of a party's side: its columns by group, and the class at the left party."""
        sizes = {name: len(cut[name]) for name in self.trees[party]}
        return Domain.of({**sizes, **({self.label: self.classes} if party == self.left else {})})

    def fits(self, cut: Cut) -> bool:
        """Return whether both sides stay small enough."""
        left, right = (self.width(party, cut) for party in self.trees)
        return max(left, right) <= MOST_SIDE and left * right <= MOST_LEAVES

    def width(self, party: str, cut: Cut) -> int:
        """Return how many levels a side has: its cells, or 2 if there is one, since the last level is never sent."""
        return max(2, self.domain(party, cut).size)

    def cells(self, party: str, cut: Cut, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.int64]:
        """Return the cell of a party's side that each row is in. As private as the rows."""
        domain = self.domain(party, cut)
        grouped = [
            codes[name] if name == self.label else self.trees[party][name].group_of(cut[name])[codes[name]]
            for name in domain.names
        ]
        return domain.index(grouped)

    def round_of(self, cut: Cut, digest: str) -> Round:
        """Return how the one table of both sides is counted; partners with other cuts cannot read each other's mail."""
        left, right = self.trees
        domain = Domain((left, right), (self.width(left, cut), self.width(right, cut)))
        layout = RoundLayout(
            tables=((left, right),),
            domain=domain,
            across={(left, right): (Cross(place=0, left=(left,), right=(right,)),)},
            within={left: (), right: ()},
            blocks={left: ((left,),), right: ((right,),)},
        )
        noise = self.account.noise_of(2, 1, domain.size)
        sizes = layout.sizes(self.terms, -(-noise.tail(_OVERFLOW / domain.size) // noise.scale))
        if sizes.whole.bits + noise.scale.bit_length() - 1 > _MOST_BITS:
            raise InputError("counts and their noise do not fit 64 bits: raise epsilon or delta")
        return Round(
            layout=layout,
            grouping=Grouping.none(domain),
            sizes=sizes,
            work=layout.work(f"leaves {digest}", sizes),
            across=noise,
            within=alone(self.account).noise_of(2, 1, domain.size),
        )


def plan_of(terms: Terms, label: str, taxonomies: tuple[Taxonomy, ...], choice_share: Fraction, colluding: int) -> Plan:
    """Return trees, account and noise."""
    given = {one.column: one.tree(terms.schema) for one in taxonomies}
    trees = {
        party.name: {
            name: given[name] if name in given else tree_of(balanced(terms.schema[name].size))
            for name in party.columns or ()
            if name != label
        }
        for party in terms.parties
    }
    every = [tree for own in trees.values() for tree in own.values()]
    account = account_of(
        terms,
        lambda whole: [whole * choice_share, whole * (1 - choice_share)],
        (),
        colluding=colluding,
        missing=0,
        shares=PARTNERS,
    )
    event = account.events[0]
    # at least the two counts of the table that the account is planned for
    moved = max(2, sum(tree.moved for tree in every))
    noise = FineGaussian(
        sensitivity_squared=Fraction(moved),
        mu_squared=event.mu_squared,
        changed=moved,
        fraction_bits=account.fraction_bits,
    )
    return Plan(
        terms=terms,
        account=account,
        trees=trees,
        label=label,
        classes=terms.schema[label].size,
        scored=RoundNoise(noise, event),
        scores=sum(len(tree.inner) for tree in every),
    )
