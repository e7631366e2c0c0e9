"""Learning in real processes: a party is killed in the middle of a round, comes back, and nothing is paid for twice."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

import numpy as np
import pyarrow.parquet as pq
import pytest

from support import charges, rows, study_text
from syndic import Study
from syndic.data import SourceSpec
from syndic.kernel import Call, Delivery, Runtime, Session, decode, run
from syndic.methods.learning.result import LearnResult
from syndic.random import SimulationRandomness
from syndic.runtime import Local, Processes
from syndic.study.party_folder import PartyFile, PartyFolder, run_digest
from syndic.study.simulate import simulate

SEED = 5
NAMES = ("p0", "p1", "p2", "p3")
PARTIES = "".join(f'[[parties]]\nname = "{name}"\npeople = 40\n' for name in NAMES)
LABEL = 'label = "colour"\npositive = "red"'
PROTOCOL = f'method = "learn"\n{LABEL}\nscheme = "mpc_grad"\niterations = 3\nmissing = 1\npath = true'
STUDY = Study.loads(
    study_text(unit='neighbours = "replace"', budget="epsilon = 1.0\ndelta = 1e-5", parties=PARTIES, protocol=PROTOCOL)
)


@final
class Killing:
    """Real processes, one of which is killed just before a step is asked for the n-th time."""

    def __init__(self, processes: Processes, kills: Mapping[tuple[str, int], str]) -> None:
        self.processes = processes
        self.kills = kills
        self.asked: dict[str, int] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        step = decode(next(iter(calls.values())), Call).step
        self.asked[step] = self.asked.get(step, 0) + 1
        victim = self.kills.get((step, self.asked[step]))
        if victim is not None:
            os.kill(self.processes._worker(victim).process.pid, signal.SIGKILL)
        return self.processes.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        self.processes.close()


def laid_out(folder: Path) -> dict[str, PartyFolder]:
    homes = {}
    for place, name in enumerate(NAMES):
        home = PartyFolder(folder=folder / "parties" / name)
        path = folder / f"{name}.parquet"
        pq.write_table(rows(40, place), path)
        source = SourceSpec(path=str(path))
        home.keep(STUDY, PartyFile(name=name, dataset=name, source=source, cap=STUDY.budget))
        homes[name] = home
    return homes


def learn(runtime: Runtime) -> LearnResult:
    session = Session(
        runtime=runtime,
        study=run_digest(STUDY, SEED),
        method=STUDY.protocol,
        plan=STUDY.plan,
        randomness=SimulationRandomness(1),
        seconds=60.0,
    )
    try:
        result = run(STUDY.protocol, session)
    finally:
        runtime.close()
    assert isinstance(result, LearnResult)
    return result


def path_of(result: LearnResult) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(result.path)


@pytest.mark.slow
def test_a_party_killed_in_a_round_is_back_in_the_next(tmp_path: Path) -> None:
    homes = laid_out(tmp_path)
    processes = Processes({name: home.command(seed=SEED) for name, home in homes.items()}, most=10**7)
    found = learn(Killing(processes, {("contribute", 2): "p3"}))
    assert (found.model.lost, found.model.present) == (0, NAMES)
    assert [len(charges(tmp_path, name)) for name in NAMES] == [3, 3, 3, 2]
    whole = simulate(STUDY, {name: rows(40, place) for place, name in enumerate(NAMES)}, seed=SEED).result
    assert isinstance(whole, LearnResult)
    # the same until the killed party was missing, other sums from then on
    assert np.array_equal(path_of(found)[:2], path_of(whole)[:2])
    assert not np.array_equal(path_of(found)[2], path_of(whole)[2])
    # asked again, everybody has the stored answers, and the round that was missed stays missed
    again = learn(Local({name: home.node(seed=SEED) for name, home in homes.items()}))
    assert np.array_equal(path_of(again), path_of(found))
    assert [len(charges(tmp_path, name)) for name in NAMES] == [3, 3, 3, 2]
