"""Processes killed and started again, at parties and at the coordinator: nothing is lost or charged twice."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from federation import PARTIES, SEED, Federation, alike, horizontal, same, split, vertical
from support import rows, study_text
from syndic import Study
from syndic.document import to_readable_json
from syndic.errors import PartyError
from syndic.federation.coordinator import Coordinator
from syndic.study import Release

MARGINALS = 'method = "marginals"\ncliques = [["colour"], ["age"]]\nmissing = 1'


def at_step(step: str, act: Callable[[], None]) -> Callable[[str, int, int], None]:
    """Progress that acts once, when a step is about to be asked."""
    done = threading.Event()

    def progress(what: str, _done: int, _total: int) -> None:
        if what == step and not done.is_set():
            done.set()
            act()

    return progress


def agreed(federation: Federation, study: Study) -> Study:
    study = federation.identified(study)
    federation.agree(study, SEED)
    return study


def charged_once(federation: Federation, study: Study) -> None:
    for party in study.parties:
        charged = [event for entry in federation.charges(study, SEED, party.name) for event in entry.events]
        assert sorted(map(str, charged)) == sorted(map(str, study.plan.events(party.name)))


def test_a_killed_process_of_a_study_is_started_anew(federation: Federation, tmp_path: Path) -> None:
    federation.put(alike())
    study = agreed(federation, horizontal('method = "homm"', name="worker killed"))
    expected = federation.local(study, SEED, tmp_path / "homes")
    killed = []

    def kill_workers() -> None:
        for worker in federation.workers("south"):
            killed.append(worker.pid)
            worker.kill()

    release = federation.run(study, SEED, progress=at_step("sanitise", kill_workers))
    assert killed
    same(release, expected, tmp_path)
    charged_once(federation, study)


def test_a_site_killed_in_the_middle_goes_on_when_it_is_back(federation: Federation, tmp_path: Path) -> None:
    federation.put(split())
    study = agreed(federation, vertical("site killed"))
    expected = federation.local(study, SEED, tmp_path / "homes")

    def restart() -> None:
        federation.kill("east")
        federation.start("east")

    step = expected.transcript[len(expected.transcript) // 2].step
    release = federation.run(study, SEED, progress=at_step(step, restart), patience=120.0)
    same(release, expected, tmp_path)
    charged_once(federation, study)


def test_a_lost_site_is_named_where_the_method_needs_it(federation: Federation) -> None:
    federation.put(alike())
    study = agreed(federation, horizontal('method = "homm"', name="site lost"))
    federation.kill("east")
    try:
        reasons = r"east: its site (does not answer|is not connected|disconnected)"
        with pytest.raises(PartyError, match=reasons) as told:
            federation.run(study, SEED, patience=3.0)
        assert "north" not in str(told.value).split(". ", 1)[1]
    finally:
        federation.restart("east")
    assert federation.run(study, SEED).transcript
    charged_once(federation, study)


def test_a_lost_site_is_left_out_where_the_method_bears_it(federation: Federation) -> None:
    names = [*PARTIES, "west", "coast"]
    for name in names[3:]:
        federation.admit(name)
        federation.start(name)
    federation.put({name: rows(60, seed) for seed, name in enumerate(names)})
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = 60\n' for name in names)
    text = study_text(budget="epsilon = 2.0\ndelta = 1e-5", protocol=MARGINALS, parties=parties)
    study = agreed(federation, Study.loads(text))
    try:
        federation.wait_for(*names)
        progress = at_step("count", lambda: federation.kill("coast"))
        release = federation.run(study, SEED, patience=3.0, progress=progress)
    finally:
        for name in {"west", "coast"} & set(federation.processes):
            federation.kill(name)
    assert {line.party for line in release.transcript if line.step == "count"} == set(names) - {"coast"}
    assert federation.charges(study, SEED, "coast") == []


def test_the_server_killed_in_the_middle_and_started_again(federation: Federation, tmp_path: Path) -> None:
    federation.put(split())
    study = agreed(federation, vertical("server killed"))
    expected = federation.local(study, SEED, tmp_path / "homes")

    def restart() -> None:
        federation.kill("server")
        federation.start("server")

    step = expected.transcript[len(expected.transcript) // 2].step
    release = federation.run(study, SEED, progress=at_step(step, restart), patience=180.0)
    same(release, expected, tmp_path)
    charged_once(federation, study)


def test_a_killed_coordinator_resumes_without_a_second_charge(federation: Federation, tmp_path: Path) -> None:
    federation.put(split())
    study = agreed(federation, vertical("coordinator killed"))
    expected = federation.local(study, SEED, tmp_path / "homes")
    (tmp_path / "study.json").write_bytes(to_readable_json(study))
    journal = federation.coordinator.folder / "studies"
    size = {path: path.stat().st_size for path in journal.glob("*.sqlite*")}
    command = [sys.executable, "-m", "syndic", "run", str(tmp_path / "study.json"), "--home"]
    command += [str(federation.coordinator.folder), "--rehearsal", str(SEED), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # something was heard and kept, and the run is not over
    while process.poll() is None and not any(
        path.stat().st_size > 0 for path in journal.glob("*.sqlite*") if path not in size
    ):
        time.sleep(0.02)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "run" / "statement.json").exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    same(Release.load(tmp_path / "run"), expected, tmp_path)
    charged_once(federation, study)


def test_a_server_elsewhere_and_with_a_new_key_is_found_again(federation: Federation, tmp_path: Path) -> None:
    federation.put(alike())
    study = agreed(federation, horizontal('method = "homm"', name="server moved"))
    expected = federation.run(study, SEED)
    federation.kill("server")
    shutil.move(federation.coordinator.folder, federation.folder / "elsewhere")
    federation.coordinator = Coordinator.open(federation.folder / "elsewhere")
    # from now on an issuing authority signs, and the root's key is elsewhere
    federation.coordinator.appoint()
    root = federation.coordinator.folder / "authority" / "root.key"
    root.rename(tmp_path / "root.key")
    federation.coordinator.renew(days=30)
    federation.kill("north")
    federation.admit("north", renew=True)
    (tmp_path / "root.key").rename(root)
    federation.start("server")
    federation.start("north")
    # sites notice that their old tokens are worth nothing, and register anew
    federation.wait_for(*PARTIES)
    same(federation.run(study, SEED), expected, tmp_path)
    charged_once(federation, study)
    assert not (federation.folder / "coordinator").exists(), "nothing is written where the folder was"
