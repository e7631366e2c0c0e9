"""Biased coins tossed by two servers, neither of which learns the outcome (Goldreich, Micali, Wigderson).

A coin is 1 with probability T / 2^128: 128 fair bits u, read as a number, are compared with the public threshold T.
Bits are XOR-shared: a bit plane is a row of an array, and a machine word has 64 coins. The result stays shared and is
converted into shares of a number modulo 2^b without being opened.

*Dealer.* Products of shared bits use up triples (Beaver 1991), which a dealer makes from two 32-byte keys; the second
server also gets one correction for each product. The fair bits themselves are u = a + d: the dealer shares a, and d is
known to both servers and to nobody else. So the dealer does not know u because it lacks d, and a server because it
lacks the other's share of a. The first level of the comparison, whose masks are a, opens d without any message.

*Who learns what.* Each of the three alone learns nothing: a server sees bits masked by triples of which it knows half.
The dealer must not see what the servers open, which is therefore sealed. *Semi-honest*: both servers and the dealer
follow the steps; one that does not can choose coins and shift the result. The dealer and one server together, or both
servers together, learn every coin. Masks are used once: a second run needs new keys.

Depth: 128 bits are compared in a binary tree. A node has (less, equal) of its bits; two nodes are combined by
less = less_high + equal_high less_low and equal = equal_high equal_low.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.mask import expand, stream
from syndic.mpc.ring import Ring
from syndic.noise.circuit_bits import WIDTH

LEVELS = WIDTH.bit_length() - 2
"""The number of rounds in which the servers exchange bits."""

Planes = NDArray[np.uint64]


@final
@dataclass(frozen=True)
class Coins:
    """The coins to toss: coin i compares the fair bits of number `sources[i]` with the i-th threshold."""

    sources: NDArray[np.int64]
    thresholds: Planes
    ring: Ring

    @property
    def count(self) -> int:
        """Number of coins."""
        return int(self.sources.size)

    @property
    def words(self) -> int:
        """Machine words of one bit plane of coins."""
        return -(-self.count // 64)

    @property
    def source_words(self) -> int:
        """Machine words of one bit plane of fair bits."""
        return -(-(int(self.sources.max()) + 1) // 64)

    def spread(self, planes: Planes) -> Planes:
        """Return the bits of each coin's source."""
        if np.array_equal(self.sources, np.arange(self.count)):
            return planes
        return packed(np.take(unpacked(planes), self.sources, axis=1))


@final
@dataclass(frozen=True)
class Node:
    """One server's shares of (less, equal) at a level of the tree, most significant node first."""

    less: Planes
    equal: Planes


@final
@dataclass(frozen=True)
class Half:
    """One server's half of the dealt triples; only the second server's has corrections."""

    key: bytes
    first: bool
    products: Planes
    masks: NDArray[Any]


