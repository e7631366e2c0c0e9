"""The noisy Gram matrix of a vertical study: sums of products of any two features, also of different parties.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public.
*Method*: every party counts its number columns in bins, with noise, and codes its columns as whole numbers by public
bounds and those counts (`syndic.model.gram.scaling`). A party computes sums of
products of its own columns; those across parties come as shares from secure products (`syndic.mpc.product`). Each party
adds its share of one Gaussian noise to every sum, and masks the result with keys agreed with every other party: only
the total is opened, once. *Sensitivity*: see `syndic.model.gram.matrix`.

*Who sees what.* The coordinator: sealed rows, masked shares, the noisy sums. A party: masked rows, the noisy sums, its
own share of the noise; against up to `colluding` parties together enough noise remains. The coordinator and one party
together could read the rows of the others. *Adversary*: with `adversary` "active" parties prove that the squares in no
row add up to more than public bounds allow (`syndic.mpc.length`). What a row of a party that deviates adds to the sums
across parties depends on its length only, and an honest row has that length too, so the sensitivity holds. Then the
claim holds if up to `colluding` parties without the coordinator, or the coordinator alone, deviate. "passive" is
semi-honest.

It replaces the noisy columns that Wu et al. (2022) publish for the same purpose: any label, any features afterwards.
"""

import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    SAME_PEOPLE,
    Adversary,
    Message,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    schema_of,
    step,
)
from syndic.methods.onehot import rows_between
from syndic.methods.regression.gram_plan import GramPlan, absent_of, codings_of, features_of
from syndic.methods.regression.gram_result import GramResult, read_gram
from syndic.methods.regression.stages import SCALING, Scales, Stages, check_share, stages_of
from syndic.model.gram.rows import Pair, check_names, products_of
from syndic.model.gram.scaling import counts_of, is_number
from syndic.mpc.dealer import deal_products
from syndic.mpc.length import WITNESSES, least_modulus
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductChallenge, ProductInbox, ProductOpening, ProductProof, ProductTurn
from syndic.mpc.ring import OVERFLOW
from syndic.mpc.triple import product_sizes
from syndic.noise import FineGaussian


class OpenedGram(Message):
    """A party's noisy shares of all sums, masked with keys agreed with every other party."""

    share: bytes


