"""A coordinator that turns on its parties with all that the engine offers: jobs, code, class names, shell commands.

`ours` runs `syndic join`. `bare` runs the engine's own client over the same policy files, with what it would need to
run jobs put back: there the policy stands alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hostile
from federation import Federation
from syndic.deploy.kit import SITE_CLASS
from syndic.deploy.party import workspace_of

SITES = ("ours", "bare")
ENGINE = """
import argparse
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.client.client_train import main
names = argparse.Namespace(workspace={place!r}, fed_client="fed_client.json", local_rank=0)
names.set = ["uid=bare", "secure_train=true", "org=syndic", "config_folder=config"]
MainProcessMonitor.run(main_func=main, run_dir=names.workspace, args=names)
"""
NEEDED = {
    "resource_manager": "nvflare.app_common.resource_managers.gpu_resource_manager.GPUResourceManager",
    "resource_consumer": "nvflare.app_common.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
    "process_launcher": "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher",
}


def with_jobs(workspace: Path) -> None:
    """Put back what the engine needs to run jobs; the policy stays."""
    path = workspace / "local" / "resources.json"
    resources = json.loads(path.read_text())
    for name, place in NEEDED.items():
        arguments = {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0} if name == "resource_manager" else {}
        resources["components"].append({"id": name, "path": place, "args": arguments})
    path.write_text(json.dumps(resources))


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Federation, Path, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("hostile")
    federation = Federation(folder, SITES)
    hostile.turn_hostile(federation.coordinator, folder / "kit")
    with_jobs(workspace_of(federation.home("bare")))
    marker = folder / "marker"
    for site in SITES:
        touch = {"path": "subprocess.Popen", "args": {"args": ["touch", str(marker)]}}
        hostile.write_job(folder / "jobs" / f"class-{site}", executor=touch, sites=[site])
        code = f"open({str(marker)!r}, 'w')\nclass Evil: pass\n"
        evil = {"path": "evil.Evil", "args": {}}
        hostile.write_job(folder / "jobs" / f"code-{site}", executor=evil, sites=[site], code=code)
    try:
        federation.start("server")
        federation.start("ours")
        federation.start_python("bare", ENGINE.format(place=str(workspace_of(federation.home("bare")))))
        end = time.monotonic() + 120
        while not all("connected;" in (folder / f"{site}.out").read_text() for site in SITES):
            assert time.monotonic() < end, [(folder / f"{site}.out").read_text() for site in SITES]
            time.sleep(0.5)
        command = [sys.executable, hostile.__file__, str(folder / "kit"), str(folder / "jobs"), *SITES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        yield federation, marker, json.loads(done.stdout.splitlines()[-1])
    finally:
        federation.close()


def test_a_job_with_code_is_refused(attack: tuple[Federation, Path, dict[str, Any]]) -> None:
    federation, marker, told = attack
    assert "invalid_request" in str(told["code-ours"]["schedule_history"])
    assert "bare: user 'admin@hostile.org' is not authorized for 'submit_job'" in str(told["code-bare"])
    assert not marker.exists()
    assert not list(federation.home("ours").rglob("evil.py"))


def test_a_class_that_is_not_listed_is_refused(attack: tuple[Federation, Path, dict[str, Any]]) -> None:
    federation, marker, told = attack
    assert "invalid_request" in str(told["class-ours"]["schedule_history"])
    assert "bare: user 'admin@hostile.org' is not authorized for 'submit_job'" in str(told["class-bare"])
    assert not marker.exists()
    # the list of classes would stop it as well, if the other two did not
    code = """
import sys
from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.apis.workspace import Workspace
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
place, name, path = sys.argv[1:]
try:
    ComponentPathAuthorizer().authorize_component_config({"path": path}, workspace=Workspace(place, name))
    print("listed")
except UnsafeComponentError as error:
    print(error)
"""
    for path, said in ((SITE_CLASS, "listed"), ("subprocess.Popen", "is not in allow_list")):
        command = [sys.executable, "-c", code, str(workspace_of(federation.home("ours"))), "ours", path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert said in done.stdout


@pytest.mark.parametrize("command", ["cat {} engine.log", "ls {} .", "shutdown client {}"])
def test_the_engines_own_orders_are_refused(attack: tuple[Federation, Path, dict[str, Any]], command: str) -> None:
    federation, _, told = attack
    assert "invalid_request" in told[command.format("ours")]
    assert "is not authorized" in told[command.format("bare")]
    assert "registered" not in told[command.format("ours")], "nothing of the log came back"
    assert all(federation.processes[site].poll() is None for site in SITES)
