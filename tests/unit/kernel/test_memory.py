"""What a party keeps of a study: with its answer or not at all, and read while others write."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from syndic.errors import IntegrityError, RefusedError, SyndicError
from syndic.kernel import Memory
from syndic.kernel.memory import Stored, look_up
from syndic.privacy import Budget, Ledger, PureEvent
from syndic.study import PartyFolder

Work = Callable[[], tuple[Stored, Mapping[str, bytes]]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        opened.declare("data", Budget(epsilon=Fraction(1)))
        yield opened


@pytest.fixture
def memory(ledger: Ledger) -> Memory:
    return Memory(ledger.database, "study")


def stored(reply: bytes = b"reply", asked: str = "question") -> Stored:
    return Stored(asked=asked, charged=True, reply=reply)


def giving(reply: bytes = b"reply", asked: str = "question", **kept: bytes) -> Work:
    return lambda: (stored(reply, asked), kept)


def never() -> tuple[Stored, Mapping[str, bytes]]:
    raise AssertionError("answered again")


def nothing(_answer: Stored) -> None: ...


def charge(ledger: Ledger, call: str) -> None:
    events = [PureEvent(epsilon=Fraction(1, 10))]
    ledger.reserve(dataset="data", study="study", call=call, door="1", events=events, why="")


def committing(ledger: Ledger, call: str) -> Callable[[Stored], None]:
    return lambda answer: ledger.commit("study", call, hashlib.sha256(answer.reply).hexdigest())


def kept_in(path: Path, name: str, study: str = "study") -> bytes | None:
    return look_up(path, study, lambda memory: memory.kept(name))


def test_what_was_kept_is_found_by_others_once_its_call_is_answered(path: Path) -> None:
    assert kept_in(path, "name") is None
    assert not path.exists()
    with Ledger.open(path) as ledger:
        memory = Memory(ledger.database, "study")
        memory.keep("name", b"value")
        with ledger.database.writing():
            memory.keep("other", b"not yet")
            assert kept_in(path, "name") == b"value"
            assert kept_in(path, "other") is None
        assert kept_in(path, "other") == b"not yet"
        assert kept_in(path, "name", "another") is None


def test_a_call_is_answered_once(memory: Memory, path: Path) -> None:
    assert memory.answer_once("1", "question", giving(name=b"value"), nothing) == b"reply"
    assert memory.answer_once("1", "question", never, nothing) == b"reply"
    assert memory.kept("name") == b"value"
    with pytest.raises(RefusedError, match="for a different request"):
        memory.answer_once("1", "other question", never, nothing)
    assert memory.answer_once("2", "question", giving(b"more"), nothing) == b"more"
    assert look_up(path, "study", Memory.stored_bytes) == memory.stored_bytes() == len(b"replymore")


def test_studies_do_not_meet(ledger: Ledger, memory: Memory) -> None:
    other = Memory(ledger.database, "another")
    for one, reply in ((memory, b"1"), (other, b"22")):
        assert one.answer_once("1", "question", giving(reply, name=reply), nothing) == reply
    assert [one.kept("name") for one in (memory, other)] == [b"1", b"22"]
    assert [one.stored_bytes() for one in (memory, other)] == [1, 2]


def test_what_is_answered_anew_is_remembered_but_not_stored(memory: Memory) -> None:
    for reply in (b"first", b"second"):
        assert memory.answer_once("1", "question", giving(reply, name=reply), nothing, fresh=True) == reply
    assert memory.answer("1") is None
    assert memory.kept("name") == b"second"


def test_answer_memory_and_commit_are_there_together_or_not_at_all(ledger: Ledger, memory: Memory) -> None:
    def broken(answer: Stored) -> None:
        committing(ledger, "1")(answer)
        raise OSError("just before the end")

    charge(ledger, "1")
    with pytest.raises(OSError, match="just before"):
        memory.answer_once("1", "question", giving(name=b"value"), broken)
    assert (memory.answer("1"), memory.kept("name")) == (None, None)
    assert [entry.kind for entry in ledger.entries()] == ["declare", "reserve"]
    memory.answer_once("1", "question", giving(b"other", name=b"value"), committing(ledger, "1"))
    assert (memory.answer("1"), memory.kept("name")) == (stored(b"other"), b"value")
    assert [entry.kind for entry in ledger.entries()] == ["declare", "reserve", "commit"]
    ledger.verify()


def test_a_reply_that_the_ledger_does_not_know_does_not_leave(ledger: Ledger, memory: Memory) -> None:
    """A stored answer that was changed afterwards is none."""
    charge(ledger, "1")
    memory.answer_once("1", "question", giving(), committing(ledger, "1"))
    ledger.database.rows("UPDATE answers SET reply = x'00'")
    with pytest.raises(RefusedError, match="another reply"):
        memory.answer_once("1", "question", never, committing(ledger, "1"))


def test_a_charge_is_never_part_of_a_transaction(ledger: Ledger) -> None:
    """It must be on disk when noise is drawn, whatever happens to what is around it."""
    with pytest.raises(SyndicError, match="on disk at once"), ledger.database.writing():
        charge(ledger, "1")
    assert ledger.spent("data").epsilon == 0


def test_nobody_overtakes_a_call_in_another_process(
    memory: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that allows something once looks it up, charges and answers: no other call comes in between."""
    monkeypatch.setattr("syndic.sqlite._TURN_SECONDS", 0.1)

    def work() -> tuple[Stored, Mapping[str, bytes]]:
        with Ledger.open(path) as other, pytest.raises(RefusedError, match="being answered"):
            Memory(other.database, "study").answer_once("2", "question", giving(used=b"by 2"), nothing)
        return stored(b"free"), {}

    assert memory.answer_once("1", "question", work, nothing) == b"free"
    with Ledger.open(path) as other:
        assert Memory(other.database, "study").answer_once("1", "question", giving(b"second"), nothing) == b"free"


