"""The server's side: a component of a NVIDIA FLARE server that passes parts between its coordinator and sites.

It listens on a socket file that only the coordinator's own account can open, and holds one part at a time. It does
not read the content of the parts.
"""

import logging
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, final

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.drivers import grpc_driver
from nvflare.fuel.f3.message import Message as CellMessage

from syndic.errors import SyndicError
from syndic.kernel import decode, encode
from syndic.runtime.flare.coordinator import reachable
from syndic.runtime.flare.gate import Gate
from syndic.runtime.flare.look import serve_look
from syndic.runtime.flare.parts import CHANNEL, HELLO, MOST_AT_ONCE, PART_BYTES, Forward, Forwarded
from syndic.runtime.frame import receive_frame, send_frame

_LOG = logging.getLogger("syndic.server")
_IDLE_SECONDS = 60.0
_LOOK_SECONDS = 0.5


@final
class Relay(FLComponent):  # type: ignore[misc]  # the engine's classes are not typed
    """Forwards requests of the coordinator's process, one thread per request."""

    def __init__(self, socket_file: str, list_file: str) -> None:
        """Listen at `socket_file`; `list_file` gives every admitted site's certificate by its SHA-256."""
        super().__init__()
        self._path = Path(socket_file)
        self._gate = Gate(Path(list_file), self._path.with_name("tokens.json"))
        self._engine: Any = None
        self._pool = ThreadPoolExecutor(max_workers=MOST_AT_ONCE, thread_name_prefix="syndic relay")
        add = grpc_driver.add_StreamerServicer_to_server

        def add_both(servicer: Any, server: Any) -> None:
            add(servicer, server)
            serve_look(server, self._seen)

        # the engine makes its gRPC server after its components, and answers nothing but its own stream
        grpc_driver.add_StreamerServicer_to_server = add_both

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Start listening when the server is running."""
        if event_type == EventType.SYSTEM_START and self._engine is None:
            self._engine = fl_ctx.get_engine()
            self._gate.guard(self._engine)
            self._engine.get_cell().core_cell.register_request_cb(channel=CHANNEL, topic=HELLO, cb=self._hello)
            threading.Thread(target=self._listen, name="syndic relay", daemon=True).start()

    def _seen(self, name: str, certificates: list[bytes]) -> tuple[bool, bool, bool]:
        """Return whether a site is admitted with one of its certificates, connected, and connected twice."""
        admitted = self._gate.lists(name, certificates)
        connected = admitted and self._engine is not None and name in self._engine.server.client_manager.name_to_clients
        return admitted, connected, admitted and self._gate.processes.twice(name)

    def _hello(self, message: CellMessage) -> CellMessage:
        """Reply to a site whether it is admitted; the engine has verified its name."""
        name = message.get_header(MessageHeaderKey.ORIGIN)
        known = name in self._engine.server.client_manager.name_to_clients and name in self._gate.admitted()
        code = ReturnCode.OK if known else ReturnCode.UNAUTHENTICATED
        return CellMessage({MessageHeaderKey.RETURN_CODE: code}, b"")

    def _listen(self) -> None:
        self._path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            before = os.umask(0o177)
            try:
                with reachable(self._path) as address:
                    listener.bind(address)
            finally:
                os.umask(before)
            listener.listen(64)
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_IDLE_SECONDS)
            try:
                frame = receive_frame(connection, most=2 * PART_BYTES)
                if frame is not None:
                    send_frame(connection, encode(self._answer(decode(frame, Forward))))
            except (OSError, SyndicError) as error:
                _LOG.info("a request was dropped: %s", type(error).__name__)

    def _answer(self, question: Forward) -> Forwarded:
        manager = self._engine.server.client_manager
        if question.kind == "sites":
            here = set(manager.name_to_clients) & set(self._gate.admitted())
            return Forwarded(body=" ".join(sorted(here)).encode())
        site = manager.name_to_clients.get(question.site)
        if question.kind == "drop":
            if site is not None:
                manager.remove_client(site.token)
            return Forwarded()
        if site is None or question.site not in self._gate.admitted():
            return Forwarded(reason="its site is not connected")
        if self._gate.processes.twice(question.site):
            return Forwarded(reason=f"two processes connect as {question.site}, and its owner must stop one: seen")
        return self._forwarded(question, site)

    def _forwarded(self, question: Forward, site: Any) -> Forwarded:
        # single frames: the engine's streams keep all messages of the last minute in memory
        cell = self._engine.get_cell().core_cell
        waiting = self._pool.submit(
            cell.send_request,
            channel=CHANNEL,
            topic=question.kind,
            target=site.get_fqcn(),
            request=CellMessage({}, question.body),
            timeout=question.seconds,
            optional=True,
        )
        known = self._engine.server.client_manager.name_to_clients
        while not wait([waiting], timeout=_LOOK_SECONDS).done:
            # the engine would wait for a disconnected site until the timeout
            if known.get(question.site) is not site or not cell.is_cell_connected(site.get_fqcn()):
                return Forwarded(reason="its site disconnected")
        reply = waiting.result()
        code = reply.get_header(MessageHeaderKey.RETURN_CODE)
        if code != ReturnCode.OK:
            return Forwarded(reason=f"its site does not answer ({code})")
        return Forwarded(body=bytes(reply.payload))
