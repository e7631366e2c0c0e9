"""An organisation's audit log: one file of JSON lines, append-only, each line chained to the one before.

It records who did or asked what, about which study, and whether it was allowed or why not. It holds texts of public
errors and an owner's own reasons, and nothing that was read from a row. A program for security events can follow it.
"""

import errno
import fcntl
import hashlib
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from syndic.document import Document, from_json, to_json
from syndic.errors import InputError, IntegrityError, PartyError, PublicError, printable
from syndic.privacy.chain import linked, sealed

GENESIS: Final = hashlib.sha256(b"syndic audit 1").hexdigest()
FILE: Final = "audit.jsonl"
INTERNAL: Final = "internal error"
_TAIL_BYTES: Final = 1 << 16
_MOST_LETTERS: Final = 500
_MOST_REFUSALS: Final = 1000


class Record(Document, frozen=True, kw_only=True):
    """One line: `time` is in UTC, `why` a reason or a refusal.

    `who` is a user of the console, an account of this machine, or the coordinator.
    """

    number: int
    time: str
    who: str
    what: str
    study: str = ""
    allowed: bool = True
    why: str = ""
    previous: str
    hash: str = ""


def account() -> str:
    """Return the account of this process, as the operating system knows it."""
    try:
        return f"account {pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:
        return f"account {os.getuid()}"


_PERSON: Final[ContextVar[str]] = ContextVar("person", default="")


@contextmanager
def acting(user: str) -> Iterator[None]:
    """Record what the block does as done by this user of the console."""
    token = _PERSON.set(f"user {user}")
    try:
        yield
    finally:
        _PERSON.reset(token)


def actor() -> str:
    """Return who acts now: a user of the console, or else the account of this process."""
    return _PERSON.get() or account()


@final
class AuditLog:
    """The audit log of a folder; several processes may write to it."""

    def __init__(self, folder: Path) -> None:
        """Use the log of this folder; the first record makes the file."""
        self.path = folder / FILE
        self._refusals = 0

    def add(self, what: str, *, who: str = "", study: str = "", why: str = "") -> None:
        """Record something that was allowed and done; on disk on return."""
        self._append(who=who or actor(), what=_one_line(what), study=study, why=_one_line(why))

    def refuse(self, what: str, *, who: str = "", study: str = "", why: str) -> None:
        """Record a refusal, unless the latest lines have it: whoever asks a million times does not fill the disk."""
        self._refusals += 1
        if self._refusals == _MOST_REFUSALS:
            why = "this process has refused so much that further refusals are not recorded"
        if self._refusals <= _MOST_REFUSALS:
            self._append(who=who or actor(), what=_one_line(what), study=study, why=_one_line(why), allowed=False)

    @contextmanager
    def attempt(self, what: str, *, study: str = "", why: str = "") -> Iterator[None]:
        """Record what the block did: allowed if it ends, else why not."""
        try:
            yield
        except (PublicError, PartyError, IntegrityError) as error:
            # none of these quotes a row
            self.refuse(what, study=study, why=str(error))
            raise
        except Exception:
            # its text may contain a private value
            self.refuse(what, study=study, why=INTERNAL)
            raise
        self.add(what, study=study, why=why)

    def records(self) -> tuple[Record, ...]:
        """Return all records in order.

        Raises:
            IntegrityError: if a record was changed, removed or reordered. A cut end shows only in a published head.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        # what follows the last end of a line is being written, or was when the power failed
        whole, _, _begun = content.rpartition(b"\n")
        try:
            return tuple(linked(map(self._read, whole.split(b"\n") if whole else ()), GENESIS))
        except IntegrityError as error:
            raise IntegrityError(f"{self.path}: {error}") from None

    def verify(self, published: str | None = None) -> tuple[Record, ...]:
        """Return all records; raise `IntegrityError` also if none has the `published` digest."""
        records = self.records()
        if published is not None and published not in {GENESIS, *(one.hash for one in records)}:
            raise IntegrityError(f"{self.path}: no record has the published digest {published}")
        return records

    def _append(self, **fields: object) -> None:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "rb+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL_BYTES, 0))
            tail = file.read()
            whole, _, begun = tail.rpartition(b"\n")
            if begun:
                # a record that a power cut left unfinished was never acknowledged
                os.ftruncate(handle, size - len(begun))
            # the first line of the tail may be cut, and one line is shorter than the tail
            lines = whole.split(b"\n")[1 if size > _TAIL_BYTES else 0 :]
            known = [self._read(line) for line in lines if line]
            if not fields.get("allowed", True) and any(_same(one, fields) for one in known):
                return
            number, previous = (known[-1].number, known[-1].hash) if known else (0, GENESIS)
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            record = sealed(Record(number=number + 1, time=now, previous=previous, **fields))  # type: ignore[arg-type]
            line = to_json(record) + b"\n"
            if file.write(line) != len(line):
                # the disk is full; the next record removes what was written of this one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(handle)

    def _read(self, line: bytes) -> Record:
        try:
            record = from_json(line, Record, where=self.path.name)
        except InputError:
            record = None
        # other spellings of the same record, such as a key given twice, may read otherwise elsewhere
        if record is None or to_json(record) != line:
            raise IntegrityError("a line is not a record: keep the file, and move it away")
        return record


def _same(one: Record, fields: dict[str, object]) -> bool:
    return not one.allowed and all(getattr(one, name) == value for name, value in fields.items())


def _one_line(text: str) -> str:
    return printable(text)[:_MOST_LETTERS]
