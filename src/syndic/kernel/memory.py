"""What a party keeps between calls: the answers it gave and what its steps asked it to remember.

Tables in the file of the party's ledger, so that an answer, everything remembered and the ledger's entry that the call
was answered become durable together, before anything is sent. A killed process leaves either all of that or nothing;
what was charged before it stays charged, and is used when the call is asked again.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from syndic.errors import IntegrityError, RefusedError
from syndic.privacy.store import FORMAT
from syndic.sqlite import Database

Read = TypeVar("Read")


@final
@dataclass(frozen=True, kw_only=True)
class Stored:
    """An answer: the digest of what was asked, whether the ledger was charged for it, the bytes answered."""

    asked: str
    charged: bool
    reply: bytes


class Memory:
    """A party's memory of one study."""

    def __init__(self, database: Database, study: str) -> None:
        """Use the tables in `database`, the file of the party's ledger."""
        self._database = database
        self._study = study
        self._turn = threading.Lock()

    def answer_once(
        self,
        call: str,
        asked: str,
        work: Callable[[], tuple[Stored, Mapping[str, bytes]]],
        record: Callable[[Stored], None],
        *,
        fresh: bool = False,
    ) -> bytes:
        """Return the stored answer to a call, or that of `work`, which returns it with what is to be remembered.

        `record` writes to the same file that the call was answered. A `fresh` answer is not stored. Calls of one study
        take turns, also those that reach other processes of this party: a step checks the order of calls before it
        charges, and nobody may overtake it in between.

        Raises:
            RefusedError: if the call stands for another question, or others do not end their turn.
        """
        with self._turn, self._database.turn(f"{self._study[:16]}.lock"):
            known = self.answer(call)
            if known is not None and known.asked != asked:
                raise RefusedError("this call id was answered before, for another question")
            stored, kept = work() if known is None else (known, {})
            with self._database.writing():
                if known is None and not fresh:
                    self.store(call, stored)
                for name, value in kept.items():
                    self.keep(name, value)
                record(stored)
            return stored.reply

    def answer(self, call: str) -> Stored | None:
        """Return the answer given to `call`, if there was one."""
        where = "WHERE study = ? AND call = ?"
        row = self._database.first(f"SELECT asked, charged, reply FROM answers {where}", self._study, call)  # noqa: S608
        return None if row is None else Stored(asked=str(row[0]), charged=bool(row[1]), reply=_bytes(row[2]))

    def store(self, call: str, answer: Stored) -> None:
        """Keep the answer to `call`."""
        values = (self._study, call, answer.asked, answer.charged, answer.reply)
        self._database.first("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", *values)
        self._count()

    def keep(self, name: str, value: bytes) -> None:
        """Keep `value` under `name` for later steps of the study."""
        self._database.first("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", self._study, name, value)
        self._count()

    def kept(self, name: str) -> bytes | None:
        """Return what was kept under `name`."""
        row = self._database.first("SELECT value FROM kept WHERE study = ? AND name = ?", self._study, name)
        return None if row is None else _bytes(row[0])

    def stored_bytes(self) -> int:
        """Return how many bytes the answers have together."""
        found = "SELECT COALESCE(SUM(LENGTH(reply)), 0) FROM answers WHERE study = ?"
        return int(self._database.first(found, self._study)[0])

    def forget(self) -> None:
        """Delete answers and all that was kept, from the disk too. A call that was charged is then refused for ever."""
        self._database.rows("PRAGMA secure_delete = ON")
        with self._database.writing():
            for table in ("answers", "kept"):
                self._database.first(f"DELETE FROM {table} WHERE study = ?", self._study)  # noqa: S608  # our own names
            self._count()
        self._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def calls(self) -> int:
        """Return a number that grows with every call that leaves something here."""
        row = self._database.first("SELECT number FROM calls WHERE study = ?", self._study)
        if row is not None and not isinstance(row[0], int):
            raise _damaged()
        return 0 if row is None else row[0]

    def _count(self) -> None:
        count = "INSERT INTO calls VALUES (?, 1) ON CONFLICT (study) DO UPDATE SET number = number + 1"
        self._database.first(count, self._study)


def look_up(path: Path, study: str, read: Callable[[Memory], Read]) -> Read | None:
    """Return what `read` finds about a study in a ledger that may be open elsewhere; None if there is no such file."""
    if not path.is_file():
        return None
    with closing(Database(path, FORMAT, read_only=True)) as database:
        return read(Memory(database, study))


def _bytes(value: Any) -> bytes:
    # a damaged file may hold anything: a number would make as many zeros
    if not isinstance(value, bytes):
        raise _damaged()
    return value


def _damaged() -> IntegrityError:
    return IntegrityError("the party's memory was damaged: what it kept is not there")
