"""The noisy Gram matrix of a horizontal study: different people, same columns, by a masked sum.

*Neighbours*: one person's row is replaced, at their party; each party's number of people is public. Number columns are
counted in bins first, in a noisy masked sum, to rescale them (`syndic.model.gram.scaling`). Every party codes its rows
as whole numbers by public bounds and those counts, sums the products of any two features, adds its share of one
Gaussian noise and masks the result (`syndic.mpc.masked_sum`): only the total is opened. *Sensitivity*: see
`syndic.model.gram.matrix`.
*Who sees what*: the coordinator and up to `colluding` parties together see the noisy sums of all parties, and nothing
about a single other party.
"""

from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    GROUPS,
    MADE_UP,
    UNDER_MASKS,
    Disclosure,
    Method,
    Nothing,
    Party,
    Plan,
    Requires,
    Resources,
    Session,
    Terms,
    member,
    people_of,
    step,
)
from syndic.methods.regression.gram_result import GramNote, GramResult, read_gram
from syndic.methods.regression.stages import SCALING, Scales, Stages, check_share, stages_of
from syndic.model.gram.matrix import intercept, places_of
from syndic.model.gram.rows import Pair, check_names, products_of
from syndic.model.gram.scaling import Scale, counts_of
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, Ring, ring_for
from syndic.noise import FineGaussianShare
from syndic.privacy import Event


