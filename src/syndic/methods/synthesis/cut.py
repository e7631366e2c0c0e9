"""Rounds of a synthesis where groups of people have several parties, or lack columns: who counts what, what opens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import cached_property, lru_cache
from math import ceil, log, sqrt
from typing import Final, final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import Group, Party, Terms, covered
from syndic.methods.layout import CountTables, Names, TableLayout, layout_of, traffic_of
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.measure import Question, RoundLimits
from syndic.methods.synthesis.size import Size, most_rows
from syndic.methods.table_noise import TableNoise
from syndic.model.selection import Adaptive
from syndic.model.selection.counts import Room
from syndic.mpc.coins import CHUNK_BYTES, Coins, coin_product
from syndic.mpc.masked_sum import MaskedSums, SumMasked
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.ring import OVERFLOW, Integers, Residues
from syndic.mpc.triple import ProductSizes

# Shares fill their ring, and noise is added to them as 64-bit numbers.
_MOST_BITS: Final = 62
# Of one masked entry of a chunk at a party: as drawn, opened, unpacked and multiplied.
_ENTRY_BYTES: Final = 32
_CHUNK_ENTRIES: Final = 1 << 24
_BITS: Final = 8
# Parities take one part in so many of the traffic, beside it, and so many are counted in all groups together.
_PARITY_PART: Final = 6
_MOST_PARITIES: Final = 1 << 16
# Coins of a round take at most one part in so many of the traffic, beside it; of few people that of so many.
_COINS_PART: Final = 4
_COINS_PEOPLE: Final = 16_000
# The variance of noise from coins, in that of Gaussian noise, unless it is very small.
_OF_COINS: Final = 1.08


@final
@dataclass(frozen=True, kw_only=True)
class CutRound:
    """What everybody works out alike from the study and a question: who counts what, and in which ring it is added.

    `tossed`: the places of tables whose noise two of their parties toss with `coins`, by pair.
    """

    layout: TableLayout
    product: SecureProduct | None
    share: RoundNoise
    whole: RoundNoise
    ring: Integers
    coins: Coins | None = None
    tossed: Mapping[Pair, tuple[int, ...]] = field(default_factory=dict)

    @property
    def multiplied(self) -> SecureProduct:
        """The product of a round that is known to have tables of two parties."""
        assert self.product is not None  # noqa: S101 (so planned)
        return self.product

    def noise_at(self, party: str) -> TableNoise:
        """Return the noise that a party adds: its share, and the whole on tables that it alone counts.

        A coordinator that shares the noise (`COORDINATOR`) counts none.
        """
        shared, own = self.layout.marked(lambda who: len(who) > 1), self.layout.marked(lambda who: who == {party})
        for pair in self.tossed:
            shared[self._counts(pair)] = False
        return TableNoise(self.share.event, self.share.noise, self.whole.noise, shared, own, self.share.noise.scale)

    def count(self, party: Party, sums: MaskedSums, number: int, count: CountTables, *, why: str) -> SumMasked:
        """Return a party's masked part of a sum: own counts, shares of those with partners, and noise."""
        masks = sums.masks_for(party, number, self.layout.dimension, self.ring)
        values = self.layout.added_by(party, self.product, count)
        tosses = self.coins and any(party.name in pair for pair in self.tossed)
        for partner, noise in self.coins.noise_shares(party).items() if self.coins and tosses else ():
            # in the ring of the product, as counts are
            values[self._counts(self.multiplied.pair(party.name, partner))] += noise
        return masks.hide(party.contribute(self.noise_at(party.name), values, why=why))

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of a count of every table."""
        shared, single = self.share.variance(self.share.shares), self.whole.variance(1)
        tossed = {place for places in self.tossed.values() for place in places}
        found = [shared if len(parties) > 1 else single for parties in self.layout.counting]
        return tuple(self._tossed if place in tossed else one for place, one in enumerate(found))

    @property
    def _tossed(self) -> float:
        assert self.coins is not None  # noqa: S101 (so planned)
        return self.coins.noise.variance

    def _counts(self, pair: Pair) -> NDArray[np.int64]:
        """Return which counts have noise from the coins of a pair."""
        return np.concatenate([np.r_[self.layout.spans[place]] for place in self.tossed[pair]])

    def scaled_up(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[float, ...]]:
        """Return counts and variances as if of all people: of tables that some groups lack, those of the others.

        The variance of a parity is also that of the choice of people, as far as they stand for others.
        """
        groups = self.layout.groups
        whole = sum(group.people for group in groups)
        factors = [whole / covered(groups, names) for names in self.layout.tables]
        sizes = [self.layout.size(names) for names in self.layout.tables]
        chosen = whole if self.layout.parity else 0
        variances = tuple(
            one * factor**2 + chosen * (factor - 1) for one, factor in zip(self.variances, factors, strict=True)
        )
        return values * np.repeat(factors, sizes), variances


@final
@dataclass(frozen=True, kw_only=True)
class CutReach:
    """Which tables the groups of a study can count, and how well. People that a table lacks count as the others do.

    `proven`: whether parties prove their rows. `servers`: the parties that multiply, if not the coordinator deals.
    `coin_traffic`: how many bytes coins of a round may take.
    """

    terms: Terms
    groups: tuple[Group, ...]
    account: Account
    proven: bool
    rooms: tuple[RoundLimits, ...]
    servers: tuple[str, ...] = ()
    coin_traffic: int = 0

    @property
    def people(self) -> int:
        """The number of all people."""
        return sum(group.people for group in self.groups)

    @cached_property
    def _ways(self) -> tuple[tuple[Group, int, int], ...]:
        """The ways in which groups hold the columns: one group of each, the people of all such groups, their number."""
        found: dict[tuple[tuple[int, ...], ...], list[Group]] = {}
        for group in self.groups:
            read = [group.read_from.get(name, ()) for name in self.terms.schema.names]
            way = tuple(tuple(map(group.parties.index, parties)) for parties in read)
            found.setdefault(way, []).append(group)
        return tuple((ones[0], sum(one.people for one in ones), len(ones)) for ones in found.values())

    def noisier(self, table: Domain) -> float | None:
        """Return how many times the variance of a count that all parties share a table has, as if of all people."""
        counting = [len(group.counted_by(table.names)) for group, _, _ in self._ways]
        people = sum(people for (_, people, _), parties in zip(self._ways, counting, strict=True) if parties)
        if not people or any(_one_sided(group, table) for group, _, _ in self._ways):
            return None
        groups = [(parties, times) for (_, _, times), parties in zip(self._ways, counting, strict=True) if parties]
        whole, factor = 1 / self.account.shares_to_whole, 1.0
        if groups == [(1, 1)]:
            factor = whole
        elif len(groups) == 1 and groups[0][1] == 1 and self.account.tosses(groups[0][0]) and self.coin_traffic:
            factor = min(1.0, whole * _OF_COINS)
        return (self.people / people) ** 2 * factor

    def takes(self, number: int, tables: Sequence[Names], domain: Domain, *, parity: bool = False) -> bool:
        """Return whether a round can count all these tables over groups of levels, or parities over halves of them."""
        if any(self.noisier(domain.project(names)) is None for names in tables):
            return False
        layout = layout_of(self.groups, tables, domain, parity=parity)
        sizes = self._sizes(number, layout) if layout.across else None
        return not layout.across or (sizes is not None and layout.traffic(sizes) <= self.rooms[number - 1].traffic)

    def sends(self, table: Domain) -> dict[tuple[str, Names], int]:
        """Return how many columns of a matrix parties send for a table, by party and block of columns."""
        groups = [group for group, _, _ in self._ways]
        often = {name: times for group, _, times in self._ways for name in group.parties}
        layout = layout_of(groups, [table.names], table)
        return {
            (party, block): often[party] * (layout.levels(block) - 1)
            for party, blocks in layout.blocks.items()
            for block in blocks
        }

    def room(self, number: int, tables: int, domain: Domain) -> Room:
        """Return what says of one table after another if a round of so many has traffic for it beside those before.

        Tables are over the groups of `domain`.
        """
        groups, times = [group for group, _, _ in self._ways], [number for _, _, number in self._ways]
        often = {name: count for group, count in zip(groups, times, strict=True) for name in group.parties}
        noise = self.account.noise_of(number, tables, 1)
        sizes: ProductSizes | None = None
        sent, cells = dict[tuple[str, Names], int](), 0

        def taken(names: Names) -> bool:
            nonlocal sizes, sent, cells
            layout = layout_of(groups, [names], domain)
            if not layout.across:
                return True
            if sizes is None:
                sizes = _sizes(self.terms, layout, noise, proven=self.proven, coins=bool(self.coin_traffic))
            wider = sent | self.sends(domain.project(names))
            more = cells + sum(
                often[left] * layout.shared(one) for (left, _), tables in layout.across.items() for one in tables
            )
            if traffic_of(sizes, sum(wider.values()), len(wider), more) > self.rooms[number - 1].traffic:
                return False
            sent, cells = wider, more
            return True

        return taken

    def fitting_sets(self, number: int, sets: Sequence[Names], domain: Domain) -> tuple[Names, ...]:
        """Return those of the sets, in order, whose parities a round can count.

        What some columns of a party say together is sent once, for all sets that have them.
        """
        room = self.rooms[number - 1]
        counted = [names for names in sets if self.noisier(domain.project(names)) is not None]
        if not counted:
            return ()
        layout = layout_of(self.groups, counted, domain, parity=True)
        sent: list[set[tuple[str, Names]]] = [set() for _ in counted]
        crossed = [0] * len(counted)
        for pair, tables in layout.across.items():
            for one in tables:
                sent[one.place] |= set(one.sides(pair))
                crossed[one.place] += 1
        # fewer sets take no larger numbers, and no more chunks
        sizes, blocks, shared = self._sizes(number, layout), set[tuple[str, Names]](), 0
        kept: list[Names] = []
        for names, needed, times in zip(counted, sent, crossed, strict=True):
            columns, cells = len(blocks | needed), shared + times
            if not needed or (sizes and traffic_of(sizes, columns, columns, cells) <= room.traffic):
                blocks, shared = blocks | needed, cells
                kept.append(names)
        return tuple(kept[: room.tables])

    def _sizes(self, number: int, layout: TableLayout) -> ProductSizes | None:
        """Return the sizes of a round's product; None with more noise than any field has room for, or than 64 bits."""
        noise = self.account.noise_of(number, len(layout.tables), layout.dimension, layout.parities)
        try:
            return _sizes(self.terms, layout, noise, proven=self.proven, coins=bool(self.coin_traffic))
        except InputError:
            return None

    def round_of(self, question: Question) -> CutRound:
        """Return how a question that was checked is answered."""
        return _round_of(self, question)

    def __hash__(self) -> int:
        """Plans of one process differ in their terms."""
        return hash((self.terms, self.proven))


