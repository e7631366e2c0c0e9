"""The plan of a Gram matrix: which features each party has, and the noise and rings that follow from them."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Final, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.errors import InputError
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    Disclosure,
    Plan,
    Resources,
    Terms,
    budgets_of,
    of_products,
    product_sees,
    schema_of,
)
from syndic.methods.regression.gram_result import GramNote
from syndic.methods.regression.stages import Stages
from syndic.model.gram.matrix import intercept, places_of, presence
from syndic.model.gram.rows import Pair
from syndic.model.gram.scaling import Scale
from syndic.mpc.product import SecureProduct
from syndic.noise import FineGaussianShare
from syndic.privacy import Cost, Event

_PROVEN_LENGTHS: Final = (
    'adversary "active": at most {} of the parties without the coordinator, or the coordinator alone, may deviate from '
    "the protocol. They learn only the noisy sums, plus shifts that they chose; they can stop or falsify the run. The "
    "coordinator, who deals the triples, colludes with no party; without identities, as on one machine, it must not "
    "forge keys"
)


@final
class GramPlan(Plan):
    """The features, what one person can change, every party's share of the noise, and the product across parties.

    `spans` gives each party's part of the `features`, `interactions` the products of columns among them. `absent` is,
    by party and column, the first code that means missing, if people may be absent. Sums are whole numbers in units of
    4^-bits.
    """

    features: tuple[Feature, ...]
    spans: Mapping[str, slice]
    interactions: tuple[Pair, ...]
    bits: int
    stages: Stages
    absent: Mapping[str, Mapping[str, int]]
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
    def sums(self) -> int:
        """How many sums there are."""
        return int(self.places.max()) + 1

    @property
    def noise(self) -> FineGaussianShare:
        """The share of the noise of the sums that each party adds."""
        return self.stages.noise

    @property
    def sensitivity(self) -> Fraction:
        """What one person changes the sums by, in squared l2, in units of z."""
        return self.stages.sensitivity

    @property
    def count(self) -> int:
        """How many numbers are opened: the sums, rescaled squares as two halves."""
        return self.noise.dimension

    @property
    def sigma(self) -> float:
        """The noise of a sum in units of z."""
        return float(self.noise.total_variance(self.noise.parties) ** 0.5) / float(4**self.bits)

    def note_for(self, scales: Mapping[str, tuple[Scale, ...]]) -> GramNote:
        """Return what is published with the sums, for each party's scales."""
        moved = {name: self.stages.coded(blocks, scales.get(name, ())) for name, blocks in self.codings.items()}
        return GramNote(
            rows=self.product.sizes.rows,
            bits=self.bits,
            sigma=self.sigma,
            shortened=self.stages.shortened,
            features=features_of(moved, overlap=bool(self.absent))[0],
            scales=tuple(scale for own in scales.values() for scale in own),
        )

    @cached_property
    def epsilons(self) -> tuple[float, float]:
        """The epsilon against everyone who knows no share of the noise, and against `colluding` parties."""
        delta = min(budget.delta for budget in budgets_of(self.terms))
        counts = self.stages.events[:-1]
        events = (self.noise.event_if(self.noise.parties), self.noise.event)
        outside, pooled = (float(Cost.of([*counts, event]).epsilon(delta)) for event in events)
        return outside, pooled

    def rows(self, party: str, coded: Coded, scales: tuple[Scale, ...] = ()) -> NDArray[np.int32]:
        """Return the party's features of coded rows, rescaled and shortened. Private."""
        matrix = coded_rows(self.stages.coded(self.codings[party], scales), coded)
        if party in self.stages.clips:
            matrix = self.stages.clips[party].apply(matrix, self.bits)
        if not self.absent:
            return matrix
        levels = self.absent[party]
        there = ~np.logical_and.reduce([coded[name] >= level for name, level in levels.items()])
        full = np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])
        full[~there] = 0
        return full

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of the counts, if numbers are rescaled, and one of all sums: each party is charged for all."""
        self.check_party(party)
        return self.stages.events

    @property
    def rounds(self) -> tuple[str, ...]:
        """Counts, if numbers are rescaled; the secure product, chunk by chunk; the opening of the noisy sums."""
        return (*(("count_bins",) if self.stages.scaling else ()), *self.product.rounds, "open_gram")

    @cached_property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory, time for dealing and multiplying."""
        product, sizes, parties = self.product, self.product.sizes, len(self.terms.parties)
        widths = [product.columns(name) for name in product.groups]
        chunk = sizes.ring.packed_bytes(sizes.chunk * max(widths))
        cells = sum(rows * columns for rows, columns in map(product.shape, product.pairs))
        each = 2e-7 if product.proven else 3e-8
        return Resources(
            memory_bytes=10**8 + (4 * parties + 16) * chunk + 64 * self.count,
            reply_bytes=max(chunk, self._proof_bytes, sizes.ring.packed_bytes(self.count)) + 1000,
            rounds=2 + (len(product.rounds) - 1) * sizes.chunks + bool(self.stages.scaling),
            seconds=round(1.0 + sizes.rows * (sum(widths) * each * parties + cells * 2e-9), 1),
            notes=(
                f"{len(self.features)} features, {self.count:,} sums; rows are masked with {sizes.ring.bits} bits "
                "per feature",
                f"standard deviation {self.sigma:.4g} on every sum over {sizes.rows:,} people {self.stages.unit}",
            ),
        )

    @property
    def _proof_bytes(self) -> int:
        """The bytes of the largest proof with its tests, or nothing."""
        product = self.product
        proofs = [product.proof(name, 0) for name in product.groups] if product.proven else []
        return max((each.field.packed_bytes(each.length + each.tests) for each in proofs), default=0)

    @property
    def largest_message(self) -> int:
        """The bytes of a reply of every party: each gets what all others sent, and answers to their proofs."""
        return len(self.terms.parties) * (self.resources.reply_bytes + 2 * self._proof_bytes)

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "use fewer columns or bins, or set larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        sums, proven = self.stages.released, self.product.proven
        outside, pooled = self.epsilons
        present = (
            "who is on the common list of people, and its length; which of them a party has is protected"
            if self.absent
            else ALIGNED
        )
        return Disclosure(
            sees=product_sees(sums),
            sensitivity=(
                f"replacing one person's values at all parties at once changes {self.stages.changes}; every party is "
                "charged for all of it"
            ),
            against={
                "everyone but the parties": outside,
                f"{self.noise.colluding} of the parties, which can subtract their own shares of the noise": pooled,
            },
            not_protected=(
                *of_products(proven=proven)[:2],
                "against a coordinator that deals wrong triples: it can shift sums by amounts it chooses",
                present,
                GROUPS,
            ),
            trust=_PROVEN_LENGTHS.format(self.noise.colluding) if proven else "",
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
