"""What a coordinator keeps: the same secret and the same answers in its next life, and nothing of another run."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, final

import pytest

from support import study_text
from syndic import Study
from syndic.errors import InputError, IntegrityError, PartyError, SyndicError
from syndic.kernel import Call, Delivery, Journal, Nothing, Reply, Session, decode, encode, step
from syndic.kernel.call import asked_of
from syndic.random import SimulationRandomness

ASKED = {"north": b"n" * 32, "south": b"s" * 32}


def opened(path: Path, *, study: str = "a" * 64, version: str = "1.0") -> Journal:
    return Journal.open(path, study=study, version=version)


def test_a_secret_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "coordinator" / "run.sqlite"
    before = os.umask(0)
    try:
        journal = opened(path)
        journal.record(1, "count", fresh=False, asked={}, delivery=Delivery(replies={}, silent={}))
        assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}
        assert path.parent.stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)
    first = journal.secret
    journal.close()
    journal = opened(path)
    assert journal.secret == first
    journal.close()
    other = opened(tmp_path / "other.sqlite")
    assert other.secret != first
    assert len(first) == 32
    other.close()


def test_replies_and_silences_come_back_as_they_were(tmp_path: Path) -> None:
    large = os.urandom((1 << 24) + 5)
    delivery = Delivery(replies={"north": large}, silent={"south": "no answer in time"})
    journal = opened(tmp_path / "run.sqlite")
    assert journal.recall(1, "count", fresh=False, asked=ASKED) is None
    journal.record(1, "count", fresh=False, asked=ASKED, delivery=delivery)
    empty = Delivery(replies={"north": b"", "south": b"x"}, silent={})
    journal.record(2, "count", fresh=False, asked=ASKED, delivery=empty)
    journal.close()
    journal = opened(tmp_path / "run.sqlite")
    for number, expected in ((1, delivery), (2, empty)):
        recalled = journal.recall(number, "count", fresh=False, asked=ASKED)
        assert recalled == (expected, frozenset())
    assert journal.recall(3, "count", fresh=False, asked=ASKED) is None
    journal.close()


def test_what_is_not_this_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    journal = opened(path)
    journal.record(1, "count", fresh=False, asked=ASKED, delivery=Delivery(replies={}, silent={}))
    with pytest.raises(IntegrityError, match="differs from the stored one"):
        journal.recall(1, "count", fresh=False, asked={**ASKED, "south": b"t" * 32})
    with pytest.raises(IntegrityError, match=r"\('sum'\) differs from the stored one \('count'\)"):
        journal.recall(1, "sum", fresh=False, asked=ASKED)
    with pytest.raises(IntegrityError, match="differs from the stored one"):
        journal.recall(1, "count", fresh=False, asked={"north": b"n" * 32})
    with pytest.raises(InputError, match="another coordinator is running"):
        opened(path)
    journal.close()
    with pytest.raises(InputError, match="another run's journal"):
        opened(path, study="b" * 64)
    with pytest.raises(InputError, match=r"started with Syndic 1.0; version 2.0 may send different requests"):
        opened(path, version="2.0")
    opened(path).close()
    path.write_bytes(b"no journal" * 1000)
    with pytest.raises(IntegrityError, match="not a Syndic journal, or damaged"):
        opened(path)


def test_a_damaged_journal_is_told_wherever_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    journal = opened(path)
    journal.record(1, "count", fresh=False, asked=ASKED, delivery=Delivery(replies={"north": b"1"}, silent={}))
    journal.close()
    with closing(sqlite3.connect(path)) as file, file:
        # as if a page had been damaged: numbers where bytes were
        file.execute("DROP TABLE pieces")
        file.execute("CREATE TABLE pieces (round, party, piece, value)")
        file.execute("INSERT INTO pieces VALUES (1, 'north', 0, 7)")
    journal = opened(path)
    with pytest.raises(IntegrityError, match="journal is damaged"):
        journal.recall(1, "count", fresh=False, asked=ASKED)
    journal.close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE heard")
        file.execute("CREATE TABLE heard (round)")
    journal = opened(path)
    with pytest.raises(IntegrityError, match="not a Syndic journal, or damaged: no such column"):
        journal.recall(1, "count", fresh=False, asked=ASKED)
    journal.close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE head SET secret = x'00'")
    with pytest.raises(IntegrityError, match="journal is damaged"):
        opened(path)


def test_a_fresh_step_is_asked_anew_until_another_was_answered(tmp_path: Path) -> None:
    journal, delivery = opened(tmp_path / "run.sqlite"), Delivery(replies={"north": b"1", "south": b"2"}, silent={})
    journal.record(1, "ready", fresh=True, asked=ASKED, delivery=delivery)
    assert journal.recall(1, "ready", fresh=True, asked=ASKED) is None
    journal.record(1, "ready", fresh=True, asked=ASKED, delivery=delivery)
    journal.record(2, "count", fresh=False, asked=ASKED, delivery=delivery)
    recalled = journal.recall(1, "ready", fresh=True, asked=ASKED)
    assert recalled is not None
    assert recalled[0] == delivery
    journal.close()


def test_a_write_that_fails_leaves_nothing_and_is_told(tmp_path: Path) -> None:
    journal = opened(tmp_path / "run.sqlite")
    large = Delivery(replies={"north": b"1", "south": bytes(10**7)}, silent={})
    # no more pages than now: a full disk
    journal._database.rows("PRAGMA max_page_count = 1")
    with pytest.raises(SyndicError, match="the journal cannot be used: database or disk is full"):
        journal.record(1, "count", fresh=False, asked=ASKED, delivery=large)
    assert journal.recall(1, "count", fresh=False, asked=ASKED) is None
    wrong: Any = {"north": "no bytes", "south": b"2"}
    with pytest.raises((TypeError, sqlite3.Error)):
        journal.record(1, "count", fresh=False, asked=ASKED, delivery=Delivery(replies=wrong, silent={}))
    assert journal.recall(1, "count", fresh=False, asked=ASKED) is None
    journal.close()


@final
class Parties:
    """Answer with nothing; those who are `out` are silent. Counts who was asked."""

    def __init__(self, out: set[str]) -> None:
        self.out = out
        self.asked: list[str] = []
        self.spoil: Callable[[bytes], bytes] = bytes

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.asked += calls
        replies = {
            party: self.spoil(encode(Reply(code="ok", body=encode(Nothing())).to(data)))
            for party, data in calls.items()
            if party not in self.out
        }
        return Delivery(replies=replies, silent={party: "asleep" for party in calls if party in self.out})

    def close(self) -> None: ...


STUDY = Study.loads(study_text(top="limits = { message_mb = 1 }"))


class Asking:
    """Stands for a method: a session looks at its steps only."""

    @step(reveals="public", fresh=True)
    def ready(self, party: Any, message: Nothing) -> Nothing:
        raise NotImplementedError

    @step(reveals="public")
    def sanitise(self, party: Any, message: Nothing) -> Nothing:
        """Is called like the one step of the plan's own method."""
        raise NotImplementedError