@final
class PooledGramPlan(Plan):
    """The features, the stages with their sensitivity and noise, and the masked sums: `counts` has the first ring."""

    features: tuple[Feature, ...]
    products: tuple[Pair, ...]
    bits: int
    stages: Stages
    counts: Ring | None
    masked_sum: MaskedSum

    @cached_property
    def codings(self) -> tuple[Coding, ...]:
        """How columns, and products of columns, become features."""
        return _codings(self.terms.schema, self.products, self.bits)

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

    def rows(self, coded: Coded, scales: tuple[Scale, ...] = ()) -> NDArray[np.int32]:
        """Return the features of coded rows, rescaled and shortened, the intercept first. Private."""
        matrix = coded_rows(self.stages.coded(self.codings, scales), coded)
        for clip in self.stages.clips.values():
            matrix = clip.apply(matrix, self.bits)
        return np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])

    def sigma(self, parties: int) -> float:
        """Return the standard deviation of the noise of a sum over this many parties, in units of z."""
        return float(self.noise.total_variance(parties) ** 0.5) / float(4**self.bits)

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys, the masked counts if numbers are rescaled, the masked sums, the opening of each total."""
        keys, meet, *rest = self.masked_sum.rounds("add_up")
        return (keys, meet, *(("count_bins",) if self.counts else ()), *rest)

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of the counts, if numbers are rescaled, and one of all sums, charged in full to every party."""
        self.check_party(party)
        return self.stages.events

    @property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for sums and masks."""
        count, graph, ring = self.masked_sum.count, self.masked_sum.graph, self.masked_sum.ring
        parties, people = len(self.terms.parties), people_of(self.terms) or 0
        return Resources(
            memory_bytes=8 * count * (parties + 8) + 2 * 10**8,
            reply_bytes=self.masked_sum.message_bytes,
            rounds=1 + len(self.rounds) + bool(self.counts and graph.missing),
            seconds=round(1.0 + people * len(self.features) * 1e-8 + parties * graph.neighbours * 2e-4, 1),
            notes=(
                f"{len(self.features)} features, {count:,} sums, {ring.bits} bits per masked sum",
                f"standard deviation {self.sigma(parties):.4g} on every sum over {people:,} people {self.stages.unit}",
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        graph, sums = self.masked_sum.graph, f"{self.stages.released}, of all parties together"
        return Disclosure(
            sees={
                "coordinator": f"every party's masked sums, which look uniform, who dropped out, and {sums}",
                "other parties": f"public keys, and {sums}; each knows its own sums and share of the noise",
                "anyone with the release": sums,
            },
            sensitivity=(
                f"replacing one person's row changes {self.stages.changes}; a person is at one party, and every party "
                "is charged for all of it"
            ),
            not_protected=(
                f"against more than {graph.colluding} colluding parties, who know their shares of the noise, or more "
                f"than {graph.missing} parties that omit theirs: less noise remains than stated",
                MADE_UP,
                "which parties take part or drop out, the columns, bounds and numbers of people: they are public",
                GROUPS,
            ),
        )

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "use fewer columns or bins, or set larger limits"


@final
class PooledGram(Method, tag="pooled-gram"):
    """Parameters of the noisy Gram matrix of all parties' rows together.

    `products`: pairs of columns whose product becomes a further column. `colluding`: how many parties may collude, with
    the coordinator or with each other; at least 1, since every party knows its own share of the noise. `missing`: how
    many parties may drop out. `bits`, `norm`, `exempt`, `scaling`: as for the method `gram`.
    """

    title: ClassVar[str] = "Gram matrix of all parties' rows, from a masked sum"
    paper: ClassVar[str] = "sufficient statistics after Vu and Slavkovic 2009; masked sums after Bonawitz et al. 2017"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = UNDER_MASKS

    products: tuple[Pair, ...] = ()
    colluding: int = 1
    missing: int = 0
    bits: int = 10
    norm: float = 1.0
    exempt: tuple[str, ...] = ()
    scaling: float = SCALING

    def __post_init__(self) -> None:
        check_share(self.scaling)
        if self.colluding < 1 or self.missing < 0:
            raise ValueError(
                f"colluding ({self.colluding}) must be at least 1, missing ({self.missing}) must not be negative"
            )
        if not 4 <= self.bits <= 16:
            raise ValueError(f"bits ({self.bits}) must be from 4 to 16")
        if not 0 < self.norm <= 1:
            raise ValueError(f"norm ({self.norm}) must be above 0 and at most 1")
        if len({frozenset(pair) for pair in self.products}) != len(self.products):
            raise ValueError("products names the same two columns twice: they would be charged twice")

    @property
    def requires(self) -> Requires:
        """One row at one party, under `replace`, so that sizes are public. Gaussian noise needs delta."""
        return Requires(
            people="bound",
            delta="Gaussian noise",
            neighbours="replace",
            rows=1,
            parties=1,
            because="the number of people at each party is public, and a person has one row at one of them",
        )

    def plan(self, terms: Terms) -> PooledGramPlan:
        """Code the columns, calibrate the noise to the strictest budget, and size the ring for both."""
        for name in sorted({*self.exempt, *(name for pair in self.products for name in pair)}):
            if name not in terms.schema.names:
                raise InputError(f"products and exempt: the schema has no column {name}")
        codings = _codings(terms.schema, self.products, self.bits)
        features = _features(codings)
        check_names(codings, features)
        stages = stages_of(
            terms,
            {"": codings},
            features,
            people=people_of(terms) or 1,
            presences=0,
            scaling=self.scaling,
            norm=self.norm,
            exempt=self.exempt,
            colluding=self.colluding,
            missing=self.missing,
            alone=False,
        )
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        noise, first = stages.noise, stages.first
        people = people_of(terms) or 0
        ring = ring_for(stages.check_room(people, self.bits))
        counts = None
        if isinstance(first, FineGaussianShare):
            counts = ring_for(people * first.scale + first.tail(OVERFLOW / first.dimension, first.parties))
        return PooledGramPlan(
            terms=terms,
            features=features,
            products=self.products,
            bits=self.bits,
            stages=stages,
            counts=counts,
            masked_sum=MaskedSum(label="gram", graph=graph, count=noise.dimension, ring=ring),
        )

    @step(reveals="masked")
    def count_bins(self, party: Party[PooledGramPlan], message: Nothing) -> SumMasked:
        """Count number columns in bins, add this party's share of the noise, and mask the result."""
        del message
        plan = party.plan
        scaling, first, ring = plan.stages.scaling, plan.stages.first, plan.counts
        if scaling is None or ring is None or not isinstance(first, FineGaussianShare):
            raise RefusedError("this study scales numbers by their bounds")
        masks = plan.masked_sum.masks_for(party, 1, first.dimension, ring)
        counts = sum(
            (counts_of(plan.codings, batch, scaling.bins) for batch in party.table.batches()),
            start=np.zeros(first.dimension, dtype=np.int64),
        )
        return masks.hide(party.contribute(first, counts, why="noisy counts to rescale numbers by, over all parties"))

    @step(reveals="masked")
    def add_up(self, party: Party[PooledGramPlan], message: Scales) -> SumMasked:
        """Sum the products of any two features, add this party's share of the noise, and mask the result."""
        plan = party.plan
        masks = plan.masked_sum.masks_for(party, 2 if plan.counts else 1, plan.masked_sum.count, plan.masked_sum.ring)
        total = np.zeros(plan.places.shape, dtype=np.int64)
        for batch in party.table.batches():
            total += products_of(plan.rows(batch, message.scales))
        values = np.zeros(int(plan.places.max()) + 1, dtype=np.int64)
        values[plan.places[plan.places >= 0]] = total[plan.places >= 0]
        opened = plan.stages.split(values, plan.features)
        noisy = party.contribute(plan.noise, opened, why="noisy Gram matrix, one sum over all parties")
        return masks.hide(noisy)

    def coordinate(self, session: Session[PooledGramPlan]) -> GramResult:
        """Open the noisy counts of all parties, then the noisy sum of their matrices."""
        plan = session.plan
        sums = plan.masked_sum.start(session)
        scales: tuple[Scale, ...] = ()
        scaling, first = plan.stages.scaling, plan.stages.first
        if scaling and plan.counts and isinstance(first, FineGaussianShare):
            counts = plan.masked_sum.open_next(sums, self.count_bins, Nothing(), first.dimension, plan.counts)
            scales = scaling.scales(plan.codings, counts.values / first.scale, _people(plan, counts.present))
        total = plan.masked_sum.open_next(
            sums, self.add_up, Scales(scales=scales), plan.masked_sum.count, plan.masked_sum.ring
        )
        note = GramNote(
            rows=_people(plan, total.present),
            bits=plan.bits,
            sigma=plan.sigma(len(total.present)),
            shortened=plan.stages.shortened,
            features=_features(plan.stages.coded(plan.codings, scales)),
            scales=scales,
        )
        return GramResult(note=note, sums=plan.stages.joined(np.asarray(total.values, dtype=np.int64), plan.features))

    def read(self, plan: PooledGramPlan, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        note = found.note
        fits = note.bits == plan.bits and plan.stages.allowed(plan.codings, note.scales)
        if not fits or note.features != _features(plan.stages.coded(plan.codings, note.scales)):
            raise InputError(f"{folder.name}: gram.json does not belong to this study")
        return found


def _people(plan: PooledGramPlan, present: tuple[str, ...]) -> int:
    return sum(member(plan.terms, name).people or 0 for name in present)


def _features(codings: tuple[Coding, ...]) -> tuple[Feature, ...]:
    return (intercept(), *(feature for coding in codings for feature in coding.features))


def _codings(schema: Schema, products: tuple[Pair, ...], bits: int) -> tuple[Coding, ...]:
    columns = {column.name: coding_of(column, bits) for column in schema.columns}
    return (*columns.values(), *(product_of(columns[one], columns[other]) for one, other in products))