@lru_cache(maxsize=4)
def _round_of(reach: CutReach, question: Question) -> CutRound:
    domain = question.grouping(reach.terms.schema.domain).domain_of_groups
    layout = layout_of(reach.groups, question.tables, domain, parity=question.parity)
    # partners who were asked different things cannot read each other's mail; a part of a digest can be made equal
    label = f"round {question.number}, {question.digest.hex()}"
    return plan_round(
        reach.terms,
        reach.account,
        question.number,
        layout,
        label,
        proven=reach.proven,
        servers=reach.servers,
        coin_traffic=reach.coin_traffic,
    )


def plan_round(
    terms: Terms,
    account: Account,
    number: int,
    layout: TableLayout,
    label: str,
    *,
    proven: bool = False,
    servers: tuple[str, ...] = (),
    coin_traffic: int = 0,
) -> CutRound:
    """Return how the tables of a round are counted, with its part of the account; `label` is that of its product.

    Where `coin_traffic` has room, parties toss coins for the noise of a table, the smallest tables first.

    Raises:
        InputError: if counts and their noise do not fit 64 bits.
    """
    asked = number, len(layout.tables), layout.dimension, layout.parities
    share, whole = account.noise_of(*asked), account.alone.noise_of(*asked)
    if not layout.across:  # a field may have no room for the noise
        alone = share.ring(sum(group.people for group in layout.groups), layout.dimension)
        return CutRound(layout=layout, product=None, share=share, whole=whole, ring=alone)
    sizes = _sizes(terms, layout, share, proven=proven, coins=bool(coin_traffic))
    product = layout.product(label, sizes, proven=proven, servers=servers)
    ring = sizes.ring.scaled(share.noise.scale)
    now = CutRound(layout=layout, product=product, share=share, whole=whole, ring=ring)
    if not coin_traffic or not isinstance(sizes.ring, Residues):
        return now
    try:
        noise = account.coin_noise(number, len(layout.tables), layout.parities)
    except InputError:  # coins of no width are fine enough for so little of the budget a table
        return now
    tossed = _tossed(layout, account, coin_traffic * _BITS // (2 * len(noise.coins) * sizes.ring.bits))
    if not tossed or noise.variance >= share.variance(share.shares):
        return now
    values = {pair: sum(layout.size(layout.tables[place]) for place in places) for pair, places in tossed.items()}
    # as for rows: what a party gets of all partners at once fits a message
    chunk_bytes = min(CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * len(layout.blocks)))
    # partners who worked out another law cannot read each other's coins
    law = f"{label}, coins {noise.weights} {noise.counts} {noise.power}"
    coins = coin_product(law, noise, values, sizes.ring, chunk_bytes, servers)
    return replaced(now, coins=coins, tossed=tossed)


