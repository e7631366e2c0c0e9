"""A party with a good certificate turns on the others: it passes for the server, or looks into other sites."""

import json
import subprocess
import sys

import pytest

import dishonest
from federation import ALIKE, PARTIES, Federation, alike
from support import study_text
from syndic.privacy import Ledger
from syndic.study import Study


@pytest.fixture(scope="module")
def told(federation: Federation) -> dict[str, str]:
    study = federation.identified(Study.loads(study_text(protocol='method = "homm"', parties=ALIKE)))
    federation.put(alike())
    federation.agree(study, None)
    federation.wait_for(*PARTIES)
    federation.admit("northwest")
    try:
        return attacked(federation, "northwest", "north", study.digest)
    finally:
        federation.coordinator.remove("northwest")


def attacked(federation: Federation, name: str, *aim: str) -> dict[str, str]:
    """Let a dishonest party try; return what came back."""
    address = f"{federation.host}:{federation.port}"
    command = [sys.executable, dishonest.__file__, str(federation.home(name)), name, address, *aim]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_no_party_is_taken_for_the_server(federation: Federation, told: dict[str, str]) -> None:
    with Ledger.open(federation.home("north") / "ledger.sqlite") as ledger:
        assert not [entry for entry in ledger.entries() if entry.call == dishonest.CALL]
    assert told["registered as a relay"] != "accepted"
    pushed = [answer for what, answer in told.items() if what.startswith("push")]
    assert len(pushed) == 6
    assert not [answer for answer in pushed if answer.startswith("ok")]


@pytest.mark.parametrize("place", ["north", "server"])
def test_no_party_looks_into_other_processes(told: dict[str, str], place: str) -> None:
    assert not told[f"looks into {place}"].startswith("ok")


def test_a_removed_certificate_cannot_even_connect(federation: Federation) -> None:
    # a connection is enough to get the calls for that name, and the engine ends an older one
    federation.admit("southwest")
    assert attacked(federation, "southwest")["greeted"].startswith("ok")
    federation.coordinator.remove("southwest")
    assert not attacked(federation, "southwest")["greeted"].startswith("ok")


def test_the_federation_still_works(federation: Federation, told: dict[str, str]) -> None:
    assert told
    assert federation.connected() == set(PARTIES)
