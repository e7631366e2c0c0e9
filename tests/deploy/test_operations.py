"""What administrators meet: a folder served twice, a copy of a folder, and what the doctor says of a running server."""

import shutil
import subprocess
import sys

from federation import Federation, wait_until
from syndic.federation.party import workspace_of
from syndic.runtime.flare.look import look


def test_a_folder_is_served_once_and_a_copy_of_it_is_named(federation: Federation) -> None:
    command = [sys.executable, "-m", "syndic"]
    for words in (
        ["join", str(federation.home("north"))],
        ["coordinator", "start", str(federation.coordinator.folder)],
    ):
        again = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=False)
        assert again.returncode == 2
        assert "serves this folder already: stop it first" in again.stderr
    startup = workspace_of(federation.home("north")) / "startup"
    seen = look(federation.host, federation.port, startup, seconds=30.0)
    assert (seen.admitted, seen.connected, seen.twice) == (True, True, False)
    # another machine with a copy of the folder
    copy = federation.home("copy")
    shutil.copytree(federation.home("north"), copy, ignore=shutil.ignore_patterns("tmp", "*.log*", "*.sock"))
    federation.start("copy")
    try:
        wait_until(lambda: look(federation.host, federation.port, startup, seconds=30.0).twice, federation.told)
        assert "two processes connect as 'north'" in federation.log("server")
    finally:
        federation.kill("copy")
        federation.restart("north")
    wait_until(lambda: not look(federation.host, federation.port, startup, seconds=30.0).twice, federation.told)
