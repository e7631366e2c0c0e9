"""The SQLite file under a ledger: an append-only table of entries and a one-row table with the head.

Triggers keep programs from changing entries by mistake; the digests show it when someone does so on purpose.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from syndic.document import from_builtins, from_json, to_json
from syndic.errors import InputError, IntegrityError, RefusedError, SyndicError
from syndic.privacy.chain import GENESIS, Entry, sealed
from syndic.privacy.cost import Cost

_APPLICATION: Final = 0x53594E44
_VERSION: Final = 3
_PAGE: Final = 1000
_COSTS: Final = Cost.__struct_fields__
_TEXTS: Final = ("dataset", "study", "call", "door", "reply", "why", "previous", "hash", "asked")
_COLUMNS: Final = ("number", "time", "kind", "events", "cap", *_TEXTS, *_COSTS)

_STANDING: Final = "CREATE INDEX standing ON entry (study) WHERE kind IN ('agree', 'withdraw')"

_LAYOUT: Final = (
    f"""CREATE TABLE entry (
        number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,
        events TEXT NOT NULL, cap TEXT NOT NULL,
        {", ".join(f"{name} TEXT NOT NULL" for name in _TEXTS)},
        {", ".join(f"{name} INTEGER NOT NULL" for name in _COSTS)}) STRICT""",
    "CREATE UNIQUE INDEX one_charge ON entry (call, door) WHERE kind = 'reserve'",
    "CREATE UNIQUE INDEX one_answer ON entry (call) WHERE kind = 'commit'",
    "CREATE INDEX spending ON entry (dataset, kind, study)",
    _STANDING,
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER, hash TEXT) STRICT",
    f"INSERT INTO head VALUES (1, 0, '{GENESIS}')",  # noqa: S608 (a constant)
    """CREATE TRIGGER entry_update BEFORE UPDATE ON entry
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER entry_delete BEFORE DELETE ON entry
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER head_delete BEFORE DELETE ON head
        BEGIN SELECT RAISE(ABORT, 'a ledger keeps its head'); END""",
    """CREATE TRIGGER head_update BEFORE UPDATE ON head WHEN NEW.number != OLD.number + 1
        BEGIN SELECT RAISE(ABORT, 'a ledger grows by one entry at a time'); END""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)

# version 1 had no Gaussian events, version 2 no calls and agreements
_TO_VERSION_3: Final = (
    "ALTER TABLE entry ADD COLUMN asked TEXT NOT NULL DEFAULT ''",
    _STANDING,
    f"PRAGMA user_version = {_VERSION}",
)
_TO_VERSION_2: Final = tuple(
    f"ALTER TABLE entry ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0" for name in ("gaussian", "slack")
)
_MISSING: Final = {0: _LAYOUT, 1: (*_TO_VERSION_2, *_TO_VERSION_3), 2: _TO_VERSION_3, _VERSION: ()}

# only names of columns are ever put together into a query
_INSERT: Final = f"INSERT INTO entry ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"  # noqa: S608
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM entry WHERE "  # noqa: S608
_SUM: Final = f"SELECT {', '.join(f'COALESCE(SUM({name}), 0)' for name in _COSTS)} FROM entry WHERE "  # noqa: S608


