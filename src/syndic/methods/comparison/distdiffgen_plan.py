"""The plan of a two-party specialisation: trees, noise, and how the leaves of a cut are counted."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Schema
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import ALIGNED, GROUPS, PARTNERS, PROCESS_BYTES, Disclosure, Plan, Resources
from syndic.kernel.disclosure import TOGETHER, UNCHECKED_ROWS, WRONG_TRIPLES, product_sees
from syndic.methods.layout import layout_of, same_people
from syndic.methods.synthesis.account import Account, RoundNoise, against_parties
from syndic.methods.synthesis.cut import CutRound, plan_round
from syndic.model.latent.diffgen import Cut, Nested, Tree, tree_of
from syndic.mpc.masked_sum import MaskedSums
from syndic.privacy import Event

MOST_SIDE: Final = 1024
"""The most cells on one party's side: its one-hot matrix has a column for each."""

MOST_LEAVES: Final = 1 << 16
"""The most cells of both sides together."""

_CHUNK_BYTES: Final = 1 << 24


class Branch(Document):
    """A group of a taxonomy: single values, and groups below it."""

    values: tuple[str, ...] = ()
    branches: tuple["Branch", ...] = ()

    def nested(self, codes: Mapping[str, int]) -> Nested:
        """Return the group by code."""
        unknown = [value for value in self.values if value not in codes]
        if unknown:
            raise InputError(f"the column has no value '{unknown[0]}'; its labels are {', '.join(codes)}")
        return (*(one.nested(codes) for one in self.branches), *(codes[value] for value in self.values))


class Taxonomy(Document):
    """The tree of one column's values, by label: the values and groups directly below the root."""

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
            raise InputError(f"taxonomies of '{self.column}': it must contain every value: {', '.join(codes)}")
        return tree


@final
class DistdiffgenPlan(Plan):
    """The trees of each party's columns in order, without the label, and the noise of scores and leaves.

    `scored` is the noise of all scores of both parties together, `masked_sums` opens the leaves, `times` is the number
    of specialisations, `rows` the number of rows to draw.
    """

    account: Account
    trees: Mapping[str, Mapping[str, Tree]]
    label: str
    scored: RoundNoise
    masked_sums: MaskedSums
    times: int
    rows: int

    @cached_property
    def every(self) -> dict[str, Tree]:
        """The trees of all columns."""
        return {name: tree for own in self.trees.values() for name, tree in own.items()}

    @property
    def classes(self) -> int:
        """How many levels the label has."""
        return self.terms.schema[self.label].size

    @property
    def scores(self) -> int:
        """How many groups are scored."""
        return sum(len(tree.inner) for tree in self.every.values())

    def domain(self, party: str, cut: Cut) -> Domain:
        """Return the cells of a party's side: its columns by group, and the class at the first party."""
        sizes = {name: len(cut[name]) for name in self.trees[party]}
        return Domain.of({**sizes, **({self.label: self.classes} if party == next(iter(self.trees)) else {})})

    def width(self, party: str, cut: Cut) -> int:
        """Return the number of levels of a side: its cells, but at least 2, since the last level is never sent."""
        return max(2, self.domain(party, cut).size)

    def fits(self, cut: Cut) -> bool:
        """Return whether both sides stay small enough."""
        left, right = (self.width(party, cut) for party in self.trees)
        return max(left, right) <= MOST_SIDE and left * right <= MOST_LEAVES

    def cells(self, party: str, cut: Cut, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.int64]:
        """Return the cell of a party's side that each row is in. As private as the rows."""
        domain = self.domain(party, cut)
        grouped = [
            codes[name] if name == self.label else self.trees[party][name].group_of(cut[name])[codes[name]]
            for name in domain.names
        ]
        return domain.index(grouped)

    def round_of(self, cut: Cut, digest: str) -> CutRound:
        """Return the plan for counting the table of both sides; partners with different cuts cannot read each other."""
        sides = tuple(self.trees)
        domain = Domain(sides, tuple(self.width(party, cut) for party in sides))
        layout = layout_of(same_people(self.terms, {party: party for party in sides}), (sides,), domain)
        return plan_round(self.terms, self.account, 2, layout, f"leaves {digest}")

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys; groups are scored and chosen, cells of both sides are multiplied, the noisy leaves open."""
        keys, meet, count = self.masked_sums.rounds("count_leaves")
        return (keys, meet, "score", "take_cut", "product_keys", "product_masked", "product_multiplied", count)

    def events(self, party: str) -> tuple[Event, ...]:
        """Two events, the same for both parties: each is charged for the whole release."""
        self.check_party(party)
        return self.account.events

    @cached_property
    def resources(self) -> Resources:
        """Memory at the busiest role, bytes of the largest message, time for multiplying."""
        terms, people = self.terms, self.terms.parties[0].people or 1
        most = max((len(below) for tree in self.every.values() for below in tree.children), default=1)
        leaves = min(MOST_LEAVES, self.classes * most ** min(self.times, 20))
        side = min(MOST_SIDE, leaves)
        # a chunk of masked rows uses no more than its part of a message
        chunk = min(_CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * PARTNERS), 8 * people * side)
        score, leaf = self.scored.variance(1) ** 0.5, self.account.noise_of(2, 1, 2).variance(PARTNERS) ** 0.5
        return Resources(
            memory_bytes=PROCESS_BYTES + 32 * chunk + 256 * leaves + 32 * people * len(terms.schema.columns),
            reply_bytes=chunk + 16 * leaves,
            rounds=8,
            seconds=round(1.0 + people * side * 8e-8 + people * leaves * 2e-10, 1),
            notes=(
                f"{self.scores:,} groups of values are scored, with standard deviation {score:.3g}; {self.times} of "
                f"them are specialised, into at most {leaves:,} leaves",
                f"standard deviation {leaf:.3g} on the count of a leaf",
            ),
        )

    @property
    def largest_message(self) -> int:
        """The bytes of two replies: a party gets what its partner sent, and the dealer's halves."""
        return 2 * self.resources.reply_bytes

    too_large = ("a run", "set fewer specialisations or larger limits")

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        moved, (scores, leaves) = sum(tree.moved for tree in self.every.values()), self.account.events
        opened = (
            "the noisy scores of groups of values, which groups were specialised, and the noisy counts of the leaves"
        )
        return Disclosure(
            sees=product_sees(opened),
            sensitivity=(
                f"replacing one person's values at both parties at once changes at most {moved} of {self.scores} "
                "scores by one, those of groups on the paths of the old and the new values, and two leaves by one; "
                "both parties are charged for all of it"
            ),
            against=against_parties(self.terms, self.account, (leaves,), whole=(scores,)),
            not_protected=(
                f"{TOGETHER}: they can read the groups of the other party's values",
                UNCHECKED_ROWS,
                WRONG_TRIPLES,
                ALIGNED,
                GROUPS,
                "every person's class: both parties know it before the study",
                "the columns, bounds, labels, taxonomies and the number of people: they are public",
            ),
        )
