"""Open and write one SQLite file, and translate its errors.

A transaction is on disk when its block ends. The connection is closed with the object that owns it, at the latest when
that is garbage collected.
"""

import fcntl
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from syndic.errors import InputError, IntegrityError, RefusedError, SyndicError

_IN_MEMORY: Final = ":memory:"
_TURN_SECONDS: Final = 60.0
_OBJECTS: Final = "SELECT COUNT(*) FROM sqlite_master"


@final
@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: its name in errors, the two numbers in its header, and the statements that create its tables.

    `upgrades` has, for an older version, the statements that turn it into this one.
    """

    name: str
    application: int
    version: int
    layout: Sequence[str]
    upgrades: Mapping[int, Sequence[str]] = field(default_factory=dict)


@final
class Database:
    """One connection, usable from several threads but not after a fork; other processes open their own."""

    def __init__(
        self,
        path: str | Path,
        form: Format,
        *,
        patience: float = 30.0,
        create: bool = True,
        read_only: bool = False,
        exclusive: bool = False,
    ) -> None:
        """Open the file, or create it if `create`, readable by its owner only.

        Wait up to `patience` seconds while another process writes. `exclusive` locks out others until it is closed.

        Raises:
            IntegrityError: if the file is missing, of another format or version, or damaged.
            RefusedError: if another process keeps it locked.
        """
        self.path = Path(path)
        self._form = form
        self._lock = threading.RLock()
        self._make_or_find(create=create and not read_only)
        place = f"{self.path.absolute().as_uri()}?mode=ro" if read_only else self.path
        with sqlite_errors(self.path, form.name):
            connection = sqlite3.connect(
                place, timeout=patience, isolation_level=None, check_same_thread=False, uri=read_only
            )
        self._connection = connection
        self._finalizer = weakref.finalize(self, connection.close)
        try:
            self._prepare(patience, read_only=read_only, exclusive=exclusive)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._finalizer()

    def rows(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Execute one statement and return all its rows."""
        with self._lock, sqlite_errors(self.path, self._form.name):
            return self._connection.execute(statement, values).fetchall()

    def first(self, statement: str, *values: Any) -> Any:
        """Execute one statement and return its first row, or None."""
        return next(iter(self.rows(statement, values)), None)

    def writing(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Run the block as the only write transaction: on disk when the block ends, undone if the block raises.

        Inside another transaction it becomes part of that one; with `alone` this is refused.
        """
        return self._transaction("BEGIN IMMEDIATE", alone=alone)

    def reading(self) -> AbstractContextManager[None]:
        """Run the block on one consistent state of the file, whatever other processes write."""
        return self._transaction("BEGIN")

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Hold the lock of this name across processes; it is on an empty file in the same folder.

        Raises:
            RefusedError: if another process does not release it within a minute.
        """
        if str(self.path) == _IN_MEMORY:
            yield
            return
        with (self.path.parent / name).open("a") as file:
            try:
                _patiently(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB), BlockingIOError, _TURN_SECONDS)
            except BlockingIOError:
                raise RefusedError("another call of this study is being answered: try again") from None
            yield  # closing the file releases the lock

    def check(self, *tables: str) -> None:
        """Raise `IntegrityError` unless SQLite finds these tables, or the whole file, consistent."""
        for what in [f"('{table}')" for table in tables] or [""]:
            answer = self.rows(f"PRAGMA integrity_check{what}")
            if answer != [("ok",)]:
                raise IntegrityError(f"{self.path}: the file is damaged: {answer[0][0]}")

    def _make_or_find(self, *, create: bool) -> None:
        if create and str(self.path) != _IN_MEMORY:
            # create it first, for the permissions; if the path is wrong, SQLite reports it below
            with suppress(OSError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        elif not create and not (self.path.is_file() and self.path.stat().st_size):
            raise IntegrityError(f"{self.path}: the {self._form.name} file is missing or empty")

    def _prepare(self, patience: float, *, read_only: bool, exclusive: bool) -> None:
        if exclusive:
            self.rows("PRAGMA locking_mode = EXCLUSIVE")
        # check before any change: a file of another program must stay as it is
        there = self.first(_OBJECTS)[0] > 0
        if there or read_only:
            self._check_format(older=self._form.upgrades)
        if read_only:
            return
        # SQLite itself does not wait for other processes here
        _patiently(lambda: self.rows("PRAGMA journal_mode = WAL"), RefusedError, patience)
        # what was overwritten or deleted, such as the secrets of a finished run, must not stay in free pages
        self.rows("PRAGMA secure_delete = ON")
        self.rows("PRAGMA synchronous = FULL")
        version = self.first("PRAGMA user_version")[0]
        if there and not exclusive and version == self._form.version:
            return
        with self.writing():
            statements: Sequence[str] = self._form.layout
            if self.first(_OBJECTS)[0]:
                # another process may have been first
                version = self.first("PRAGMA user_version")[0]
                statements = self._form.upgrades.get(version, ())
            if statements:
                numbers = (f"application_id = {self._form.application}", f"user_version = {self._form.version}")
                for statement in (*statements, *(f"PRAGMA {number}" for number in numbers)):
                    self.rows(statement)
            self._check_format()

    def _check_format(self, older: Collection[int] = ()) -> None:
        name, version = self._form.name, self.first("PRAGMA user_version")[0]
        if self.first("PRAGMA application_id")[0] != self._form.application:
            raise IntegrityError(f"{self.path}: this SQLite file is not a Syndic {name}")
        if version != self._form.version and version not in older:
            raise IntegrityError(
                f"{self.path}: the {name} has format version {version}; this Syndic reads version {self._form.version}"
            )

    @contextmanager
    def _transaction(self, begin: str, *, alone: bool = False) -> Iterator[None]:
        with self._lock, sqlite_errors(self.path, self._form.name):
            nested = self._connection.in_transaction
            if nested:
                if alone:
                    raise SyndicError(
                        f"{self.path}: a write that must be on disk at once cannot be part of a transaction"
                    )
                yield
                return
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # after damage or a full disk SQLite may have ended the transaction already
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _patiently(attempt: Callable[[], object], busy: type[Exception], seconds: float) -> None:
    """Try again and again while `attempt` raises `busy`; after so many seconds let it raise."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            attempt()
        except busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def sqlite_errors(path: Path, name: str) -> Iterator[None]:
    """Translate SQLite's errors into Syndic's.

    Raises:
        IntegrityError: if the file is damaged or not of this format.
        RefusedError: if another process has locked the file; the text is public.
        InputError: if the file or its folder is not readable or writable, or the disk is full.
        SyndicError: if the file is closed.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        # without a code the error is Python's: a text in the file is not UTF-8
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise RefusedError(f"the {name} is busy: another process is writing to it; try again") from None
        # an error in one of our statements means that the tables are not as we created them
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            reason = str(error) if code == sqlite3.SQLITE_ERROR else "a text is not UTF-8"
            raise IntegrityError(f"{path}: not a Syndic {name}, or damaged: {reason}") from None
        cure = "let this account read and write the file and its folder, and check that the disk has space"
        raise InputError(f"{path}: the {name} cannot be used: {error}: {cure}") from error
    except sqlite3.ProgrammingError as error:
        raise SyndicError(f"{path}: the {name} is closed") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # UnicodeDecodeError: SQLite's own text quotes a damaged name
        raise IntegrityError(f"{path}: not a Syndic {name}, or damaged: {error}") from error
