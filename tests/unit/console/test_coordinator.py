"""A coordinator's console: studies, parties, progress; nothing of an owner's."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from consoles import Visitor, study_file
from organisations import named
from support import rows, study_text
from syndic.errors import PartyError
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import prepare
from syndic.federation.run import Watched, read_state
from syndic.kernel import Delivery, silent_progress
from syndic.runtime import Local
from syndic.study import PartyFolder, Study
from syndic.study.run import run_study
from syndic.study.study_folder import StudyFolder

NAMES = ("north", "south")


@pytest.fixture
def federation(tmp_path: Path) -> tuple[Coordinator, Study]:
    """A coordinator with two admitted parties, and a study of theirs."""
    coordinator = Coordinator.create(tmp_path / "federation", name="health", host="127.0.0.1", port=8002)
    identities = {}
    for name in NAMES:
        request = prepare(tmp_path / name, name=name)
        coordinator.approve(request)
        identities[name] = request.identity
    study = Study.loads(study_text())
    members = tuple(replace(party, identity=identities[party.name]) for party in study.parties)
    return coordinator, named(replace(study, parties=members), coordinator.identity)


def test_a_study_is_kept_and_shown(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    visitor = Visitor(coordinator.folder)
    assert visitor.ask("GET", "/overview")["role"] == "coordinator"
    place = visitor.post("/studies", action="receive", text=study_file(study))
    page = visitor.get(place)
    assert "Run with the connected parties" in page
    assert "coordinator&#39;s console" in page
    assert visitor.ask("GET", "/studies")[0]["state"] == "pending"
    assert "The run has not started" in visitor.get(f"{place}/progress")


def test_a_study_of_strangers_is_refused(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    visitor = Visitor(coordinator.folder)
    coordinator.remove("south")
    assert "south: not admitted by this coordinator" in visitor.post(
        "/studies", 400, action="receive", text=study_file(study)
    )
    assert visitor.ask("GET", "/studies") == []


def test_parties_are_listed(federation: tuple[Coordinator, Study]) -> None:
    visitor = Visitor(federation[0].folder)
    lines = visitor.ask("GET", "/parties")
    assert [(one["party"], one["connected"]) for one in lines] == [("north", None), ("south", None)]
    page = visitor.get("/parties")
    assert "the server is not running" in page
    assert lines[0]["fingerprint"] in page


def test_nothing_of_an_owner_is_there(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    visitor = Visitor(coordinator.folder)
    visitor.post("/studies", action="receive", text=study_file(study))
    for path in ("/ledger", "/schema", f"/studies/{study.digest}/advice", f"/studies/{study.digest}/difference"):
        visitor.get(path, 404)
    for path in ("/ledger", "/ledger/export.csv", "/schema"):
        visitor.ask("GET", path, 404)
    for path in ("/ledger/verification", "/schema/check", f"/studies/{study.digest}/agreement"):
        visitor.ask("POST", path, 404, body={})
    described = str(visitor.ask("GET", "/openapi.json"))
    assert "ledger" not in described
    page = visitor.get(f"/studies/{study.digest}")
    assert "Agree" not in page
    assert visitor.ask("GET", f"/studies/{study.digest}")["offer"] is None


class Slow:
    """A runtime whose second party is asked about while the first has answered."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self.run = run
        self.seen: list[tuple[str, ...]] = []

    def send(self, calls: dict[str, bytes], **_options: object) -> Delivery:
        (party,) = calls
        if party == "south":
            end = time.monotonic() + 30
            while "north" in self.waiting() and time.monotonic() < end:
                time.sleep(0.01)
            self.seen.append(self.waiting())
            return Delivery(replies={}, silent={"south": "away"})
        return Delivery(replies={party: b"12345"}, silent={})

    def waiting(self) -> tuple[str, ...]:
        state = read_state(self.folder, self.run)
        return state.waiting if state else ()

    def close(self) -> None:
        """Nothing is open."""