@final
class Gram(Method, tag="gram"):
    """Parameters of the noisy Gram matrix.

    `products`: pairs of columns of one party whose product becomes a further column. `colluding`: how many parties may
    collude, their shares of the noise included. `bits`: a feature is a whole number of at most 2^bits. `overlap`:
    parties may lack some of the people; such a row has only missing values at that party. `norm`: a party's numbers in
    a row are clipped so that their mean square is at most this: less noise, but long rows are shortened. `exempt`:
    columns that are not clipped, for example the label. `scaling`: the share of the budget for noisy counts by which
    numbers are rescaled first; 0 for bounds only, as with `products`, `overlap` or a `norm` below 1. `adversary`:
    "active" lets parties prove that no row is longer than the noise is made for, so that parties that deviate, at most
    `colluding`, cannot read another party's record; it is the default unless `colluding` is 0. "passive" leaves the
    proof out.
    """

    title: ClassVar[str] = "Gram matrix from secure products, with one copy of noise"
    paper: ClassVar[str] = "replaces the noisy columns of Wu et al., UAI 2022; matrix triples after Beaver 1991"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: every role follows the protocol, and the coordinator, who deals the triples, colludes with no "
        "party; unless the study lists identities, the coordinator must not forge keys"
    )

    products: tuple[Pair, ...] = ()
    colluding: int = 1
    bits: int = 10
    overlap: bool = False
    norm: float = 1.0
    exempt: tuple[str, ...] = ()
    scaling: float = SCALING
    adversary: Adversary | None = None

    def __post_init__(self) -> None:
        check_share(self.scaling)
        if self.colluding < 0:
            raise ValueError(f"colluding ({self.colluding}) must not be negative")
        adversary_of(self.adversary, self.colluding)
        if not 4 <= self.bits <= 16:
            raise ValueError(f"bits ({self.bits}) must be from 4 to 16")
        if not 0 < self.norm <= 1:
            raise ValueError(f"norm ({self.norm}) must be above 0 and at most 1")
        if len({frozenset(pair) for pair in self.products}) != len(self.products):
            raise ValueError("products names the same two columns twice: they would be charged twice")

    @property
    def requires(self) -> Requires:
        """The same people, different columns."""
        return SAME_PEOPLE

    def plan(self, terms: Terms) -> GramPlan:
        """Code the columns, calibrate the noise to the strictest budget, and size the ring for both."""
        self._check_columns(terms)
        codings = codings_of(terms, self.products, self.bits)
        features, spans = features_of(codings, overlap=self.overlap)
        every = [block for blocks in codings.values() for block in blocks]
        check_names(every, features)
        stages = stages_of(
            terms,
            codings,
            features,
            people=terms.parties[0].people or 1,
            presences=len(codings) if self.overlap else 0,
            scaling=self.scaling,
            norm=self.norm,
            exempt=self.exempt,
            colluding=self.colluding,
            missing=0,
            alone=True,
        )
        widths = {name: span.stop - span.start for name, span in spans.items()}
        lengths = {name: self._length(blocks, stages, name) for name, blocks in codings.items()}
        return GramPlan(
            terms=terms,
            features=features,
            spans=spans,
            interactions=self.products,
            bits=self.bits,
            stages=stages,
            absent=absent_of(terms) if self.overlap else {},
            product=self._product(terms, widths, lengths, stages),
        )

    # The parties' side; keys are those of the secure product.

    @step(reveals="noisy")
    def count_bins(self, party: Party[GramPlan], message: Nothing) -> Scales:
        """Count own number columns in bins, add noise, and return the centres and widths that follow."""
        del message
        advance(party, "scales", 1)
        stages, codings = party.plan.stages, party.plan.codings[party.name]
        scaling, first = stages.scaling, stages.first
        if scaling is None or not isinstance(first, FineGaussian):
            raise RefusedError("this study scales numbers by their bounds")
        counts = sum(
            (counts_of(codings, batch, scaling.bins) for batch in party.table.batches()),
            start=np.zeros(scaling.bins * sum(map(is_number, codings)), dtype=np.int64),
        )
        noisy = party.release(first, counts, why="noisy counts to rescale numbers by")
        found = Scales(scales=scaling.scales(codings, noisy / first.scale, party.plan.product.sizes.rows))
        party.remember("scales", found)
        return found

    @step(reveals="sealed")
    def product_masked(self, party: Party[GramPlan], message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        return party.plan.product.mask(party, message, partial(_matrix, party))

    @step(reveals="sealed")
    def product_tested(self, party: Party[GramPlan], message: ProductChallenge) -> ProductProof:
        """Share what shows that no number in the masked rows of one chunk wraps."""
        return party.plan.product.test(party, message, partial(_matrix, party))

    @step(reveals="sealed")
    def product_proved(self, party: Party[GramPlan], message: ProductChallenge) -> ProductProof:
        """Prove that no masked row of one chunk is too long."""
        return party.plan.product.prove(party, message, partial(_matrix, party))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party[GramPlan], message: ProductInbox) -> Nothing:
        """Check the partners' proofs of the chunk and multiply it by their masked rows."""
        return party.plan.product.multiply(party, message, partial(_matrix, party))

    @step(reveals="masked")
    def open_gram(self, party: Party[GramPlan], message: Nothing) -> OpenedGram:
        """Combine own sums with shares of sums across parties, add a share of the noise, and mask the result."""
        del message
        plan, product = party.plan, party.plan.product
        ring, span = product.sizes.ring, plan.spans[party.name]
        shares = product.shares(party)
        own, sums = _own_sums(party)
        product.check_unchanged(party, sums)
        total = np.zeros(plan.sums, dtype=np.int64)
        _put(total, plan.places[span, span], own)
        if not plan.absent:
            _put(total, plan.places[0, span], sums << plan.bits)
        for partner, share in shares.items():
            left, right = product.pair(party.name, partner)
            _put(total, plan.places[plan.spans[left], plan.spans[right]], ring.lift(share))
        values = plan.stages.split(ring.lift(ring.reduce(total)), plan.features)
        noisy = party.contribute(plan.stages.noise, values, why="noisy Gram matrix")
        for partner in shares:
            noisy = ring.lift(product.hide(party, partner, noisy, ring))
        return OpenedGram(share=ring.pack(ring.reduce(noisy)))

    # The coordinator's side.

    def coordinate(self, session: Session[GramPlan]) -> GramResult:
        """Let parties rescale, deal triples, forward messages, add up all noisy shares: the masks cancel."""
        plan, ring = session.plan, session.plan.product.sizes.ring
        answers = session.ask(self.count_bins, Nothing()) if plan.stages.scaling else {}
        scales = {name: answer.scales for name, answer in answers.items()}
        deal_products(session, self, plan.product)
        opened = session.ask(self.open_gram, Nothing())
        total = np.zeros(plan.count, dtype=ring.dtype)
        for answer in opened.values():
            total = ring.add(total, ring.unpack(answer.share, plan.count))
        sums = plan.stages.joined(ring.lift(total), plan.features)
        return GramResult(note=plan.note_for(scales), sums=sums)

    def read(self, plan: GramPlan, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        scales = found.note.by_party(plan.codings)
        fits = all(plan.stages.allowed(blocks, scales[name]) for name, blocks in plan.codings.items())
        if not fits or found.note != plan.note_for(scales):
            raise InputError(f"{folder.name}: gram.json does not belong to this study")
        return found

    def _check_columns(self, terms: Terms) -> None:
        """Refuse products across parties, unknown exempt columns, and `colluding` not below the number of parties."""
        if self.colluding >= len(terms.parties):
            raise InputError(
                f"colluding ({self.colluding}) must be below the number of parties ({len(terms.parties)}): "
                "the noise of at least one party must remain"
            )
        for one, other in self.products:
            if one == other or not any({one, other} <= set(party.columns or ()) for party in terms.parties):
                raise InputError(
                    f"products: {one} and {other} must be two columns of one party; products across parties are not "
                    "supported"
                )
        unknown = [name for name in self.exempt if name not in terms.schema.names]
        if unknown:
            raise InputError(f"exempt: no party holds the column {unknown[0]}")

    def _length(self, blocks: tuple[Coding, ...], stages: Stages, name: str) -> int:
        """Return the largest sum of squares in a party's row: what the sensitivity is computed for."""
        clip = stages.clips.get(name)
        shortened = clip.length - clip.blocks if clip else 0
        flags = stages.flags(blocks)
        return int((len(blocks) + flags + shortened + self.overlap) * 4**self.bits)

    def _product(
        self, terms: Terms, widths: Mapping[str, int], lengths: Mapping[str, int], stages: Stages
    ) -> SecureProduct:
        """Return the product of every pair of parties, in a ring for every person at the bound and for the noise."""
        pairs, limits, noise = tuple(itertools.combinations(widths, 2)), terms.limits, stages.noise
        rows, proven = terms.parties[0].people or 1, adversary_of(self.adversary, self.colluding) == "active"
        stages.check_room(rows, self.bits)
        sizes = product_sizes(
            rows=rows,
            entry=int(stages.longest * 2**self.bits),
            signed=True,
            headroom=noise.tail(OVERFLOW / noise.dimension, noise.parties),
            columns=[width + WITNESSES * proven for width in widths.values()],
            proven=proven,
            least=least_modulus(rows, [(widths[name], length) for name, length in lengths.items()]) if proven else 0,
            chunk_bytes=min(1 << 24, min(limits.message_mb, limits.memory_mb) * 10**6 // (8 * len(widths))),
        )
        groups = {name: (width,) for name, width in widths.items()}
        return SecureProduct(
            label="product",
            sizes=sizes,
            pairs=pairs,
            groups=groups,
            proven=proven,
            lengths=lengths if proven else {},
        )


def _matrix(party: Party[GramPlan], start: int, stop: int) -> NDArray[Any]:
    """Return rows of the party's features. Private."""
    scales = party.recall("scales", Scales).scales if party.plan.stages.scaling else ()
    batches = party.table.batches(schema_of(party.terms, party.name).names)
    return np.concatenate([party.plan.rows(party.name, some, scales) for some in rows_between(batches, start, stop)])


def _own_sums(party: Party[GramPlan]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the party's own sums of products and sums, in units of 4^-bits and 2^-bits. Private."""
    sizes, (width,) = party.plan.product.sizes, party.plan.product.groups[party.name]
    products, sums = np.zeros((width, width), dtype=np.int64), np.zeros(width, dtype=np.int64)
    for chunk in range(sizes.chunks):
        rows = _matrix(party, *sizes.span(chunk))
        sums += rows.sum(axis=0, dtype=np.int64)
        products += products_of(rows)
    return products, sums


def _put(total: NDArray[np.int64], places: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Write values to their places among the opened sums; entries that are known or repeated have no place."""
    opened = places >= 0
    total[places[opened]] = values[opened]
