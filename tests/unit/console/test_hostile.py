"""Second thoughts of an attacker: ports that are taken, secrets that were replaced, logs, bombs, forged statements."""

import io
import json
import logging
import socket
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from consoles import HOST, Visitor, agree_all, run_between, study_between, study_file
from syndic.cli.main import cli
from syndic.console import federation
from syndic.console.guard import Guard
from syndic.console.releases import _check_sizes
from syndic.console.serve import open_socket
from syndic.console.studies import Agree, agree
from syndic.console.users import put, users, with_token
from syndic.errors import InputError, RefusedError
from syndic.privacy import Ledger
from syndic.privacy.chain import Called
from syndic.study import PartyFolder, Study
from syndic.study.differences import changes

Place = tuple[Study, dict[str, PartyFolder]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return study_between(tmp_path)


def test_no_secret_is_shown_for_a_port_that_somebody_else_has(place: Place) -> None:
    """Whoever listens there would be given the secret by the link."""
    folder = place[1]["north"].folder
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = CliRunner().invoke(cli, ["console", str(folder), "--port", str(other.getsockname()[1])])
    assert isinstance(result.exception, InputError)
    assert "#" not in result.output
    assert users(folder) == ()


def test_a_door_is_taken_at_once() -> None:
    with open_socket("127.0.0.1", 0) as door, pytest.raises(InputError, match="cannot listen"):
        open_socket("127.0.0.1", door.getsockname()[1])


def test_a_new_secret_ends_the_sessions_of_the_old_one(place: Place) -> None:
    visitor = Visitor(place[1]["north"].folder)
    visitor.get("/studies")
    put(visitor.folder, with_token("maria", "administrator")[0])
    assert visitor.send("GET", "/studies").headers["location"] == "/login"


def test_consoles_at_two_ports_have_cookies_of_their_own(place: Place) -> None:
    visitor = Visitor(place[1]["north"].folder)
    assert visitor.cookie.partition("=")[0].endswith(HOST.rpartition(":")[2])


def test_a_failure_logs_no_value(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise ValueError("Alice earns 300")

    monkeypatch.setattr("syndic.console.drafts.draft", broken)
    visitor = Visitor(place[1]["north"].folder)
    with caplog.at_level(logging.DEBUG):
        answer = visitor.form("/draft", {"token": visitor.token, "action": "make"})
    assert answer.status == 500
    assert "ValueError" in caplog.text
    assert "Alice" not in caplog.text + answer.text


def test_a_failure_is_not_raised_again_for_the_server_to_log() -> None:
    async def inner(*_given: Any) -> None:
        raise ValueError("Alice earns 300")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    guard = Guard(inner, hosts=[HOST], most=10, larger={})
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", HOST.encode())]}
    with pytest.raises(StopIteration):
        guard(scope, receive, send).send(None)
    assert sent[0]["status"] == 500
    assert b"Alice" not in sent[1]["body"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon": "1"', '"epsilon": "1e3000000000"'),
        ('"epsilon": "1"', '"epsilon": "1E-3_000_000_000"'),
        ('"epsilon": "1"', '"epsilon": "1e\u0663000000000"'),
        ('"bins": 5', '"bins": 4000000000'),
        ('"name": "test"', '"name": ' + "[" * 100000),
    ],
    ids=["exponent", "small", "other digits", "bins", "deep"],
)
def test_a_study_file_cannot_keep_the_machine_busy(old: str, new: str, place: Place) -> None:
    study, homes = place
    text = study_file(study).replace('"upper": 99', '"upper": 9999999999999').replace(old, new, 1)
    assert new in text
    visitor = Visitor(homes["north"].folder)
    begun = time.process_time()
    visitor.post("/studies", 400, action="receive", text=text)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("text", ["a = " + "[" * 50000, "a = " + "9" * 5000])
def test_toml_that_cannot_be_read_is_told(text: str, place: Place) -> None:
    Visitor(place[1]["north"].folder).post("/studies", 400, action="receive", text=text)


def test_a_body_that_cannot_be_read_is_told(place: Place) -> None:
    visitor = Visitor(place[1]["north"].folder)
    given = {"content_type": "application/json", "authorization": f"Bearer {visitor.secret}"}
    assert visitor.send("POST", "/api/v1/studies", body=b"[" * 400000, **given).status == 400
    assert visitor.send("POST", "/api/v1/studies", body=b"", content_length="9" * 5000, **given).status == 413


def test_a_pending_study_whose_file_was_changed_is_told(place: Place) -> None:
    study, homes = place
    visitor = Visitor(homes["north"].folder)
    visitor.post("/studies", action="receive", text=study_file(study))
    path = homes["north"].folder / "studies" / study.digest[:16] / "study.json"
    path.write_text(path.read_text().replace('"edition": 1', '"edition": 7'))
    assert "was changed" in visitor.get(f"/studies/{study.digest}", 409)
    visitor.get("/studies")


def test_only_the_study_that_was_shown_is_agreed_to(place: Place) -> None:
    """Sixteen letters name the folder, and two studies can be made whose digests begin alike."""
    study, homes = place
    folder = homes["north"].folder
    Visitor(folder).post("/studies", action="receive", text=study_file(study))
    shown = study.digest[:16] + "0" * 48
    with pytest.raises(RefusedError, match="not the one that was shown"):
        agree(folder, shown, Agree(typed=study.digest[:8]))
    assert not (folder / "studies" / study.digest[:16] / "agreement.json").exists()


def test_a_run_starts_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def slow(*_given: object) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()

    monkeypatch.setattr(federation, "_run", slow)
    monkeypatch.setattr(
        federation, "folder_of_study", lambda *_given: type("StudyFolder", (), {"study": lambda _self: None})()
    )
    threads = [threading.Thread(target=federation.run, args=(tmp_path, "", federation.Run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_every_difference_is_seen() -> None:
    assert changes({"values": ["a, b", "c"]}, {"values": ["a", "b, c"]})
    (found,) = changes({"values": ["x" * 500, "old"]}, {"values": ["x" * 500, "new"]})
    assert (found.before[-3:], found.after[-3:]) == ("old", "new")
    assert len(found.before) < 420


def packed(files: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def test_damaged_and_strange_archives_are_told(place: Place) -> None:
    visitor = Visitor(place[1]["north"].folder)
    damaged = bytearray(packed({"study.json": bytes(range(256)) * 100}))
    damaged[45:80] = b"\xff" * 35
    for content in (bytes(damaged), packed({"study.json": b"{}"}, zipfile.ZIP_LZMA)):
        visitor.ask("POST", "/releases", 400, body=content)


def test_bombs_inside_of_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic.console.releases._READ_BYTES", 10**7)
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array(["x" * 10000]))
    bombs = {"texts": texts.cast(pa.string()), "numbers": pa.array(np.zeros(2 * 10**6))}
    for name, values in bombs.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"a": values}), tmp_path / name / "synthetic.parquet")
    (tmp_path / "arrays").mkdir()
    np.savez_compressed(tmp_path / "arrays" / "model.npz", a=np.zeros(2 * 10**6))
    for folder in tmp_path.iterdir():
        assert sum(path.stat().st_size for path in folder.iterdir()) < 10**5
        with pytest.raises(InputError, match="memory"):
            _check_sizes(folder)


def test_a_statement_that_promises_too_much_is_refused(place: Place) -> None:
    study, homes = place
    agree_all(study, homes)
    north = Visitor(homes["north"].folder)
    run_between(study, homes).write(north.folder / "releases" / "first")
    with zipfile.ZipFile(io.BytesIO(north.ask("GET", "/releases/first/archive"))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    stated = json.loads(files["statement.json"])
    south = Visitor(homes["south"].folder)
    forged = packed({**files, "statement.json": json.dumps(stated | {"epsilon": 0.01}).encode()})
    assert "promises more" in south.ask("POST", "/releases", 400, body=forged)["error"]
    assert south.ask("POST", "/releases", 201, body=packed(files))["epsilon"] == stated["epsilon"]


def test_a_call_that_is_a_formula_is_exported_as_text(place: Place) -> None:
    """A coordinator chooses the names of its calls; a spreadsheet would run one that begins with a sign."""
    home = place[1]["north"]
    visitor = Visitor(home.folder)
    with Ledger.open(home.ledger) as ledger:
        called = Called(dataset="rows", study="a" * 64, call="=HYPERLINK(1)", step="meet", asked="", reply="refused")
        ledger.log_call(called)
    lines = visitor.ask("GET", "/ledger/export.csv").decode()
    assert "'=HYPERLINK(1)" in lines
    assert ",=HYPERLINK" not in lines


def test_rows_of_lists_and_records_are_told(place: Place) -> None:
    visitor = Visitor(place[1]["north"].folder)
    for values in ([["Alice"], []] * 20, [{"a": "Alice"}, None] * 20):
        pq.write_table(pa.table({"age": values, "flag": [True, False] * 20}), visitor.folder / "rows.parquet")
        made = visitor.ask("POST", "/draft", 201, body={})
        assert made["left_out"] == {"age": "lists and records cannot be a column"}
        for kind in ("boolean", "categorical", "integer", "real", "date", "ordinal"):
            refused = visitor.ask("PUT", "/draft", 400, body={"name": "age", "kind": kind})
            assert "Alice" not in refused["error"]
        text = made["text"].replace('name = "flag"', 'name = "age"')
        (visitor.folder / "study.draft.toml").write_text(text)
        assert "Alice" not in visitor.get("/draft")
        visitor.post("/draft", action="discard")


def test_a_damaged_study_can_be_withdrawn_from(place: Place) -> None:
    """Nothing is answered for it now; without a withdrawal it would be again, with the file put back."""
    study, homes = place
    agree_all(study, homes)
    path = homes["north"].folder / "studies" / study.digest[:16] / "study.json"
    whole = path.read_bytes()
    path.write_bytes(b"{")
    visitor = Visitor(homes["north"].folder)
    run = study.digest[:16]
    assert 'value="withdraw"' in visitor.get(f"/studies/{run}")
    visitor.post(f"/studies/{run}", action="withdraw", typed=run[:8])
    path.write_bytes(whole)
    with pytest.raises(RefusedError, match="withdrawn"):
        homes["north"].agreed_node(study.digest)
