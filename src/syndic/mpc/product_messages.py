"""The messages of a secure product, and what a party keeps of it between its steps to notice that rows changed."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.mpc.key import KEY_BYTES, KeyPair, context

Pair = tuple[str, str]
Rows = Callable[[int, int], NDArray[Any]]
"""A function that returns the rows of a party's matrix from one index up to another. Private."""
Entry = TypeVar("Entry")

# the same whatever was wrong: a partner that checks cannot tell a party's lie from the dealer's
UNPROVEN: Final = (
    "the proof that a partner's rows are one-hot does not hold, so nothing was opened or charged: a partner or the "
    "coordinator deviates from the protocol. Find out who before you run the study again"
)


class ProductStart(Message):
    """The dealer's seed for one party, sent on the coordinator's own link to that party."""

    seed: bytes


class ProductTurn(Message):
    """Mask the rows of one chunk; `keys` are the public keys of this party's partners."""

    chunk: int
    keys: dict[str, bytes]


class ProductOpening(Message):
    """A party's masked rows, sealed once, and the key of that seal, sealed for each partner."""

    body: bytes
    keys: dict[str, bytes]


class ProductChallenge(Message):
    """Prove, or test, the masked rows of one chunk, for the challenge that `seed` expands to."""

    chunk: int
    seed: bytes


class ProductProof(Message):
    """A proof or test in two shares: `seed` expands to the dealer's, `body` is the partners', sealed like the rows."""

    seed: bytes
    body: bytes
    keys: dict[str, bytes]


class ProductCheck(Message):
    """What one partner needs to check a proof: the challenge, the point, its share and the dealer's answer."""

    seed: bytes
    point: bytes
    body: bytes
    key: bytes
    answer: bytes


class ProductTest(Message):
    """What one partner needs of a test: what was asked, and its share of the reply."""

    seed: bytes
    body: bytes
    key: bytes


class ProductInbox(Message):
    """For one party and chunk, by partner: masked rows, the key to them, the dealer's halves, proofs to check.

    `tests` come before proofs of lengths.
    """

    chunk: int
    bodies: dict[str, bytes]
    keys: dict[str, bytes]
    halves: dict[str, bytes]
    proofs: dict[str, ProductCheck]
    tests: dict[str, ProductTest] = msgspec.field(default_factory=dict)


class ServerTurn(Message):
    """One stage of a server's work on a chunk. `keys` are public keys of all parties of the product, and of servers.

    `digests`: of what parties sealed, by party and server. `rows`, `proofs`: sealed shares by party. `boxes`: queries
    or answers, by the server that sealed them.
    """

    chunk: int
    stage: str
    keys: dict[str, bytes]
    digests: dict[str, dict[str, bytes]]
    rows: dict[str, bytes]
    proofs: dict[str, bytes]
    boxes: dict[str, bytes]


class Served(Message):
    """A server's reply: challenges by party, or sealed boxes by receiver."""

    seeds: dict[str, bytes]
    boxes: dict[str, bytes]


class ServerQuery(Message):
    """By party: a verifier's challenge, its point, and the digests of the shares of rows and proof."""

    seeds: dict[str, bytes]
    points: dict[str, bytes]
    rows: dict[str, bytes]
    proofs: dict[str, bytes]


class ServerQueries(Message):
    """The queries of both verifiers, as a server stores them."""

    queries: dict[str, ServerQuery]


class ServerEcho(Message):
    """The points that each verifier asked a server for, by verifier and party."""

    points: dict[str, dict[str, bytes]]


class ServerAsked(Message):
    """What a verifier stores: its challenges, and the digests that it saw before it drew them."""

    seeds: dict[str, bytes]
    digests: dict[str, dict[str, bytes]]


class ServerAnswers(Message):
    """A server's answers to one verifier, packed, by party."""

    packed: dict[str, bytes]


class KeptPair(Message):
    """The dealer's seed and this party's key pair."""

    seed: bytes
    pair: KeyPair


class KeptShare(Message):
    """A share of the products of all chunks so far."""

    total: NDArray[np.uint64]


class KeptDigest(Message):
    """A digest of the rows that were masked, or the bits of their test."""

    data: bytes


class KeptSums(Message):
    """The column sums of the rows that were masked."""

    sums: NDArray[np.int64]


def partners_of(pairs: tuple[Pair, ...], name: str) -> tuple[str, ...]:
    """Return the partners of a party."""
    return tuple(right if left == name else left for left, right in pairs if name in (left, right))


def entry_of(entries: Mapping[str, Entry], name: str) -> Entry:
    """Return one party's entry in a message; refuse a message without it."""
    if name not in entries:
        raise RefusedError(f"the message has no entry for {name}")
    return entries[name]


def check_seed(seed: bytes) -> None:
    """Refuse a seed of another length."""
    if len(seed) != KEY_BYTES:
        raise RefusedError(f"the dealer's seed must have {KEY_BYTES} bytes")


def note_masked(label: str, party: Party, chunk: int, matrix: NDArray[Any]) -> None:
    """Store digests that show later whether the rows are still those that were masked.

    If the rows changed, the product would contain the difference times the partner's mask, and the dealer knows that
    mask.
    """
    sums = matrix.sum(axis=0, dtype=np.int64)
    before = party.recall(f"{label} sums", KeptSums).sums if chunk else np.zeros_like(sums)
    party.remember(f"{label} sums", KeptSums(sums=before + sums))
    party.remember(f"{label} masked {chunk}", KeptDigest(data=_digest(matrix)))


def same_rows(label: str, party: Party, chunk: int, matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of a chunk; refuse if they are not those that were masked."""
    if party.recall(f"{label} masked {chunk}", KeptDigest).data != _digest(matrix):
        raise changed(party)
    return matrix


def changed(party: Party) -> RefusedError:
    """Return the error for rows that are not those that were masked."""
    return RefusedError(
        f"the rows of {party.name} changed while they were multiplied; nothing was opened. Keep the source unchanged "
        "during a run, and set a new edition"
    )


def _digest(matrix: NDArray[Any]) -> bytes:
    digest = hashlib.sha256(context("product rows", str(matrix.dtype), *matrix.shape))
    digest.update(np.ascontiguousarray(matrix).data)
    return digest.digest()
