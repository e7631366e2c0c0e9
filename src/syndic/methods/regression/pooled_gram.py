"""The noisy Gram matrix of a horizontal study: different people, same columns, by a masked sum.

*Neighbours*: one person's row is replaced, at their party; each party's number of people is public. Every party codes
its rows as whole numbers by public bounds, sums the products of any two features, adds its share of one Gaussian noise
and masks the result (`syndic.mpc.masked_sum`): only the total is opened. *Sensitivity*: see
`syndic.model.gram.matrix.sensitivity_squared`.
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
from syndic.document import exact
from syndic.errors import InputError
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
    budgets_of,
    member,
    people_of,
    step,
)
from syndic.methods.regression.gram_result import GramNote, GramResult, read_gram
from syndic.model.gram.matrix import intercept, places_of, sensitivity_squared
from syndic.model.gram.rows import MOST_BITS, Clip, Pair, check_names, clip_of, products_of
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.ring import OVERFLOW, ring_for
from syndic.noise import FineGaussianShare
from syndic.privacy import Event, mu_squared_for


@final
class PooledGramPlan(Plan):
    """The features, which rows are clipped, the sensitivity, every party's share of the noise, and the masked sum."""

    features: tuple[Feature, ...]
    products: tuple[Pair, ...]
    bits: int
    clip: Clip | None
    sensitivity: Fraction
    noise: FineGaussianShare
    masked_sum: MaskedSum

    @cached_property
    def codings(self) -> tuple[Coding, ...]:
        """How columns, and products of columns, become features."""
        return _codings(self.terms.schema, self.products, self.bits)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The opened sum that each entry of the matrix is."""
        return places_of(self.features)

    def rows(self, coded: Coded) -> NDArray[np.int32]:
        """Return the features of coded rows, the intercept first. Private."""
        matrix = coded_rows(self.codings, coded)
        if self.clip is not None:
            matrix = self.clip.apply(matrix, self.bits)
        return np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])

    def sigma(self, parties: int) -> float:
        """Return the standard deviation of the noise of a sum over this many parties, for values in [-1, 1]."""
        return float(self.noise.total_variance(parties) ** 0.5) / float(4**self.bits)

    @property
    def rounds(self) -> tuple[str, ...]:
        """Keys, the masked sums, the opening of their total."""
        return self.masked_sum.rounds("add_up")

    def events(self, party: str) -> tuple[Event, ...]:
        """One release of all sums, charged in full to every party."""
        self.check_party(party)
        return (self.noise.event,)

    @property
    def resources(self) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for sums and masks."""
        count, graph, ring = self.masked_sum.count, self.masked_sum.graph, self.masked_sum.ring
        parties, people = len(self.terms.parties), people_of(self.terms) or 0
        return Resources(
            memory_bytes=8 * count * (parties + 8) + 2 * 10**8,
            reply_bytes=self.masked_sum.message_bytes,
            rounds=1 + len(self.rounds),
            seconds=round(1.0 + people * len(self.features) * 1e-8 + parties * graph.neighbours * 2e-4, 1),
            notes=(
                f"{len(self.features)} features, {count:,} sums, {ring.bits} bits per masked sum",
                f"standard deviation {self.sigma(parties):.4g} on every sum over {people:,} people of values in "
                "[-1, 1]",
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        graph, sums = self.masked_sum.graph, "the noisy sums of products of all parties together"
        return Disclosure(
            sees={
                "coordinator": f"every party's masked sums, which look uniform, who dropped out, and {sums}",
                "other parties": f"public keys, and {sums}; each knows its own sums and share of the noise",
                "anyone with the release": sums,
            },
            sensitivity=(
                f"replacing one person's row changes the {self.masked_sum.count} sums by at most "
                f"{float(self.sensitivity):.6g} in squared l2, for z in [-1, 1]; a person is at one party, and every "
                "party is charged for all of it"
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
    many parties may drop out. `bits`, `norm`, `exempt`: as for the method `gram`.
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

    def __post_init__(self) -> None:
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
        features = (intercept(), *(feature for coding in codings for feature in coding.features))
        check_names(codings, features)
        clip = clip_of(codings, exact(self.norm), self.exempt)
        sensitivity = sensitivity_squared(codings, lengths=[] if clip is None else [(clip.blocks, clip.length)])
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        noise = self._noise(terms, sensitivity, int(places_of(features).max()) + 1)
        # room for every person at the bound, and for the noise
        reach = (people_of(terms) or 0) * 4**self.bits
        ring = ring_for(reach + noise.tail(OVERFLOW / noise.dimension, noise.parties))
        if ring.bits > MOST_BITS:
            raise InputError(f"sums of {ring.bits} bits leave no room for noise in 64 bits: set bits below {self.bits}")
        return PooledGramPlan(
            terms=terms,
            features=features,
            products=self.products,
            bits=self.bits,
            clip=clip,
            sensitivity=sensitivity,
            noise=noise,
            masked_sum=MaskedSum(label="gram", graph=graph, count=noise.dimension, ring=ring),
        )

    @step(reveals="masked")
    def add_up(self, party: Party[PooledGramPlan], message: Nothing) -> SumMasked:
        """Sum the products of any two features, add this party's share of the noise, and mask the result."""
        del message
        plan = party.plan
        masks = plan.masked_sum.masks(party)
        total, people = np.zeros(plan.places.shape, dtype=np.int64), 0
        for batch in party.table.batches():
            rows = plan.rows(batch)
            total += products_of(rows)
            people += len(rows)
        values = np.zeros(plan.masked_sum.count, dtype=np.int64)
        values[plan.places[plan.places >= 0]] = total[plan.places >= 0]
        noisy = party.contribute(plan.noise, values, why="noisy Gram matrix, one sum over all parties")
        return masks.hide(noisy)

    def coordinate(self, session: Session[PooledGramPlan]) -> GramResult:
        """Open the noisy sum of all parties' matrices."""
        plan = session.plan
        total = plan.masked_sum.open(session, self.add_up)
        note = GramNote(
            rows=sum(member(plan.terms, name).people or 0 for name in total.present),
            bits=plan.bits,
            sigma=plan.sigma(len(total.present)),
            shortened=plan.clip is not None,
            features=plan.features,
        )
        return GramResult(note=note, sums=np.asarray(total.values, dtype=np.int64))

    def read(self, plan: PooledGramPlan, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        if found.note.features != plan.features or found.note.bits != plan.bits:
            raise InputError(f"{folder.name}: gram.json does not belong to this study")
        return found

    def _noise(self, terms: Terms, sensitivity: Fraction, count: int) -> FineGaussianShare:
        """Return the share of the noise that every party adds, in units of 4^-bits: for the strictest budget."""

        def made(slack: Fraction) -> FineGaussianShare:
            return FineGaussianShare(
                parties=len(terms.parties),
                colluding=self.colluding,
                missing=self.missing,
                dimension=count,
                sensitivity_squared=sensitivity * 16**self.bits,
                mu_squared=min(mu_squared_for(one.epsilon, one.delta, slack) for one in budgets_of(terms)),
                changed=count,
                fraction_bits=0,
            )

        # including the slack adds noise, which lowers the slack: twice the first value is always enough
        return made(2 * made(Fraction(0)).event.slack)


def _codings(schema: Schema, products: tuple[Pair, ...], bits: int) -> tuple[Coding, ...]:
    columns = {column.name: coding_of(column, bits) for column in schema.columns}
    return (*columns.values(), *(product_of(columns[one], columns[other]) for one, other in products))
