"""Parties at other organisations, reached through a NVIDIA FLARE server.

The coordinator's process connects to the server on its own machine, through a socket in the coordinator's folder; the
server is connected to each party's site by mutual TLS. Messages are sent in parts, so no process in between holds more
than one part. A site that is unavailable for a moment is asked again: the same bytes get the same stored answer.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import final

from syndic.errors import InputError, RefusedError
from syndic.kernel import Delivery, decode, encode
from syndic.runtime.flare.parts import MOST_AT_ONCE, PART_BYTES, Forward, Forwarded, Part, Pull, Push
from syndic.runtime.frame import receive_frame, send_frame
from syndic.runtime.gather import gather

# Time limit of one request to a site, with a part of a message, on a slow line.
_REQUEST_SECONDS = 120.0
# A site waits this long for its own answer before it replies that it is still working.
_WAIT_SECONDS = 10.0
# The server must time out first, so that it can report the reason.
_GRACE_SECONDS = 30.0
_MOST_FRAME = 4 * PART_BYTES

SERVER_AWAY = "the server on this machine is not running"


@final
class Flare:
    """Carries calls to sites, in parallel."""

    def __init__(self, socket_file: Path, *, study: str, most: int, patience: float = 60.0) -> None:
        """Reach sites through the server's socket.

        Args:
            socket_file: where the running server listens for its own coordinator.
            study: the digest that calls carry.
            most: the largest reply in bytes.
            patience: how many seconds a site may be unavailable before a call to it fails.
        """
        self._socket_file = socket_file
        self._study = study
        self._most = most
        self._patience = patience

    def connected(self) -> tuple[str, ...]:
        """Return the names of the connected sites."""
        answer = ask_server(self._socket_file, Forward(site="", kind="sites", body=b"", seconds=10.0))
        if answer.reason:
            raise InputError(f"{answer.reason}: start it with `syndic coordinator start`, then try again")
        return tuple(answer.body.decode().split())

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send all calls in parallel and collect the replies that arrive in time."""
        return gather(calls, self._exchange, seconds=seconds, arrived=arrived, at_once=MOST_AT_ONCE)

    def close(self) -> None:
        """Do nothing: no connection is kept between calls."""

    def _exchange(self, site: str, data: bytes, deadline: float) -> bytes | str:
        """Return the site's reply, or the reason why there is none."""
        away_since: float | None = None
        transfer = _Transfer(site, self._study, data, self._most)
        while (now := time.monotonic()) < deadline:
            answer = ask_server(self._socket_file, transfer.question(deadline - now))
            if answer.reason:
                away_since = away_since or now
                if now - away_since > self._patience:
                    return f"{answer.reason} for {self._patience:g} seconds"
                time.sleep(min(1.0, max(deadline - time.monotonic(), 0.0)))
                transfer.start_again()
                continue
            away_since = None
            try:
                reply = transfer.take(decode(answer.body, Part))
            except RefusedError as error:
                # an invalid reply of one site counts as silence of that party: it must not end the run
                return str(error)
            if reply is not None:
                return reply
        return "no answer in time; its stored answers are kept"


class _Transfer:
    """One message on its way to one site, and its reply on the way back."""

    def __init__(self, site: str, study: str, data: bytes, most: int) -> None:
        self._site = site
        self._study = study
        self._data = memoryview(data)
        # unique to this exchange: the same request in a later run is sent to the party again
        self._name = os.urandom(16).hex()
        self._most = most
        self.start_again()

    def start_again(self) -> None:
        """Restart the transfer: the site may have been restarted."""
        self._sent = 0
        self._asking = False
        self._reply = bytearray()

    def question(self, seconds: float) -> Forward:
        """Return the next request."""
        wait = max(min(_WAIT_SECONDS, seconds - 1.0), 0.05)
        if self._asking:
            pull = Pull(study=self._study, transfer=self._name, offset=len(self._reply), seconds=wait)
            return Forward(site=self._site, kind="pull", body=encode(pull), seconds=min(_REQUEST_SECONDS, seconds))
        body = bytes(self._data[self._sent : self._sent + PART_BYTES])
        push = Push(
            study=self._study,
            transfer=self._name,
            total=len(self._data),
            offset=self._sent,
            body=body,
            seconds=wait,
        )
        return Forward(site=self._site, kind="push", body=encode(push), seconds=min(_REQUEST_SECONDS, seconds))

    def take(self, part: Part) -> bytes | str | None:
        """Process the site's response; return the complete reply, or why there will be none, once known."""
        if part.state == "lost":
            # another process at the site, or another call in between
            self.start_again()
        elif part.state == "more":
            self._sent = part.total
        elif part.state == "working":
            self._asking = True
        elif part.total > self._most:
            return f"a reply of {part.total} bytes was announced; the limit is {self._most}"
        elif part.offset == len(self._reply):
            self._asking = True
            self._reply += part.body
            if len(self._reply) >= part.total:
                return bytes(self._reply)
        return None


def ask_server(path: Path, question: Forward) -> Forwarded:
    """Send a request to the server at this socket; if it is not running, return that as the reason."""
    try:
        with socket.socket(socket.AF_UNIX) as connection, reachable(path) as address:
            connection.settimeout(question.seconds + _GRACE_SECONDS)
            connection.connect(address)
            send_frame(connection, encode(question))
            frame = receive_frame(connection, most=_MOST_FRAME)
    except OSError:
        frame = None
    except RefusedError as error:
        return Forwarded(reason=str(error))
    return Forwarded(reason=SERVER_AWAY) if frame is None else decode(frame, Forwarded)


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a short address for a socket's file: the system limits addresses to about 100 characters."""
    folder = os.open(path.parent, os.O_RDONLY) if path.parent.is_dir() else None
    try:
        by_folder = folder is not None and Path("/proc/self/fd").is_dir()
        yield f"/proc/self/fd/{folder}/{path.name}" if by_folder else str(path)
    finally:
        if folder is not None:
            os.close(folder)
