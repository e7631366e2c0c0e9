"""The plan of a Gram matrix: which features each party has, and the noise and rings that follow from them."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.errors import InputError
from syndic.kernel import (
    ALIGNED,
    DEALER_AND_PARTY,
    GROUPS,
    UNCHECKED_ROWS,
    Disclosure,
    Plan,
    Resources,
    Terms,
    budgets_of,
    product_sees,
    schema_of,
)
from syndic.methods.regression.gram_result import GramNote
from syndic.model.gram.matrix import intercept, places_of, presence
from syndic.model.gram.rows import Clip, Pair
from syndic.mpc.product import SecureProduct
from syndic.noise import FineGaussianShare
from syndic.privacy import Cost, Event


@final
class GramPlan(Plan):
    """The features, what one person can change, every party's share of the noise, and the product across parties.

    `spans` gives each party's part of the `features`, `interactions` the products of columns among them, `clips` the
    parties whose rows are shortened. `absent` gives, by party and column, the first code that means missing, if people
    may be absent. Sums are whole numbers in units of 4^-bits.
    """

    features: tuple[Feature, ...]
    spans: Mapping[str, slice]
    interactions: tuple[Pair, ...]
    bits: int
    clips: Mapping[str, Clip]
    absent: Mapping[str, Mapping[str, int]]
    sensitivity: Fraction
    noise: FineGaussianShare
    product: SecureProduct

    @cached_property
    def codings(self) -> dict[str, tuple[Coding, ...]]:
        """How each party's columns, and products of them, become features."""
        return codings_of(self.terms, self.interactions, self.bits)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The opened sum that each entry of the matrix is."""
        return places_of(self.features)

    @property
    def count(self) -> int:
        """How many sums are opened."""
        return self.noise.dimension

    @cached_property
    def note(self) -> GramNote:
        """What is published with the sums; the noise of a sum is in units of z."""
        return GramNote(
            rows=self.product.sizes.rows,
            bits=self.bits,
            sigma=float(self.noise.total_variance(self.noise.parties) ** 0.5) / float(4**self.bits),
            shortened=bool(self.clips),
            features=self.features,
        )

    @cached_property
    def epsilons(self) -> tuple[float, float]:
        """The epsilon against everyone who knows no share of the noise, and against `colluding` parties."""
        delta = min(budget.delta for budget in budgets_of(self.terms))
        events = (self.noise.event_if(self.noise.parties), self.noise.event)
        outside, pooled = (float(Cost.of([event]).epsilon(delta)) for event in events)
        return outside, pooled

    def rows(self, party: str, coded: Coded) -> NDArray[np.int32]:
        """Return the party's features of coded rows. Private."""
        matrix = coded_rows(self.codings[party], coded)
        if party in self.clips:
            matrix = self.clips[party].apply(matrix, self.bits)
        if not self.absent:
            return matrix
        levels = self.absent[party]
        there = ~np.logical_and.reduce([coded[name] >= level for name, level in levels.items()])
        full = np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])
        full[~there] = 0
        return full

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all sums: every party is charged for the whole."""
        self.check_party(party)
        return (self.noise.event,)

    @property
    def rounds(self) -> tuple[str, ...]:
        """The secure product, chunk by chunk, and the opening of the noisy sums."""
        return (*self.product.rounds, "open_gram")

    @cached_property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory, time for dealing and multiplying."""
        product, sizes, parties = self.product, self.product.sizes, len(self.terms.parties)
        widths = [sum(each) for each in product.groups.values()]
        chunk = sizes.ring.packed_bytes(sizes.chunk * max(widths))
        cells = sum(rows * columns for rows, columns in map(product.shape, product.pairs))
        return Resources(
            memory_bytes=10**8 + (4 * parties + 16) * chunk + 64 * self.count,
            reply_bytes=max(chunk, sizes.ring.packed_bytes(self.count)) + 1000,
            rounds=2 + 2 * sizes.chunks,
            seconds=round(1.0 + sizes.rows * (sum(widths) * 3e-8 * parties + cells * 2e-9), 1),
            notes=(
                f"{len(self.features)} features, {self.count:,} sums; rows are masked with {sizes.ring.bits} bits "
                "per feature",
                f"standard deviation {self.note.sigma:.4g} on every sum over {sizes.rows:,} people of values in "
                "[-1, 1]",
            ),
        )

    @property
    def largest_message(self) -> int:
        """The bytes of a reply of every party: each gets what all others sent."""
        return len(self.terms.parties) * self.resources.reply_bytes

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "use fewer columns or bins, or set larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        sums = "the noisy sums of products"
        outside, pooled = self.epsilons
        present = (
            "who is on the common list of people, and its length; which of them a party has is protected"
            if self.absent
            else ALIGNED
        )
        return Disclosure(
            sees=product_sees(sums),
            sensitivity=(
                f"replacing one person's values at all parties at once changes the {self.count} sums by at most "
                f"{float(self.sensitivity):.6g} in squared l2, for z in [-1, 1]; every party is charged for all of it"
            ),
            against={
                "everyone but the parties": outside,
                f"{self.noise.colluding} of the parties, which can subtract their own shares of the noise": pooled,
            },
            not_protected=(
                DEALER_AND_PARTY,
                UNCHECKED_ROWS,
                "against a coordinator that deals wrong triples: it can shift sums by amounts it chooses",
                present,
                GROUPS,
            ),
        )


def codings_of(terms: Terms, interactions: tuple[Pair, ...], bits: int) -> dict[str, tuple[Coding, ...]]:
    """Return, by party, the feature blocks of its columns and of the products of two of them."""
    found = {}
    for party in terms.parties:
        columns = {column.name: coding_of(column, bits) for column in schema_of(terms, party.name).columns}
        own = [(columns[one], columns[other]) for one, other in interactions if {one, other} <= columns.keys()]
        found[party.name] = (*columns.values(), *(product_of(one, other) for one, other in own))
    return found


def features_of(
    codings: Mapping[str, tuple[Coding, ...]], *, overlap: bool
) -> tuple[tuple[Feature, ...], dict[str, slice]]:
    """Return all features, after the intercept or after each party's presence feature; and each party's span."""
    features: list[Feature] = [] if overlap else [intercept()]
    spans = {}
    for name, blocks in codings.items():
        start = len(features)
        ones = presence(name) if overlap else intercept()
        features += [ones] if overlap else []
        features += [msgspec.structs.replace(each, ones=ones.name) for block in blocks for each in block.features]
        spans[name] = slice(start, len(features))
    return tuple(features), spans


def absent_of(terms: Terms) -> dict[str, dict[str, int]]:
    """Return, by party and column, the first code that means missing: a person is absent if all values are missing."""
    found = {}
    for party in terms.parties:
        columns = schema_of(terms, party.name).columns
        filled = [column.name for column in columns if column.size == column.levels]
        if filled:
            raise InputError(
                f"overlap: a person that '{party.name}' does not have is a row of missing values: set missing to "
                f'"level" in {", ".join(filled)}'
            )
        found[party.name] = {column.name: column.levels for column in columns}
    return found
