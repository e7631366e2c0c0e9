"""Start the console of a folder, in the foreground."""

import ipaddress
import socket
from pathlib import Path

import uvicorn

from syndic.console import federation, studies
from syndic.console.access import Proxy, role_of
from syndic.console.web import application
from syndic.errors import InputError


def hosts_of(host: str, port: int) -> list[str]:
    """Return the host names under which a console at this address answers; all others are refused."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104  # to refuse it
        raise InputError(f"--host {host}: name the one address under which browsers reach this console")
    names = {host, "localhost", "127.0.0.1"} if is_loopback(host) else {host}
    return sorted(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)


def open_socket(host: str, port: int) -> socket.socket:
    """Listen at the address; raise `InputError` if it is in use."""
    hosts_of(host, port)
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        # a bound address without a listener can be taken by others
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(f"{host}:{port}: the console cannot listen there: {error.strerror}") from None
    return listening


def serve(folder: Path, listening: socket.socket, *, host: str, port: int, proxy: Proxy | None = None) -> None:
    """Answer on an open socket until stopped."""
    role = role_of(folder)
    name = (studies.overview if role == "party" else federation.overview)(folder).name
    app = application(folder, role=role, name=name, hosts=hosts_of(host, port), proxy=proxy)
    # requests are not logged: their headers contain the cookie
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        date_header=False,
        ws="none",
        # else any program of this machine could pretend to connect from the proxy's address
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Return whether the address is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
