"""Starts the console of a folder, in the foreground."""

import ipaddress
import socket
from pathlib import Path

import uvicorn

from syndic.console import federation, studies
from syndic.console.views import Role
from syndic.console.web import application
from syndic.errors import InputError


def role_of(folder: Path) -> Role:
    """Return what kind of folder this is."""
    if (folder / "coordinator.json").is_file():
        return "coordinator"
    if (folder / "party.toml").is_file():
        return "party"
    raise InputError(f"{folder}: is neither a party's home (with party.toml) nor a coordinator's folder")


def hosts_of(host: str, port: int) -> list[str]:
    """Return the names under which a console at this address answers; any other may be a trick."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104  # to refuse it
        raise InputError(f"--host {host}: name the one address under which browsers reach this console")
    names = {host, "localhost", "127.0.0.1"} if is_loopback(host) else {host}
    return sorted(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)


def open_door(host: str, port: int) -> socket.socket:
    """Take the address; raise `InputError` if somebody has it already."""
    hosts_of(host, port)
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        # an address that is bound but not listened at can be taken by others
        door.listen()
    except OSError as error:
        door.close()
        raise InputError(f"{host}:{port}: the console cannot listen there: {error.strerror}") from None
    return door


def serve(folder: Path, door: socket.socket, *, host: str, port: int) -> None:
    """Answer at an open door until stopped."""
    role = role_of(folder)
    name = (studies.overview if role == "party" else federation.overview)(folder).name
    app = application(folder, role=role, name=name, hosts=hosts_of(host, port))
    # a cookie on an open line would be anybody's, so requests are not logged with their headers either
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=3,
    )
    with door:
        uvicorn.Server(config).run(sockets=[door])


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
