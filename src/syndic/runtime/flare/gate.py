"""Who may stay connected to a NVIDIA FLARE server: sites with a certificate that the coordinator's list names now.

The engine admits any certificate of the root until it expires, and renews a connection by a token that never does. Here
a site registers with a listed certificate only, and its token lives as long as that certificate stays on the list. A
removed site and a replaced certificate are refused, though their dates are good.

The engine also passes on what one site writes to another, under whatever sender it names: a site could pass for the
server. Here a site speaks for itself, to the server, about what a site has to say, and nothing is passed on.
"""

import hashlib
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, Final, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey, MessageHeaderKey, MessagePropKey, MessageType, ReturnCode
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.message import Message as CellMessage
from nvflare.fuel.f3.sfm.constants import HandshakeKeys
from nvflare.private.defs import CellChannel, CellChannelTopic, CellMessageHeaderKeys, ClientType

from syndic.runtime.flare.parts import CHANNEL, HELLO

_LOG = logging.getLogger("syndic.server")
# what a site asks of a server; whatever else the engine offers is for federations of another kind
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


@final
class Gate:
    """Looks at registrations and heartbeats before the engine does; the engine checks signatures after that."""

    def __init__(self, list_file: Path, token_file: Path) -> None:
        """Read the list from one file at every look, and keep which token came with which certificate in another."""
        self._list = list_file
        self._tokens = token_file
        self._engine: Any = None
        self._registered: dict[str, str] = {}
        self._lock = threading.Lock()

    def guard(self, engine: Any) -> None:
        """Stand in front of the engine from now on."""
        self._engine = engine
        cell = engine.get_cell().core_cell
        for topic, look in ((CellChannelTopic.Register, self._registers), (CellChannelTopic.HEART_BEAT, self._beats)):
            cell.add_incoming_request_filter(channel=CellChannel.SERVER_MAIN, topic=topic, cb=look)
        # beside the engine's own look at tokens: one for a narrower channel would stand in its place
        cell.add_incoming_filter(channel="*", topic="*", cb=_answer_looked_at)
        # a filter would drop a question in silence; whoever asks is told
        cell.set_message_interceptor(_looked_at)
        self._watch(cell.communicator.conn_manager)

    def _watch(self, connections: Any) -> None:
        """Let nobody connect whose certificate is not on the list.

        The engine writes to whoever connected last under a name, before that one has registered.
        """
        admit = connections.update_endpoint

        def look(connection: Any, handshake: dict[str, Any]) -> None:
            if self._listed(connection, str(handshake.get(HandshakeKeys.ENDPOINT_NAME))):
                admit(connection, handshake)

        connections.update_endpoint = look
        # some were there before us
        for connection in list(connections.sfm_conns.values()):
            if connection.sfm_endpoint is not None:
                self._listed(connection, connection.sfm_endpoint.endpoint.name)

    def _listed(self, connection: Any, name: str) -> bool:
        """Tell whether a connection is by a certificate that the list names; hang up otherwise."""
        context = getattr(connection.conn, "context", None)
        shown = [] if context is None else context.auth_context().get("x509_pem_cert", [])
        marks = {x509.load_pem_x509_certificate(each).fingerprint(hashes.SHA256()).hex() for each in shown}
        if marks & set(self.admitted().get(name, ())):
            return True
        _refusal(name)
        connection.conn.close()
        return False

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
        # the engine checks less of what other kinds of clients send later
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
        """Return the certificate that a token was given for, also by an earlier process of this server."""
        mark = hashlib.sha256(str(token).encode()).hexdigest()
        with self._lock:
            known: dict[str, str] = json.loads(self._tokens.read_text()) if self._tokens.exists() else {}
            if mark not in known and token in self._engine.server.client_manager.clients:
                known[mark] = self._registered.get(name, "")
                draft = self._tokens.with_name(f"{self._tokens.name}.{os.getpid()}")
                draft.write_text(json.dumps(known))
                draft.replace(self._tokens)
            return known.get(mark, "")


def _looked_at(message: CellMessage) -> CellMessage | None:
    """Refuse a question in another's name, to another site, or about what is none of a site's business."""
    about = (message.get_header(MessageHeaderKey.CHANNEL), message.get_header(MessageHeaderKey.TOPIC))
    return None if _speaks_for_itself(message) and about in _ASKED else _refusal(_sender(message))


def _answer_looked_at(message: CellMessage) -> CellMessage | None:
    """Drop an answer in another's name, or to another site."""
    asks = message.get_header(MessageHeaderKey.MSG_TYPE) == MessageType.REQ
    return None if asks or _speaks_for_itself(message) else _refusal(_sender(message))


def _speaks_for_itself(message: CellMessage) -> bool:
    to_us = message.get_header(MessageHeaderKey.DESTINATION) == FQCN.ROOT_SERVER
    return bool(to_us and message.get_header(MessageHeaderKey.ORIGIN) == _sender(message))


def _sender(message: CellMessage) -> str:
    """Return who sent the message: the engine has compared this name with the certificate of the connection."""
    return str(getattr(message.get_prop(MessagePropKey.ENDPOINT), "name", None))


def _refusal(name: str) -> CellMessage:
    _LOG.warning("a site that calls itself %r was refused: not on the list, or not what a site may say", name)
    headers = {MessageHeaderKey.RETURN_CODE: ReturnCode.UNAUTHENTICATED, MessageHeaderKey.ERROR: "not on the list"}
    return CellMessage(headers, None)
