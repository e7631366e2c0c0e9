"""Real processes: a party is killed in the middle of a step, then the coordinator in the middle of the run.

This file is also what the coordinators run; the parties run `dying_party.py`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

import pytest

from faulty_runtime import SEED, allowed, charged, published, run_over
from support import CASES, Case
from syndic.errors import PartyError
from syndic.kernel import Delivery, Runtime
from syndic.study import simulate
from syndic.study.party_folder import PartyFolder

PARTY = Path(__file__).parent.parent / "dying_party.py"
METHODS = {
    "homm": "homm laplace",
    "learn": "learn mpc_grad",
    "synthesis": "synthesis across",
}


def case_of(method: str) -> Case:
    found: Case = next(case for case in CASES if case.name == METHODS[method])
    return found


@final
class UntilHeard:
    """Carries calls, and kills this process when all parties have answered for the first time after `ready`."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.sends = 0

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        delivery = self.runtime.send(calls, seconds=seconds, arrived=arrived)
        self.sends += 1
        if self.sends > 1 or b"ready" not in next(iter(calls.values())):
            os.kill(os.getpid(), signal.SIGKILL)
        return delivery

    def close(self) -> None:
        self.runtime.close()


def coordinate(case: Case, folder: Path) -> None:
    """Be a coordinator whose party north is killed in a step, who begins again, and is then killed itself."""

    def command(home: PartyFolder, *, seed: int) -> list[str]:
        return [sys.executable, str(PARTY), f"--home={home.folder}", f"--seed={seed}", "--socket"]

    PartyFolder.command = command  # type: ignore[method-assign,assignment]
    try:
        simulate(case.study, case.sources, seed=SEED, folder=folder, runtime="processes")
    except PartyError as error:
        (folder / "error").write_text(str(error))
    run_over(case, folder, UntilHeard, runtime="processes")


def main(folder: Path) -> None:
    """Fork a coordinator for each method, so that the libraries are loaded once, and write down how it ended."""
    for method in METHODS:
        process = os.fork()
        if process == 0:
            coordinate(case_of(method), folder / method)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        (folder / f"{method}.ended").write_text(str(os.waitstatus_to_exitcode(status)))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run every method until its coordinator is killed."""
    folder = tmp_path_factory.mktemp("killed")
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, __file__, str(folder)], check=True, env={**os.environ, "PYTHONPATH": path})
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_killed_twice_and_resumed(method: str, killed: Path, tmp_path: Path) -> None:
    case, folder = case_of(method), killed / method
    assert (killed / f"{method}.ended").read_text() == str(-signal.SIGKILL)
    assert "north: its process ended" in (folder / "error").read_text()
    assert charged(case, folder)["north"].total() >= 1
    resumed = simulate(case.study, case.sources, seed=SEED, folder=folder)
    release = simulate(case.study, case.sources, seed=SEED)
    assert published(resumed, tmp_path / "a") == published(release, tmp_path / "b")
    assert charged(case, folder) == allowed(case)


def test_who_is_too_slow_is_named_and_gets_more_time(tmp_path: Path) -> None:
    case = case_of("homm")
    with pytest.raises(PartyError, match=r"north: no answer in time.*south: no answer in time"):
        simulate(case.study, case.sources, seed=SEED, folder=tmp_path, runtime="processes", seconds=0.01)
    release = simulate(case.study, case.sources, seed=SEED, folder=tmp_path)
    assert published(release, tmp_path / "a") == published(
        simulate(case.study, case.sources, seed=SEED), tmp_path / "b"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
