"""Frames on a stream socket: eight bytes of length, then the data."""

import socket
import struct
import time

from syndic.errors import RefusedError

_HEADER = struct.Struct("<Q")
_CHUNK = 1 << 20


def send_frame(connection: socket.socket, data: bytes) -> None:
    """Send one frame."""
    connection.sendall(_HEADER.pack(len(data)))
    connection.sendall(data)


def receive_frame(connection: socket.socket, *, most: int, deadline: float | None = None) -> bytes | None:
    """Return the next frame, or None if the other side has closed.

    Raises:
        RefusedError: if a frame larger than `most` bytes is announced; its data is not read.
        TimeoutError: if the frame is not complete at `deadline` (of `time.monotonic`).
    """
    header = _receive(connection, _HEADER.size, deadline)
    if header is None:
        return None
    (length,) = _HEADER.unpack(header)
    if length > most:
        raise RefusedError(f"a message of {length} bytes was announced; the limit is {most}")
    return _receive(connection, length, deadline)


def _receive(connection: socket.socket, length: int, deadline: float | None) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
        part = connection.recv(min(_CHUNK, length - len(received)))
        if not part:
            return None
        received += part
    return bytes(received)
