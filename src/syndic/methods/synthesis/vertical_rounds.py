"""One round of tables of columns that different parties hold of the same people: rings, noise, and what is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import PARTNERS, Message, Party, Terms
from syndic.methods.layout import CountTables, Names, TableLayout
from syndic.methods.onehot import completed
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.rounds import Answer
from syndic.mpc.product import SecureProduct
from syndic.mpc.ring import OVERFLOW, Integers, Residues
from syndic.mpc.threeserver import product_by
from syndic.mpc.triple import ProductSizes
from syndic.privacy import Event
from syndic.random import Randomness

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


def room_for(noise: RoundNoise, layout: TableLayout) -> int:
    """Return the largest noise on any count of a round, in rows."""
    return -(-noise.tail(OVERFLOW / layout.dimension) // noise.scale)


def opens_in_word(sizes: ProductSizes, noise: RoundNoise) -> bool:
    """Return whether counts and their noise, in units of the fine grid, fit 64 bits."""
    return sizes.ring.bits + noise.scale.bit_length() - 1 <= _MOST_BITS


@final
@dataclass(frozen=True, kw_only=True)
class Round:
    """What everybody works out alike from the study and what is counted; `label` tells its product from others."""

    label: str
    layout: TableLayout
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
    layout: TableLayout,
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
    sizes = layout.sizes(terms, room_for(across, layout), proven=proven and bool(layout.across))
    if layout.across and not opens_in_word(sizes, across):
        raise InputError("counts and their noise do not fit 64 bits: raise epsilon or delta, or ask for fewer cells")
    return Round(label=label, layout=layout, sizes=sizes, across=across, within=within, servers=servers)


def alone(account: Account) -> Account:
    """Return the account of tables that one party counts by itself: the same events, the whole noise."""
    return replace(account, parties=1)
