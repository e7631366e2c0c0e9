"""What the steps of an alignment are made of: its messages, its public numbers, and what a party keeps."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data.aligned import NAME_BYTES, Alignment, IdRule
from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Terms, member
from syndic.mpc.align.point import POINT_BYTES, points_of, raised
from syndic.mpc.align.table import TableShape, Words, add, field_words, subtract, table_shape
from syndic.mpc.key import context, derive
from syndic.mpc.seal import Mail, Place, seal, unseal
from syndic.mpc.secret import pair_secrets, secret_of

CHUNK = 1 << 14
"""Points in a message."""
ORDER_NAME = "alignment"
"""What a party's memory keeps its `StoredOrder` under."""

LABEL = "align"
_TAG_BYTES = 8 + 8 + 16  # an id's key in a table, its bin, its place in the common order


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


def most_people(terms: Terms) -> int:
    """Return the largest public bound of a party."""
    return max(bound_of(terms, party.name) for party in terms.parties)


def chunks_of(terms: Terms) -> int:
    """Return how many messages the points of the largest party take."""
    return -(-most_people(terms) // CHUNK)


def parts_of(terms: Terms) -> int:
    """Return how many messages a table takes."""
    return len(table_shape(most_people(terms)).parts())


def bound_of(terms: Terms, name: str) -> int:
    """Return the public bound on the ids of a party."""
    return member(terms, name).people or 0


def count_of(terms: Terms, name: str, number: int) -> int:
    """Return how many points a party has in a chunk: all of them public numbers."""
    return min(max(bound_of(terms, name) - number * CHUNK, 0), CHUNK)


def stage_of(terms: Terms, number: int, hop: int) -> int:
    """Return the place of a step on a chunk among all steps; refuse a chunk that is none."""
    if not 0 <= number < chunks_of(terms):
        raise RefusedError("there is no such chunk of points in this study")
    return 2 + number * (len(terms.parties) + 1) + hop


def part_of(shape: TableShape, number: int) -> range:
    """Return the bins of a message; refuse a part of the table that is none."""
    parts = shape.parts()
    if not 0 <= number < len(parts):
        raise RefusedError("there is no such part of a table in this study")
    return parts[number]


def later_stage_of(terms: Terms, number: int) -> int:
    """Return the place of a step on tables, and after them, among all steps."""
    return 2 + chunks_of(terms) * (len(terms.parties) + 1) + number


def _neighbour(names: Sequence[str], name: str, away: int) -> str:
    return names[(names.index(name) + away) % len(names)]


def _names(party: Party) -> list[str]:
    return [member.name for member in party.terms.parties]


def place_of(party: Party, what: str, sender: str, receiver: str) -> Place:
    """Return where a box of this study's alignment belongs."""
    return Place(study=party.study, label=f"align {what}", sender=sender, receiver=receiver)


def sent_on(party: Party, points: bytes, number: int, hop: int) -> Mail:
    """Return points sealed for the next party."""
    receiver = _neighbour(_names(party), party.name, 1)
    secret = pair_secrets(party, LABEL)[receiver]
    place = place_of(party, f"{number} {hop}", party.name, receiver)
    return Mail(boxes={receiver: seal(secret, points, place, party.key_randomness("align box"))})


def received(party: Party, message: AlignBox) -> bytes:
    """Return the points in a box; refuse another number of them than their owner's public bound gives."""
    names = _names(party)
    sender, owner = _neighbour(names, party.name, -1), _neighbour(names, party.name, -message.hop)
    place = place_of(party, f"{message.number} {message.hop}", sender, party.name)
    points = unseal(pair_secrets(party, LABEL)[sender], message.box, place)
    if len(points) != POINT_BYTES * count_of(party.terms, owner, message.number):
        raise RefusedError(f"{sender} sent another number of points for {owner} than the study says")
    return points


def blinded(party: Party, done: AlignDone, power: bytes) -> bytes:
    """Return a secret power of the digest of the order: it lets others test one digest against it, and no second."""
    digest = hashlib.sha512(context("align vouch", party.study, done.digest)).digest()
    return raised(points_of([digest]), power)


def sealed_for_all(party: Party, what: str, texts: Mapping[str, bytes]) -> Mail:
    """Return a text for each other party, sealed."""
    secrets, randomness = pair_secrets(party, LABEL), party.key_randomness(f"align {what} box")
    return Mail(
        boxes={
            name: seal(secrets[name], text, place_of(party, what, party.name, name), randomness)
            for name, text in texts.items()
        }
    )


def opened_from_all(party: Party, what: str, message: AlignMail) -> dict[str, bytes]:
    """Return the texts that all other parties sealed for this one; refuse if one is missing or not of 32 bytes."""
    secrets = pair_secrets(party, LABEL)
    if message.boxes.keys() != secrets.keys():
        raise RefusedError("the sealed messages about the order are not those of all other parties")
    texts = {
        name: unseal(secret, message.boxes[name], place_of(party, what, name, party.name))
        for name, secret in secrets.items()
    }
    if any(len(text) != POINT_BYTES for text in texts.values()):
        raise RefusedError("a sealed message about the order has another length than the study says")
    return texts


def passed_on(names: Sequence[str], mail: Mapping[str, Mail], number: int, hop: int) -> dict[str, AlignBox]:
    """Return, for the next party of each, what the parties sealed."""
    passed = {}
    for sender, sent in mail.items():
        receiver = _neighbour(names, sender, 1)
        if sent.boxes.keys() != {receiver}:
            raise RefusedError(f"{sender} did not send its points to {receiver}")
        passed[receiver] = AlignBox(number=number, hop=hop, box=sent.boxes[receiver])
    return passed


def tags_of(party: Party, labels: bytes) -> Tags:
    """Return what follows from each label: a key, a bin, a place in the order, and this party's share of zero."""
    names = _names(party)
    each = [labels[start : start + POINT_BYTES] for start in range(0, len(labels), POINT_BYTES)]
    key = derive(secret_of(party, LABEL), "tags")
    tags = b"".join(hashlib.blake2b(label, digest_size=_TAG_BYTES, key=key).digest() for label in each)
    shares: Words = np.zeros(len(each), dtype=np.uint64)
    for name, secret in pair_secrets(party, LABEL).items():
        key = derive(secret, "zero shares", party.study)
        drawn = field_words(b"".join(hashlib.blake2b(label, digest_size=8, key=key).digest() for label in each))
        shares = (add if names.index(party.name) < names.index(name) else subtract)(shares, drawn)
    return Tags(tags=tags, shares=shares)


def all_tags(party: Party) -> tuple[NDArray[np.uint8], Words]:
    """Return key, bin and order of all this party's ids, and their shares."""
    kept = [party.recall(f"align tags {number}", Tags) for number in range(chunks_of(party.terms))]
    tags = np.frombuffer(b"".join(each.tags for each in kept), dtype=np.uint8).reshape(-1, _TAG_BYTES)
    return tags, np.concatenate([each.shares for each in kept])


def ordered(party: Party, rule: IdRule) -> tuple[AlignDone, Alignment]:
    """Return what this party found: public numbers for the others to compare, and its own record."""
    own = party.recall("align own", Own)
    found = [party.recall(f"align zeros {number}", Zeros).places for number in range(parts_of(party.terms))]
    kept = [party.recall(f"align ids {number}", Ids).names for number in range(chunks_of(party.terms))]
    names, (tags, _) = b"".join(kept), all_tags(party)
    places = [place for place in np.concatenate(found).tolist() if place < own.real]
    sequence = sorted((tags[place, 16:].tobytes(), place) for place in places)
    chosen = b"".join(names[NAME_BYTES * place : NAME_BYTES * (place + 1)] for _, place in sequence)
    digest = hashlib.sha256(context("alignment", party.study, *(order for order, _ in sequence))).digest()
    alignment = Alignment(rule=rule, columns=own.columns, key=own.key, names=chosen)
    return AlignDone(people=len(sequence), digest=digest), alignment


def forget(party: Party) -> None:
    """Write over what only the alignment itself needed."""
    nothing = Ids(hashes=b"", names=b"")
    for number in range(chunks_of(party.terms)):
        party.remember(f"align ids {number}", nothing)
        party.remember(f"align tags {number}", Tags(tags=b"", shares=np.zeros(0, dtype=np.uint64)))
    party.remember("align draft", nothing)
    party.remember("align own", nothing)
    party.remember("align meeting", nothing)