def _tossed(layout: TableLayout, account: Account, room: int) -> dict[Pair, tuple[int, ...]]:
    """Return the tables that two parties toss coins for, the smallest first, with `room` for counts."""
    places = ((place, pair) for pair, shared in layout.between.items() for place in shared)
    pairs = {place: pair for place, pair in places if account.tosses(len(layout.counting[place]))}
    found: dict[Pair, tuple[int, ...]] = {}
    most = account.most_tossed(parity=layout.parity)
    for place in sorted(pairs, key=lambda place: layout.size(layout.tables[place]))[:most]:
        room -= layout.size(layout.tables[place])
        if room < 0:
            break
        found[pairs[place]] = (*found.get(pairs[place], ()), place)
    return found


def _sizes(terms: Terms, layout: TableLayout, noise: RoundNoise, *, proven: bool, coins: bool) -> ProductSizes:
    """Return a ring or field that has room for the sum over all people and its noise."""
    fine, people = noise.noise.scale, sum(group.people for group in layout.groups)
    chance = OVERFLOW / layout.dimension
    most = -(-noise.tail(chance) // fine)
    if coins:  # of no larger variance, and within Hoeffding's inequality
        most = max(most, ceil(sqrt(2 * noise.variance(noise.shares) * log(2 / chance))))
    sizes = layout.sizes(terms, most + people * layout.one, proven=proven)
    if sizes.ring.bits + fine.bit_length() - 1 > _MOST_BITS:
        raise InputError("counts and their noise do not fit 64 bits: raise epsilon or delta, or ask for fewer cells")
    return sizes


def _one_sided(group: Group, table: Domain) -> bool:
    """Return whether several parties would count a table of which one has a single value."""
    if 1 not in table.sizes:
        return False
    ways = (sides for sides in group.ways(table.names) if len(sides) > 1)
    return any(table.project(names).size == 1 for sides in ways for _, names in sides)


# How much the rounds may send.


def limit_traffic(
    terms: Terms,
    account: Account,
    selector: Adaptive,
    size: Size,
    traffic: int,
    *,
    proven: bool,
    groups: Sequence[Group],
) -> Size:
    """Give the round of pairs what it takes, at most half of the traffic, and the rest evenly to chosen tables.

    The first round is counted at home. `traffic` is in bytes a person. Parities have a sixth of it beside: taken from
    tables it would cost them more than the budget of parities does. Many groups count fewer of them.
    """
    whole = traffic * most_rows(terms)
    second = min(_pairs_traffic(terms, account, selector, proven=proven, groups=groups), whole // 2)
    rest = (whole - second) // sum(not room.parity for room in size.rooms[2:])
    parts = (0, second, *(whole // _PARITY_PART if room.parity else rest for room in size.rooms[2:]))
    most = max(1, _MOST_PARITIES // len(groups))
    rooms = tuple(
        replace(room, traffic=part, **({"tables": min(room.tables, most)} if room.parity else {}))
        for room, part in zip(size.rooms, parts, strict=True)
    )
    held = _held(max(parts))
    # an entry takes about four bytes of a chunk, at least one
    usual = {name: getattr(size, name) + held // 4 for name in ("expected_bytes", "party_bytes")}
    return replace(size, rooms=rooms, memory_bytes=size.memory_bytes + held, **usual)


def coin_traffic(terms: Terms, traffic: int) -> int:
    """Return how many bytes coins of a round may take, at `traffic` bytes a person for all tables."""
    return traffic * max(_COINS_PEOPLE, most_rows(terms)) // _COINS_PART


def most_held(terms: Terms, traffic: int) -> int:
    """Return the most bytes that a party holds of what the rounds send, at `traffic` bytes a person."""
    return _held(traffic * most_rows(terms))


def _held(sent: int) -> int:
    return _ENTRY_BYTES * min(_CHUNK_ENTRIES, sent)


def _pairs_traffic(terms: Terms, account: Account, selector: Adaptive, *, proven: bool, groups: Sequence[Group]) -> int:
    """Return about how many bytes all pairs of columns across parties take, at most, once rare levels are grouped."""
    domain = terms.schema.domain
    grouped = Domain(domain.names, tuple(min(size, selector.most_levels) for size in domain.sizes))
    tables = [names for names in selector.pairs(grouped) if min(grouped.project(names).sizes) > 1]
    layout = layout_of(groups, tables, grouped)
    if not layout.across:
        return 0
    noise = account.noise_of(2, len(tables), layout.dimension)
    return layout.traffic(_sizes(terms, layout, noise, proven=proven, coins=bool(account.coins)))
