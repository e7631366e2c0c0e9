"""Entries of a ledger and the chain of digests that ties each one to all before it."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from syndic.document import Document, to_builtins, to_json
from syndic.errors import IntegrityError
from syndic.privacy.cost import Cost
from syndic.privacy.event import Event
from syndic.privacy.unit import Budget

GENESIS: Final = hashlib.sha256(b"syndic ledger 1").hexdigest()

# ledgers of version 1 had no such sums: left out where they are 0, they keep the digests of old entries
_LATER_SUMS: Final = ("gaussian", "slack")


class Entry(Document, frozen=True, kw_only=True):
    """One line of a ledger. Everything in it is public to whoever may read the ledger; `time` is in UTC.

    `declare` sets the cap of a data set, `reserve` charges events to it, `commit` says that a call was
    answered with the reply of that digest. `hash` is of all other fields, so of the previous hash too.
    """

    number: int
    time: str
    kind: Literal["declare", "reserve", "commit"]
    dataset: str
    study: str = ""
    call: str = ""
    door: str = ""
    events: tuple[Event, ...] = ()
    cost: Cost = Cost()
    cap: Budget | None = None
    reply: str = ""
    why: str = ""
    previous: str
    hash: str = ""


def sealed(entry: Entry) -> Entry:
    """Return the entry with its hash: SHA-256 of its canonical JSON, as exported, with an empty hash."""
    digest = hashlib.sha256(to_json(exported(msgspec.structs.replace(entry, hash="")))).hexdigest()
    return msgspec.structs.replace(entry, hash=digest)


def exported(entry: Entry) -> dict[str, Any]:
    """Return the entry as it is exported; sums of costs that version 1 did not have are left out where they are 0."""
    content: dict[str, Any] = to_builtins(entry)
    cost = content["cost"]
    return {**content, "cost": {name: cost[name] for name in cost if cost[name] or name not in _LATER_SUMS}}


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
