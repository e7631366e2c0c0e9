"""Entries of a ledger, the chain of digests that links each entry to all earlier ones, and entries as a file."""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, Self, TypeVar

import msgspec

from syndic.document import Document, to_builtins, to_json
from syndic.errors import InputError, IntegrityError
from syndic.privacy.cost import Cost, Price
from syndic.privacy.event import Event
from syndic.privacy.unit import Budget

DIGEST_LETTERS: Final = 64
GENESIS: Final = hashlib.sha256(b"syndic ledger 1").hexdigest()

Kind = Literal["declare", "plan", "reserve", "covered", "commit", "agree", "withdraw", "call", "disclose"]


class Link(Protocol):
    """A document that names the digest of the one before it."""

    @property
    def number(self) -> int:
        """Its place, from 1."""

    @property
    def previous(self) -> str:
        """The digest of the one before, or of nothing."""

    @property
    def hash(self) -> str:
        """The digest of all other fields."""


Linked = TypeVar("Linked", bound=Link)


class Entry(Document, frozen=True, kw_only=True):
    """One entry of a ledger. Whoever may read the ledger may read all of it; `time` is in UTC.

    `declare` sets the cap of a data set. `plan` comes before the first charge to it, if that is a part of a study: its
    `cost` is all that this study may charge (see `syndic.privacy.filter`). `reserve` charges events. `covered` records
    events that charges of the organisation's parties cover, for a person at up to `asked` of them (see
    `syndic.privacy.covered`). `commit` records the digest of the reply to a charged call. `disclose` records that a
    study showed something exactly, outside any epsilon. Between organisations, `agree` records that the owner signed
    the agreement whose digest is `reply`, and `withdraw` that the owner withdrew it. `call` records a question by its
    digest, `asked`, its step, `why`, and its `reply`: a digest, or the code of a refusal; its `door` is the digest of
    all stored answers then.
    `stated` is the study's cost as stated before it ran; agreements, disclosures and a study's first charge carry it.
    `hash` covers all other fields, and so the previous hash.
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
    stated: Price | None = None
    asked: str = ""
    reply: str = ""
    why: str = ""
    previous: str
    hash: str = ""


class Reservation(Document, frozen=True, kw_only=True):
    """A charge that is on disk.

    `fresh` is false if the call was charged before. `reply` is the digest of the answer that the call got, if any: then
    no noise may be drawn for it again, and the stored reply is the answer.
    """

    number: int
    dataset: str
    study: str
    call: str
    door: str
    cost: Cost
    fresh: bool
    reply: str | None = None

    @classmethod
    def of(cls, entry: Entry, *, fresh: bool, reply: str | None) -> Self:
        """Return the reservation that an entry records."""
        names = ("number", "dataset", "study", "call", "door", "cost")
        return cls(**{name: getattr(entry, name) for name in names}, fresh=fresh, reply=reply)


class Called(Document, frozen=True, kw_only=True):
    """A call, for the owner's log.

    `asked` is the digest of the question; `reply` is the digest of the answer, or the code of a refusal. `call` and
    `step` are empty if the question could not be read. `fresh` is true for a step that is computed on every request.
    """

    dataset: str
    study: str
    call: str
    step: str
    asked: str
    reply: str
    fresh: bool = False

    @property
    def refused(self) -> bool:
        """Whether the reply is the code of a refusal, which is shorter than a digest."""
        return len(self.reply) < DIGEST_LETTERS

    @property
    def stored(self) -> bool:
        """Whether the call has a stored answer."""
        return not self.refused and not self.fresh


def sealed(entry: Linked) -> Linked:
    """Return the entry with its hash: SHA-256 of its canonical JSON, as exported, with an empty hash."""
    digest = hashlib.sha256(to_json(msgspec.structs.replace(entry, hash=""))).hexdigest()  # type: ignore[type-var]
    return msgspec.structs.replace(entry, hash=digest)  # type: ignore[type-var]


def checked(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries of a ledger; raise `IntegrityError` at the first that is not as it was written."""
    for entry in linked(entries, GENESIS):
        if entry.kind != "plan" and entry.cost != Cost.of(entry.events):
            raise IntegrityError(f"entry {entry.number} charges something other than its events")
        yield entry


def linked(entries: Iterable[Linked], genesis: str) -> Iterator[Linked]:
    """Yield the entries; raise `IntegrityError` at the first that was changed or does not follow the one before."""
    previous = genesis
    for number, entry in enumerate(entries, start=1):
        if entry.number != number:
            raise IntegrityError(f"entry {number} is missing: entry {entry.number} comes after {number - 1}")
        if entry.hash != sealed(entry).hash:
            raise IntegrityError(f"entry {number} was changed after it was written")
        if entry.previous != previous:
            raise IntegrityError(f"entry {number} does not follow entry {number - 1}: replaced or out of order")
        previous = entry.hash
        yield entry


def write_entries(path: Path, head: str, entries: Sequence[Entry]) -> None:
    """Write entries and the head to a `.json` file, or the entries to a `.csv` file."""
    if path.suffix not in {".json", ".csv"}:
        raise InputError(f"{path.name}: expected a .json or .csv file")
    if path.suffix == ".json":
        path.write_bytes(to_json({"head": head, "entries": entries}))
        return
    columns = [name for name in Entry.__struct_fields__ if name != "cost"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*columns, *Cost.__struct_fields__], extrasaction="ignore")
        writer.writeheader()
        for entry in entries:
            row = to_builtins(entry)
            texts = {name: to_json(row[name]).decode() for name in ("events", "cap", "stated")}
            safe = {name: _as_text(value) for name, value in row.items() if isinstance(value, str)}
            writer.writerow({**row, **safe, **row["cost"], **texts})


def _as_text(value: str) -> str:
    """Return a text that a spreadsheet does not run: the coordinator chooses call ids, and one may be a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