@lru_cache(maxsize=4)
def toss(thresholds: tuple[int, ...], sources: tuple[int, ...], copies: int, ring: Ring) -> Coins:
    """Return `copies` independent sets of coins with the same thresholds, one set after another."""
    rows = np.frombuffer(b"".join(each.to_bytes(WIDTH // 8, "big") for each in thresholds), dtype=np.uint8)
    bits = np.unpackbits(rows.reshape(len(thresholds), WIDTH // 8), axis=1)
    own = np.asarray(sources, dtype=np.int64)
    numbers = (np.arange(copies)[:, None] * (own.max() + 1) + own).ravel()
    return Coins(sources=numbers, thresholds=packed(np.tile(bits.T, (1, copies))), ring=ring)


def packed(bits: NDArray[np.uint8]) -> Planes:
    """Return rows of bits as rows of machine words, padded with zeros."""
    words = -(-bits.shape[1] // 64)
    data = np.zeros((bits.shape[0], 8 * words), dtype=np.uint8)
    data[:, : -(-bits.shape[1] // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return data.view("<u8").astype(np.uint64, copy=False)


def unpacked(planes: Planes) -> NDArray[np.uint8]:
    """Return rows of machine words as rows of bits."""
    data = np.ascontiguousarray(planes).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(data, axis=1, bitorder="little")


def deal(first: bytes, second: bytes, coins: Coins) -> Half:
    """Return the second server's half; the first server needs only its key."""
    empty = np.empty(0, dtype=np.uint64)
    one, two = (Half(key=key, first=True, products=empty, masks=empty) for key in (first, second))
    fair = _fair(one, coins) ^ _fair(two, coins)
    corrections = [(fair[0::2] & fair[1::2] ^ _first_products(one, coins)).ravel()]
    for level in range(1, LEVELS + 1):
        (left, right, product), (other_left, other_right, _) = (_triples(half, level, coins) for half in (one, two))
        corrections.append(((left ^ other_left) & (right ^ other_right) ^ product).ravel())
    bits = unpacked(_coin_masks(one, coins) ^ _coin_masks(two, coins))[0, : coins.count]
    masks = coins.ring.subtract(coins.ring.reduce(bits), _mask_numbers(one, coins))
    return Half(key=second, first=False, products=np.concatenate(corrections), masks=masks)


def begin(half: Half, common: bytes, coins: Coins) -> Node:
    """Compare pairs of bits, without a message; `common` is a secret of the two servers."""
    fair = coins.spread(_fair(half, coins))
    opened = coins.spread(_planes(common, b"fair bits", WIDTH, coins.source_words)) ^ ~coins.thresholds
    equal = fair ^ opened if half.first else fair
    high, low = slice(0, None, 2), slice(1, None, 2)
    product = coins.spread(_first_products(half, coins))
    product = product ^ (opened[high] & fair[low]) ^ (opened[low] & fair[high])
    if half.first:
        product ^= opened[high] & opened[low]
    # where the threshold's bit is 1, less = not equal; where it is 0, less = 0
    less_high = ~equal[high] if half.first else equal[high]
    less = (coins.thresholds[high] & less_high) ^ (coins.thresholds[low] & (equal[high] ^ product))
    return Node(less=less, equal=product)


def open_level(half: Half, level: int, node: Node, coins: Coins) -> Planes:
    """Return the bits to send, sealed, to the other server to combine nodes of a level (1 to LEVELS) in pairs."""
    left, right, _ = _triples(half, level, coins)
    return np.concatenate([(node.equal[0::2] ^ left), *(_lows(node) ^ right)])


def close_level(half: Half, level: int, node: Node, theirs: Planes, coins: Coins) -> Node:
    """Return the next level's nodes, given the other server's bits."""
    opened = open_level(half, level, node, coins) ^ theirs
    left, right, product = _triples(half, level, coins)
    pairs = left.shape[0]
    high, lows = opened[:pairs], opened[pairs:].reshape(right.shape)
    product = product ^ (high & right) ^ (lows & left)
    if half.first:
        product ^= high & lows
    return Node(less=node.less[0::2] ^ product[0], equal=product[1])


def open_coins(half: Half, node: Node, coins: Coins) -> Planes:
    """Return the bits to send, sealed, to the other server to convert coins into numbers."""
    return node.less ^ _coin_masks(half, coins)


def close_coins(half: Half, node: Node, theirs: Planes, coins: Coins) -> NDArray[Any]:
    """Return this server's shares of the coins as numbers 0 and 1 of the ring.

    With a coin x = c + r modulo 2, c opened and r a mask shared both ways: x = c + (1 - 2 c) r.
    """
    opened = open_coins(half, node, coins) ^ theirs
    ring = coins.ring
    bits = ring.reduce(unpacked(opened)[0, : coins.count])
    masks = _mask_numbers(half, coins) if half.first else half.masks
    flipped = np.where(bits == 1, ring.subtract(np.zeros_like(masks), masks), masks)
    return ring.add(flipped, bits) if half.first else flipped


def rows_at(level: int) -> int:
    """Return how many bit planes one server sends to the other at a level."""
    return 3 * (WIDTH >> (level + 1)) if level <= LEVELS else 1


def correction_words(coins: Coins) -> int:
    """Return how many machine words of corrections the second server receives."""
    return WIDTH // 2 * coins.source_words + sum(2 * (WIDTH >> (level + 1)) for level in _levels()) * coins.words


def _levels() -> range:
    return range(1, LEVELS + 1)


def _lows(node: Node) -> Planes:
    return np.stack([node.less[1::2], node.equal[1::2]])


def _planes(key: bytes, label: bytes, rows: int, words: int) -> Planes:
    data = stream(key, label, 8 * rows * words)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False).reshape(rows, words)


def _fair(half: Half, coins: Coins) -> Planes:
    return _planes(half.key, b"fair", WIDTH, coins.source_words)


def _first_products(half: Half, coins: Coins) -> Planes:
    rows, words = WIDTH // 2, coins.source_words
    return (
        _planes(half.key, b"pairs", rows, words) if half.first else half.products[: rows * words].reshape(rows, words)
    )


def _triples(half: Half, level: int, coins: Coins) -> tuple[Planes, Planes, Planes]:
    """Return shares of masks for the high node of each pair, for (less, equal) of the low one, and their products."""
    pairs, words = WIDTH >> (level + 1), coins.words
    label = b"level %d" % level
    drawn = _planes(half.key, label, (5 if half.first else 3) * pairs, words)
    left, right = drawn[:pairs], drawn[pairs : 3 * pairs].reshape(2, pairs, words)
    if half.first:
        return left, right, drawn[3 * pairs :].reshape(2, pairs, words)
    start = WIDTH // 2 * coins.source_words + sum(2 * (WIDTH >> (each + 1)) for each in range(1, level)) * words
    return left, right, half.products[start : start + 2 * pairs * words].reshape(2, pairs, words)


def _coin_masks(half: Half, coins: Coins) -> Planes:
    return _planes(half.key, b"coin", 1, coins.words)


def _mask_numbers(half: Half, coins: Coins) -> NDArray[Any]:
    return expand(half.key, b"number", coins.count, coins.ring)
