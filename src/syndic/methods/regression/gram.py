"""The noisy Gram matrix of all parties' rows, over any cut: sums of products of any two features, opened once.

*Neighbours*: one person's values are replaced, at all parties of their group at once; each group's number of people is
public, and who they are is known to its parties. *Method*: number columns are counted in bins first, in a noisy masked
sum, to rescale them (`syndic.model.gram.scaling`). Every party codes its columns as whole numbers by public bounds and
those counts, and sums the products of its own features. Where parties of a group hold different columns of the same
people, sums across them come as shares from secure products (`syndic.mpc.product`). Each party adds its share of one
Gaussian noise to all of that and masks it (`syndic.mpc.masked_sum`): only the total over all groups is opened.
Different people, same columns is the case of a group for each party; same people, different columns that of one group.
*Sensitivity*: see `syndic.model.gram.matrix`; a group's parties shorten their own parts of a row, and the noise is for
the group in which a person changes most.

*Who sees what.* The coordinator: masked sums, noisy counts and sums; where parties multiply also sealed rows. A party:
masked rows of its group, the noisy sums, its own share of the noise; against up to `colluding` parties together enough
noise remains. Where parties multiply, the coordinator and one of them together could read the rows of its partners.
*Adversary*: under masks the coordinator may do anything. With `adversary` "active" parties that multiply prove that the
squares in no row add up to more than public bounds allow (`syndic.mpc.length`). What a row of a party that deviates
adds to the sums across parties depends on its length only, and an honest row has that length too, so the sensitivity
holds. Then the claim holds if up to `colluding` parties without the coordinator, or the coordinator alone, deviate.
"passive" is semi-honest.

It replaces the noisy columns that Wu et al. (2022) publish for the same purpose: any label, any features afterwards.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, coding_of
from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    UNDER_MASKS,
    Adversary,
    Group,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    groups_of,
    shared_people,
    step,
)
from syndic.methods.onehot import rows_between
from syndic.methods.product_steps import ProductSteps
from syndic.methods.regression.gram_plan import GramPlan, absent_of, codings_of, features_of, held_by
from syndic.methods.regression.gram_result import GramResult, read_gram
from syndic.methods.regression.stages import SCALING, Scales, Stages, check_share, stages_of
from syndic.model.gram.rows import Pair, check_names, products_of
from syndic.model.gram.scaling import Scale, is_number
from syndic.mpc.dealer import deal_products
from syndic.mpc.graph import sum_graph
from syndic.mpc.length import WITNESSES, least_modulus
from syndic.mpc.masked_sum import MaskedSum, SumMasked
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductChallenge, ProductProof
from syndic.mpc.ring import ring_for
from syndic.mpc.triple import product_sizes


@final
class Gram(ProductSteps, tag="gram"):
    """Parameters of the noisy Gram matrix.

    `products`: pairs of columns of one party whose product becomes a further column. `colluding`: how many parties may
    collude, with the coordinator or with each other; at least 1, since every party knows its own share of the noise.
    `missing`: how many parties may drop out; none where a group has several. `bits`: a feature is a whole number of at
    most 2^bits. `overlap`: parties of the one group may lack some of the people; such a row has only missing values at
    that party. `norm`: a party's numbers in a row are clipped so that their mean square is at most this: less noise,
    but long rows are shortened. `exempt`: columns that are not clipped, for example the label. `scaling`: the share of
    the budget for noisy counts by which numbers are rescaled first, up to a half where people are few; 0 for bounds
    only, as with `products`, `overlap` or a `norm` below 1. `target`: the number column that regressions will predict,
    if it is known: less noise on its sums, up to a quarter more on all others, twice as much where people are few.
    `adversary`: "active", the default, lets parties that multiply prove that no row is longer than the noise is made
    for, so that parties that deviate, at most `colluding`, cannot read another party's record. "passive" leaves the
    proof out.
    """

    title: ClassVar[str] = "Gram matrix of all parties' rows, from a masked sum"
    paper: ClassVar[str] = (
        "sufficient statistics after Vu and Slavkovic 2009, in place of the noisy columns of Wu et al. 2022; masked "
        "sums after Bonawitz et al. 2017; across columns by matrix triples after Beaver 1991"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = UNDER_MASKS

    products: tuple[Pair, ...] = ()
    colluding: int = 1
    missing: int = 0
    bits: int = 10
    overlap: bool = False
    norm: float = 1.0
    exempt: tuple[str, ...] = ()
    scaling: float = SCALING
    target: str | None = None
    adversary: Adversary | None = None

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
        """One row in one group, under `replace`, so that sizes are public. Gaussian noise needs delta."""
        return Requires(
            people="bound",
            delta="Gaussian noise",
            neighbours="replace",
            rows=1,
            parties=1,
            because="the number of people of each group is public, and a person has one row in one of them",
            any_cut=True,
        )

    def plan(self, terms: Terms) -> GramPlan:
        """Code the columns, calibrate the noise to the strictest budget, and size the ring for both."""
        groups = groups_of(terms)
        self._check_columns(terms, groups)
        self._check_target(terms)
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        codings = codings_of(terms.schema, self.products, self.bits)
        held = held_by(groups, codings)
        features = features_of(codings, groups, overlap=self.overlap)
        check_names(codings, features)
        absent = absent_of(terms.schema, held) if self.overlap else {}
        stages = stages_of(
            terms,
            codings,
            features,
            groups=groups,
            held=held,
            presences=len(absent),
            scaling=self.scaling,
            norm=self.norm,
            exempt=self.exempt,
            target=self.target,
            colluding=self.colluding,
            missing=self.missing,
        )
        room = stages.check_room(sum(group.people for group in groups), self.bits)
        product = self._multiplied(terms, groups, held, stages, room)
        ring = product.sizes.ring if product else ring_for(room)
        return GramPlan(
            terms=terms,
            groups=groups,
            features=features,
            interactions=self.products,
            bits=self.bits,
            stages=stages,
            absent=absent,
            masked_sum=MaskedSum(label="gram", graph=graph, count=stages.noise.dimension, ring=ring),
            product=product,
        )

    # The parties' side; keys are those of the masked sums and of the secure product.

    @step(reveals="masked")
    def count_bins(self, party: Party[GramPlan], message: Nothing) -> SumMasked:
        """Count own number columns in bins, add noise, and mask the result."""
        del message
        plan, own = party.plan, party.plan.counted_by(party.name)
        masks = plan.masked_sum.masks_for(party, 1, own.size, plan.counts_ring)
        noise, counts = plan.stages.first_at(own), np.zeros(own.size, dtype=np.int64)
        if own.any():
            counts[own] = _own_counts(party)
        return masks.hide(party.contribute(noise, counts, why="noisy counts to rescale numbers by, over all parties"))

    @step(reveals="public")
    def rescale(self, party: Party[GramPlan], message: Scales) -> Nothing:
        """Check and keep the centres and widths by which rows are coded before they are multiplied."""
        advance(party, "scales", 1)
        _check_scales(party, message)
        party.remember("scales", message)
        return Nothing()

    def product_at(self, party: Party[GramPlan]) -> SecureProduct:
        """Return the product of all groups of several parties."""
        product = party.plan.product
        assert product is not None  # noqa: S101 (these steps are asked of parties that multiply only)
        return product

    def product_rows(self, party: Party[GramPlan], start: int, stop: int) -> NDArray[np.int32]:
        """Return rows of the party's features; those after its last person are empty, which adds to no sum. Private."""
        plan = party.plan
        scales = party.recall("scales", Scales).scales if plan.stages.scaling else ()
        batches = rows_between(party.table.batches(plan.read_from(party.name)), start, stop)
        parts = [plan.rows(party.name, some, scales) for some in batches]
        matrix = np.concatenate([np.zeros((0, plan.columns[party.name].size), dtype=np.int32), *parts])
        return np.pad(matrix, ((0, stop - start - len(matrix)), (0, 0)))

    @step(reveals="sealed")
    def product_tested(self, party: Party[GramPlan], message: ProductChallenge) -> ProductProof:
        """Share what shows that no number in the masked rows of one chunk wraps."""
        return self.product_at(party).test(party, message, partial(self.product_rows, party))

    @step(reveals="masked")
    def add_up(self, party: Party[GramPlan], message: Scales) -> SumMasked:
        """Sum own products, add shares of those across parties and a share of the noise, and mask the result."""
        plan, product, sums = party.plan, party.plan.product, party.plan.masked_sum
        masks = sums.masks_for(party, 2 if plan.stages.scaling else 1, sums.count, sums.ring)
        _check_scales(party, message)
        if product and plan.stages.scaling and party.recall("scales", Scales) != message:
            raise RefusedError("the sums are asked by other scales than the products")
        shares = product.shares(party) if product and party.name in product.groups else {}
        total, own = np.zeros(int(plan.places.max()) + 1, dtype=np.int64), plan.columns[party.name]
        if own.size:
            products, columns = _own_sums(party, message.scales)
            within = own if plan.absent else np.append(0, own)
            _put(total, plan.places[np.ix_(within, within)], products)
            if product and shares:
                product.check_unchanged(party, columns)
        for partner, share in shares.items():
            left, right = self.product_at(party).pair(party.name, partner)
            _put(total, plan.places[np.ix_(plan.columns[left], plan.columns[right])], sums.ring.lift(share))
        values = plan.stages.split(sums.ring.lift(sums.ring.reduce(total)), plan.features)
        return masks.hide(party.contribute(plan.noise, values, why="noisy Gram matrix, one sum over all parties"))

    # The coordinator's side.

    def coordinate(self, session: Session[GramPlan]) -> GramResult:
        """Open the noisy counts, let groups of several parties multiply, then open the noisy sum of all matrices."""
        plan, stages, sums = session.plan, session.plan.stages, session.plan.masked_sum
        opening = sums.start(session)
        scales: tuple[Scale, ...] = ()
        if stages.scaling and stages.first:
            size = stages.scaling.columns * stages.scaling.bins
            counts = sums.open_next(opening, self.count_bins, Nothing(), size, plan.counts_ring)
            noisy = counts.values / stages.first.scale
            scales = stages.scaling.scales(plan.codings, noisy, plan.people(counts.present))
        if plan.product:
            if stages.scaling:
                session.ask(self.rescale, Scales(scales=scales))
            deal_products(session, self, plan.product)
        total = sums.open_next(opening, self.add_up, Scales(scales=scales), sums.count, sums.ring)
        return GramResult(note=plan.note_for(scales, total.present), sums=stages.joined(total.values, plan.features))

    def read(self, plan: GramPlan, folder: Path) -> GramResult:
        """Read back `gram.parquet` and `gram.json`."""
        found = read_gram(folder)
        note = found.note
        fits = plan.stages.allowed(plan.codings, note.scales) and plan.may_state(note.rows, note.sigma)
        if fits:
            wanted = plan.note_for(note.scales, plan.everybody)
            fits = note == msgspec.structs.replace(wanted, rows=note.rows, sigma=note.sigma)
        if not fits:
            raise InputError(f"{folder.name}: gram.json does not belong to this study")
        return found

    def _check_columns(self, terms: Terms, groups: Sequence[Group]) -> None:
        """Refuse columns that a group lacks, products across parties, unknown columns, and what needs other groups."""
        names = terms.schema.names
        for name in sorted({*self.exempt, *(name for pair in self.products for name in pair)}):
            if name not in names:
                raise InputError(f"products and exempt: the schema has no column {name}")
        for group in groups:
            lacking = [name for name in names if name not in group.read_from]
            if lacking:
                raise InputError(
                    f"group '{group.name}' has no column '{lacking[0]}', and sums are over all people: leave the "
                    "column out of the schema, or give it to a party of the group"
                )
            for one, other in self.products:
                if one == other or group.read_from[one] != group.read_from[other]:
                    raise InputError(
                        f"products: {one} and {other} must be two columns of one party; products across parties are "
                        "not supported"
                    )
        if self.overlap and len(groups) > 1:
            raise InputError("overlap is for parties with the same people, in one group: set overlap = false")
        if self.missing and shared_people(terms):
            raise InputError("parties of a group with several must all answer: set missing = 0")

    def _check_target(self, terms: Terms) -> None:
        """Refuse a target that is not a column of numbers, or where numbers are not rescaled."""
        if self.target is None:
            return
        if self.target not in terms.schema.names:
            raise InputError(f"target: the schema has no column {self.target}")
        if not is_number(coding_of(terms.schema[self.target], self.bits)):
            raise InputError(f"target: {self.target} is not a column of numbers; a class to predict needs no target")
        if not self.scaling or self.products or self.overlap or self.norm < 1:
            raise InputError(
                "target: it needs rescaled numbers: leave out target, or products, overlap, norm and scaling = 0"
            )

    def _multiplied(
        self,
        terms: Terms,
        groups: Sequence[Group],
        held: Mapping[str, tuple[Coding, ...]],
        stages: Stages,
        room: int,
    ) -> SecureProduct | None:
        """Return the product of every two parties of a group, in a ring with room for the sum over all groups."""
        owners = [(group.people, [name for name in group.parties if held[name]]) for group in groups]
        several = [(people, names) for people, names in owners if len(names) > 1]
        if not several:
            return None
        blocks = {name: held[name] for _, names in several for name in names}
        widths = {name: self.overlap + sum(len(one.features) for one in own) for name, own in blocks.items()}
        lengths = {name: self._length(own, stages, name) for name, own in blocks.items()}
        rows, limits = max(people for people, _ in several), terms.limits
        entry, proven = int(stages.longest * 2**self.bits), adversary_of(self.adversary, self.colluding) == "active"
        sizes = product_sizes(
            rows=rows,
            entry=entry,
            signed=True,
            headroom=room - rows * entry**2,  # the ring of a product has room for its rows already
            columns=[width + WITNESSES * proven for width in widths.values()],
            proven=proven,
            least=least_modulus(rows, [(widths[name], length) for name, length in lengths.items()]) if proven else 0,
            chunk_bytes=min(1 << 24, min(limits.message_mb, limits.memory_mb) * 10**6 // (8 * len(widths))),
        )
        return SecureProduct(
            label="product",
            sizes=sizes,
            pairs=tuple(pair for _, names in several for pair in itertools.combinations(names, 2)),
            groups={name: (width,) for name, width in widths.items()},
            proven=proven,
            lengths=lengths if proven else {},
        )

    def _length(self, blocks: tuple[Coding, ...], stages: Stages, name: str) -> int:
        """Return the largest sum of squares in a party's row: what the sensitivity is computed for."""
        clip = stages.clips.get(name)
        shortened = clip.length - clip.blocks if clip else 0
        return int((len(blocks) + stages.flags(blocks) + shortened + self.overlap) * 4**self.bits)


def _check_scales(party: Party[GramPlan], message: Scales) -> None:
    if not party.plan.stages.allowed(party.plan.codings, message.scales):
        raise RefusedError("the scales do not belong to this study's number columns")


def _own_counts(party: Party[GramPlan]) -> NDArray[np.int64]:
    """Return how many rows have each of the party's number columns in each bin. Private."""
    plan, scaling = party.plan, party.plan.stages.scaling
    assert scaling is not None  # noqa: S101 (the step is in a plan with a scaling only)
    blocks, batches = plan.blocks[party.name], party.table.batches(plan.read_from(party.name))
    return sum((scaling.counts(blocks, batch) for batch in batches), start=np.zeros(1, dtype=np.int64))


def _own_sums(party: Party[GramPlan], scales: tuple[Scale, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the party's own sums of products, the intercept first unless people may be absent, and sums. Private.

    They are in units of 4^-bits and 2^-bits.
    """
    plan, width = party.plan, party.plan.columns[party.name].size
    ones = 0 if plan.absent else 1
    products, sums = np.zeros((ones + width,) * 2, dtype=np.int64), np.zeros(width, dtype=np.int64)
    for batch in party.table.batches(plan.read_from(party.name)):
        rows = plan.rows(party.name, batch, scales)
        sums += rows.sum(axis=0, dtype=np.int64)
        products += products_of(np.hstack([np.full((len(rows), ones), 1 << plan.bits, dtype=np.int32), rows]))
    return products, sums


def _put(total: NDArray[np.int64], places: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Write values to their places among the opened sums; entries that are known or repeated have no place."""
    opened = places >= 0
    total[places[opened]] = values[opened]
