"""Noise of sums that pairs of parties toss with coins: one copy, and no party or coordinator knows it.

The noise of a value is the weighted sum of its coins less the mean (`syndic.noise.binomial`). A coin is b xor c, b
tossed by one party and c by its partner, which is b + c - 2 b c: the weighted sum of b c is a secure product of their
coins, in which each proves to the other that its coins are bits (`syndic.mpc.product`). One of the two that follows the
steps makes every coin fair and unknown to all others.

Coins are fresh in every computed reply: a party that was put back and tossed the same ones again would show them. The
dealer knows half of its own triples, so a share of the noise must be masked before it is sent, like one of a product.
Servers multiply coins as they do rows (`syndic.mpc.servers`): a party that lies then shifts the noise by what it knows.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, final

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from syndic.kernel import Message, Nothing, Party
from syndic.mpc.key import KEY_BYTES
from syndic.mpc.mask import stream
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import (
    Pair,
    ProductChallenge,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductTurn,
    Rows,
)
from syndic.mpc.ring import Residues
from syndic.mpc.servers import ServedProduct
from syndic.mpc.triple import ProductSizes
from syndic.noise.binomial import BinomialNoise

_BYTE: Final = 8
CHUNK_BYTES: Final = 1 << 24
"""About how much the masked coins of a party and chunk take, at most."""


class _Coins(Message):
    seed: bytes


class _Tossed(SecureProduct):
    """The secure product of the coins of pairs of parties: a row for each coin of a value, a column for each value.

    The steps are those of any product; its rows are made here, whatever `rows` a method passes.
    """

    def mask(self, party: Party, message: ProductTurn, rows: Rows | None = None) -> ProductOpening:
        """Toss the party's coins, then mask those of one chunk and seal them for the partners."""
        del rows
        if message.chunk == 0:
            party.remember(f"{self.label} coins", _Coins(seed=party.key_randomness("coins").bytes(KEY_BYTES)))
        return super().mask(party, message, partial(self.coins, party))

    def prove(self, party: Party, message: ProductChallenge, rows: Rows | None = None) -> ProductProof:
        """Prove that the masked coins are bits."""
        del rows
        return super().prove(party, message, partial(self.coins, party))

    def multiply(self, party: Party, message: ProductInbox, rows: Rows | None = None) -> Nothing:
        """Check the proofs of the partners' coins, and multiply with them."""
        del rows
        return super().multiply(party, message, partial(self.coins, party))

    def coins(self, party: Party, start: int, stop: int) -> NDArray[np.uint8]:
        """Return a party's own coins, a row for each coin of a value. Private."""
        columns, seed = self.columns(party.name), party.recall(f"{self.label} coins", _Coins).seed
        width = -(-columns // _BYTE)
        drawn = np.frombuffer(stream(seed, b"coins", stop * width)[start * width :], dtype=np.uint8)
        return np.unpackbits(drawn.reshape(stop - start, width), axis=1, count=columns)

    def noise_shares(self, party: Party) -> dict[str, NDArray[np.int64]]:
        """Return a party's share of the noise by partner, a number a value; in the field they add up to it."""
        shares, sizes, found = self.shares(party), self.sizes, {}
        own = np.zeros(self.columns(party.name), dtype=np.int64)
        for chunk in range(sizes.chunks):
            start, stop = sizes.span(chunk)
            weights = np.array(self.weights[start:stop], dtype=np.int64)
            own += weights @ self.coins(party, start, stop).astype(np.int64)
        for partner, products in shares.items():
            pair = self.pair(party.name, partner)
            left = pair[0] == party.name
            rows, columns = np.divmod(self.cells[pair], self.columns(pair[1]))
            values = own[rows if left else columns] - 2 * products.astype(np.int64).ravel()
            found[partner] = values - (sum(self.weights) // 2 if left else 0)
        return found


@final
class CoinProduct(_Tossed, kw_only=True):
    """The product of coins by triples of a dealer, and the noise that they make."""

    noise: BinomialNoise


@final
class ServedCoins(_Tossed, ServedProduct, kw_only=True):
    """The product of coins by servers, and the noise that they make."""

    noise: BinomialNoise


Coins = CoinProduct | ServedCoins


def coin_product(
    label: str,
    noise: BinomialNoise,
    values: Mapping[Pair, int],
    field: Residues,
    chunk_bytes: int = CHUNK_BYTES,
    servers: tuple[str, ...] = (),
) -> Coins:
    """Return the product for noise on so many values of each pair, added up in the field.

    Coins are always proven: one party could else enter numbers for which most of the other's coins cancel.
    """
    columns: dict[str, int] = {}
    starts: dict[Pair, tuple[int, int]] = {}
    for pair, count in values.items():
        left, right = (columns.get(name, 0) for name in pair)
        starts[pair] = left, right
        columns |= dict.fromkeys(pair, 0) | {pair[0]: left + count, pair[1]: right + count}
    coins, widest = noise.coins, max(columns.values())
    chunk = min(len(coins), max(1, _BYTE * chunk_bytes // (field.bits * widest)))
    sizes = ProductSizes(rows=len(coins), low=0, high=1, entry=max(coins), ring=field, chunk=chunk)
    cells = {}
    for pair, count in values.items():
        places, (left, right) = np.arange(count), starts[pair]
        cells[pair] = (left + places) * columns[pair[1]] + right + places
    made = SecureProduct(
        label=label,
        sizes=sizes,
        pairs=tuple(values),
        groups={name: (1,) * count for name, count in columns.items()},
        proven=True,
        cells=cells,
        weights=coins,
    )
    parts = asdict(made)
    return ServedCoins(**parts, noise=noise, servers=servers) if servers else CoinProduct(**parts, noise=noise)
