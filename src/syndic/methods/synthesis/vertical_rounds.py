"""One round of tables of columns that different parties hold: who counts what, in which rings, with what noise.

A table of columns at one party is counted there. A table of columns at two parties is the product of two one-hot
matrices: of what the one party's columns say together, and of what the other's do. Only the cells that some table
needs are shared. A table of columns at three or more parties would need products of three matrices, and is not asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import Message, Party, Terms
from syndic.methods.onehot import completed
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.rounds import Answer
from syndic.mpc.extension import DEGREE
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.proof import POINTS
from syndic.mpc.ring import OVERFLOW, Integers, Residues
from syndic.mpc.threeserver import product_by
from syndic.mpc.triple import ProductSizes, product_sizes
from syndic.privacy import Event
from syndic.random import Randomness

Names = tuple[str, ...]
CountTables = Callable[[Sequence[Names]], Sequence[NDArray[np.int64]]]
"""Returns the exact counts of some tables of a party's own columns. Private."""

PARTNERS: Final = 2
_CHUNK_BYTES: Final = 1 << 24
# Shares fill their ring, and noise is added to them as 64-bit numbers.
_MOST_BITS: Final = 62


class OpenedRound(Message):
    """A party's noisy shares of the round's tables with each partner, under a mask; and its own noisy tables."""

    shares: dict[str, bytes]
    local: NDArray[np.int64]


@final
@dataclass(frozen=True)
class MixedNoise:
    """Shares of noise on tables across parties, and the whole noise on the last `alone` counts, a party's own tables.

    Each of them has at least the noise that the round's event is charged for, and the event counts all tables.
    """

    across: RoundNoise
    within: RoundNoise
    alone: int

    @property
    def event(self) -> Event:
        """What the whole round costs."""
        return self.across.event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise, in units of the fine grid."""
        shared, own = np.split(values, [values.size - self.alone])
        # a party has some of the round's counts only, so the shares are drawn for as many as there are
        noisy = shared * self.across.scale + self.across.noise.draw(shared.size, randomness)
        return np.concatenate([noisy, self.within.apply(own, randomness)])


@final
@dataclass(frozen=True, kw_only=True)
class Cross:
    """A table across two parties: its place in the round and the columns of each side, in the table's order."""

    place: int
    left: Names
    right: Names


@final
@dataclass(frozen=True, kw_only=True)
class RoundLayout:
    """Public. `across` has the tables of each pair of parties, `within` the places of each party's own tables.

    `blocks` are the sets of columns of which a party sends one-hot matrices, without the last level of each.
    """

    tables: tuple[Names, ...]
    domain: Domain
    across: Mapping[Pair, tuple[Cross, ...]]
    within: Mapping[str, tuple[int, ...]]
    blocks: Mapping[str, tuple[Names, ...]]

    @cached_property
    def widths(self) -> dict[str, tuple[int, ...]]:
        """How many columns every block of every party has in its matrix."""
        return {name: tuple(self.size(block) - 1 for block in blocks) for name, blocks in self.blocks.items()}

    @cached_property
    def dimension(self) -> int:
        """How many counts all tables have."""
        return sum(self.size(names) for names in self.tables)

    def size(self, names: Names) -> int:
        """Return the number of cells of some columns."""
        return self.domain.project(names).size

    def count(self, pair: Pair) -> int:
        """Return how many counts a pair of parties opens."""
        return sum(self.size(self.tables[one.place]) for one in self.across[pair])

    def cells(self, pair: Pair) -> NDArray[np.int64]:
        """Return the cells of the product of a pair's matrices that its tables need, table after table."""
        left, right = pair
        rows, columns = self._starts(left), self._starts(right)
        width = sum(self.widths[right])
        found = [
            (
                (rows[one.left] + np.arange(self.size(one.left) - 1))[:, None] * width
                + (columns[one.right] + np.arange(self.size(one.right) - 1))[None, :]
            ).ravel()
            for one in self.across[pair]
        ]
        return np.concatenate(found).astype(np.int64)

    def sizes(self, terms: Terms, noise: RoundNoise, *, proven: bool) -> ProductSizes:
        """Return a ring with room for this noise on every count, or a field for rows that are proven."""
        columns = [sum(widths) for widths in self.widths.values()] or [1]
        return product_sizes(
            rows=terms.parties[0].people or 1,
            entry=1,
            signed=False,
            headroom=-(-noise.tail(OVERFLOW / self.dimension) // noise.scale),
            columns=columns,
            proven=proven,
            chunk_bytes=min(_CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * len(columns))),
        )

    def traffic(self, sizes: ProductSizes) -> int:
        """Return about how many bytes the products take, each message counted once."""
        entries = sizes.rows * sum(sum(widths) for widths in self.widths.values())
        shares = self._wanted * sizes.chunks
        if isinstance(sizes.ring, Residues):  # of a proof, and of the dealer's answer to it
            entries += sizes.rows * sum(map(len, self.widths.values())) * 2 * DEGREE // POINTS
        return (entries + shares) * sizes.ring.bits // 8

    @cached_property
    def _wanted(self) -> int:
        """How many cells of products are shared."""
        tables = [one for tables in self.across.values() for one in tables]
        return sum((self.size(one.left) - 1) * (self.size(one.right) - 1) for one in tables)

    def _starts(self, party: str) -> dict[Names, int]:
        starts = np.cumsum([0, *self.widths[party][:-1]]).tolist()
        return dict(zip(self.blocks[party], starts, strict=True))


