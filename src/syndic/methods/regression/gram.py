"""The noisy Gram matrix of a vertical study: sums of products of any two features, also of different parties.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Method*:
every party codes its columns as whole numbers of at most 2^bits by public bounds. Sums of products within a party are
its own; those across parties come as shares from secure products (`syndic.mpc.product`). Each party adds up what it
has, adds its share of one Gaussian noise to every sum, and masks the whole by what it agreed on with every other party:
only the total opens, once. *Sensitivity*: see `syndic.model.gram.matrix.sensitivity_squared`.

*Who sees what.* The coordinator: sealed rows, masked shares, the noisy sums. A party: masked rows, the noisy sums, its
own share of the noise; up to `colluding` parties together leave enough noise. Coordinator and one party together could
read the rows of the others. Everybody follows the steps.

It replaces the noisy columns that Wu et al. (2022) publish for the same purpose: any label, any features afterwards.
"""

import itertools
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import (
    Disclosure,
    Message,
    Party,
    Resources,
    Session,
    Terms,
    member,
    schema_of,
    step,
)
from syndic.methods.onehot import rows_between
from syndic.methods.refusals import check_fits, wrong_size
from syndic.methods.regression.gram_layout import MOST_BITS, Layout, Pair, layout_of, products_of
from syndic.methods.regression.gram_result import GramNote, GramResult, read_gram
from syndic.methods.synthesis.vertical_requirements import budgets_of, check_aligned
from syndic.mpc.dealer import secure_products
from syndic.mpc.product import UsesProduct
from syndic.mpc.product_messages import ProductClose
from syndic.mpc.triple import ProductSizes
from syndic.noise import FineGaussianShare
from syndic.privacy import Cost, Event


class OpenedGram(Message):
    """A party's noisy shares of all sums, under the masks it agreed on with every other party."""

    share: bytes


