"""The doctor finds every planted fault and names its cure; a healthy folder has none. The server here is gRPC alone."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("grpc", reason="gRPC comes with nvflare: pip install 'syndic[flare]'")
import grpc
import pyarrow.parquet as pq
from msgspec.structs import replace

from federation import free_port
from organisations import named
from support import rows, study_text
from syndic.errors import InputError
from syndic.federation.coordinator import Coordinator
from syndic.federation.doctor import Finding, examine
from syndic.federation.party import accept, lock, prepare, proxy_of, workspace_of
from syndic.runtime.flare import look as looking
from syndic.study import PartyFolder, Study
from syndic.study.agreement import agree, withdraw

PARTY = 'name = "north"\ndataset = "people"\nsource = { path = "rows.parquet" }\ncap = { epsilon = 2 }\n'
SEEN = {"admitted": True, "connected": True, "twice": False}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Coordinator, Path, Study]]:
    """A coordinator whose server answers the doctor, and a party that agreed to a study."""
    folder = tmp_path_factory.mktemp("doctor")
    coordinator = Coordinator.create(folder / "federation", name="health", host="127.0.0.1", port=free_port())
    home = folder / "north"
    accept(home, coordinator.approve(prepare(home, name="north")))
    (home / "party.toml").write_text(PARTY)
    pq.write_table(rows(60, 1), home / "rows.parquet")
    study = Study.loads(study_text(parties='[[parties]]\nname = "north"\n'))
    members = tuple(replace(one, identity=coordinator.admitted()[0].identity) for one in study.parties)
    study = named(replace(study, parties=members), coordinator.identity)
    agree(PartyFolder(folder=home), study)
    startup = coordinator.workspace / "startup"
    key, signed, root = ((startup / name).read_bytes() for name in ("server.key", "server.crt", "rootCA.pem"))
    server = grpc.server(futures.ThreadPoolExecutor(2))
    credentials = grpc.ssl_server_credentials([(key, signed)], root_certificates=root, require_client_auth=True)
    server.add_secure_port(f"127.0.0.1:{coordinator.federation.port}", credentials)
    looking.serve_look(
        server,
        lambda name, shown: (SEEN["admitted"] and name == "north" and bool(shown), SEEN["connected"], SEEN["twice"]),
    )
    server.start()
    yield coordinator, home, study
    server.stop(None)


@pytest.fixture
def sick(served: tuple[Coordinator, Path, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Sick":
    shutil.copytree(served[1], tmp_path / "north")
    (tmp_path / "north").chmod(0o700)
    for name in ("grpc_proxy", "https_proxy", "http_proxy", "no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    return Sick(tmp_path / "north", served[2], monkeypatch)


class Sick:
    """A healthy folder, and what can be wrong with it."""

    def __init__(self, home: Path, study: Study, patch: pytest.MonkeyPatch) -> None:
        self.home, self.study, self.patch = home, study, patch
        self.party = PartyFolder(folder=home)

    def found(self) -> list[Finding]:
        return [one for one in examine(self.home, self.study) if one.state != "good"]

    def proxy(self) -> None:
        self.patch.setenv("https_proxy", f"http://127.0.0.1:{free_port()}")

    def server_away(self) -> None:
        approval = (self.home / "connection.json").read_text()
        port = approval.rsplit('"port": ', 1)[1].split(",")[0]
        (self.home / "connection.json").write_text(approval.replace(f'"port": {port}', f'"port": {free_port()}'))

    def clock(self) -> None:
        late = time.time() + 20 * 60
        self.patch.setattr(looking, "time", SimpleNamespace(time=lambda: late))

    def removed(self) -> None:
        self.patch.setitem(SEEN, "admitted", False)

    def twice(self) -> None:
        self.patch.setitem(SEEN, "twice", True)

    def source_gone(self) -> None:
        (self.home / "rows.parquet").unlink()

    def column_gone(self) -> None:
        pq.write_table(rows(60, 1).drop_columns(["age"]), self.home / "rows.parquet")

    def cap_lowered(self) -> None:
        (self.home / "party.toml").write_text(PARTY.replace("epsilon = 2", "epsilon = 0.5"))

    def withdrawn(self) -> None:
        withdraw(self.party, self.study.digest)

    def expired(self) -> None:
        agree(self.party, self.study, lasts=timedelta(seconds=-1))

    def disk_full(self) -> None:
        self.patch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=10**6))

    def folder_open(self) -> None:
        self.home.chmod(0o755)

    def key_open(self) -> None:
        (workspace_of(self.home) / "startup" / "client.key").chmod(0o644)

    def policy_changed(self) -> None:
        (workspace_of(self.home) / "local" / "authorization.json").write_text("{}")


@pytest.mark.parametrize(
    ("plant", "what", "cure"),
    [
        (Sick.proxy, "proxy", "add 127.0.0.1 to no_proxy"),
        (Sick.server_away, "port", "is the server running"),
        (Sick.clock, "clock", "time server"),
        (Sick.removed, "admission", "ask the coordinator"),
        (Sick.twice, "site", "stop the one with a copy"),
        (Sick.source_gone, "source", "correct source in party.toml"),
        (Sick.column_gone, "study", "correct source or cap"),
        (Sick.cap_lowered, "study", "correct source or cap"),
        (Sick.withdrawn, "study", "syndic agree"),
        (Sick.expired, "study", "syndic agree"),
        (Sick.disk_full, "disk", "free space"),
        (Sick.folder_open, "file modes", "chmod 700"),
        (Sick.key_open, "file modes", "chmod 600"),
        (Sick.policy_changed, "kit", "party accept"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_planted_fault_is_found_with_its_cure(
    sick: Sick, plant: Callable[[Sick], None], what: str, cure: str
) -> None:
    assert sick.found() == []
    plant(sick)
    found = sick.found()
    assert [one for one in found if one.what.startswith(what) and cure in one.advice], found
    assert all(one.advice for one in found)


def test_a_proxy_is_that_of_grpc() -> None:
    proxied = {"https_proxy": "http://user:secret@proxy:3128", "http_proxy": "http://other"}
    assert proxy_of("study.example.org", proxied) == "https_proxy"
    assert proxy_of("study.example.org", {**proxied, "no_proxy": "localhost, example.org"}) == ""
    assert proxy_of("study.example.org", {**proxied, "no_proxy": "ample.org"}) == "https_proxy"
    assert proxy_of("study.example.org", {}) == ""


def test_a_folder_is_served_by_one_process(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from syndic.federation.party import lock; lock(Path({str(tmp_path)!r}))"
    with lock(tmp_path), pytest.raises(InputError, match=r"process \d+ serves this folder already"):
        lock(tmp_path)
    # a process that was killed leaves the file, and no lock
    subprocess.run([sys.executable, "-c", f"{code}; import os; os.kill(os.getpid(), 9)"], check=False)
    with lock(tmp_path):
        pass
