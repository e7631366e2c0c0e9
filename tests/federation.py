"""A federation on this machine: a server and parties as separate processes, connected by mutual TLS."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from organisations import named
from support import COLUMNS, rows, study_text
from syndic.errors import InputError
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import accept, prepare, workspace_of
from syndic.federation.run import run
from syndic.kernel import Progress, silent_progress
from syndic.privacy import Entry, Ledger
from syndic.runtime import Local
from syndic.runtime.flare.coordinator import Flare
from syndic.study import PartyFolder, Release, Study
from syndic.study.agreement import agree
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study

TESTS = Path(__file__).parent
PARTY = """
name = "{name}"
dataset = "{dataset}"
source = {{ path = "rows.parquet" }}
cap = {{ epsilon = 20, delta = 1e-4 }}
"""
# a loaded machine may take a minute where an idle one takes a second; only a test that fails waits so long
PATIENCE = 240.0


SEED = 7
PARTIES = ("north", "south", "east")
ALIKE = "".join(f'[[parties]]\nname = "{name}"\npeople = 60\n' for name in PARTIES)
SPLIT = "".join(
    f'[[parties]]\nname = "{name}"\npeople = 60\ncolumns = ["{column}"]\n'
    for name, column in (("north", "colour"), ("south", "score"), ("east", "age"))
)


def horizontal(protocol: str, *, name: str = "test", budget: str = "epsilon = 2.0") -> Study:
    return Study.loads(study_text(protocol=protocol, parties=ALIKE, budget=budget).replace('"test"', f'"{name}"'))


def average() -> Study:
    protocol = 'method = "average"\nservers = ["north", "south"]\ncolumns = ["age"]\nbits = 5'
    budget = "epsilon = 2.0\ndelta = 1e-5"
    return Study.loads(study_text(unit='neighbours = "replace"', budget=budget, protocol=protocol, parties=ALIKE))


def vertical(name: str = "test") -> Study:
    return Study.loads(
        study_text(
            unit='neighbours = "replace"',
            budget="epsilon = 10\ndelta = 1e-5",
            parties=SPLIT,
            columns=COLUMNS,
            protocol='method = "synthesis"',
        ).replace('"test"', f'"{name}"')
    )


def alike() -> dict[str, pa.Table]:
    return {name: rows(60, seed) for seed, name in enumerate(PARTIES)}


def split() -> dict[str, pa.Table]:
    table = rows(60, 3)
    return {"north": table.select(["colour"]), "south": table.select(["score"]), "east": table.select(["age"])}


def same(one: Release, other: Release, folder: Path) -> None:
    """Every file of the two releases is the same, byte by byte, and so is every reply behind them."""
    written = [sorted(release.write(folder / name)) for name, release in (("one", one), ("other", other))]
    assert [path.name for path in written[0]] == [path.name for path in written[1]]
    for first, second in zip(*written, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    assert one.transcript


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def wait_until(happened: Callable[[], bool], told: Callable[[], str] = str, seconds: float = PATIENCE) -> None:
    """Wait until something has happened; fail with what is told about it."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, told()
        time.sleep(0.1)


def end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End processes, each with the server that it started; kill those that do not end."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(process: psutil.Process) -> bool:
    """Tell whether a process answers a study; one of an earlier study may end just now."""
    try:
        return "syndic.study.serve" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


