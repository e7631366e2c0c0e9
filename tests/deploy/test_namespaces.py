"""Parties on machines of their own, as far as the network can tell: a namespace and an address for each."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from federation import PARTIES, SEED, Federation, alike, horizontal, same

# of this process: another run on the same machine, or what is left of one that was killed, is not in the way
MARK = os.getpid() % 250
BRIDGE = f"syndic{MARK}"
NETWORK = f"10.203.{MARK}"


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if "not permitted" in done.stderr:
        pytest.skip("network namespaces need the right to make them: run as root")
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def space(name: str) -> str:
    return f"{BRIDGE}-{name}"


@pytest.fixture
def network() -> Iterator[None]:
    """A bridge with the server's address, and a namespace with an address for each party."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need iproute2")
    ip("link", "add", BRIDGE, "type", "bridge")
    made: list[str] = []
    try:
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(PARTIES):
            ip("netns", "add", space(name))
            made.append(name)
            line = f"sy{MARK}-{number}"
            ip("link", "add", line, "type", "veth", "peer", "name", "eth0", "netns", space(name))
            ip("link", "set", line, "master", BRIDGE, "up")
            ip("-n", space(name), "addr", "add", f"{NETWORK}.{number + 2}/24", "dev", "eth0")
            ip("-n", space(name), "link", "set", "eth0", "up")
            ip("-n", space(name), "link", "set", "lo", "up")
        yield
    finally:
        for name in made:
            ip("netns", "del", space(name))
        ip("link", "del", BRIDGE)


def test_the_release_is_the_same_between_addresses(network: None, tmp_path: Path) -> None:
    federation = Federation(tmp_path / "federation", PARTIES, host=f"{NETWORK}.1")
    federation.prefix = lambda name: [] if name == "server" else ["ip", "netns", "exec", space(name)]
    try:
        for name in ("server", *PARTIES):
            federation.start(name)
        federation.wait_for(*PARTIES)
        federation.put(alike())
        study = federation.identified(horizontal('method = "homm"'))
        federation.agree(study, SEED)
        expected = federation.local(study, SEED, tmp_path / "homes")
        same(federation.run(study, SEED), expected, tmp_path)
        log = federation.log("server")
        assert all(f"ipv4:{NETWORK}.{number + 2}:" in log for number in range(len(PARTIES)))
    finally:
        federation.close()
