"""Parties on machines of their own, as far as the network can tell: a namespace and an address for each."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from federation import PARTIES, SEED, Federation, alike, horizontal, same

BRIDGE = "syndic0"
NETWORK = "10.203.77"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[None]:
    """A bridge with the server's address, and a namespace with an address for each party."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need iproute2")
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces need the right to make them: run as root")
    made: list[str] = []
    try:
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(PARTIES):
            ip("netns", "add", f"syndic-{name}")
            made.append(name)
            ip("link", "add", f"sy{number}", "type", "veth", "peer", "name", "eth0", "netns", f"syndic-{name}")
            ip("link", "set", f"sy{number}", "master", BRIDGE, "up")
            ip("-n", f"syndic-{name}", "addr", "add", f"{NETWORK}.{number + 2}/24", "dev", "eth0")
            ip("-n", f"syndic-{name}", "link", "set", "eth0", "up")
            ip("-n", f"syndic-{name}", "link", "set", "lo", "up")
        yield
    finally:
        for name in made:
            ip("netns", "del", f"syndic-{name}")
        ip("link", "del", BRIDGE)


def test_the_release_is_the_same_between_addresses(network: None, tmp_path: Path) -> None:
    federation = Federation(tmp_path / "federation", PARTIES, host=f"{NETWORK}.1")
    federation.prefix = lambda name: [] if name == "server" else ["ip", "netns", "exec", f"syndic-{name}"]
    try:
        for name in ("server", *PARTIES):
            federation.start(name)
        federation.wait_for(*PARTIES)
        federation.put(alike())
        study = federation.identified(horizontal('method = "homm"'))
        federation.agree(study, SEED)
        expected = federation.local(study, SEED, tmp_path / "homes")
        same(federation.run(study, SEED), expected, tmp_path)
        log = (federation.coordinator.workspace / "engine.log").read_text()
        assert all(f"ipv4:{NETWORK}.{number + 2}:" in log for number in range(len(PARTIES)))
    finally:
        federation.close()
