"""Helpers of the alignment steps: messages, stored values, and the passing on of mail."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data.aligned import Alignment
from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES, points_of, raised
from syndic.mpc.key import context
from syndic.mpc.seal import Mail
from syndic.random import Randomness

CHUNK = 1 << 14
"""Points in a message."""
ORDER_NAME = "alignment"
"""The name under which a party stores its `StoredOrder`, where a study aligns one set of parties."""


class AlignTurn(Message):
    """Which chunk of points, or which part of a table, is due."""

    number: int


class AlignBox(Message):
    """A sealed chunk of points that has been through the powers of `hop` parties, its owner's blinding among them."""

    number: int
    hop: int
    box: bytes


class AlignTable(Message):
    """A part of a party's table, or of the sum of all tables: a row of coefficients for each bin."""

    number: int
    words: NDArray[np.uint64]


class AlignDone(Message):
    """How many people are common, and a digest of their order, or neither. The same at every party."""

    people: int | None = None
    digest: bytes = b""


class Meeting(Message):
    """A party's secret power for the comparison of results, and the keys derived with others. Private."""

    power: bytes
    keys: dict[str, bytes]


class StoredOrder(Message):
    """What a party stores of an alignment. Private."""

    alignment: Alignment


class Own(Message):
    """A party's secret powers, the key of its record, and the columns of its ids. Private."""

    power: bytes
    on: bytes
    off: bytes
    key: bytes
    columns: tuple[str, ...]


class Ids(Message):
    """A chunk of hashed ids and their names, those of random ones among them. Private."""

    hashes: bytes
    names: bytes

    def blinded(self) -> "Ids":
        """Return what is kept after the points were sent: 16 bytes of each hash, and the names."""
        starts = range(0, len(self.hashes), HASH_BYTES)
        return Ids(hashes=b"".join([self.hashes[start : start + 16] for start in starts]), names=self.names)


class OtherKeys(Message):
    """Of a chunk of the other party's labels, what a party compares with its own tags. Private."""

    keys: bytes


class Tags(Message):
    """Tags and shares derived from a chunk of labels. Private."""

    tags: bytes
    shares: NDArray[np.uint64]


class Zeros(Message):
    """Places of ids that all parties hold. Private."""

    places: NDArray[np.int64]


def order_name(name: str) -> str:
    """Return the name under which a party stores its `StoredOrder` of the set called `name`, if it has a name."""
    return f"{ORDER_NAME} {name}" if name else ORDER_NAME


def hash_of(identity: bytes, secret: bytes) -> bytes:
    """Return the keyed hash of an id that becomes a point: 64 bytes."""
    return hashlib.blake2b(identity, digest_size=HASH_BYTES, key=secret).digest()


def mixed(pieces: Sequence[bytes], size: int, order: NDArray[np.int64], randomness: Randomness) -> NDArray[np.uint8]:
    """Return pieces of `size` bytes, and random ones for those that lack, in the given order: one in each row."""
    data = b"".join(pieces) + randomness.bytes(size * (len(order) - len(pieces)))
    return np.frombuffer(data, dtype=np.uint8).reshape(len(order), size)[order]


def digests_of(labels: bytes, size: int, key: bytes) -> bytes:
    """Return a keyed digest of `size` bytes of each label, one after the other."""
    hashed, starts = hashlib.blake2b, range(0, len(labels), POINT_BYTES)
    return b"".join([hashed(labels[at : at + POINT_BYTES], digest_size=size, key=key).digest() for at in starts])


def piece(data: bytes, place: int, size: int) -> bytes:
    """Return the piece of `size` bytes at a place."""
    return data[size * place : size * (place + 1)]


def blinded(party: Party, done: AlignDone, power: bytes) -> bytes:
    """Return a secret power of the order's digest: another party can test one digest against it, and no second."""
    digest = hashlib.sha512(context("align vouch", party.study, done.digest)).digest()
    return raised(points_of([digest]), power)


def passed_on(names: Sequence[str], mail: Mapping[str, Mail], number: int, hop: int) -> dict[str, AlignBox]:
    """Return what each party sealed, by the next party in the order."""
    passed = {}
    for sender, sent in mail.items():
        receiver = neighbour_of(names, sender, 1)
        if sent.boxes.keys() != {receiver}:
            raise RefusedError(f"{sender} did not send its points to {receiver}")
        passed[receiver] = AlignBox(number=number, hop=hop, box=sent.boxes[receiver])
    return passed


def neighbour_of(names: Sequence[str], name: str, away: int) -> str:
    """Return the party that is `away` places further on in the circle of all parties."""
    return names[(names.index(name) + away) % len(names)]


def inboxes_of(sent: Mapping[str, Mail]) -> dict[str, Mail]:
    """Return, for each party, what the others sealed for it."""
    return {
        name: Mail(boxes={sender: mail.boxes[name] for sender, mail in sent.items() if sender != name}) for name in sent
    }