def session_of(parties: Parties, journal: Journal | None) -> Session:
    return Session(
        runtime=parties,
        study="a" * 64,
        method=Asking(),
        plan=STUDY.plan,
        randomness=SimulationRandomness(1),
        journal=journal,
    )


def ask(session: Session, missing: int = 1) -> list[str]:
    return sorted(session.ask(Asking().sanitise, Nothing(), missing=missing))


def test_the_silent_are_asked_again_only_while_nothing_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.sqlite"
    journal = opened(path)
    assert ask(session_of(Parties({"south"}), journal)) == ["north"]
    assert "step 'sanitise' continues without south: asleep" in caplog.text
    awake = Parties(set())
    assert ask(session_of(awake, journal)) == ["north", "south"]
    assert awake.asked == ["south"]

    other = opened(tmp_path / "other.sqlite")
    session = session_of(Parties({"south"}), other)
    assert ask(session) == ["north"]
    with pytest.raises(PartyError):
        ask(session, missing=0)
    # parties were told something that follows from south's silence, though nobody heard their answers
    awake = Parties(set())
    session = session_of(awake, other)
    assert ask(session) == ["north"]
    assert awake.asked == []
    assert ask(session) == ["north", "south"]
    for each in (journal, other):
        each.close()


def test_a_run_that_ended_asks_nobody(tmp_path: Path) -> None:
    journal = opened(tmp_path / "run.sqlite")
    session = session_of(Parties({"south"}), journal)
    assert ask(session) == ["north"]
    session.end()
    awake = Parties(set())
    assert ask(session_of(awake, journal)) == ["north"]
    assert awake.asked == []
    journal.close()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda data: data[:-1], "malformed"),
        (lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:], "not a valid Reply"),
        (lambda data: data + bytes(10**6 + 5000), "larger than the study's limit"),
        (lambda _data: encode(Reply(code="ok", body=encode(Nothing())).to(b"another call")), "belongs to another call"),
        (lambda _data: encode(Reply(code="ok", body=b"\x93\x01\x02\x03").to(b"")), "belongs to another call"),
        (lambda _data: encode(Reply(code="ok", body=b"\x93\x01\x02\x03")), "not a valid Nothing"),
    ],
)
def test_a_reply_that_is_none_names_its_party(spoil: Callable[[bytes], bytes], told: str) -> None:
    parties = Parties({"south"})
    parties.spoil = spoil
    with pytest.raises(PartyError, match=f"north: refused: .*{told}"):
        ask(session_of(parties, None), missing=1)


def test_damage_to_any_byte_is_noticed() -> None:
    call = encode(Call(study="s", party="north", step="count", call="1", body=b"body").checked())
    reply = encode(Reply(code="ok", body=b"body").to(call))
    for data, kind in ((call, Call), (reply, Reply)):
        assert decode(data, kind).body == b"body"  # type: ignore[attr-defined]
        for place in range(len(data)):
            for flip in (1, 128, 255):
                damaged = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
                with pytest.raises(Exception, match="not a valid"):
                    decode(damaged, kind)
    assert decode(reply, Reply).asked == asked_of(call)


MEMORY = """
import resource, sys
from contextlib import closing
from pathlib import Path
from syndic.kernel import Delivery, Journal
reply = bytes(200 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
journal = Journal.open(Path(sys.argv[1]), study="a", version="1")
journal.record(1, "count", fresh=False, asked={"north": b"n"}, delivery=Delivery(replies={"north": reply}, silent={}))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_a_large_reply_is_not_copied(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "run.sqlite")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 120