class Federation:
    """Folders and processes of one coordinator and its parties."""

    def __init__(self, folder: Path, names: tuple[str, ...], *, host: str = "127.0.0.1") -> None:
        self.folder = folder
        self.host = host
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.tables = 0
        self.start_seconds = 0.0
        self.start_processor: dict[str, float] = {}
        self.coordinator = Coordinator.create(folder / "coordinator", name="health", host=host, port=self.port)
        for name in names:
            self.admit(name)
        # how a process is started where; other namespaces are other machines
        self.prefix: Callable[[str], list[str]] = lambda _name: []

    def home(self, name: str) -> Path:
        return self.folder / name

    def admit(self, name: str, *, days: int = 30, renew: bool = False) -> None:
        request = prepare(self.home(name), name=name, renew=renew)
        accept(self.home(name), self.coordinator.approve(request, days=days))
        if not renew:
            self._declare(name, "nobody yet")

    def _declare(self, name: str, dataset: str) -> None:
        (self.home(name) / "party.toml").write_text(PARTY.format(name=name, dataset=dataset))

    def start(self, name: str) -> None:
        coordinator = ["coordinator", "start", str(self.coordinator.folder)]
        command = coordinator if name == "server" else ["join", str(self.home(name))]
        self._launch(name, [sys.executable, "-m", "syndic", *command])

    def start_python(self, name: str, code: str) -> None:
        self._launch(name, [sys.executable, "-c", code])

    def _launch(self, name: str, command: list[str]) -> None:
        places = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
        with (self.folder / f"{name}.out").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [*self.prefix(name), *command], stdout=output, stderr=output, cwd=self.folder, env=environment
            )

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def restart(self, name: str) -> None:
        """Start a site anew and wait until the server has taken it; it would still know the killed one."""
        output = self.folder / f"{name}.out"
        before = output.stat().st_size
        if name in self.processes:
            self.kill(name)
        self.start(name)
        wait_until(lambda: b"connected;" in output.read_bytes()[before:], self.told)

    def workers(self, name: str) -> list[psutil.Process]:
        """The processes in which a party's site answers studies."""
        site = psutil.Process(self.processes[name].pid)
        return [child for child in site.children(recursive=True) if _answers(child)]

    def processor(self, name: str) -> float:
        """Processor seconds of a process so far."""
        times = psutil.Process(self.processes[name].pid).cpu_times()
        return float(times.user + times.system)

    def connected(self) -> set[str]:
        return set(Flare(self.coordinator.socket, study="", most=0).connected())

    def wait_for(self, *names: str) -> None:
        """Wait until these sites are connected."""
        here = self.coordinator.socket.exists
        wait_until(lambda: here() and set(names) <= self._connected_or_none(), self.told)

    def told(self) -> str:
        """What the processes wrote last, for a test that fails."""
        return "\n".join(f"{file.name}: {file.read_text()[-2000:]}" for file in sorted(self.folder.glob("*.out")))

    def log(self, name: str) -> str:
        """What the engine's process wrote into its own log."""
        folder = self.coordinator.workspace if name == "server" else workspace_of(self.home(name))
        return (folder / "engine.log").read_text()

    def _connected_or_none(self) -> set[str]:
        try:
            return self.connected()
        except InputError:
            return set()

    def identified(self, study: Study) -> Study:
        """The study with the identities that were approved."""
        known = {one.party: one.identity for one in self.coordinator.admitted()}
        members = tuple(replace(one, identity=known[one.name]) for one in study.parties)
        return named(replace(study, parties=members), self.coordinator.identity)

    def put(self, tables: Mapping[str, pa.Table]) -> None:
        """Give parties rows: other people each time, so a cap of their own."""
        self.tables += 1
        for name, table in tables.items():
            pq.write_table(table, self.home(name) / "rows.parquet")
            self._declare(name, f"people {self.tables}")

    def agree(self, study: Study, seed: int | None) -> None:
        for party in study.parties:
            agree(PartyFolder(folder=self.home(party.name)), study, rehearsal=seed)

    def run(self, study: Study, seed: int | None, *, progress: Progress = silent_progress, **options: Any) -> Release:
        return run(study, folder=self.coordinator.folder, rehearsal=seed, progress=progress, **options)

    def local(self, study: Study, seed: int, folder: Path) -> Release:
        """The same run with every party in this process, from copies of the homes as they are before it."""
        nodes = {}
        for party in study.parties:
            shutil.copytree(self.home(party.name), folder / party.name, ignore=shutil.ignore_patterns("flare"))
            nodes[party.name] = PartyFolder(folder=folder / party.name).agreed_node(run_digest(study, seed))
        runtime = Local(nodes)
        try:
            return run_study(study, runtime, seed=seed, identity=self.coordinator.identity)
        finally:
            runtime.close()

    def charges(self, study: Study, seed: int | None, name: str) -> list[Entry]:
        with Ledger.open(self.home(name) / "ledger.sqlite") as ledger:
            run = run_digest(study, seed)
            return [entry for entry in ledger.entries() if entry.kind == "reserve" and entry.study == run]

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)
