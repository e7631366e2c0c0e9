"""What the engine costs beside a run in one process. `pytest -s` shows the figures that the guide gives."""

import sys
import time
from pathlib import Path

from federation import PARTIES, SEED, Federation, alike, horizontal, split, vertical
from syndic import Study
from syndic.runtime.flare.coordinator import Flare


def tell(what: str, figure: float, unit: str) -> None:
    sys.stdout.write(f"{what}: {figure:.3g} {unit}\n")


def test_start(federation: Federation) -> None:
    tell("start until three sites are connected", federation.start_seconds, "seconds")
    for name, seconds in federation.start_processor.items():
        tell(f"start of {name}", seconds, "processor seconds")
        assert seconds < 60


def test_rounds(federation: Federation) -> None:
    """A call that every site refuses at once: the way there and back and nothing else."""
    runtime = Flare(federation.coordinator.socket, study="0" * 64, most=10**6)
    before = {name: federation.processor(name) for name in ("server", *PARTIES)}
    began, rounds = time.monotonic(), 50
    for number in range(rounds):
        delivery = runtime.send(dict.fromkeys(PARTIES, bytes([number])), seconds=60.0, arrived=lambda _done: None)
        assert set(delivery.replies) == set(PARTIES)
    each = (time.monotonic() - began) / rounds
    tell("a round of three sites", 1000 * each, "milliseconds")
    for name, seconds in before.items():
        tell(f"a round at {name}", 1000 * (federation.processor(name) - seconds) / rounds, "processor milliseconds")
    assert each < 1.0


def timed(federation: Federation, study: Study, folder: Path) -> tuple[float, float, int]:
    study = federation.identified(study)
    federation.agree(study, SEED)
    began = time.monotonic()
    release = federation.local(study, SEED, folder)
    local, began = time.monotonic() - began, time.monotonic()
    federation.run(study, SEED)
    return local, time.monotonic() - began, len({line.round for line in release.transcript})


def test_studies_beside_local(federation: Federation, tmp_path: Path) -> None:
    federation.put(alike())
    for name, study in (("homm", horizontal('method = "homm"', name="cost")), ("vertical", vertical("cost"))):
        if name == "vertical":
            federation.put(split())
        local, through, rounds = timed(federation, study, tmp_path / name)
        tell(f"{name}, {rounds} rounds, in one process", local, "seconds")
        tell(f"{name}, {rounds} rounds, through the engine", through, "seconds")
        for worker in federation.workers("north")[-1:]:
            times = worker.cpu_times()
            tell(f"{name}, the study's process at north", times.user + times.system, "processor seconds")
        assert through < local + 120
