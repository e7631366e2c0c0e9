"""Access control of a NVIDIA FLARE server: only sites with a certificate on the coordinator's current list.

The engine admits any certificate of the root until it expires, and renews a connection by a token that never expires.
Here a site can register only with a listed certificate, and its token is valid as long as that certificate stays on the
list. Removed sites and replaced certificates are refused, even before they expire.

The engine also forwards messages between sites, with any sender that they name: a site could impersonate the server.
Here a site may send only in its own name, to the server, and only the kinds of message that a site needs. Nothing is
forwarded.
"""

import hashlib
import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any, Final, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey, MessageHeaderKey, MessagePropKey, MessageType, ReturnCode
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.message import Message as CellMessage
from nvflare.fuel.f3.sfm.constants import HandshakeKeys
from nvflare.private.defs import CellChannel, CellChannelTopic, CellMessageHeaderKeys, ClientType

from syndic.runtime.flare.parts import CHANNEL, HELLO, PROCESS

_LOG = logging.getLogger("syndic.server")
# the requests that a site needs; all other requests of the engine are refused
_ASKED: Final = frozenset(
    {
        (CellChannel.SERVER_MAIN, CellChannelTopic.Challenge),
        (CellChannel.SERVER_MAIN, CellChannelTopic.Register),
        (CellChannel.SERVER_MAIN, CellChannelTopic.HEART_BEAT),
        (CellChannel.SERVER_MAIN, CellChannelTopic.Quit),
        (CellChannel.CELLNET, CellChannelTopic.Bye),
        (CHANNEL, HELLO),
    }
)
# two processes of one site take the connection from each other every ten seconds or so
_TWICE_SECONDS = 30.0
_MOST_PROCESSES = 8


@final
class Processes:
    """The processes that connected under each site's name. If a replaced one comes back, there are two."""

    def __init__(self) -> None:
        """Start with nobody."""
        self._known: dict[str, list[str]] = {}
        self._doubled: dict[str, float] = {}

    def connects(self, name: str, process: str) -> None:
        """Note a connection of a process; an earlier Syndic's does not name it."""
        known = self._known.get(name, [])
        if process in known[:-1]:
            self._doubled[name] = time.monotonic()
            _LOG.warning("two processes connect as %r and interrupt each other: its owner must stop one", name)
        if process:
            self._known[name] = [*(one for one in known if one != process), process][-_MOST_PROCESSES:]

    def twice(self, name: str) -> bool:
        """Return whether two processes of a site were connected just now."""
        return time.monotonic() - self._doubled.get(name, -_TWICE_SECONDS) < _TWICE_SECONDS