def layout_of(holder: Mapping[str, str], tables: Sequence[Names], domain: Domain) -> RoundLayout:
    """Lay out a round's tables, each of columns at one or two parties; `holder` has the party of every column.

    Columns may be groups of levels, or whatever else parties code their rows by; `domain` has their sizes.
    """
    order = list(dict.fromkeys(holder.values()))
    across: dict[Pair, list[Cross]] = {}
    within: dict[str, list[int]] = {name: [] for name in order}
    blocks: dict[str, dict[Names, None]] = {}
    for place, names in enumerate(tables):
        parties = sorted({holder[name] for name in names}, key=order.index)
        if len(parties) == 1:
            within[parties[0]].append(place)
            continue
        left, right = parties
        sides = [tuple(name for name in names if holder[name] == party) for party in (left, right)]
        across.setdefault((left, right), []).append(Cross(place=place, left=sides[0], right=sides[1]))
        for party, block in zip(parties, sides, strict=True):
            blocks.setdefault(party, {})[block] = None
    return RoundLayout(
        tables=tuple(tables),
        domain=domain,
        across={pair: tuple(found) for pair, found in across.items()},
        within={name: tuple(places) for name, places in within.items()},
        blocks={name: tuple(found) for name, found in blocks.items()},
    )


def opens_in_word(sizes: ProductSizes, noise: RoundNoise) -> bool:
    """Return whether counts and their noise, in units of the fine grid, fit 64 bits."""
    return sizes.ring.bits + noise.scale.bit_length() - 1 <= _MOST_BITS


