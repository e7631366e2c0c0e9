"""Real processes: killed, silent, restarted. Nothing is lost and nothing is charged twice."""

import os
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support import charges, rows, study_text, two_parties
from syndic import Study, simulate
from syndic.errors import PartyError
from syndic.kernel import Session, run
from syndic.random import SimulationRandomness
from syndic.runtime import Processes
from syndic.study.party_folder import PartyFolder, run_digest

SEED = 3


def prepared(tmp_path: Path) -> tuple[Study, dict[str, PartyFolder]]:
    """Lay out the parties' folders by a run that is refused before anything is spent."""
    study = Study.loads(study_text())
    tmp_path.mkdir(exist_ok=True)
    for name, table in two_parties().items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
    sources = {"north": tmp_path / "north.parquet", "south": tmp_path / "absent.parquet"}
    with pytest.raises(PartyError):
        simulate(study, sources, seed=SEED, folder=tmp_path)
    (tmp_path / "south.parquet").rename(tmp_path / "absent.parquet")
    return study, {name: PartyFolder(folder=tmp_path / "parties" / name) for name in sources}


def session_of(study: Study, runtime: Processes, seconds: float = 60.0) -> Session:
    return Session(
        runtime=runtime,
        study=run_digest(study, SEED),
        method=study.protocol,
        plan=study.plan,
        randomness=SimulationRandomness(1),
        seconds=seconds,
    )


def test_a_killed_party_is_named_and_the_next_run_goes_on(tmp_path: Path) -> None:
    study, homes = prepared(tmp_path)
    runtime = Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**7)
    try:
        os.kill(runtime._worker("south").process.pid, signal.SIGKILL)
        with pytest.raises(PartyError, match="south"):
            run(study.protocol, session_of(study, runtime))
        first = run(study.protocol, session_of(study, runtime))
        os.kill(runtime._worker("north").process.pid, signal.SIGKILL)
        time.sleep(0.1)
        with pytest.raises(PartyError, match="north"):
            run(study.protocol, session_of(study, runtime))
        second = run(study.protocol, session_of(study, runtime))
    finally:
        runtime.close()
    assert first.table.to_arrow().equals(second.table.to_arrow())  # type: ignore[attr-defined]
    assert len(charges(tmp_path, "north")) == len(charges(tmp_path, "south")) == 1


def test_killed_at_any_moment_and_asked_again_charges_once(tmp_path: Path) -> None:
    study, homes = prepared(tmp_path)
    releases = []
    for delay in (0.0, 0.15, 0.3, 0.4, 0.5, 0.6):
        runtime = Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**7)
        killer = threading.Timer(delay, os.kill, (runtime._worker("north").process.pid, signal.SIGKILL))
        killer.start()
        try:
            releases.append(run(study.protocol, session_of(study, runtime)))
        except PartyError as error:
            assert "north" in str(error)  # noqa: PT017
        finally:
            killer.cancel()
            runtime.close()
    runtime = Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**7)
    releases.append(run(study.protocol, session_of(study, runtime)))
    runtime.close()
    tables = [release.table.to_arrow() for release in releases]  # type: ignore[attr-defined]
    assert all(table.equals(tables[0]) for table in tables)
    assert len(charges(tmp_path, "north")) == len(charges(tmp_path, "south")) == 1


def test_a_silent_party_times_out_and_is_named(tmp_path: Path) -> None:
    began = time.monotonic()
    study, homes = prepared(tmp_path / "first")
    with closing(Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**7)) as honest:
        run(study.protocol, session_of(study, honest))
    # much longer than a party that answers takes, however busy the machine is
    seconds = 2 * (time.monotonic() - began)
    study, homes = prepared(tmp_path)
    commands = {"north": homes["north"].command(seed=SEED), "south": ["sh", "-c", "exec sleep 600"]}
    runtime = Processes(commands, most=10**7)
    with pytest.raises(PartyError, match="south: no answer in time") as error:
        run(study.protocol, session_of(study, runtime, seconds=seconds))
    runtime.close()
    assert "north" not in str(error.value).split(". ", 1)[1]
    assert charges(tmp_path, "north") == []


def test_a_party_that_announces_too_much_is_not_read(tmp_path: Path) -> None:
    study, homes = prepared(tmp_path)
    flood = "import socket,sys,struct,time; s=socket.socket(fileno=int(sys.argv[1])); s.recv(8); "
    flood += "s.sendall(struct.pack('<Q', 10**15)); time.sleep(600)"
    flooder = [sys.executable, "-c", flood]
    runtime = Processes({"north": homes["north"].command(seed=SEED), "south": flooder}, most=10**7)
    with pytest.raises(PartyError, match="south: a message of 1000000000000000 bytes was announced"):
        run(study.protocol, session_of(study, runtime, seconds=30.0))
    runtime.close()


def test_an_oversized_call_is_hung_up_on_and_the_party_goes_on(tmp_path: Path) -> None:
    study = Study.loads(study_text(top="limits = { message_mb = 1 }"))
    sources = {name: tmp_path / f"{name}.parquet" for name in ("north", "south")}
    for path in sources.values():
        pq.write_table(rows(5), path)
    first = simulate(study, sources, seed=SEED, folder=tmp_path, runtime="processes")
    homes = {name: PartyFolder(folder=tmp_path / "parties" / name) for name in ("north", "south")}
    runtime = Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**6)
    delivery = runtime.send({"north": b"\x00" * 3 * 10**6}, seconds=30.0, arrived=lambda _: None)
    assert delivery.replies == {}
    assert "north" in delivery.silent
    again = run(study.protocol, session_of(study, runtime))
    runtime.close()
    assert again.summary()["cells kept"] == first.result.summary()["cells kept"]