def test_other_studies_do_not_disturb(ledger: Ledger, memory: Memory) -> None:
    def work() -> tuple[Stored, Mapping[str, bytes]]:
        tries.append(1)
        Memory(ledger.database, "another").keep("name", b"value")
        charge(ledger, "1")
        return stored(), {}

    tries: list[int] = []
    memory.answer_once("1", "question", work, committing(ledger, "1"))
    assert tries == [1]


def test_what_is_forgotten_is_not_on_the_disk(ledger: Ledger, path: Path) -> None:
    secrets = {name: f"secret of {name} ".encode() * 500 for name in ("study", "other")}
    for name, secret in secrets.items():
        charge(ledger, name)
        Memory(ledger.database, name).answer_once(
            name, "question", giving(secret, name=secret), committing(ledger, name)
        )
    PartyFolder(folder=path.parent).forget("study")
    memory, other = Memory(ledger.database, "study"), Memory(ledger.database, "other")
    assert (memory.answer("study"), memory.kept("name"), other.kept("name")) == (None, None, secrets["other"])
    written = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"secret of study" not in written
    assert b"secret of other" in written
    again = ledger.reserve(
        dataset="data", study="study", call="study", door="1", events=[PureEvent(epsilon=Fraction(1, 10))], why=""
    )
    assert again.reply is not None  # no noise may be drawn for it again
    ledger.verify()


def test_answers_may_be_kept_out_of_the_file(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.declare("data", Budget(epsilon=Fraction(1)))
        Memory(ledger.database, "study").keep("name", b"before")
    with Ledger.open(path, keep_answers=False) as ledger:
        memory = Memory(ledger.database, "study")
        assert memory.kept("name") is None
        charge(ledger, "1")
        with pytest.raises(RefusedError, match="never charged"):
            memory.answer_once("1", "question", giving(name=b"value"), committing(ledger, "2"))
        assert (memory.answer("1"), memory.kept("name")) == (None, None)
        memory.answer_once("1", "question", giving(name=b"value"), committing(ledger, "1"))
        assert (memory.answer("1"), memory.kept("name")) == (stored(), b"value")
    assert kept_in(path, "name") == b"before"
    assert look_up(path, "study", lambda memory: memory.answer("1")) is None
    with Ledger.open(path) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["declare", "reserve", "commit"]


def test_a_file_that_is_no_ledger_says_so(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(IntegrityError, match="not a Syndic ledger, or damaged"):
        kept_in(path, "name")


def test_a_damaged_memory_is_told_wherever_it_shows(memory: Memory, path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        # as if a page had been damaged: numbers where bytes were, and a table that is another one
        file.execute("DROP TABLE kept")
        file.execute("CREATE TABLE kept (study TEXT, name TEXT, value)")
        file.execute("INSERT INTO kept VALUES ('study', 'name', 1000)")
        file.execute("DROP TABLE answers")
        file.execute("CREATE TABLE answers (call TEXT, asked TEXT, charged)")
    with pytest.raises(IntegrityError, match="stored answers are damaged"):
        memory.kept("name")
    with pytest.raises(IntegrityError, match="stored answers are damaged"):
        kept_in(path, "name")
    works: list[Callable[[], object]] = [
        lambda: memory.answer("call"),
        lambda: memory.store("call", stored()),
        memory.stored_bytes,
        lambda: memory.answer_once("call", "question", never, nothing),
    ]
    for work in works:
        with pytest.raises(IntegrityError, match="not a Syndic ledger, or damaged"):
            work()
