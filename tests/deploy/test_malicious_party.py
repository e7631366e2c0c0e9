"""A party with a good certificate turns on the others: it passes for the server, or looks into other sites."""

import json
import subprocess
import sys

import pytest

import malicious_party
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
    command = [sys.executable, malicious_party.__file__, str(federation.home(name)), name, address, *aim]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_no_party_is_taken_for_the_server(federation: Federation, told: dict[str, str]) -> None:
    with Ledger.open(federation.home("north") / "ledger.sqlite") as ledger:
        assert not [entry for entry in ledger.entries() if entry.call == malicious_party.CALL]
    assert "not on the list" in told["registered as a relay"]
    pushed = {what: answer for what, answer in told.items() if what.startswith("push")}
    dropped = {f"push, newer token, from {origin}" for origin in ("server", "server.more")}
    assert len(pushed) == 6
    assert dropped < set(pushed)
    assert {answer for what, answer in pushed.items() if what not in dropped} == {"unauthenticated"}
    # no answer is no proof: the engine says in its log that it has dropped the two
    log = federation.log("server")
    assert all(f"is bound to origin northwest, not message origin {one}\n" in log for one in ("server", "server.more"))


@pytest.mark.parametrize("place", ["north", "server"])
def test_no_party_looks_into_other_processes(told: dict[str, str], place: str) -> None:
    assert told[f"looks into {place}"] == "unauthenticated"


def test_a_removed_certificate_cannot_even_connect(federation: Federation) -> None:
    # a connection is enough to get the calls for that name, and the engine ends an older one
    refused = "a site that calls itself 'southwest' was refused"
    federation.admit("southwest")
    assert attacked(federation, "southwest", "120")["greeted"].startswith("ok")
    assert refused not in federation.log("server")
    federation.coordinator.remove("southwest")
    assert not attacked(federation, "southwest", "4")["greeted"].startswith("ok")
    assert refused in federation.log("server")


def test_the_federation_still_works(federation: Federation, told: dict[str, str]) -> None:
    assert told
    assert federation.connected() == set(PARTIES)
