"""Looking up what an earlier study kept, also while another one has the file open."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from syndic.errors import IntegrityError
from syndic.kernel import Memory
from syndic.kernel.memory import Stored, stored_bytes


def test_what_was_kept_is_found_while_a_call_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    assert Memory.look_up(path, "study", "name") is None
    assert not path.exists()
    memory = Memory(path)
    memory.keep("study", "name", b"value")
    with memory.one_call():
        memory.keep("study", "other", b"not yet")
        assert Memory.look_up(path, "study", "name") == b"value"
        assert Memory.look_up(path, "study", "other") is None
    assert Memory.look_up(path, "study", "other") == b"not yet"
    assert Memory.look_up(path, "another", "name") is None
    memory.close()


def test_a_file_that_is_no_memory_says_so(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(IntegrityError, match="cannot be read or written"):
        Memory.look_up(path, "study", "name")


def test_a_number_in_place_of_bytes_is_damage_and_not_as_many_zeros(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    memory = Memory(path)
    memory.keep("study", "name", b"value")
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP TABLE kept; CREATE TABLE kept (study, name, value); INSERT INTO kept VALUES ('study', 'name', 1000)"
        )
    connection.close()
    with pytest.raises(IntegrityError, match="what it kept is not there"):
        memory.kept("study", "name")
    memory.close()


def test_a_call_that_fails_leaves_nothing(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.sqlite")

    def fail() -> None:
        with memory.one_call():
            memory.keep("study", "name", b"value")
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail()
    assert memory.kept("study", "name") is None
    with memory.one_call():
        memory.keep("study", "name", b"other")
    assert memory.kept("study", "name") == b"other"
    memory.close()


def test_a_damaged_memory_is_told_wherever_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        # as if a page had been damaged: numbers where bytes were, and a table that is another one
        file.execute("CREATE TABLE kept (study TEXT, name TEXT, value)")
        file.execute("INSERT INTO kept VALUES ('study', 'name', 7)")
        file.execute("CREATE TABLE answers (call TEXT, asked TEXT, charged)")
    memory = Memory(path)
    for ask in (
        lambda: memory.kept("study", "name"),
        lambda: Memory.look_up(path, "study", "name"),
        lambda: memory.answer("call"),
        lambda: memory.store("call", Stored(asked="a", charged=False, reply=b"reply")),
        lambda: stored_bytes(path),
    ):
        with pytest.raises(IntegrityError, match="the party's memory"):
            ask()
    with pytest.raises(IntegrityError, match="the party's memory"), memory.one_call():
        memory.answer("call")
    memory.close()
