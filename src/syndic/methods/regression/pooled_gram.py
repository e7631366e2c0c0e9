"""The noisy Gram matrix of a horizontal study: the same columns of different people, summed under masks.

*Neighbours*: one person's row is replaced, at her party; how many people a party has is public. Every party codes its
rows as whole numbers by public bounds, sums the products of any two features, adds its share of one Gaussian noise and
masks the result (`syndic.mpc.sum`): only the total opens. *Sensitivity*: see
`syndic.model.gram.matrix.sensitivity_squared`.
*Who sees what*: the coordinator and up to `colluding` parties together the noisy sums of all parties, nothing of one.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature, coded_rows, coding_of, product_of
from syndic.data.table import Coded
from syndic.document import exact
from syndic.errors import InputError, RefusedError
from syndic.kernel import Disclosure, Party, Resources, Session, Terms, member, people_of, step
from syndic.methods.refusals import check_fits, check_people
from syndic.methods.regression.gram_layout import MOST_BITS, Clip, Pair, check_names, clip_of, products_of
from syndic.methods.regression.gram_result import GramNote, GramResult, read_gram
from syndic.methods.synthesis.vertical_requirements import budgets_of
from syndic.model.gram.matrix import intercept, places_of, sensitivity_squared
from syndic.mpc.graph import SumPlan, plan_within
from syndic.mpc.masked import BOX_BYTES
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.sum import SumInbox, SumMasked, UsesMaskedSum, masked_sum
from syndic.noise import FineGaussianShare
from syndic.privacy import Cost, Event, mu_squared_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO

# The noise of one sum exceeds what the ring has room for with a chance below this over all sums.
_OVERFLOW = 2.0**-64
_LABEL = "gram"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PooledLayout:
    """Public: the features, which opened sum an entry of the matrix is, what is shortened, and the sensitivity."""

    codings: tuple[Coding, ...]
    features: tuple[Feature, ...]
    places: NDArray[np.int64]
    clip: Clip | None
    bits: int
    sensitivity: Fraction

    @property
    def count(self) -> int:
        """How many sums are opened."""
        return int(self.places.max()) + 1

    def rows(self, coded: Coded) -> NDArray[np.int32]:
        """Return the features of coded rows, the intercept first. Private."""
        matrix = coded_rows(self.codings, coded)
        if self.clip is not None:
            matrix = self.clip.apply(matrix, self.bits)
        return np.hstack([np.full((len(matrix), 1), 1 << self.bits, dtype=np.int32), matrix])


@final
class PooledGram(UsesMaskedSum, tag="pooled-gram"):
    """Parameters of the noisy Gram matrix of all parties' rows together.

    `products`: pairs of columns whose product is one more column. `colluding`: how many parties may pool what they know
    with the coordinator or with each other; at least 1, since every party knows its own share of the noise.
    `missing`: how many parties may fall silent. `bits`, `norm`, `exempt`: as for the method `gram`.
    """

    title: ClassVar[str] = "Gram matrix of all parties' rows, from a masked sum"
    paper: ClassVar[str] = "sufficient statistics after Vu and Slavkovic 2009; masked sums after Bonawitz et al. 2017"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and no more parties than `colluding` pool what they know with the "
        "coordinator or each other; unless the study gives identities, the coordinator must not forge keys"
    )

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
            raise ValueError("products names the same two columns twice: they would be paid for twice")

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, shares and openings are those of the masked sum.

    @step(reveals="masked")
    def add_up(self, party: Party, message: SumInbox) -> SumMasked:
        """Sum the products of any two features, add this party's share of the noise, and mask the result."""
        if message.label != _LABEL:
            raise RefusedError(f"the matrix is summed under the label '{_LABEL}' and under no other")
        terms, layout = party.terms, self.layout(party.terms)
        noise, ring = self.noise_of(terms), self.ring_of(terms)
        masks = self.sum_masks(party, message, noise.dimension, ring)
        total, people = np.zeros(layout.places.shape, dtype=np.int64), 0
        for batch in party.table.batches():
            rows = layout.rows(batch)
            total += products_of(rows)
            people += len(rows)
        check_people(party, people)
        values = np.zeros(layout.count, dtype=np.int64)
        values[layout.places[layout.places >= 0]] = total[layout.places >= 0]
        for event in self.sum_plan(terms).events:
            party.charge(event, why="chance that the masks of a sparse graph do not hide one party's sums")
        noisy = party.contribute(noise, values, why="noisy Gram matrix, one sum over all parties")
        return self.sum_masked(noisy, masks, ring)

    # The coordinator's side.

    def coordinate(self, session: Session) -> GramResult:
        """Open the sum of all parties' matrices, with its noise."""
        terms, noise = session.terms, self.noise_of(session.terms)
        ring = self.ring_of(terms)
        total = masked_sum(session, self, self.add_up, label=_LABEL, count=noise.dimension, ring=ring)
        people = sum(member(terms, name).people or 0 for name in total.present)
        sigma = float(noise.total_variance(len(total.present)) ** 0.5) / float(4**self.bits)
        layout = self.layout(terms)
        shortened = layout.clip is not None
        note = GramNote(rows=people, bits=self.bits, sigma=sigma, shortened=shortened, features=layout.features)
        return GramResult(note=note, sums=np.asarray(total.values, dtype=np.int64))

    def read_result(self, terms: Terms, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        if found.note.features != self.layout(terms).features or found.note.bits != self.bits:
            raise InputError(f"{folder.name}: gram.json is not of this study")
        return found

    # What is known before any row is read.

    def layout(self, terms: Terms) -> PooledLayout:
        """Return the features and what one person can change."""
        return _layout(terms, self.products, self.bits, self.norm, self.exempt)  # type: ignore[arg-type]  # a frozen study

    def sum_plan(self, terms: Terms) -> SumPlan:
        """Return who masks with whom: a sparse graph that may fail only where that fits into every delta twice."""
        delta = min(budget.delta for budget in budgets_of(terms)) / 2
        return plan_within(delta, len(terms.parties), colluding=self.colluding, missing=self.missing)

    def noise_of(self, terms: Terms) -> FineGaussianShare:
        """Return the share of the noise that every party adds, in units of 4^-bits: for the strictest budget."""
        layout = self.layout(terms)
        graph = Cost.of(self.sum_plan(terms).events)
        less_epsilon, less_delta = Fraction(graph.epsilon_approximate, PICO), Fraction(graph.delta_approximate, ATTO)
        left = [(budget.epsilon - less_epsilon, budget.delta - less_delta) for budget in budgets_of(terms)]

        def made(slack: Fraction) -> FineGaussianShare:
            return FineGaussianShare(
                parties=len(terms.parties),
                colluding=self.colluding,
                missing=self.missing,
                dimension=layout.count,
                sensitivity_squared=layout.sensitivity * 16**self.bits,
                mu_squared=min(mu_squared_for(epsilon, delta, slack) for epsilon, delta in left),
                changed=layout.count,
                fraction_bits=0,
            )

        # with the slack reckoned in there is more noise, hence less slack: twice the first is safely enough
        return made(2 * made(Fraction(0)).event.slack)

    def ring_of(self, terms: Terms) -> Ring:
        """Return the ring that has room for every person at the bound, and for the noise."""
        noise = self.noise_of(terms)
        reach = (people_of(terms) or 0) * 4**self.bits
        return ring_for(reach + noise.tail(_OVERFLOW / noise.dimension, noise.parties))

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        unit = terms.unit
        if unit.neighbours != "replace" or unit.rows != 1 or unit.parties != 1:
            raise InputError('the unit must be neighbours = "replace" with one row at one party: sizes are public here')
        for party in terms.parties:
            if party.people is None or party.columns is not None:
                raise InputError(f"party '{party.name}': set people, its exact number, and leave columns out")
        if any(budget.delta == 0 for budget in budgets_of(terms)):
            raise InputError("Gaussian noise needs delta above 0: set it in every budget")
        named = {name for pair in self.products for name in pair} | set(self.exempt)
        unknown = [name for name in named if name not in terms.schema.names]
        if unknown:
            raise InputError(f"products and exempt: there is no column {sorted(unknown)[0]}")
        self.sum_plan(terms)
        try:
            bits = self.ring_of(terms).bits
        except ValueError as error:
            raise InputError(f"the noise shares cannot be made: {error}") from None
        if bits > MOST_BITS:
            raise InputError(f"sums of {bits} bits leave no room for noise in 64: set bits below {self.bits}")
        check_fits(terms, self.estimate(terms), "use fewer columns or bins, or set larger limits")

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of all sums, charged whole to every party, and the chance that a sparse graph fails."""
        member(terms, party)
        return (self.noise_of(terms).event, *self.sum_plan(terms).events)

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for sums and masks."""
        layout, plan, ring, noise = self.layout(terms), self.sum_plan(terms), self.ring_of(terms), self.noise_of(terms)
        parties, people = len(terms.parties), people_of(terms) or 0
        sigma = float(noise.total_variance(parties) ** 0.5) / float(4**self.bits)
        return Resources(
            memory_bytes=8 * layout.count * (parties + 8) + 2 * 10**8,
            reply_bytes=max(ring.packed_bytes(layout.count), plan.neighbours * BOX_BYTES) + 64,
            rounds=5,
            seconds=round(1.0 + people * len(layout.features) * 1e-8 + parties * plan.neighbours * 2e-4, 1),
            notes=(
                f"{len(layout.features)} features, {layout.count:,} sums, {ring.bits} bits a sum under masks",
                f"standard deviation {sigma:.4g} on every sum over {people:,} people of values in [-1, 1]",
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        layout, sums = self.layout(terms), "the noisy sums of products of all parties together"
        return Disclosure(
            sees={
                "coordinator": f"every party's sums under masks, which look uniform, who fell silent, and {sums}",
                "other parties": f"sealed shares of masks, and {sums}; each knows its own sums and share of the noise",
                "anyone with the release": sums,
            },
            sensitivity=(
                f"replacing one person's row moves the {layout.count} sums by at most "
                f"{float(layout.sensitivity):.6g} in squared l2, for z in [-1, 1]; a person is at one party, and every "
                "party is charged for all of it"
            ),
            not_protected=(
                f"against more than {self.colluding} parties that pool their shares of the noise, or more than "
                f"{self.missing} that leave theirs out: less noise is left than stated",
                *self.sum_plan(terms).not_protected,
                "the total against a party that puts in made-up numbers: nothing checks them",
                "which parties take part or fall silent, the columns, bounds and numbers of people: they are public",
                "what is true of groups: a relation that holds for many people shows, as it should",
            ),
        )


@lru_cache(maxsize=32)
def _layout(terms: Terms, products: tuple[Pair, ...], bits: int, norm: float, exempt: tuple[str, ...]) -> PooledLayout:
    columns = {column.name: coding_of(column, bits) for column in terms.schema.columns}
    codings = (*columns.values(), *(product_of(columns[one], columns[other]) for one, other in products))
    features = (intercept(), *(feature for coding in codings for feature in coding.features))
    check_names(codings, features)
    clip = clip_of(codings, exact(norm), exempt)
    lengths = [] if clip is None else [(clip.blocks, clip.length)]
    return PooledLayout(
        codings=codings,
        features=features,
        places=places_of(features),
        clip=clip,
        bits=bits,
        sensitivity=sensitivity_squared(codings, lengths=lengths),
    )
