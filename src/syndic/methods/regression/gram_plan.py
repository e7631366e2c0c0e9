"""The plan of a Gram matrix: which features each party has, and the noise and rings that follow from them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Real, Schema
from syndic.data.bins import FINE_BINS
from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.errors import InputError
from syndic.kernel import (
    ALIGNED,
    GROUPS,
    MADE_UP,
    PROCESS_BYTES,
    Disclosure,
    Group,
    Plan,
    Resources,
    of_products,
    picture,
    shared_people,
    strictest,
    trust_with_groups,
)
from syndic.methods.regression.gram_result import GramNote
from syndic.methods.regression.stages import Stages
from syndic.model.gram.matrix import intercept, places_of, presence
from syndic.model.gram.rows import Pair
from syndic.model.gram.scaling import Scale, is_number
from syndic.mpc.masked_sum import MaskedSum
from syndic.mpc.product import SecureProduct
from syndic.mpc.ring import Ring
from syndic.noise import FineGaussianShare
from syndic.privacy import Cost, Event


@final
class GramPlan(Plan):
    """The features, what one person can change, every party's share of the noise, and the one sum that opens.

    `interactions` are the products of columns among the features. `absent` is, by party and column, the first code that
    means missing, if people may be absent. `product` multiplies features of different parties of a group; its shares
    are in the ring of the sum. Sums are whole numbers in units of 4^-bits.
    """

    groups: tuple[Group, ...]
    features: tuple[Feature, ...]
    interactions: tuple[Pair, ...]
    bits: int
    stages: Stages
    absent: Mapping[str, Mapping[str, int]]
    masked_sum: MaskedSum
    product: SecureProduct | None

    @cached_property
    def codings(self) -> tuple[Coding, ...]:
        """How columns, and products of columns, become features."""
        return codings_of(self.terms.schema, self.interactions, self.bits)

    @cached_property
    def blocks(self) -> dict[str, tuple[Coding, ...]]:
        """The codings of the columns that are read from each party."""
        return held_by(self.groups, self.codings)

    @cached_property
    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Where each party's features are among all; its presence feature comes first."""
        places = {feature.name: place for place, feature in enumerate(self.features)}
        found = {}
        for name, blocks in self.blocks.items():
            own = [presence(name)] if name in self.absent else []
            own += [each for block in blocks for each in block.features]
            found[name] = np.array([places[each.name] for each in own], dtype=np.int64)
        return found

    def read_from(self, party: str) -> tuple[str, ...]:
        """Return the columns that are read from a party."""
        return tuple(block.columns[0] for block in self.blocks[party] if len(block.columns) == 1)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The opened sum that each entry of the matrix is."""
        return places_of(self.features)

    @property
    def noise(self) -> FineGaussianShare:
        """The share of the noise of the sums that each party adds."""
        return self.stages.noise

    @property
    def sensitivity(self) -> Fraction:
        """What one person changes the sums by, in squared l2, in units of z."""
        return self.stages.sensitivity

    @property
    def no_intervals(self) -> str:
        """Why regressions have no intervals, and what gives them some; nothing if they may have some."""
        return "people may be absent at some parties (`overlap`)" if self.absent else self.stages.no_intervals

    @property
    def sigma(self) -> float:
        """The noise of a sum in units of z, if all parties answer."""
        return self.deviation(self.noise.parties)

    def deviation(self, present: int) -> float:
        """Return the noise of a sum in units of z, when so many parties contributed."""
        return float(self.noise.total_variance(present) ** 0.5) / float(4**self.bits)

    def people(self, present: Sequence[str]) -> int:
        """Return how many people the parties that contributed have."""
        there = set(present)
        read = ((group.people, {party for (party,) in group.read_from.values()}) for group in self.groups)
        return sum(people for people, parties in read if parties <= there)

    def may_state(self, rows: int, sigma: float) -> bool:
        """Return whether this many people and this noise are those of some parties; nobody knows who was missing."""
        sizes = sorted(group.people for group in self.groups)
        return any(
            sigma == self.deviation(self.noise.parties - gone)
            and sum(sizes[: len(sizes) - gone]) <= rows <= sum(sizes[gone:])
            for gone in range(self.masked_sum.graph.missing + 1)
        )

    @property
    def everybody(self) -> tuple[str, ...]:
        """The names of all parties."""
        return tuple(party.name for party in self.terms.parties)

    def note_for(self, scales: tuple[Scale, ...], present: Sequence[str]) -> GramNote:
        """Return what is published with the sums of these parties."""
        return GramNote(
            rows=self.people(present),
            bits=self.bits,
            sigma=self.deviation(len(present)),
            shortened=self.stages.shortened,
            features=features_of(self.stages.coded(self.codings, scales), self.groups, overlap=bool(self.absent)),
            scales=scales,
        )

    @cached_property
    def counts_ring(self) -> Ring:
        """The ring of the sum of counts."""
        return self.stages.counts_ring(self.people(self.everybody))

    def counted_by(self, party: str) -> NDArray[np.bool_]:
        """Return which counts in bins of all number columns a party has."""
        own, scaling = set(self.read_from(party)), self.stages.scaling
        assert scaling is not None  # noqa: S101 (numbers are rescaled)
        return np.repeat([each.columns[0] in own for each in filter(is_number, self.codings)], scaling.bins)

    @cached_property
    def epsilons(self) -> tuple[float, float]:
        """The epsilon against everyone who knows no share of the noise, and against `colluding` parties."""
        delta, present = strictest(self.terms).delta, self.masked_sum.graph.least
        noises = [noise for noise in (self.stages.first, self.noise) if noise is not None]
        whole = [each.event_if(present) if isinstance(each, FineGaussianShare) else each.event for each in noises]
        outside, pooled = (float(Cost.of(events).epsilon(delta)) for events in (whole, self.stages.events))
        return outside, pooled

    def rows(self, party: str, coded: Coded, scales: tuple[Scale, ...] = ()) -> NDArray[np.int32]:
        """Return the party's features of coded rows, rescaled and shortened. Private."""
        matrix = coded_rows(self.stages.coded(self.blocks[party], scales), coded)
        if party in self.stages.clips:
            matrix = self.stages.clips[party].apply(matrix, self.bits)
        if party not in self.absent:
            return matrix
        there = ~np.logical_and.reduce([coded[name] >= level for name, level in self.absent[party].items()])
        full = np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])
        full[~there] = 0
        return full

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of the counts, if numbers are rescaled, and one of all sums: each party is charged for all."""
        self.check_party(party)
        return self.stages.events

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys; the masked counts, if numbers are rescaled; the products of groups of several parties; the sums."""
        keys, meet, *rest = self.masked_sum.rounds("add_up")
        counts, products = ("count_bins",) if self.stages.scaling else (), ()
        if self.product:
            products = (*(("rescale",) if self.stages.scaling else ()), *self.product.rounds)
        return (keys, meet, *counts, *products, *rest)

    @cached_property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory, time for sums, masks, dealing and multiplying."""
        count, graph, ring = self.masked_sum.count, self.masked_sum.graph, self.masked_sum.ring
        parties, people = len(self.terms.parties), self.people(self.everybody)
        trips = 1 + len(self.rounds) + bool(self.stages.scaling and graph.missing)
        chunk, seconds, multiplying, product = 0, 0.0, 0, self.product
        if product:
            sizes, widths = product.sizes, [product.columns(name) for name in product.groups]
            chunk, multiplying = sizes.ring.packed_bytes(sizes.chunk * max(widths)), len(widths)
            cells = sum(rows * columns for rows, columns in map(product.shape, product.pairs))
            each = 2e-7 if product.proven else 3e-8
            seconds = sizes.rows * (sum(widths) * each * self._most_partners + cells * 2e-9)
            trips += (len(product.rounds) - 1) * (sizes.chunks - 1)
        return Resources(
            memory_bytes=PROCESS_BYTES + 8 * count * (parties + 8) + (4 * multiplying + 16) * chunk,
            reply_bytes=max(chunk + 1000, self._proof_bytes + 1000, self.masked_sum.message_bytes),
            rounds=trips,
            seconds=round(1.0 + people * len(self.features) * 1e-8 + parties * graph.neighbours * 2e-4 + seconds, 1),
            notes=(
                f"{len(self.features)} features, {count:,} sums, {ring.bits} bits per masked number",
                f"noise of standard deviation {self.sigma:.4g} on every sum over {people:,} people; {self.stages.unit}",
                *((f"regressions have no intervals: {self.no_intervals}",) if self.no_intervals else ()),
                *_wide_bins(self.terms.schema),
            ),
        )

    @property
    def _most_partners(self) -> int:
        """The largest number of parties that multiply with each other."""
        return max(len([name for name in group.parties if self.blocks[name]]) for group in self.groups)

    @property
    def _proof_bytes(self) -> int:
        """The bytes of the largest proof with its tests, or nothing."""
        product = self.product
        proofs = [product.proof(name, 0) for name in product.groups] if product and product.proven else []
        return max((each.field.packed_bytes(each.length + each.tests) for each in proofs), default=0)

    @property
    def largest_message(self) -> int:
        """The bytes of what a party gets from all partners at once, with answers to their proofs."""
        return self._most_partners * (self.resources.reply_bytes + 2 * self._proof_bytes)

    @property
    def held(self) -> tuple[str, ...]:
        """Who holds what, in lines."""
        return picture(self.groups, self.terms.schema.names) if self.product else ()

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "use fewer columns or bins, or set larger limits"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        graph, sums = self.masked_sum.graph, f"{self.stages.released}, of all parties together"
        outside, pooled = self.epsilons
        shared, proven = shared_people(self.terms), self.product is not None and self.product.proven
        sealed, rows = "sealed rows that it cannot read, ", "masked rows of its group, which look uniform, "
        counts = "the noisy counts of numbers in bins, " if self.stages.scaling else ""
        aligned = (
            "who is on the common list of people, and its length; which of them a party has is protected"
            if self.absent
            else ALIGNED
        )
        return Disclosure(
            sees={
                "coordinator": f"{sealed if self.product else ''}every party's masked sums, which look uniform, who "
                f"dropped out, {counts}and {sums}",
                "other parties": f"public keys, {rows if self.product else ''}and {sums}; each knows its own sums and "
                "share of the noise",
                "anyone with the release": sums,
            },
            sensitivity=(
                f"replacing one person's values at all parties of a group at once changes {self.stages.changes}; a "
                "person is in one group, and every party is charged for all of it"
            ),
            against={
                "everyone but the parties": outside,
                f"{graph.colluding} of the parties, which can subtract their own shares of the noise": pooled,
            },
            not_protected=(
                f"against more than {graph.colluding} colluding parties, who know their shares of the noise, or more "
                f"than {graph.missing} parties that omit theirs: less noise remains than stated",
                MADE_UP,
                "which parties take part or drop out, the columns, bounds and numbers of people: they are public",
                *(of_products(proven=proven, what="sums") if self.product else ()),
                *((aligned,) if shared else ()),
                GROUPS,
            ),
            trust=trust_with_groups(graph.colluding, proven=proven, what="sums") if self.product else "",
        )


def codings_of(schema: Schema, interactions: tuple[Pair, ...], bits: int) -> tuple[Coding, ...]:
    """Return the feature blocks of all columns and of the products of two of them."""
    columns = {column.name: coding_of(column, bits) for column in schema.columns}
    return (*columns.values(), *(product_of(columns[one], columns[other]) for one, other in interactions))


def held_by(groups: Sequence[Group], codings: tuple[Coding, ...]) -> dict[str, tuple[Coding, ...]]:
    """Return, by party, the blocks whose columns are read from it in its group."""
    found: dict[str, tuple[Coding, ...]] = {}
    names = [block.columns[0] for block in codings]
    for group in groups:
        alone = group.counts_alone(names)
        for party in group.parties:
            own = (block for block in codings if group.read_from[block.columns[0]] == (party,))
            found[party] = codings if party == alone else tuple(own)
    return found


def features_of(codings: tuple[Coding, ...], groups: Sequence[Group], *, overlap: bool) -> tuple[Feature, ...]:
    """Return all features, after the intercept or, with `overlap`, after the presence feature of each party."""
    features = tuple(feature for block in codings for feature in block.features)
    if not overlap:
        return (intercept(), *features)
    (group,) = groups
    ones = {party: presence(party) for party in group.parties if (party,) in group.read_from.values()}
    holders = [group.read_from[block.columns[0]][0] for block in codings for _ in block.features]
    moved = (
        msgspec.structs.replace(each, ones=ones[party].name) for each, party in zip(features, holders, strict=True)
    )
    return (*ones.values(), *moved)


def absent_of(schema: Schema, held: Mapping[str, tuple[Coding, ...]]) -> dict[str, dict[str, int]]:
    """Return, by party and column, the first code that means missing: a person is absent if all values are missing."""
    found = {}
    for party, blocks in held.items():
        columns = [schema[block.columns[0]] for block in blocks if len(block.columns) == 1]
        filled = [column.name for column in columns if column.size == column.levels]
        if filled:
            raise InputError(
                f"overlap: a person that '{party}' does not have is a row of missing values: set missing to "
                f'"level" in {", ".join(filled)}'
            )
        if columns:
            found[party] = {column.name: column.levels for column in columns}
    return found


def _wide_bins(schema: Schema) -> tuple[str, ...]:
    """Return a note on real columns whose bins were left open: the middle of a wide bin stands for all its values."""
    names = [one.name for one in schema.columns if isinstance(one, Real) and one.fine and one.scale == "linear"]
    if not names:
        return ()
    return (
        f"{', '.join(names)}: a value counts as the middle of one of {FINE_BINS} bins between the bounds; where most "
        "values are near one bound their mean is wrong by up to half a bin: set bins = 1000",
    )