def test_the_one_that_is_waited_for_has_a_name(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    StudyFolder.of(coordinator.folder, study.digest).put_study(study)
    slow = Slow(coordinator.folder, study.digest)
    told: list[int] = []
    watched = Watched(slow, folder=coordinator.folder, run=study.digest, progress=silent_progress)  # type: ignore[arg-type]
    watched.progress("ready", 0, 2)
    delivery = watched.send({"north": b"abc", "south": b"abcd"}, seconds=30, arrived=told.append)
    assert slow.seen == [("south",)]
    assert (delivery.replies, delivery.silent) == ({"north": b"12345"}, {"south": "away"})
    assert told[-1] == 1
    visitor = Visitor(coordinator.folder)
    found = visitor.ask("GET", f"/studies/{study.digest}/progress")
    assert (found["state"], found["said"]) == ("running", "7 bytes sent, 5 received")
    ready = found["steps"][0]
    assert (ready["step"], ready["answered"], ready["refused"]) == ("ready", 1, 1)
    watched.send({"north": b"abc", "east": b"abc"}, seconds=30, arrived=told.append)
    steps = visitor.ask("GET", f"/studies/{study.digest}/progress")["steps"]
    assert [(one["step"], one["answered"]) for one in steps] == [("ready", 3), ("meet", 0), ("sanitise", 0)]
    assert f"<td>{read_state(coordinator.folder, study.digest).updated:%Y-%m-%d}" in visitor.get("/studies")  # type: ignore[union-attr]
    watched.end(PartyError("south: away"))
    assert "The run failed: south: away" in visitor.get(f"/studies/{study.digest}/progress")


def test_a_process_that_is_gone_has_stopped(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    StudyFolder.of(coordinator.folder, study.digest).put_study(study)
    Watched(Local({}), folder=coordinator.folder, run=study.digest, progress=silent_progress)
    visitor = Visitor(coordinator.folder)
    assert visitor.ask("GET", "/studies")[0]["state"] == "running"
    visitor.ask("POST", f"/studies/{study.digest}/run", 409, body={})
    gone = subprocess.Popen(["true"])
    gone.wait()
    path = StudyFolder.of(coordinator.folder, study.digest).folder / "progress.json"
    path.write_text(path.read_text().replace(f'"process": {os.getpid()}', f'"process": {gone.pid}'))
    assert visitor.ask("GET", "/studies")[0]["state"] == "stopped"
    assert "nothing is charged twice" in visitor.get(f"/studies/{study.digest}/progress")


def test_a_watched_run_gives_the_same_release(tmp_path: Path) -> None:
    study = Study.loads(study_text())
    releases = []
    for name in ("plain", "watched"):
        nodes = {}
        for seed, party in enumerate(study.parties):
            home = PartyFolder(folder=tmp_path / name / party.name)
            home.folder.mkdir(parents=True)
            nodes[party.name] = _node(home, study, party.name, seed)
        local = Local(nodes)
        runtime = local
        if name == "watched":
            runtime = Watched(local, folder=tmp_path, run=study.digest, progress=silent_progress)  # type: ignore[assignment]
        releases.append(run_study(study, runtime, seed=7))
        local.close()
    assert releases[0].table.to_arrow() == releases[1].table.to_arrow()
    assert releases[0].transcript == releases[1].transcript


def _node(home: PartyFolder, study: Study, name: str, seed: int):  # type: ignore[no-untyped-def]
    from syndic.study.party_folder import PartyFile  # noqa: PLC0415

    text = f'name = "{name}"\ndataset = "d"\nsource = {{ path = "x.csv" }}\ncap = {{ epsilon = 9 }}\n'
    from syndic.document import from_toml  # noqa: PLC0415

    home.keep(study, from_toml(text, PartyFile, where="party"))
    return home.node(seed=7, source=rows(60, seed))


def test_a_run_that_cannot_reach_its_server_says_so(federation: tuple[Coordinator, Study]) -> None:
    coordinator, study = federation
    visitor = Visitor(coordinator.folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    assert visitor.post(place, action="run") == f"{place}/progress"
    end = time.monotonic() + 60
    while visitor.ask("GET", "/studies")[0]["state"] != "failed":
        assert time.monotonic() < end
        time.sleep(0.3)
    assert "syndic coordinator start" in visitor.get(f"{place}/progress")


def test_a_run_is_not_made_of_files_where_the_console_was_started(
    federation: tuple[Coordinator, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write there would else run programs as the coordinator."""
    coordinator, study = federation
    (tmp_path / "shared" / "syndic").mkdir(parents=True)
    (tmp_path / "shared" / "syndic" / "__main__.py").write_text("open('ran', 'w').close()")
    (tmp_path / "shared" / "syndic" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path / "shared")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    visitor = Visitor(coordinator.folder)
    place = visitor.post("/studies", action="receive", text=study_file(study))
    visitor.post(place, action="run")
    state = read_state(coordinator.folder, study.digest)
    assert state is not None
    end = time.monotonic() + 60
    while state.alive and time.monotonic() < end:
        time.sleep(0.1)
    assert not (tmp_path / "shared" / "ran").exists()
