"""One operating-system process per party, over local sockets.

A socket pair is created before each process starts and is inherited by it, so there is no port that others could
reach and no secret to pass on. A process that died or timed out is restarted at the next call; its ledger and stored
answers are in a file, so it continues where it stopped.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from syndic.errors import RefusedError
from syndic.kernel import Delivery, Node, Reply, answer, encode
from syndic.kernel.call import ENVELOPE_BYTES
from syndic.runtime.frame import receive_frame, send_frame
from syndic.runtime.gather import gather

_MOST_AT_ONCE = 32


@final
@dataclass(frozen=True, kw_only=True)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: socket.socket

    def stop(self, *, patience: float = 0.0) -> None:
        """Close the connection, give the process `patience` seconds to close its files, then kill it."""
        self.connection.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@final
class Processes:
    """Runs one command per party; the command must call `serve` on the socket it inherits."""

    def __init__(self, commands: Mapping[str, Sequence[str]], *, most: int) -> None:
        """Start nothing yet. A command gets the descriptor of its socket as last argument; `most` bounds a message."""
        self._commands = commands
        self._most = most + ENVELOPE_BYTES
        self._workers: dict[str, _Worker] = {}

    def restart(self, party: str) -> None:
        """Kill a party's process; it is restarted at the next call."""
        worker = self._workers.pop(party, None)
        if worker is not None:
            worker.stop()

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send all calls in parallel and collect the replies that arrive in time."""
        return gather(calls, self._exchange, seconds=seconds, arrived=arrived, at_once=_MOST_AT_ONCE)

    def _exchange(self, party: str, data: bytes, deadline: float) -> bytes | str:
        """Return the reply, or the reason why there is none."""
        worker = self._worker(party)
        try:
            worker.connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            send_frame(worker.connection, data)
            reply = receive_frame(worker.connection, most=self._most, deadline=deadline)
        except TimeoutError:
            reason = "no answer in time; its process was stopped and its stored answers are kept"
        except RefusedError as error:
            reason = str(error)
        except OSError as error:
            reason = f"the connection broke ({type(error).__name__})"
        else:
            if reply is not None:
                return reply
            reason = f"its process ended (exit status {worker.process.wait()})"
        # a late reply would be taken for the reply to the next call: restart the process
        worker.stop()
        self._workers.pop(party, None)
        return reason

    def _worker(self, party: str) -> _Worker:
        if party not in self._workers:
            here, there = socket.socketpair()
            command = [*self._commands[party], str(there.fileno())]
            # its own session: an interrupt at the terminal is handled by this process only
            process = subprocess.Popen(command, pass_fds=[there.fileno()], start_new_session=True)
            there.close()
            self._workers[party] = _Worker(process=process, connection=here)
        return self._workers[party]

    def close(self) -> None:
        """Stop every process."""
        # after an interrupt a thread may still start one: it ends when this process does
        for worker in list(self._workers.values()):
            worker.stop(patience=5.0)
        self._workers.clear()


def serve(node: Node, connection: socket.socket) -> None:
    """Answer calls on the connection until the other side closes it."""
    most = node.state.terms.limits.message_mb * 10**6 + ENVELOPE_BYTES
    while True:
        try:
            data = receive_frame(connection, most=most)
        except RefusedError as error:
            # the rest of the stream cannot be separated from the refused frame: reply with the reason, then close
            send_frame(connection, encode(Reply(code=error.code, text=str(error))))
            return
        except ConnectionError:  # closed before it read the last reply
            return
        if data is None:
            return
        send_frame(connection, answer(node, data))
