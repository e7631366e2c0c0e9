"""What a party keeps between calls: the answers it gave and what its steps asked it to remember.

One transaction per call: the answer and everything remembered become durable together, before anything is
sent. A killed process leaves either all of a call or nothing of it.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from syndic.errors import IntegrityError

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (call TEXT PRIMARY KEY, asked TEXT NOT NULL, charged INTEGER NOT NULL,
    reply BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS kept (study TEXT, name TEXT, value BLOB NOT NULL, PRIMARY KEY (study, name)) STRICT;
"""
_KEPT: Final = "SELECT value FROM kept WHERE study = ? AND name = ?"


@final
@dataclass(frozen=True, kw_only=True)
class Stored:
    """An answer: the digest of what was asked, whether the ledger was charged for it, the bytes answered."""

    asked: str
    charged: bool
    reply: bytes


@final
class Memory:
    """A party's durable memory, in one SQLite file (or `:memory:` in simulation)."""

    def __init__(self, path: Path | str, *, wait_seconds: float = 600.0) -> None:
        """Open or create the file."""
        self._turn = threading.Lock()
        with _told():
            self._connection = sqlite3.connect(
                path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
        try:
            with _told():
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=FULL")
                self._connection.executescript(_TABLES)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """Hold the file for one call, so that a message delivered twice at once is answered once."""
        with self._turn:
            self._say("BEGIN IMMEDIATE")
            try:
                yield
                self._say("COMMIT")
            except BaseException:
                # a damaged file or a full disk has ended the transaction by itself
                if self._connection.in_transaction:
                    self._say("ROLLBACK")
                raise

    def answer(self, call: str) -> Stored | None:
        """Return the answer given to `call`, if there was one."""
        row = self._say("SELECT asked, charged, reply FROM answers WHERE call = ?", call)
        return None if row is None else Stored(asked=str(row[0]), charged=bool(row[1]), reply=_bytes(row[2]))

    def store(self, call: str, answer: Stored) -> None:
        """Keep the answer to `call`."""
        values = (call, answer.asked, answer.charged, answer.reply)
        self._say("INSERT INTO answers VALUES (?, ?, ?, ?)", *values)

    def keep(self, study: str, name: str, value: bytes) -> None:
        """Keep `value` under `name` for later steps of the study."""
        self._say("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", study, name, value)

    def kept(self, study: str, name: str) -> bytes | None:
        """Return what was kept under `name`."""
        row = self._say(_KEPT, study, name)
        return None if row is None else _bytes(row[0])

    @staticmethod
    def look_up(path: Path, study: str, name: str) -> bytes | None:
        """Return what a study of the past kept under `name` in a file that may be open elsewhere, if there is one."""
        if not path.exists():
            return None
        with _told(), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(_KEPT, (study, name)).fetchone()
        return None if row is None else _bytes(row[0])

    def _say(self, statement: str, *values: Any) -> Any:
        """Return the first row that SQLite answers, if any."""
        with _told():
            return self._connection.execute(statement, values).fetchone()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def stored_bytes(path: Path) -> int:
    """Return how many bytes the answers in a memory have together; 0 where there is none yet. Changes nothing."""
    if not path.is_file():
        return 0
    with _told(), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT COALESCE(SUM(LENGTH(reply)), 0) FROM answers").fetchone()[0])


def _bytes(value: Any) -> bytes:
    # a damaged file may hold anything: a number would make as many zeros
    if not isinstance(value, bytes):
        raise IntegrityError("the party's memory was damaged: what it kept is not there")
    return value


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # the latter where SQLite's own text quotes a name that was damaged
        raise IntegrityError(f"the party's memory cannot be read or written: {error}") from None