@final
class Store:
    """One connection, usable from several threads but not after a fork; other processes open their own."""

    def __init__(self, path: Path, patience: float, *, create: bool = True) -> None:
        """Open the file, or create it if `create`; wait up to `patience` seconds while another process writes."""
        self.path = path
        self._patience = patience
        self._lock = threading.RLock()
        if not create and not (path.is_file() and path.stat().st_size):
            raise IntegrityError(f"{path}: there is no ledger in this file: it is missing or empty")
        with self._translated():
            self._connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction: on disk when the block ends, undone if the block raises."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the ledger throughout, whatever others write."""
        with self._transaction("BEGIN"):
            yield

    def append(self, **fields: Any) -> Entry:
        """Add an entry to the chain, inside `writing`."""
        number, previous = self.head()
        last = self._rows("SELECT number, hash FROM entry ORDER BY number DESC LIMIT 1") or [(0, GENESIS)]
        if last[0] != (number, previous):
            raise IntegrityError(f"{self.path}: entry {last[0][0]} is not the head, entry {number}: verify it")
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        entry = sealed(Entry(number=number + 1, time=now, previous=previous, **fields))
        values = {name: getattr(entry, name) for name in ("number", "time", "kind", *_TEXTS)}
        values |= {name: getattr(entry.cost, name) for name in _COSTS}
        values["events"] = to_json(entry.events).decode()
        values["cap"] = to_json(entry.cap).decode()
        self._connection.execute(_INSERT, values)
        self._connection.execute("UPDATE head SET number = ?, hash = ?", (entry.number, entry.hash))
        return entry

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the last entry."""
        rows = self._rows("SELECT number, hash FROM head")
        if not rows:
            raise IntegrityError(f"{self.path}: the head of the ledger is missing")
        number, digest = rows[0]
        if not isinstance(number, int) or not isinstance(digest, str):
            raise IntegrityError(f"{self.path}: the head of the ledger was changed: it cannot be read")
        return number, digest

    def first(self, **where: str) -> Entry | None:
        """Return the first entry with these values, if any."""
        return next(self._select("ORDER BY number LIMIT 1", where), None)

    def last(self, **where: str) -> Entry | None:
        """Return the last entry with these values, if any."""
        return next(self._select("ORDER BY number DESC LIMIT 1", where), None)

    def each(self, **where: str) -> Iterator[Entry]:
        """Return the entries with these values in order, a page at a time."""
        after = ""  # no least number: one that was put in below the first is seen, too
        while page := list(self._select(f"{after} ORDER BY number LIMIT {_PAGE}", where)):
            yield from page
            after = f"AND number > {page[-1].number}"

    def total(self, **where: str) -> Cost:
        """Return the sum of the costs of the entries with these values."""
        row = self._rows(_SUM + _condition(where), where)[0]
        try:
            return from_builtins(dict(zip(_COSTS, row, strict=True)), Cost, where="costs")
        except InputError as error:
            raise IntegrityError(f"{self.path}: the charges were changed: they cannot be added up ({error})") from None

    def standing(self, study: str) -> Entry | None:
        """Return the last agreement to a study or withdrawal from it, if any."""
        return next(
            self._select("AND kind IN ('agree', 'withdraw') ORDER BY number DESC LIMIT 1", {"study": study}), None
        )

    def datasets(self) -> tuple[str, ...]:
        """Return the names of all data sets in order."""
        return tuple(name for (name,) in self._rows("SELECT DISTINCT dataset FROM entry ORDER BY dataset"))

    def check(self) -> None:
        """Raise `IntegrityError` unless the pages and indexes of the file fit together."""
        answer = self._rows("PRAGMA integrity_check")
        if answer != [("ok",)]:
            raise IntegrityError(f"{self.path}: the file is damaged: {answer[0][0]}")

    def _select(self, tail: str, where: dict[str, str]) -> Iterator[Entry]:
        rows = self._rows(f"{_SELECT}{_condition(where)} {tail}", where)
        return (self._entry(dict(zip(_COLUMNS, row, strict=True))) for row in rows)

    def _entry(self, row: dict[str, Any]) -> Entry:
        where = f"{self.path}: entry {row['number']}"
        try:
            for name in ("events", "cap"):
                row[name] = from_json(row[name], Any, where=name)
            row["cost"] = {name: row.pop(name) for name in _COSTS}
            return from_builtins(row, Entry, where="columns")
        except (InputError, TypeError) as error:
            raise IntegrityError(f"{where} was changed: it cannot be read ({error})") from None

    def _rows(self, query: str, values: dict[str, str] | None = None) -> list[Any]:
        with self._lock, self._translated():
            return self._connection.execute(query, values or {}).fetchall()

    def _prepare(self) -> None:
        # before anything is changed: a file that is somebody else's stays as it is
        if self._rows("SELECT COUNT(*) FROM sqlite_master")[0][0]:
            self._check_kind()
        self._use_write_ahead_log()
        with self._translated():
            self._connection.execute("PRAGMA synchronous = FULL")
        with self.writing():
            there = self._rows("SELECT COUNT(*) FROM sqlite_master")[0][0]
            for statement in _MISSING[self._check_kind() if there else 0]:
                self._connection.execute(statement)

    def _check_kind(self) -> int:
        application = self._rows("PRAGMA application_id")[0][0]
        version = int(self._rows("PRAGMA user_version")[0][0])
        if application != _APPLICATION:
            raise IntegrityError(f"{self.path}: this SQLite file is not a Syndic ledger")
        if not 1 <= version <= _VERSION:
            raise IntegrityError(f"{self.path}: ledger of version {version}, this Syndic reads 1 to {_VERSION}")
        return version

    def _use_write_ahead_log(self) -> None:
        # SQLite does not wait for other processes here by itself
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._translated():
                    self._connection.execute("PRAGMA journal_mode = WAL")
            except RefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock, self._translated():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            # without a code it is not SQLite's: a text in the file is none
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code == sqlite3.SQLITE_CORRUPT:
                raise IntegrityError(f"{self.path}: not a Syndic ledger, or damaged: a text is not UTF-8") from None
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RefusedError("the ledger is busy: another process is writing to it; try again") from None
            raise SyndicError(f"{self.path}: the ledger cannot be used: {error}") from error
        except sqlite3.ProgrammingError as error:
            raise SyndicError(f"{self.path}: the ledger is closed") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # the latter where SQLite's own text quotes a name that was damaged
            raise IntegrityError(f"{self.path}: not a Syndic ledger, or damaged: {error}") from error


def _condition(where: dict[str, str]) -> str:
    return " AND ".join(["TRUE", *(f"{name} = :{name}" for name in where)])