@final
class Gram(UsesProduct, tag="gram"):
    """Parameters of the noisy Gram matrix.

    `products`: pairs of columns of one party whose product is one more column. `colluding`: so many parties may pool
    what they know, their shares of the noise included. `bits`: a feature is a whole number of at most 2^bits.
    `overlap`: parties may lack some of the people; such a row has missing values only at that party. `norm`: a party's
    numbers in a row, squared and averaged, are brought down to this at most: less noise, but long rows are shortened.
    `exempt`: columns that are left as they are, the label for one.
    """

    title: ClassVar[str] = "Gram matrix from secure products, with one copy of noise"
    paper: ClassVar[str] = "replaces the noisy columns of Wu et al., UAI 2022; matrix triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and the coordinator, who deals the triples, pools what it knows "
        "with no party; unless the study gives identities, the coordinator must not forge keys"
    )

    products: tuple[Pair, ...] = ()
    colluding: int = 1
    bits: int = 10
    overlap: bool = False
    norm: float = 1.0
    exempt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.colluding < 0:
            raise ValueError(f"colluding ({self.colluding}) must not be negative")
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

    # The parties' side; keys, masked rows and products are those of the secure product.

    @step(reveals="masked")
    def open_gram(self, party: Party, message: ProductClose) -> OpenedGram:
        """Add up own sums and shares of those across parties, add a share of the noise, and mask the result."""
        layout = self.layout(party.terms)
        ring, span = layout.sizes.whole, layout.spans[party.name]
        shares = self.product_shares(party, message)
        own, sums = self._own(layout, party)
        self.product_unchanged(party, sums)
        total = np.zeros(layout.count, dtype=np.uint64)
        _put(total, layout.places[span, span], own.view(np.uint64))
        if not self.overlap:
            _put(total, layout.places[0, span], (sums << self.bits).view(np.uint64))
        for partner, share in shares.items():
            is_left = (party.name, partner) in _pairs(party.terms)
            left, right = (party.name, partner) if is_left else (partner, party.name)
            _put(total, layout.places[layout.spans[left], layout.spans[right]], share.astype(np.uint64))
        noisy = party.contribute(layout.noise, ring.lift(ring.reduce(total)), why="noisy Gram matrix")
        for partner in shares:
            noisy = ring.lift(self.product_hidden(party, partner, noisy, ring))
        return OpenedGram(share=ring.pack(ring.reduce(noisy)))

    def product_matrix(self, party: Party, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the party's features."""
        layout = self.layout(party.terms)
        people = member(party.terms, party.name).people
        # one row more than the last ones tells whether there are more people than the study says
        batches = party.table.batches(schema_of(party.terms, party.name).names)
        parts = [layout.rows(party.name, some) for some in rows_between(batches, start, stop + (stop == people))]
        if sum(map(len, parts)) != stop - start:
            raise wrong_size(party.name, people)
        return np.concatenate(parts)

    # The coordinator's side.

    def coordinate(self, session: Session) -> GramResult:
        """Deal, carry, and add up all parties' noisy shares: masks cancel."""
        layout = self.layout(session.terms)
        ring = layout.sizes.whole
        opened = session.ask(self.open_gram, secure_products(session, self))
        total = np.zeros(layout.count, dtype=np.uint64)
        for answer in opened.values():
            total = total + ring.unpack(answer.share, layout.count).astype(np.uint64)
        return GramResult(note=self._note(layout), sums=ring.lift(ring.reduce(total)))

    def read_result(self, terms: Terms, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        if found.note != self._note(self.layout(terms)):
            raise InputError(f"{folder.name}: gram.json is not of this study")
        return found

    # What is known before any row is read.

    def layout(self, terms: Terms) -> Layout:
        """Return the features, the noise and the rings."""
        options = {name: getattr(self, name) for name in self.__struct_fields__}
        return layout_of(terms, **options)  # type: ignore[arg-type]  # a study is frozen, so it can be a key

    def product_pairs(self, terms: Terms) -> tuple[Pair, ...]:
        """Return all pairs of parties."""
        return _pairs(terms)

    def product_groups(self, terms: Terms, party: str) -> tuple[int, ...]:
        """Return the number of features the party sends, as one group."""
        span = self.layout(terms).spans[party]
        return (span.stop - span.start,)

    def product_checked(self, terms: Terms) -> bool:
        """Features do not sum to one: nothing is checked."""
        del terms
        return False

    def product_sizes(self, terms: Terms) -> ProductSizes:
        """Return the ring, with room for every person at the bound and for the noise."""
        return self.layout(terms).sizes

    def noise_of(self, terms: Terms) -> FineGaussianShare:
        """Return the share of the noise that each party adds, in units of 4^-bits: for the strictest budget."""
        return self.layout(terms).noise

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_aligned(terms)
        held = [name for party in terms.parties for name in party.columns or ()]
        if self.colluding >= len(terms.parties):
            raise InputError(
                f"colluding ({self.colluding}) must be below the number of parties ({len(terms.parties)}): "
                "somebody's noise has to protect"
            )
        for one, other in self.products:
            if one == other or not any({one, other} <= set(party.columns or ()) for party in terms.parties):
                raise InputError(
                    f"products: {one} and {other} must be two columns of one party; a product across parties needs "
                    "products of three columns, which no party could add up"
                )
        unknown = [name for name in self.exempt if name not in held]
        if unknown:
            raise InputError(f"exempt: no party holds the column {unknown[0]}")
        self._check_size(terms)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of all sums: every party is charged for the whole."""
        member(terms, party)
        return (self.noise_of(terms).event,)

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, time for dealing and multiplying."""
        layout = self.layout(terms)
        sizes, parties = layout.sizes, len(terms.parties)
        widths = [span.stop - span.start for span in layout.spans.values()]
        chunk = sizes.small.packed_bytes(sizes.chunk * max(widths))
        cells = sum(left * right for left, right in itertools.combinations(widths, 2))
        outside, pooled = self.epsilons(terms)
        return Resources(
            memory_bytes=10**8 + (4 * parties + 16) * chunk + 64 * layout.count,
            reply_bytes=max(chunk, sizes.whole.packed_bytes(layout.count)) + 1000,
            rounds=3 + 2 * sizes.chunks,
            seconds=round(1.0 + sizes.rows * (sum(widths) * 3e-8 * parties + cells * 2e-9), 1),
            notes=(
                f"{len(layout.features)} features, {layout.count:,} sums; rows are masked with {sizes.small.bits} bits "
                "a feature",
                f"standard deviation {layout.sigma:.4g} on every sum over {sizes.rows:,} people of values in [-1, 1]",
                f"epsilon {outside:.4g} against all but the parties, {pooled:.4g} against {self.colluding} of them",
            ),
        )

    def epsilons(self, terms: Terms) -> tuple[float, float]:
        """Return the epsilon against everyone who knows no share of the noise, and against `colluding` parties."""
        noise = self.noise_of(terms)
        delta = min(budget.delta for budget in budgets_of(terms))
        events = (noise.event_if(noise.parties), noise.event)
        outside, pooled = (float(Cost.of([event]).epsilon(delta)) for event in events)
        return outside, pooled

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        layout, sums = self.layout(terms), "the noisy sums of products"
        outside, pooled = self.epsilons(terms)
        present = (
            "who is on the common list of people, and how long it is; whom of them a party has is protected"
            if self.overlap
            else "who the people are and how many: aligned rows show it to every party"
        )
        return Disclosure(
            sees={
                "coordinator": f"sealed rows that it cannot read, shares under masks that it lacks, and {sums}",
                "other parties": f"masked rows, which look uniform, and {sums}; each knows its own share of the noise",
                "anyone with the release": sums,
            },
            sensitivity=(
                f"replacing one person's values at all parties at once moves the {layout.count} sums by at most "
                f"{float(layout.sensitivity):.6g} in squared l2, for z in [-1, 1]; every party is charged for all of it"
            ),
            not_protected=(
                f"epsilon is {outside:.4g} against all but the parties, {pooled:.4g} against {self.colluding} of them "
                "together, who can take their own shares of the noise off",
                "coordinator and one party together: they can read the rows of the other parties",
                "a party that does not follow the steps: nothing checks the rows, so one that puts a large number into "
                "a row reads the other parties' record of that person",
                "a coordinator that deals wrong triples: it can shift sums by what it chooses",
                present,
                "what is true of groups: a relation that holds for many people shows, as it should",
            ),
        )

    def _own(self, layout: Layout, party: Party) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the party's own sums of products and sums, in units of 4^-bits and 2^-bits. Private."""
        span = layout.spans[party.name]
        width = span.stop - span.start
        products, sums = np.zeros((width, width), dtype=np.int64), np.zeros(width, dtype=np.int64)
        for chunk in range(layout.sizes.chunks):
            rows = self.product_matrix(party, *layout.sizes.span(chunk))
            sums += rows.sum(axis=0, dtype=np.int64)
            products += products_of(rows)
        return products, sums

    def _note(self, layout: Layout) -> GramNote:
        return GramNote(
            rows=layout.sizes.rows,
            bits=self.bits,
            sigma=layout.sigma,
            shortened=bool(layout.clips),
            features=layout.features,
        )

    def _check_size(self, terms: Terms) -> None:
        bits = self.product_sizes(terms).whole.bits
        if bits > MOST_BITS:
            raise InputError(f"sums of {bits} bits leave no room for noise in 64: set bits below {self.bits}")
        way_out = "use fewer columns or bins, or set larger limits"
        check_fits(terms, self.estimate(terms), way_out, replies=len(terms.parties))


def _pairs(terms: Terms) -> tuple[Pair, ...]:
    return tuple(itertools.combinations([party.name for party in terms.parties], 2))


def _put(total: NDArray[np.uint64], places: NDArray[np.int64], values: NDArray[np.uint64]) -> None:
    """Write values where they are opened; where an entry is known beforehand or stands twice there is no place."""
    opened = places >= 0
    total[places[opened]] = values[opened]
