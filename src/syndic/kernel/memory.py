"""A party's storage between calls: the answers it gave, and the messages that its steps store for later steps.

The tables are in the ledger's file. An answer, the stored messages and the ledger's entry for the call therefore become
durable together, before anything is sent. If the process is killed, either all of it is on disk or nothing is. An
earlier charge stays in the ledger and is used when the call is repeated.

Every stored answer changes the study's `Head`, a number and a digest. The ledger's entry of the call, a file beside the
ledger and the other parties keep it: a memory that was put back has an older head, or another one, and answers nothing.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from syndic.errors import IntegrityError, RefusedError
from syndic.kernel.codec import Message
from syndic.privacy import Unit
from syndic.privacy.store import FORMAT
from syndic.random import SECRET_BYTES, Randomness, SystemRandomness
from syndic.sqlite import Database

WAY_OUT = "its owner restores the newest copy, or runs syndic withdraw --restored for a new edition of the study"
Read = TypeVar("Read")
_CHOICE = "choice of rows"


@final
@dataclass(frozen=True, kw_only=True)
class Stored:
    """An answer: the digest of the request, whether the ledger was charged for it, and the reply."""

    asked: str
    charged: bool
    reply: bytes


class Head(Message):
    """How many answers a party stored for a study, and a digest of them. Public: it follows from no row.

    The digest covers random bytes, so memories that were put back and went on have different ones.
    """

    number: int = 0
    digest: str = ""

    def check(self, known: "Head", what: str) -> None:
        """Raise `RefusedError` if this head is older than a known one, or differs from it at the same number."""
        if self.number < known.number or (self.number == known.number and self.digest != known.digest):
            raise RefusedError(
                f"{what} went back in time: it has {self.number} answers of this study, {known.number} were given. "
                f"New noise on an old charge would be a second release: {WAY_OUT}"
            )


class Memory:
    """A party's memory of one study."""

    def __init__(self, database: Database, study: str) -> None:
        """Use the tables in `database`, the file of the party's ledger."""
        self._database = database
        self._study = study
        self._turn = threading.Lock()
        self.last = Head()
        """The head after the last answer: an older file is refused. Whoever opens the file again may pass it on."""

    def answer_once(
        self,
        call: str,
        asked: str,
        work: Callable[[], tuple[Stored, Mapping[str, bytes]]],
        record: Callable[[Stored], None],
        *,
        fresh: bool = False,
    ) -> bytes:
        """Return the stored answer to a call, or else call `work` for the answer and the messages to store.

        `record` writes to the same file that the call was answered. A `fresh` answer is not stored. Calls of one study
        run one at a time, also across processes of this party: a step checks the order of calls before it charges,
        and no other call may run in between.

        Raises:
            RefusedError: if the call id was used for another request, or another call does not finish in time.
        """
        # the letters of a digest, and the party after it, if any: an owner's parties do not wait for each other
        digest, _, party = self._study.partition(" ")
        with self._turn, self._database.turn(f"{digest[:16]}{party and f'-{party}'}.lock"):
            self.head().check(self.last, "this party's stored state")
            known = self.answer(call)
            if known is not None and known.asked != asked:
                raise RefusedError("this call id was answered before, for a different request")
            if known is None and not fresh and self._forgotten():
                raise RefusedError("a stored answer was deleted at this party: set a new edition in the study")
            stored, kept = work() if known is None else (known, {})
            with self._database.writing():
                if known is None and not fresh:
                    self.store(call, stored)
                for name, value in kept.items():
                    self.keep(name, value)
                record(stored)
            self.last = self.head()
            return stored.reply

    def answer(self, call: str) -> Stored | None:
        """Return the stored answer to `call`, or None."""
        where = "WHERE study = ? AND call = ?"
        row = self._database.first(f"SELECT asked, charged, reply FROM answers {where}", self._study, call)  # noqa: S608
        return None if row is None else Stored(asked=str(row[0]), charged=bool(row[1]), reply=_bytes(row[2]))

    def store(self, call: str, answer: Stored) -> None:
        """Store the answer to `call`."""
        write, head, (ledger,) = self._database.first, self.head(), self._database.first("SELECT hash FROM head")
        write(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?)", self._study, call, answer.asked, answer.charged, answer.reply
        )
        text = f"{head.digest} {ledger} {SystemRandomness().bytes(16).hex()}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        write("INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", self._study, head.number + 1, digest)

    def keep(self, name: str, value: bytes) -> None:
        """Store `value` under `name` for later steps of the study."""
        self._database.first("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", self._study, name, value)

    def kept(self, name: str) -> bytes | None:
        """Return the value stored under `name`, or None."""
        row = self._database.first("SELECT value FROM kept WHERE study = ? AND name = ?", self._study, name)
        return None if row is None else _bytes(row[0])

    def keep_once(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the value stored under `name`; store that of `make` first if there is none."""
        with self._database.writing():
            if self.kept(name) is None:
                self.keep(name, make())
        found = self.kept(name)
        if found is None:
            raise _damaged()
        return found

    def stored_bytes(self) -> int:
        """Return the total size of the stored answers in bytes."""
        found = "SELECT COALESCE(SUM(LENGTH(reply)), 0) FROM answers WHERE study = ?"
        return int(self._database.first(found, self._study)[0])

    def forget(self) -> None:
        """Delete all answers and stored values, also from the disk. Every call is refused from then on."""
        with self._database.writing():
            for table in ("answers", "kept"):
                self._database.first(f"DELETE FROM {table} WHERE study = ?", self._study)  # noqa: S608  # our own names
        self._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def _forgotten(self) -> bool:
        """Return whether answers were deleted: asked again, an alignment would find other people."""
        (there,) = self._database.first("SELECT COUNT(*) FROM answers WHERE study = ?", self._study)
        return self.head().number > int(there)

    def head(self) -> Head:
        """Return the number of stored answers and their digest."""
        row = self._database.first("SELECT number, digest FROM calls WHERE study = ?", self._study)
        if row is None:
            return Head()
        if not isinstance(row[0], int) or not isinstance(row[1], str):
            raise _damaged()
        return Head(number=row[0], digest=row[1])


def choice_key(unit: Unit, memory: Memory, randomness: Callable[[str], Randomness]) -> bytes:
    """Return the party's secret key that chooses rows of people: one for a run. Empty if nothing is chosen by it."""
    if unit.choose != "random":
        return b""
    return memory.keep_once(_CHOICE, lambda: randomness(_CHOICE).bytes(SECRET_BYTES))


def look_up(path: Path, study: str, read: Callable[[Memory], Read]) -> Read | None:
    """Return `read` of a study's memory, in a ledger that may be open elsewhere; None if there is no such file."""
    if not path.is_file():
        return None
    with closing(Database(path, FORMAT, read_only=True)) as database:
        return read(Memory(database, study))


def _bytes(value: Any) -> bytes:
    # a damaged file may hold any type: bytes(number) would be that many zeros
    if not isinstance(value, bytes):
        raise _damaged()
    return value


def _damaged() -> IntegrityError:
    return IntegrityError("the party's stored answers are damaged: run `syndic ledger verify` on its ledger")