@final
class Gate:
    """Checks registrations and heartbeats before the engine does; the engine then checks signatures."""

    def __init__(self, list_file: Path, token_file: Path) -> None:
        """Read the list from `list_file` at every check; store the certificate of each token in `token_file`."""
        self._list = list_file
        self._tokens = token_file
        self._engine: Any = None
        self._registered: dict[str, str] = {}
        self.processes = Processes()
        self._lock = threading.Lock()

    def guard(self, engine: Any) -> None:
        """Install the checks in front of the engine."""
        self._engine = engine
        cell = engine.get_cell().core_cell
        for topic, look in ((CellChannelTopic.Register, self._registers), (CellChannelTopic.HEART_BEAT, self._beats)):
            cell.add_incoming_request_filter(channel=CellChannel.SERVER_MAIN, topic=topic, cb=look)
        # in addition to the engine's own check of tokens: a filter for a narrower channel would replace it
        cell.add_incoming_filter(channel="*", topic="*", cb=_filter_reply)
        # a filter would drop a request silently; this one replies with the refusal
        cell.set_message_interceptor(_intercept_request)
        self._watch(cell.communicator.conn_manager)

    def _watch(self, connections: Any) -> None:
        """Refuse connections whose certificate is not on the list.

        The engine writes to whoever connected last under a name, before that one has registered.
        """
        admit = connections.update_endpoint

        def look(connection: Any, handshake: dict[str, Any]) -> None:
            name = str(handshake.get(HandshakeKeys.ENDPOINT_NAME))
            if self._listed(connection, name):
                self.processes.connects(name, str(handshake.get(PROCESS, "")))
                admit(connection, handshake)

        connections.update_endpoint = look
        # some connections were open before
        for connection in list(connections.sfm_conns.values()):
            if connection.sfm_endpoint is not None:
                self._listed(connection, connection.sfm_endpoint.endpoint.name)

    def _listed(self, connection: Any, name: str) -> bool:
        """Return whether a connection uses a listed certificate; close it otherwise."""
        context = getattr(connection.conn, "context", None)
        shown = [] if context is None else context.auth_context().get("x509_pem_cert", [])
        if self.lists(name, shown):
            return True
        _refusal(name)
        connection.conn.close()
        return False

    def lists(self, name: str, certificates: list[bytes]) -> bool:
        """Return whether one of these certificates, in PEM, is on the list under this name."""
        marks = {x509.load_pem_x509_certificate(each).fingerprint(hashes.SHA256()).hex() for each in certificates}
        return bool(marks & set(self.admitted().get(name, ())))

    def admitted(self) -> dict[str, list[str]]:
        """Return the certificates of every admitted site, by their SHA-256."""
        content: dict[str, list[str]] = json.loads(self._list.read_text())
        return content

    def _registers(self, message: CellMessage) -> CellMessage | None:
        name = message.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        try:
            certificate = x509.load_pem_x509_certificate(message.payload.get(IdentityChallengeKey.CERT))
            shown = certificate.fingerprint(hashes.SHA256()).hex()
        except (AttributeError, TypeError, ValueError):
            shown = ""
        # the engine checks less for other kinds of clients
        regular = message.get_header(CellMessageHeaderKeys.CLIENT_TYPE) == ClientType.REGULAR
        if not regular or shown not in self.admitted().get(name, ()):
            return _refusal(name)
        self._registered[name] = shown
        return None

    def _beats(self, message: CellMessage) -> CellMessage | None:
        name = message.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        token = message.get_header(CellMessageHeaderKeys.TOKEN)
        return None if self._certificate_of(name, token) in self.admitted().get(name, ()) else _refusal(name)

    def _certificate_of(self, name: str, token: str) -> str:
        """Return the certificate for which a token was issued, also by an earlier process of this server."""
        mark = hashlib.sha256(str(token).encode()).hexdigest()
        with self._lock:
            known: dict[str, str] = json.loads(self._tokens.read_text()) if self._tokens.exists() else {}
            if mark not in known and token in self._engine.server.client_manager.clients:
                known[mark] = self._registered.get(name, "")
                draft = self._tokens.with_name(f"{self._tokens.name}.{os.getpid()}")
                draft.write_text(json.dumps(known))
                draft.replace(self._tokens)
            return known.get(mark, "")


def _intercept_request(message: CellMessage) -> CellMessage | None:
    """Refuse a request in another's name, to another site, or of a kind that sites do not need."""
    about = (message.get_header(MessageHeaderKey.CHANNEL), message.get_header(MessageHeaderKey.TOPIC))
    return None if _speaks_for_itself(message) and about in _ASKED else _refusal(_sender(message))


def _filter_reply(message: CellMessage) -> CellMessage | None:
    """Drop a reply in another's name, or to another site."""
    asks = message.get_header(MessageHeaderKey.MSG_TYPE) == MessageType.REQ
    return None if asks or _speaks_for_itself(message) else _refusal(_sender(message))


def _speaks_for_itself(message: CellMessage) -> bool:
    to_us = message.get_header(MessageHeaderKey.DESTINATION) == FQCN.ROOT_SERVER
    return bool(to_us and message.get_header(MessageHeaderKey.ORIGIN) == _sender(message))


def _sender(message: CellMessage) -> str:
    """Return the sender of the message; the engine has compared this name with the connection's certificate."""
    return str(getattr(message.get_prop(MessagePropKey.ENDPOINT), "name", None))


def _refusal(name: str) -> CellMessage:
    _LOG.warning("a site that calls itself %r was refused: not on the list, or not what a site may say", name)
    headers = {MessageHeaderKey.RETURN_CODE: ReturnCode.UNAUTHENTICATED, MessageHeaderKey.ERROR: "not on the list"}
    return CellMessage(headers, None)
