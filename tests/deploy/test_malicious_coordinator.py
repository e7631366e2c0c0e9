"""A coordinator that turns on its parties with all that the engine offers: jobs, code, class names, shell commands.

`ours` runs `syndic join`, which hears nothing that is not about a study. The other two stand without that. `deaf` runs
our site without what carries out the engine's orders; `bare` runs the engine's own client over the same policy files,
with what it would need to run jobs put back: there the policy stands alone.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import malicious_coordinator
from federation import Federation, wait_until
from syndic.federation.flare_config import SITE_CLASS
from syndic.federation.party import workspace_of

SITES = ("ours", "deaf", "bare")
UNGUARDED = "echo_site.Unguarded"
DEAF = "from pathlib import Path; from syndic.runtime.flare.start import run_site; run_site(Path({place!r}), 'deaf')"
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


def unguarded(workspace: Path, *, jobs: bool) -> None:
    """Take our component away, and put back what the engine needs to run jobs; the policy stays."""
    path = workspace / "local" / "resources.json"
    resources = json.loads(path.read_text().replace(SITE_CLASS, UNGUARDED))
    for name, place in NEEDED.items() if jobs else ():
        arguments = {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0} if name == "resource_manager" else {}
        resources["components"].append({"id": name, "path": place, "args": arguments})
    path.write_text(json.dumps(resources))


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Federation, Path, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("hostile")
    federation = Federation(folder, SITES)
    malicious_coordinator.turn_hostile(federation.coordinator, folder / "kit")
    marker = folder / "marker"
    for site in SITES:
        touch = {"path": "subprocess.Popen", "args": {"args": ["touch", str(marker)]}}
        malicious_coordinator.write_job(folder / "jobs" / f"class-{site}", executor=touch, sites=[site])
        code = f"open({str(marker)!r}, 'w')\nclass Evil: pass\n"
        evil = {"path": "evil.Evil", "args": {}}
        malicious_coordinator.write_job(folder / "jobs" / f"code-{site}", executor=evil, sites=[site], code=code)
    try:
        federation.start("server")
        federation.start("ours")
        for site, code in (("deaf", DEAF), ("bare", ENGINE)):
            workspace = workspace_of(federation.home(site))
            unguarded(workspace, jobs=site == "bare")
            federation.start_python(site, code.format(place=str(workspace)))
        outputs = [folder / f"{site}.out" for site in SITES]
        wait_until(lambda: all("connected;" in output.read_text() for output in outputs), federation.told)
        command = [sys.executable, malicious_coordinator.__file__, str(folder / "kit"), str(folder / "jobs"), *SITES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        yield federation, marker, json.loads(done.stdout.splitlines()[-1])
    finally:
        federation.close()


@pytest.mark.parametrize("job", ["code", "class"])
def test_a_job_is_refused(attack: tuple[Federation, Path, dict[str, Any]], job: str) -> None:
    federation, marker, told = attack
    assert "deaf: invalid_request" in str(told[f"{job}-deaf"]["schedule_history"])
    assert "bare: user 'admin@hostile.org' is not authorized for 'submit_job'" in str(told[f"{job}-bare"])
    assert told[f"{job}-ours"]["status"] == "SUBMITTED", "the scheduler found nobody who would run it"
    assert not marker.exists()
    assert not [path for site in SITES for path in federation.home(site).rglob("evil.py")]


@pytest.mark.parametrize("command", ["cat {} engine.log", "ls {} .", "shutdown client {}"])
def test_the_engines_own_orders_are_refused(attack: tuple[Federation, Path, dict[str, Any]], command: str) -> None:
    federation, _, told = attack
    assert "invalid_request" in told[command.format("deaf")]
    assert "is not authorized" in told[command.format("bare")]
    answers = [told[command.format(site)] for site in SITES]
    assert not [answer for answer in answers if "registered" in answer or "startup" in answer], "no log, no file's name"
    assert all(federation.processes[site].poll() is None for site in SITES)


def test_our_site_refuses_before_the_engine_looks(attack: tuple[Federation, Path, dict[str, Any]]) -> None:
    federation, _, told = attack
    orders = [one for one in told if "ours" in one]
    refused = "a message on channel 'admin' was refused: it is not from the server, or not about a study"
    assert len(orders) == 5
    assert federation.log("ours").count(refused) >= len(orders), "two jobs and three orders"
    assert all(refused not in federation.log(site) for site in ("deaf", "bare")), "these stand without it"


def test_a_class_that_is_not_listed_is_not_made(attack: tuple[Federation, Path, dict[str, Any]]) -> None:
    """The list of classes would stop a job as well, if the others did not."""
    code = """
import sys
from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.apis.workspace import Workspace
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
place, name, *paths = sys.argv[1:]
for path in paths:
    try:
        ComponentPathAuthorizer().authorize_component_config({"path": path}, workspace=Workspace(place, name))
        print("listed")
    except UnsafeComponentError as error:
        print(error)
"""
    workspace = workspace_of(attack[0].home("ours"))
    command = [sys.executable, "-c", code, str(workspace), "ours", SITE_CLASS, "subprocess.Popen"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    ours, theirs = done.stdout.splitlines()[-2:]
    assert ours == "listed"
    assert "is not in allow_list" in theirs
