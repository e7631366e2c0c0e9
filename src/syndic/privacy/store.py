"""The tables of a party's SQLite file: an append-only chain of entries with its head, and the party's memory.

Triggers prevent changes of entries by mistake; the digests reveal changes on purpose. `syndic.kernel.memory` writes
answers and what steps keep, in one transaction with the entry that a call was answered.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from syndic.document import from_builtins, from_json, to_json
from syndic.errors import InputError, IntegrityError
from syndic.privacy.chain import GENESIS, Entry, sealed
from syndic.privacy.cost import Cost
from syndic.sqlite import Database, Format

_PAGE: Final = 1000
_COSTS: Final = Cost.__struct_fields__
_TEXTS: Final = ("dataset", "study", "call", "door", "reply", "why", "previous", "hash", "asked")
_JSON: Final = ("events", "cap", "stated")
_COLUMNS: Final = ("number", "time", "kind", *_JSON, *_TEXTS, *_COSTS)

# `calls` has, for every study, the number of stored answers and their digest
_MEMORY: Final = (
    """CREATE TABLE answers (study TEXT, call TEXT, asked TEXT NOT NULL, charged INTEGER NOT NULL, reply BLOB NOT NULL,
        PRIMARY KEY (study, call)) STRICT""",
    "CREATE TABLE kept (study TEXT, name TEXT, value BLOB NOT NULL, PRIMARY KEY (study, name)) STRICT",
    "CREATE TABLE calls (study TEXT PRIMARY KEY, number INTEGER NOT NULL, digest TEXT NOT NULL DEFAULT '') STRICT",
)

_ONCE: Final = (
    "CREATE UNIQUE INDEX one_charge ON entry (study, call, door) WHERE kind = 'reserve'",
    "CREATE UNIQUE INDEX one_answer ON entry (study, call) WHERE kind = 'commit'",
    "CREATE INDEX called ON entry (study, call)",
)
_LAYOUT: Final = (
    f"""CREATE TABLE entry (
        number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,
        {", ".join(f"{name} TEXT NOT NULL" for name in _JSON)},
        {", ".join(f"{name} TEXT NOT NULL" for name in _TEXTS)},
        {", ".join(f"{name} INTEGER NOT NULL" for name in _COSTS)}) STRICT""",
    *_ONCE,
    "CREATE INDEX spending ON entry (dataset, kind, study)",
    "CREATE INDEX standing ON entry (study) WHERE kind IN ('agree', 'withdraw')",
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
    *_MEMORY,
)
# in version 2 call ids were unique over all studies, and answers were only counted
_ADDED: Final = "ALTER TABLE calls ADD COLUMN digest TEXT NOT NULL DEFAULT ''"
_FROM_2: Final = ("DROP INDEX one_charge", "DROP INDEX one_answer", *_ONCE, _ADDED)
FORMAT: Final = Format(name="ledger", application=0x53594E44, version=3, layout=_LAYOUT, upgrades={2: _FROM_2})

# queries are composed of column names only
_INSERT: Final = f"INSERT INTO entry ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"  # noqa: S608
_ANSWERED: Final = "SELECT digest FROM calls WHERE study = ?"
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM entry WHERE "  # noqa: S608
_SUM: Final = f"SELECT {', '.join(f'COALESCE(SUM({name}), 0)' for name in _COSTS)} FROM entry WHERE "  # noqa: S608


@final
class Store:
    """The entries in a party's file."""

    def __init__(self, path: Path, patience: float, *, create: bool = True, keep_answers: bool = True) -> None:
        """Open the file, or create it if `create`; without `keep_answers`, answers are lost when it is closed."""
        self.path = path
        self.database = Database(path, FORMAT, patience=patience, create=create)
        if not keep_answers:
            # temporary tables hide those of the file and take part in the same transactions
            for statement in ("PRAGMA temp_store = MEMORY", *_MEMORY):
                self.database.rows(statement.replace("CREATE TABLE", "CREATE TEMP TABLE"))

    def append(self, **fields: Any) -> Entry:
        """Add an entry to the chain, inside a transaction."""
        number, previous = self.head()
        last = self.database.rows("SELECT number, hash FROM entry ORDER BY number DESC LIMIT 1") or [(0, GENESIS)]
        if last[0] != (number, previous):
            raise IntegrityError(
                f"{self.path}: entry {last[0][0]} is not the head, entry {number}: run syndic ledger verify"
            )
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        entry = sealed(Entry(number=number + 1, time=now, previous=previous, **fields))
        values = {name: getattr(entry, name) for name in ("number", "time", "kind", *_TEXTS)}
        values |= {name: getattr(entry.cost, name) for name in _COSTS}
        values |= {name: to_json(getattr(entry, name)).decode() for name in _JSON}
        self.database.rows(_INSERT, values)
        self.database.rows("UPDATE head SET number = ?, hash = ?", (entry.number, entry.hash))
        return entry

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the last entry."""
        rows = self.database.rows("SELECT number, hash FROM head")
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
        """Yield the entries with these values in order, a page at a time."""
        after = ""  # without a least number, so that an entry inserted below the first is seen
        while page := list(self._select(f"{after} ORDER BY number LIMIT {_PAGE}", where)):
            yield from page
            after = f"AND number > {page[-1].number}"

    def total(self, **where: str) -> Cost:
        """Return the sum of the costs of the entries with these values."""
        row = self.database.rows(_SUM + _condition(where), where)[0]
        try:
            return from_builtins(dict(zip(_COSTS, row, strict=True)), Cost, where="costs")
        except InputError as error:
            raise IntegrityError(f"{self.path}: the charges were changed: they cannot be added up ({error})") from None

    def standing(self, study: str) -> Entry | None:
        """Return the last agreement to a study or withdrawal from it, if any."""
        return next(
            self._select("AND kind IN ('agree', 'withdraw') ORDER BY number DESC LIMIT 1", {"study": study}), None
        )

    def answered(self, study: str) -> str:
        """Return the digest of the stored answers to a study's calls (`syndic.kernel.memory`), if any."""
        return next((str(digest) for (digest,) in self.database.rows(_ANSWERED, (study,))), "")

    def datasets(self) -> tuple[str, ...]:
        """Return the names of all data sets in order."""
        return tuple(name for (name,) in self.database.rows("SELECT DISTINCT dataset FROM entry ORDER BY dataset"))

    def _select(self, tail: str, where: dict[str, str]) -> Iterator[Entry]:
        rows = self.database.rows(f"{_SELECT}{_condition(where)} {tail}", where)
        return (self._entry(dict(zip(_COLUMNS, row, strict=True))) for row in rows)

    def _entry(self, row: dict[str, Any]) -> Entry:
        where = f"{self.path}: entry {row['number']}"
        try:
            for name in _JSON:
                row[name] = from_json(row[name], Any, where=name)
            row["cost"] = {name: row.pop(name) for name in _COSTS}
            return from_builtins(row, Entry, where="columns")
        except (InputError, TypeError) as error:
            raise IntegrityError(f"{where} was changed: it cannot be read ({error})") from None


def _condition(where: dict[str, str]) -> str:
    return " AND ".join(["TRUE", *(f"{name} = :{name}" for name in where)])
