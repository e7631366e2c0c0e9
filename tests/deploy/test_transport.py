"""Bytes there and back through a site that answers anything: large ones, failures, restarts of a transfer."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from echo_site import SECRET
from federation import Federation
from syndic.federation.flare_config import SITE_CLASS
from syndic.federation.party import workspace_of
from syndic.kernel import Reply, decode
from syndic.runtime.flare.coordinator import Flare


@pytest.fixture(scope="module")
def echo(federation: Federation) -> Iterator[Federation]:
    federation.admit("echo")
    workspace = workspace_of(federation.home("echo"))
    resources = workspace / "local" / "resources.json"
    resources.write_text(resources.read_text().replace(SITE_CLASS, "echo_site.EchoSite"))
    load = "from pathlib import Path; from syndic.runtime.flare.start import run_site; "
    code = f"{load}run_site(Path({str(workspace)!r}), 'echo')"
    federation.start_python("echo", code)
    federation.wait_for("echo")
    yield federation
    federation.kill("echo")
    federation.coordinator.remove("echo")


@pytest.fixture(scope="module", autouse=True)
def failed_at(echo: Federation) -> float:
    """Let the site fail with a secret before all tests; return when."""
    for study in ("fail", "fail early"):
        reply = decode(sent(echo, b"go", study), Reply)
        assert reply.code == "internal"
        assert SECRET not in reply.text
    return time.monotonic()


def sent(federation: Federation, data: bytes, study: str = "any", seconds: float = 600.0) -> bytes:
    runtime = Flare(federation.coordinator.socket, study=study, most=10**9, patience=120.0)
    delivery = runtime.send({"echo": data}, seconds=seconds, arrived=lambda _done: None)
    assert not delivery.silent, delivery.silent
    return delivery.replies["echo"]


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20])
def test_every_size_arrives_whole(echo: Federation, size: int) -> None:
    data = os.urandom(size)
    assert sent(echo, data) == data[::-1]


def test_200_megabytes_pass_and_the_server_holds_parts_only(echo: Federation) -> None:
    server = psutil.Process(echo.processes["server"].pid)
    sent(echo, os.urandom(20 << 20))
    before = server.memory_info().rss
    data = os.urandom(200 * 10**6)
    assert sent(echo, data) == data[::-1]
    assert server.memory_info().rss - before < 100 * 10**6


def test_a_site_that_never_answers_is_named_in_time(federation: Federation) -> None:
    runtime = Flare(federation.coordinator.socket, study="0" * 64, most=10**6, patience=2.0)
    delivery = runtime.send({"nobody": b"hello"}, seconds=300.0, arrived=lambda _done: None)
    assert delivery.silent == {"nobody": "its site is not connected for 2 seconds"}


def test_a_secret_in_an_exception_or_a_log_stays_at_the_site(echo: Federation, failed_at: float) -> None:
    # the engine would send logs with its heartbeats, which come while the other tests run
    time.sleep(max(0.0, failed_at + 12 - time.monotonic()))
    assert SECRET.encode() in b"".join(everything(echo.home("echo"))), "the owner can read it"
    told = b"".join(everything(echo.coordinator.folder)) + (echo.folder / "server.out").read_bytes()
    assert SECRET.encode() not in told
    assert str(echo.home("echo")).encode() not in told, "not even where the party keeps its files"


def everything(folder: Path) -> Iterator[bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return (path.read_bytes() for path in files)
