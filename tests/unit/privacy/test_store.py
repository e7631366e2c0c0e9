"""The file under a ledger: what others do to it at the same time, and what was done to it behind its back."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from syndic.errors import IntegrityError, RefusedError
from syndic.privacy.event import Event, PureEvent
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget

EVENTS: tuple[Event, ...] = (PureEvent(epsilon=Fraction(1, 100)),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of one declaration and five charges."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.declare("visits", Budget(epsilon=Fraction(1)))
        for call in range(5):
            charge(ledger, str(call))
    return tmp_path / "ledger.db"


def charge(ledger: Ledger, call: str) -> None:
    ledger.reserve(dataset="visits", study="digest", call=call, door="release", events=EVENTS, why="counts")


def test_whoever_reads_does_not_keep_others_from_charging(path: Path) -> None:
    with Ledger.open(path) as reader, Ledger.open(path, patience=0.05) as writer:
        with reader.database.reading():
            assert sum(1 for _ in reader.entries()) == 6
            charge(writer, "more")
            assert sum(1 for _ in reader.entries()) == 6
        assert reader.spent("visits").epsilon == Fraction(6, 100)


def test_a_new_ledger_waits_until_another_program_lets_go_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("syndic.sqlite.time.sleep", lambda _: other.execute("ROLLBACK"))
        with Ledger.open(tmp_path / "new.db", patience=60) as ledger:
            ledger.declare("visits", Budget(epsilon=Fraction(1)))
        assert not other.in_transaction


def test_a_new_ledger_waits_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(_: float) -> None:
        raise AssertionError("it waits although its time is over")

    monkeypatch.setattr("syndic.sqlite.time.sleep", waits)
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RefusedError):
            Ledger.open(tmp_path / "new.db", patience=-1)


def test_charges_that_add_up_to_less_than_nothing_are_no_sum(path: Path) -> None:
    tamper(path, "DROP TRIGGER entry_update", "UPDATE entry SET pure = -1000000000000000 WHERE number = 3")
    with Ledger.open(path) as ledger, pytest.raises(IntegrityError, match="cannot be added up"):
        ledger._store.total(kind="reserve")


def test_charges_are_on_disk_whatever_the_default_of_the_library_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def careless(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr("syndic.sqlite.sqlite3.connect", careless)
    with Ledger.open(path) as ledger:
        assert ledger.database.rows("PRAGMA synchronous") == [(2,)]


def test_another_thread_may_use_a_ledger(path: Path) -> None:
    heads: list[str] = []
    with Ledger.open(path) as ledger:
        thread = threading.Thread(target=lambda: heads.append(ledger.head()))
        thread.start()
        thread.join()
        assert heads == [ledger.head()]


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER head_update")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("column", ["number", "hash"])
def test_a_head_without_a_value_is_none(path: Path, column: str) -> None:
    tamper(path, f"UPDATE head SET {column} = NULL")
    with Ledger.open(path) as ledger:
        for work in (ledger.head, ledger.verify, lambda: charge(ledger, "more")):
            with pytest.raises(IntegrityError, match="the head of the ledger was changed: it cannot be read"):
                work()


@pytest.mark.parametrize("number", [0, -1, -5, -(2**63)])
def test_an_entry_put_in_before_the_first_is_found(path: Path, number: int) -> None:
    tamper(
        path,
        "CREATE TEMP TABLE forged AS SELECT * FROM entry WHERE number = 2",
        f"UPDATE forged SET number = {number}, call = 'never charged'",
        "INSERT INTO entry SELECT * FROM forged",
    )
    with Ledger.open(path) as ledger:
        works: list[Callable[[], None]] = [ledger.verify, lambda: charge(ledger, "never charged")]
        for work in works:
            with pytest.raises(IntegrityError, match=f"entry {number} comes after 0"):
                work()


def test_an_index_that_lost_its_rows_is_found_before_anything_is_counted(path: Path) -> None:
    """Every entry and the chain are whole, but charges are looked up in the index: none would be found there."""
    with closing(sqlite3.connect(path)) as connection:
        place = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'spending'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    file = bytearray(path.read_bytes())
    start = (place - 1) * size
    # a leaf of an index begins with 10, and has its number of cells in the fourth and fifth byte
    assert file[start] == 10
    assert int.from_bytes(file[start + 3 : start + 5]) == 6
    file[start + 3 : start + 5] = bytes(2)
    path.write_bytes(bytes(file))
    with Ledger.open(path) as ledger:
        assert sum(1 for _ in ledger.entries()) == 6
        for work in (ledger.verify, lambda: ledger.spent("visits"), lambda: charge(ledger, "more")):
            with pytest.raises(IntegrityError, match="the file is damaged"):
                work()
