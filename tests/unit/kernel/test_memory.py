"""Looking up what an earlier study kept, also while another one has the file open."""

from pathlib import Path

import pytest

from syndic.errors import IntegrityError
from syndic.kernel import Memory


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
    with pytest.raises(IntegrityError, match="cannot be opened"):
        Memory.look_up(path, "study", "name")
