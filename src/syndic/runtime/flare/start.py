"""Run a NVIDIA FLARE server or site in this process, from a prepared folder, until it is stopped."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from syndic.errors import MissingExtraError
from syndic.runtime.flare.parts import PROCESS


def run_server(workspace: Path) -> int:
    """Run the coordinator's server in the foreground; return its exit status."""
    try:
        from nvflare.fuel.f3.mpm import MainProcessMonitor  # noqa: PLC0415
        from nvflare.private.fed.app.server.server_train import main  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("nvflare", "flare") from None
    arguments = _arguments(workspace, ["secure_train=true", "org=syndic", "config_folder=config"])
    arguments.fed_server = "fed_server.json"
    return _run(MainProcessMonitor, main, workspace, arguments)


def run_site(workspace: Path, name: str) -> int:
    """Run a party's site in the foreground; return its exit status.

    The engine's own commands (deploy a job, run a shell command, send a log) are disabled: the site answers
    calls of studies only.
    """
    try:
        from nvflare.fuel.f3.mpm import MainProcessMonitor  # noqa: PLC0415
        from nvflare.fuel.f3.sfm.sfm_conn import SfmConnection  # noqa: PLC0415
        from nvflare.private.fed.app.client.client_train import main  # noqa: PLC0415
        from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("nvflare", "flare") from None
    ClientRequestProcessors.request_processors.clear()
    _name_process(SfmConnection)
    arguments = _arguments(workspace, [f"uid={name}", "secure_train=true", "org=syndic", "config_folder=config"])
    arguments.fed_client = "fed_client.json"
    arguments.local_rank = 0
    return _run(MainProcessMonitor, main, workspace, arguments)


def _name_process(connection: Any) -> None:
    """Let every handshake tell the server this process from another one of the same site."""
    send, process = connection.send_handshake, os.urandom(16).hex()

    def send_named(self: Any, frame_type: int) -> None:
        self.local_endpoint.properties[PROCESS] = process
        send(self, frame_type)

    connection.send_handshake = send_named


def _run(monitor: Any, main: Any, workspace: Path, arguments: argparse.Namespace) -> int:
    try:
        return int(monitor.run(main_func=main, run_dir=str(workspace), args=arguments) or 0)
    except KeyboardInterrupt:
        # the engine's threads would keep the process alive; all our data is on disk at any time
        os._exit(130)


def _arguments(workspace: Path, settings: list[str]) -> argparse.Namespace:
    # parts of the engine read the command line of the process: hide ours
    sys.argv = sys.argv[:1]
    return argparse.Namespace(workspace=str(workspace), set=settings)