@final
@dataclass(frozen=True, kw_only=True)
class Round:
    """What everybody works out alike from the study and what is counted; `label` tells its product from others."""

    label: str
    layout: RoundLayout
    sizes: ProductSizes
    across: RoundNoise
    within: RoundNoise
    servers: tuple[str, ...] = ()

    @cached_property
    def product(self) -> SecureProduct:
        """What is multiplied."""
        layout = self.layout
        return product_by(
            self.servers,
            label=self.label,
            sizes=self.sizes,
            pairs=tuple(layout.across),
            groups=layout.widths,
            proven=isinstance(self.sizes.ring, Residues),
            cells={pair: layout.cells(pair) for pair in layout.across},
        )

    @property
    def ring(self) -> Integers:
        """The ring in which tables across parties open: counts in units of the fine grid."""
        return self.sizes.ring.scaled(self.across.scale)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of a count of every table."""
        crossed = {one.place for tables in self.layout.across.values() for one in tables}
        both, alone = self.across.variance(PARTNERS), self.within.variance(1)
        return tuple(both if place in crossed else alone for place in range(len(self.layout.tables)))

    def open(self, party: Party, count: CountTables, *, why: str) -> OpenedRound:
        """Complete a party's shares to tables, count its own ones, add noise, and mask what is shared."""
        layout, product = self.layout, self.product
        blocks = layout.blocks.get(party.name, ())
        shares = product.shares(party) if blocks else {}
        counted = count([*blocks, *(layout.tables[place] for place in layout.within[party.name])])
        margins = {block: one.ravel() for block, one in zip(blocks, counted, strict=False)}
        if blocks:
            product.check_unchanged(party, np.concatenate([one[:-1] for one in margins.values()]))
        values = {partner: self._tables(party.name, partner, share, margins) for partner, share in shares.items()}
        local = [one.ravel() for one in counted[len(blocks) :]]
        noise = MixedNoise(self.across, self.within, sum(one.size for one in local))
        every = np.concatenate([np.zeros(0, dtype=np.int64), *values.values(), *local])
        noisy = party.contribute(noise, every, why=why)
        *parts, own = np.split(noisy, np.cumsum([one.size for one in values.values()], dtype=np.int64))
        hidden = {
            partner: self.ring.pack(product.hide(party, partner, part, self.ring))
            for partner, part in zip(values, parts, strict=True)
        }
        return OpenedRound(shares=hidden, local=own)

    def _tables(
        self, own: str, partner: str, share: NDArray[Any], margins: Mapping[Names, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Return a party's shares of the tables with a partner, completed by the levels that were not sent. Private."""
        pair, share = self.product.pair(own, partner), share.ravel()
        found, start, ring, is_left = [], 0, self.sizes.ring, own == pair[0]
        for one in self.layout.across[pair]:
            shape = (self.layout.size(one.left) - 1, self.layout.size(one.right) - 1)
            part = share[start : start + shape[0] * shape[1]].reshape(shape)
            start += part.size
            counts = margins[one.left if is_left else one.right]
            full = completed(part, counts[:-1], self.sizes.rows, left=is_left)
            full = full - self.sizes.centre if is_left else full
            found.append(ring.lift(ring.reduce(full)).ravel())
        return np.concatenate(found)

    def answer(self, opened: Mapping[str, OpenedRound]) -> Answer:
        """Add up what partners opened and put all tables in the round's order."""
        layout, scale = self.layout, self.across.scale
        tables: dict[int, NDArray[np.float64]] = {}
        for left, right in layout.across:
            ring, count = self.ring, layout.count((left, right))
            parts = [ring.unpack(opened[one].shares[other], count) for one, other in ((left, right), (right, left))]
            values = ring.lift(ring.add(*parts)) / scale + self.sizes.centre
            start = 0
            for one in layout.across[left, right]:
                domain = layout.domain.project((*one.left, *one.right))
                table = values[start : start + domain.size].reshape(domain.sizes)
                start += domain.size
                tables[one.place] = table.transpose(domain.axes(layout.tables[one.place]))
        for name, places in layout.within.items():
            sizes = [layout.size(layout.tables[place]) for place in places]
            local = opened[name].local
            if local.shape != (sum(sizes),):
                raise InputError(f"{name} answered with {local.size} counts where {sum(sizes)} were asked")
            tables |= dict(zip(places, np.split(local / scale, np.cumsum(sizes)[:-1]), strict=False))
        values = np.concatenate([tables[place].ravel() for place in range(len(layout.tables))])
        return Answer(
            values=values, variance=max(self.variances), present=tuple(layout.within), variances=self.variances
        )


def plan_round(
    terms: Terms,
    account: Account,
    number: int,
    layout: RoundLayout,
    label: str,
    *,
    proven: bool = False,
    servers: tuple[str, ...] = (),
) -> Round:
    """Return how the tables of a round are counted, with its part of the account, and rows `proven` or not.

    Raises:
        InputError: if counts and their noise do not fit 64 bits.
    """
    across, within = (one.noise_of(number, len(layout.tables), layout.dimension) for one in (account, alone(account)))
    # a round without products needs no field, which may have no room for its noise
    sizes = layout.sizes(terms, across, proven=proven and bool(layout.across))
    if layout.across and not opens_in_word(sizes, across):
        raise InputError("counts and their noise do not fit 64 bits: raise epsilon or delta, or ask for fewer cells")
    return Round(label=label, layout=layout, sizes=sizes, across=across, within=within, servers=servers)


def alone(account: Account) -> Account:
    """Return the account of tables that one party counts by itself: the same events, the whole noise."""
    return replace(account, parties=1)
