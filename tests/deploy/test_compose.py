"""The compose file's commands as processes, without an engine: a folder for each service, a read-only system."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from federation import end, free_port, wait_until
from syndic.study import Release

FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
# as `read_only: true` does; the folder of the test is mounted elsewhere and stays as it is
SEALED = "mount --bind / / && mount -o remount,ro,bind / && exec setpriv --no-new-privs"


def sealed(folder: Path) -> list[str]:
    """The command that makes the system read-only but for a folder, where this account may do so."""
    other = folder.stat().st_dev != Path("/").stat().st_dev
    tried = ["unshare", "--mount", "sh", "-c", f"{SEALED} true"]
    if (
        not other
        or shutil.which("unshare") is None
        or subprocess.run(tried, capture_output=True, check=False).returncode
    ):
        return []
    return ["unshare", "--mount", "sh", "-c", f'{SEALED} "$@"', "sh"]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    program = tmp_path / "bin" / "syndic"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m syndic "$@"\n')
    program.chmod(0o755)
    for name in ("exchange", "tmp"):
        (tmp_path / name).mkdir()
    port, started = str(free_port()), {}
    for name, service in yaml.safe_load(FILE.read_text())["services"].items():
        (script,) = service["command"]
        script = script.replace("$$", "$").replace("/exchange", str(tmp_path / "exchange"))
        environment = {
            **service["environment"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        environment |= {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path / name),
            "TMPDIR": str(tmp_path / "tmp"),
        }
        if name == "coordinator":
            environment |= {"ADDRESS": "127.0.0.1", "PORT": port}
        (tmp_path / name).mkdir()
        command = [*sealed(tmp_path), *service["entrypoint"], script]
        with (tmp_path / f"{name}.out").open("wb") as file:
            started[name] = subprocess.Popen(command, cwd=tmp_path / name, env=environment, stdout=file, stderr=file)
    yield started
    end(started.values())


def test_the_services_lead_to_a_release(tmp_path: Path, services: dict[str, subprocess.Popen[bytes]]) -> None:
    def ended() -> bool:
        return any(process.poll() is not None for process in services.values())

    def told() -> str:
        return "\n".join(f"{path.name}\n{path.read_text()}" for path in sorted(tmp_path.glob("*.out")))

    wait_until(ended, told, seconds=900)
    assert services["coordinator"].poll() == 0, told()
    release = Release.load(tmp_path / "exchange" / "run")
    assert release.statement.protects
    assert {party.name for party in release.study.parties} == {"north", "south"}
    # nothing of a site but its request and approval is where the others can read it
    exchanged = {path.name for path in (tmp_path / "exchange").iterdir()} - {"run", "study.toml"}
    assert exchanged == {"north.json", "south.json", "approval-north.json", "approval-south.json"}
