"""Sketches of a party's people: keyed hashes, the largest of each value, and ranks with phantoms, floor and cap.

They are Flajolet-Martin sketches, published and sound (Smith, Song and Thakurta 2020).

A hash is 64 bits of AES-128 on a block made of a 96-bit keyed digest of the person and a counter: two repetitions per
block. AES is a permutation, so blocks never repeat; distinguishing it from independent words takes about 2^64 blocks.

The rank of a person grows with the hash, so the largest hash of a value has its largest rank, and no logarithm is
computed for each person. If sketches have a floor, hashes below it are dropped at once: of 45,222 people about five
remain in a repetition. Which hashes are kept depends on people and key, never on their values.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, expm1, log, log1p, sqrt
from typing import Final, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.interval import Enclosure, power
from syndic.noise.inverse_cdf import LazyTable
from syndic.random import Randomness

WORD_BITS: Final = 64
"""Bits of one hash. Ranks beyond those that 64 bits can show do not occur."""


@final
class SketchPlan(Document):
    """Sketches of every value of every column: the largest rank among its people and its phantoms.

    A rank is geometric, Pr[rank > a] = (1 + gamma)^-a. Each sketch is the largest of the ranks of the people with that
    value, which depend on a secret key and the person, and of `phantoms` fresh random ranks of its party. It is raised
    to `floor` and lowered to `cap`, if there is one. All of this is repeated `repetitions` times.
    """

    phantoms: int
    floor: int
    repetitions: int
    gamma: Fraction = Fraction(1)
    cap: int | None = None

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)
        if not 0 <= self.phantoms < 2**40:
            raise ValueError(f"phantoms ({self.phantoms}) must be in [0, 2^40)")
        if not 1 <= self.repetitions <= 2**24:
            raise ValueError(f"repetitions ({self.repetitions}) must be in [1, 2^24]")
        if not 0 <= self.floor < self.top:
            raise ValueError(f"floor ({self.floor}) must be at least 0 and below the largest rank, {self.top}")
        if self.cap is not None and self.cap > len(rank_thresholds(self.gamma)):
            raise ValueError(f"cap ({self.cap}) must be at most {len(rank_thresholds(self.gamma))}")

    @property
    def top(self) -> int:
        """The largest rank that a sketch shows."""
        return len(rank_thresholds(self.gamma)) if self.cap is None else self.cap


@lru_cache(maxsize=64)
def rank_thresholds(gamma: Fraction) -> NDArray[np.uint64]:
    """Return the 64-bit words at which the rank increases: ceil(2^64 (1 - (1 + gamma)^-a)) for a = 0, 1, 2, ..."""
    found, remains = [], Fraction(2**WORD_BITS)
    while remains >= 1:
        found.append(2**WORD_BITS - int(remains))
        remains /= 1 + gamma
    return np.array(found, dtype=np.uint64)


def ranks_of(words: NDArray[np.uint64], gamma: Fraction) -> NDArray[np.uint16]:
    """Return the rank of each uniform 64-bit word; it grows with the word, so the largest word has the largest rank.

    The distribution is geometric with every tail probability rounded down to a multiple of 2^-64.
    """
    return np.searchsorted(rank_thresholds(gamma), words, side="right").astype(np.uint16)


def printed_epsilon(*, epsilon: float, delta: float, columns: int, repetitions: int) -> float:
    """Return the epsilon of one sketch in the published composition (Zhao et al. 2024, Algorithm 3)."""
    if not (epsilon > 0 and 0 < delta < 1 and columns > 0 and repetitions > 0):
        raise InputError(
            f"epsilon ({epsilon:g}), columns ({columns}) and repetitions ({repetitions}) must be positive "
            f"and delta ({delta:g}) in (0, 1)"
        )
    return epsilon / (4 * sqrt(repetitions * columns * log(1 / delta)))


def printed_plan(
    *, epsilon: float, delta: float, columns: int, repetitions: int = 2000, gamma: Fraction = Fraction(1)
) -> SketchPlan:
    """Return the published parameters; their claim is false for two or more columns under one key."""
    one = printed_epsilon(epsilon=epsilon, delta=delta, columns=columns, repetitions=repetitions)
    _check_gamma(gamma)
    floor = ceil(-log(-expm1(-one)) / log1p(float(gamma)))
    # beyond this there is one phantom, and exp overflows
    return SketchPlan(phantoms=ceil(1 / expm1(min(one, 700.0))), floor=floor, repetitions=repetitions, gamma=gamma)


def floor_for(phantoms: int, gamma: Fraction) -> int:
    """Return the floor at which the absence of a person costs no more than their presence, log(1 + 1 / phantoms)."""
    _check_gamma(gamma)
    return ceil(log(phantoms + 1) / log1p(float(gamma)))


def _check_gamma(gamma: Fraction) -> None:
    if not Fraction(1, 100) <= gamma <= 1:
        raise ValueError(f"gamma ({float(gamma):g}) must be in [0.01, 1]")


KEY_BYTES: Final = 16
DIGEST_BYTES: Final = 12
_BLOCK: Final = 16
# rows and pairs of repetitions processed together: blocks and their hashes then fit a core's cache
_ROWS: Final = 4096
_PAIRS: Final = 8


@final
@dataclass(frozen=True, eq=False)
class People:
    """Keyed digests of people, one row each, and their codes in every column (unsigned, below the column's size)."""

    digests: NDArray[np.uint8]
    codes: NDArray[np.integer]

    def __post_init__(self) -> None:
        if self.digests.dtype != np.uint8 or self.digests.ndim != 2 or self.digests.shape[1] != DIGEST_BYTES:
            raise InputError(f"digests must be rows of {DIGEST_BYTES} bytes: create them with person_digests")
        if self.codes.ndim != 2 or len(self.codes) != len(self.digests):
            raise InputError("people need as many rows of codes as there are digests")


def person_digests(key: bytes, people: Iterable[bytes]) -> NDArray[np.uint8]:
    """Return a keyed digest of each person's canonical id, for `People`. Anyone with the key can recompute it."""
    _check_key(key)
    found = b"".join(
        hashlib.blake2b(person, digest_size=DIGEST_BYTES, key=key, person=b"syndic people").digest()
        for person in people
    )
    return np.frombuffer(found, dtype=np.uint8).reshape(-1, DIGEST_BYTES)


def person_words(key: bytes, digests: NDArray[np.uint8], repetitions: int, *, first: int = 0) -> NDArray[np.uint64]:
    """Return the hashes of `repetitions` repetitions from `first` on: one row each, one column per person."""
    pairs = range(first // 2, (first + repetitions + 1) // 2)
    words = _words(_cipher(key), _blocks(digests), pairs)
    return np.asarray(words.transpose(0, 2, 1).reshape(-1, len(digests))[first % 2 :][:repetitions])


def value_maxima(
    key: bytes,
    batches: Iterable[People],
    sizes: Sequence[int],
    *,
    repetitions: int,
    least: int = 0,
    threads: int = 2,
) -> NDArray[np.uint64]:
    """Return the largest hash of each value (columns one after the other) in each repetition; 0 if there is none.

    Hashes below `least` are ignored. Memory is that of a batch, of the result, and about 2 MB per thread.
    """
    _check_key(key)
    if not sizes or min(sizes) < 1 or repetitions < 1:
        raise InputError(f"sketches need columns of at least one value and repetitions ({repetitions}) above 0")
    cipher = _cipher(key)
    maxima = np.zeros((repetitions + repetitions % 2, sum(sizes)), dtype=np.uint64)
    pairs = [range(start, min(start + _PAIRS, len(maxima) // 2)) for start in range(0, len(maxima) // 2, _PAIRS)]
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            places = _places(batch.codes, np.array(sizes))
            for start in range(0, len(places), _ROWS):
                rows = slice(start, start + _ROWS)
                add = partial(_add, maxima, cipher, _blocks(batch.digests[rows]), places[rows], np.uint64(least))
                # every thread has its own repetitions: there is no locking, and the result does not depend on order
                list(pool.map(add, pairs))
    return maxima[:repetitions]


def _add(
    maxima: NDArray[np.uint64],
    cipher: "Cipher[modes.ECB]",
    blocks: NDArray[np.uint32],
    places: NDArray[np.int64],
    least: np.uint64,
    pairs: range,
) -> None:
    """Raise the maxima of some repetitions to those of some rows."""
    words = _words(cipher, blocks, pairs)
    kept = np.flatnonzero(words >= least)
    rows = kept // 2 % len(blocks)
    repetitions = kept // (2 * len(blocks)) * 2 + kept % 2
    raised = repetitions[:, None] * maxima.shape[1] + places[rows]
    mine = maxima[2 * pairs.start : 2 * pairs.stop].reshape(-1)
    np.maximum.at(mine, raised.ravel(), np.repeat(words.reshape(-1)[kept], places.shape[1]))


def _cipher(key: bytes) -> "Cipher[modes.ECB]":
    # another key than that of the digests, so that no digest is ever a block's hash
    cipher_key = hashlib.blake2b(b"", digest_size=KEY_BYTES, key=key, person=b"syndic ranks").digest()
    # every block is used once, as a keyed function and not for encryption: there is nothing to chain
    return Cipher(algorithms.AES(cipher_key), modes.ECB())  # noqa: S305


def _words(cipher: "Cipher[modes.ECB]", blocks: NDArray[np.uint32], pairs: range) -> NDArray[np.uint64]:
    """Return the hashes of some people: pair of repetitions, person, and which of the two."""
    some = np.empty((len(pairs), *blocks.shape), dtype=blocks.dtype)
    some[:] = blocks
    some[:, :, 3] = np.arange(pairs.start, pairs.stop)[:, None]
    found = np.empty(some.nbytes + _BLOCK - 1, dtype=np.uint8)
    cipher.encryptor().update_into(some.reshape(-1).view(np.uint8).data, found.data)
    return found[: some.nbytes].view("<u8").reshape(len(pairs), -1, 2)


def _places(codes: NDArray[np.integer], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of each code among all values of all columns."""
    if codes.shape[1] != len(sizes):
        raise InputError(f"rows have {codes.shape[1]} codes for {len(sizes)} columns")
    wide = codes.astype(np.int64)
    if wide.size and (int(wide.min()) < 0 or bool((wide >= sizes).any())):
        raise InputError("a code is not below its column's size: map unknown values to a code by the schema first")
    return wide + np.cumsum(sizes) - sizes


def _blocks(digests: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return each person's block, with space for the number of the pair. Its bytes must be the same on all machines."""
    blocks = np.zeros((len(digests), _BLOCK), dtype=np.uint8)
    blocks[:, :DIGEST_BYTES] = digests
    return blocks.view("<u4")


def _check_key(key: bytes) -> None:
    if not KEY_BYTES <= len(key) <= 64:
        raise InputError(f"a sketch key has {len(key)} bytes: it must have {KEY_BYTES} to 64 random bytes")


def encode(
    plan: SketchPlan,
    key: bytes,
    batches: Iterable[People],
    sizes: Sequence[int],
    randomness: Randomness,
    *,
    threads: int = 2,
) -> NDArray[np.uint16]:
    """Return the sketches of every value (columns one after the other), a row for each repetition.

    They protect people against those who do not have the key, at the cost given by `sketch_cost`. Anyone with the key
    can often prove that a person is absent from a value. Phantoms come from the party's own randomness.
    """
    least = int(rank_thresholds(plan.gamma)[plan.floor])
    maxima = value_maxima(key, batches, sizes, repetitions=plan.repetitions, least=least, threads=threads)
    phantoms = largest_ranks(plan, plan.phantoms, maxima.size, randomness).reshape(maxima.shape)
    # a maximum of 0 means "nobody", whose rank of 1 is below any floor; without a floor it must not count
    ranks = np.where(maxima == 0, 0, ranks_of(maxima, plan.gamma)).astype(np.uint16)
    return np.clip(np.maximum(ranks, phantoms), plan.floor, plan.top).astype(np.uint16)


def largest_ranks(plan: SketchPlan, elements: int, count: int, randomness: Randomness) -> NDArray[np.uint16]:
    """Draw `count` independent sketches of `elements` people and phantoms, without hashing. Exact."""
    if elements == 0:
        return np.full(count, plan.floor, dtype=np.uint16)
    table = _table(plan.gamma, elements, plan.floor, plan.top)
    found = np.empty(count, dtype=np.uint16)
    for start in range(0, count, 2**18):
        words = randomness.words(min(2**18, count - start))
        found[start : start + len(words)] = table.draw(words, randomness) + plan.floor
    return found


@lru_cache(maxsize=256)
def _table(gamma: Fraction, elements: int, floor: int, top: int) -> LazyTable:
    """Return the distribution of max(min(largest rank, top), floor) - floor."""

    def law(bits: int) -> Iterator[Enclosure]:
        remains = (1 + gamma) ** -floor
        for _ in range(floor, top):
            # the enclosure of (1 - remains)^elements, rounded outwards from an exact fraction
            low = ((remains.denominator - remains.numerator) << bits) // remains.denominator
            yield power((low, low + 1), elements, bits)
            remains /= 1 + gamma
        yield 1 << bits, 1 << bits

    return LazyTable(law)
