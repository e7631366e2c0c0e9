"""The audit log: chained lines that programs can read; changes show, floods stop, and no value of a row enters."""

import json
import stat
import subprocess
import sys
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from syndic.errors import IntegrityError, RefusedError
from syndic.privacy.audit import INTERNAL, AuditLog, account


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    made = AuditLog(tmp_path)
    made.add("agree", study="a" * 64, why="for the registry")
    made.refuse("call", who="coordinator 1234", study="b" * 64, why="not\nagreed to")
    made.add("withdraw", study="a" * 64)
    return made


def test_every_line_says_who_what_which_study_and_why_not(log: AuditLog) -> None:
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [one["number"] for one in lines] == [1, 2, 3]
    assert [one["allowed"] for one in lines] == [True, False, True]
    assert [one["who"] for one in lines] == [account(), "coordinator 1234", account()]
    assert lines[1]["why"] == "not agreed to"
    assert lines[0]["study"] == "a" * 64
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert log.verify(lines[1]["hash"]) == log.records()


def test_a_change_shows(log: AuditLog) -> None:
    head = log.records()[-1].hash
    lines = log.path.read_bytes().splitlines(keepends=True)
    changed = lines[1].replace(b'"allowed":false', b'"allowed":true')
    for spoiled in (
        [lines[0], changed, lines[2]],
        [lines[0], lines[2]],
        [lines[1], lines[0], lines[2]],
        lines[1:],
        [*lines, b"no record\n"],
        # the same record for one reader, another for the next
        [lines[0], lines[1].replace(b'"allowed":false', b'"allowed":true,"allowed":false'), lines[2]],
        [lines[0], b" " + lines[1], lines[2]],
        [lines[0], b"\n", *lines[1:]],
    ):
        log.path.write_bytes(b"".join(spoiled))
        with pytest.raises(IntegrityError, match=r"audit\.jsonl"):
            log.verify()
    # only a head noted elsewhere reveals that the end was cut
    log.path.write_bytes(b"".join(lines[:2]))
    assert len(log.verify()) == 2
    with pytest.raises(IntegrityError, match="no record has the published digest"):
        log.verify(head)


def test_repeated_refusals_do_not_fill_the_disk(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic.privacy.audit._MOST_REFUSALS", 100)
    for _ in range(50):
        log.refuse("call", who="coordinator 1234", study="b" * 64, why="not\nagreed to")
    assert len(log.records()) == 3
    for number in range(200):
        log.refuse("call", study=str(number), why="no")
    assert 20 < len(log.records()) < 110
    assert "further refusals are not recorded" in log.records()[-1].why
    log.add("agree")
    assert log.verify()[-1].what == "agree"


def test_an_attempt_is_recorded_with_its_end_and_never_with_a_private_text(log: AuditLog) -> None:
    with log.attempt("agree", study="c"):
        pass
    with pytest.raises(RefusedError), log.attempt("agree", study="c"):
        raise RefusedError("was withdrawn")
    with pytest.raises(ValueError, match="Ada"), log.attempt("agree", study="c"):
        raise ValueError("the row of Ada Lovelace, 36")
    assert [(one.allowed, one.why) for one in log.records()[3:]] == [
        (True, ""),
        (False, "was withdrawn"),
        (False, INTERNAL),
    ]
    assert "Ada" not in log.path.read_text()


def test_a_record_that_a_power_cut_left_unfinished_is_dropped(log: AuditLog) -> None:
    with log.path.open("ab") as file:
        file.write(b'{"number":4,"wh')
    assert len(log.verify()) == 3
    log.add("join")
    assert [one.what for one in log.verify()] == ["agree", "call", "withdraw", "join"]


def test_a_full_disk_is_an_error_and_leaves_the_chain_whole(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:10])

    monkeypatch.setattr("os.fdopen", lambda handle, *_args, **_named: Full(handle, "rb+"))
    with pytest.raises(OSError, match="space"):
        log.add("agree")
    monkeypatch.undo()
    assert len(log.verify()) == 3
    log.add("join")
    assert [one.what for one in log.verify()[2:]] == ["withdraw", "join"]


def test_no_text_is_longer_than_what_the_next_record_looks_back(log: AuditLog) -> None:
    log.add("approve " + "\x1b[2J\U0001f600" * 50_000)
    log.add("join")
    assert len(log.verify()) == 5
    assert "\\u001b" not in log.path.read_text()


def test_processes_share_one_chain(log: AuditLog) -> None:
    code = (
        "import sys; from pathlib import Path; from syndic.privacy.audit import AuditLog\n"
        "log = AuditLog(Path(sys.argv[1]))\n"
        "for number in range(20): log.add(f'{sys.argv[2]} {number}')"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(log.path.parent), name]) for name in "ab"]
    assert [one.wait() for one in started] == [0, 0]
    assert len(log.verify()) == 43
