"""What the steps of an alignment are made of: its messages, what a party keeps, how mail is carried."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data.aligned import Alignment
from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.mpc.align.point import points_of, raised
from syndic.mpc.key import context
from syndic.mpc.seal import Mail

CHUNK = 1 << 14
"""Points in a message."""
ORDER_NAME = "alignment"
"""What a party's memory keeps its `StoredOrder` under."""


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


class AlignMail(Message):
    """What the other parties vouch for, sealed, by sender."""

    boxes: dict[str, bytes]


class AlignDone(Message):
    """How many people are common, and a digest of their order. The same at every party."""

    people: int
    digest: bytes


class Meeting(Message):
    """A party's secret power of the digest that it vouches for, and the keys that it made with others. Private."""

    power: bytes
    keys: dict[str, bytes]


class StoredOrder(Message):
    """What a party keeps of an alignment. Private."""

    alignment: Alignment


class Own(Message):
    """A party's secret powers, the key of its record, how many ids are its own, and where they stand. Private."""

    power: bytes
    on: bytes
    off: bytes
    key: bytes
    real: int
    columns: tuple[str, ...]


class Ids(Message):
    """A chunk of hashed ids, filled up with random ones, and the names of the own ones. Private."""

    hashes: bytes
    names: bytes


class Tags(Message):
    """What follows from a chunk of labels. Private."""

    tags: bytes
    shares: NDArray[np.uint64]


class Zeros(Message):
    """Places of ids that all parties hold. Private."""

    places: NDArray[np.int64]


def blinded(party: Party, done: AlignDone, power: bytes) -> bytes:
    """Return a secret power of the digest of the order: it lets others test one digest against it, and no second."""
    digest = hashlib.sha512(context("align vouch", party.study, done.digest)).digest()
    return raised(points_of([digest]), power)


def passed_on(names: Sequence[str], mail: Mapping[str, Mail], number: int, hop: int) -> dict[str, AlignBox]:
    """Return, for the next party of each, what the parties sealed."""
    passed = {}
    for sender, sent in mail.items():
        receiver = neighbour_of(names, sender, 1)
        if sent.boxes.keys() != {receiver}:
            raise RefusedError(f"{sender} did not send its points to {receiver}")
        passed[receiver] = AlignBox(number=number, hop=hop, box=sent.boxes[receiver])
    return passed


def neighbour_of(names: Sequence[str], name: str, away: int) -> str:
    """Return who is so many places further on in the round of all parties."""
    return names[(names.index(name) + away) % len(names)]


def inboxes_of(sent: Mapping[str, Mail]) -> dict[str, AlignMail]:
    """Return, for each party, what the others sealed for it."""
    return {
        name: AlignMail(boxes={sender: mail.boxes[name] for sender, mail in sent.items() if sender != name})
        for name in sent
    }
