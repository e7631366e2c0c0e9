"""Entries of a ledger and the chain of digests that ties each one to all before it."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from syndic.document import Document, to_json
from syndic.errors import IntegrityError
from syndic.privacy.cost import Cost
from syndic.privacy.event import Event
from syndic.privacy.unit import Budget

GENESIS: Final = hashlib.sha256(b"syndic ledger 1").hexdigest()

Kind = Literal["declare", "reserve", "commit", "agree", "withdraw", "call"]


class Entry(Document, frozen=True, kw_only=True):
    """One line of a ledger. Everything in it is public to whoever may read the ledger; `time` is in UTC.

    `declare` sets the cap of a data set, `reserve` charges events to it, `commit` says that a call was
    answered with the reply of that digest. Between organisations `agree` says that the owner signed the agreement
    whose digest is `reply`, `withdraw` that it took it back, and `call` that the question of the digest `asked`, about
    the step `why`, got the reply of that digest, or a refusal of that code. `hash` is of all other fields, so of the
    previous hash too.
    """

    number: int
    time: str
    kind: Kind
    dataset: str
    study: str = ""
    call: str = ""
    door: str = ""
    events: tuple[Event, ...] = ()
    cost: Cost = Cost()
    cap: Budget | None = None
    asked: str = ""
    reply: str = ""
    why: str = ""
    previous: str
    hash: str = ""


def sealed(entry: Entry) -> Entry:
    """Return the entry with its hash: SHA-256 of its canonical JSON, as exported, with an empty hash."""
    digest = hashlib.sha256(to_json(msgspec.structs.replace(entry, hash=""))).hexdigest()
    return msgspec.structs.replace(entry, hash=digest)


def checked(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Hand on the entries; `IntegrityError` at the first that was changed or does not follow the last."""
    previous = GENESIS
    for number, entry in enumerate(entries, start=1):
        if entry.number != number:
            raise IntegrityError(f"entry {number} is missing: entry {entry.number} comes after {number - 1}")
        if entry.hash != sealed(entry).hash:
            raise IntegrityError(f"entry {number} was changed after it was written")
        if entry.previous != previous:
            raise IntegrityError(f"entry {number} does not follow entry {number - 1}: replaced or out of order")
        if entry.cost != Cost.of(entry.events):
            raise IntegrityError(f"entry {number} charges something other than its events")
        previous = entry.hash
        yield entry
