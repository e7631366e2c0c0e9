"""A party's side: a component of a NVIDIA FLARE client that passes calls to a handler and returns its replies.

The handler gets bytes and decides what is answered. This component handles one call per study at a time, receives it
in parts, and accepts requests from the server only. An exception's text stays in the log.
"""

import abc
import logging
import threading
import time
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    CellChannelTopic,
    IdentityChallengeKey,
    MessageHeaderKey,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.message import Message as CellMessage

from syndic.errors import RefusedError
from syndic.kernel import Reply, decode, encode
from syndic.kernel.call import ENVELOPE_BYTES, INTERNAL_ERROR
from syndic.runtime.flare.parts import CHANNEL, HELLO, PART_BYTES, Part, Pull, Push

_LOG = logging.getLogger("syndic.site")
# A longer wait, if a server requests it, would block one of the engine's threads.
_LONGEST_WAIT = 30.0
# How often a site checks that the server still knows it, how long it waits for the reply, and how many replies may be
# missing although the server answers others.
_LOOK_SECONDS = 10.0
_HELLO_SECONDS = 10.0
_UNHEARD = 2
_INTERNAL = encode(INTERNAL_ERROR)


class Site(FLComponent, abc.ABC):  # type: ignore[misc]  # the engine's classes are not typed
    """Answers the server. Subclasses define the largest message of a study, and answer calls."""

    def __init__(self) -> None:
        """Create the component; it starts with the engine."""
        super().__init__()
        self._calls: dict[str, _Taken] = {}
        self._lock = threading.Lock()
        self._listening = False
        self._cell: Any = None

    @abc.abstractmethod
    def most(self, study: str) -> int:
        """Return the largest message of the study in bytes; raise `RefusedError` if it is not to be answered."""

    @abc.abstractmethod
    def answer(self, study: str, data: bytes) -> bytes:
        """Return the reply to one call, as bytes."""

    def connected(self) -> None:
        """Handle the event that the server has admitted this site; called once."""

    def lost(self) -> None:
        """Handle the event that the server answers others but not this site: its key has changed."""

    def unheard(self) -> None:
        """Handle the event that the server did not answer: another process may have taken the connection."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Start listening when the site has registered."""
        if event_type == EventType.SYSTEM_START and not self._listening:
            self._listening = True
            self._cell = fl_ctx.get_engine().get_cell().core_cell
            self._cell.register_request_cb(channel=CHANNEL, topic="*", cb=self._answered)
            # a filter would drop the message silently; the interceptor replies with the refusal
            self._cell.set_message_interceptor(_intercept_request)
            self.connected()
            threading.Thread(target=self._stay_known, name="syndic known", daemon=True).start()

    def _stay_known(self) -> None:
        """Detect that the server runs but no longer accepts this site; wait for one that is not running.

        The engine always keeps its first token, and a server with a new key drops it silently.
        """
        unheard = 0
        while True:
            if unheard == 0:
                time.sleep(_LOOK_SECONDS)
            silent = self._asked(CHANNEL, HELLO, {}) == ReturnCode.TIMEOUT
            if silent:
                self._unheard()
            newcomer = {IdentityChallengeKey.COMMON_NAME: self._cell.get_fqcn(), IdentityChallengeKey.NONCE: "hello"}
            if silent and self._asked(CellChannel.SERVER_MAIN, CellChannelTopic.Challenge, newcomer) == ReturnCode.OK:
                unheard += 1
            else:
                unheard = 0
            if unheard == _UNHEARD:
                self.lost()
                unheard = 0

    def _unheard(self) -> None:
        try:
            self.unheard()
        except Exception:
            # such as a certificate that is being renewed; without this thread the check would stop
            _LOG.exception("the server could not be asked")

    def _asked(self, channel: str, topic: str, headers: dict[str, str]) -> str:
        """Send the server a small request; return the engine's code of the reply."""
        try:
            reply = self._cell.send_request(
                channel=channel,
                topic=topic,
                target=FQCN.ROOT_SERVER,
                request=CellMessage(headers, b"" if channel == CHANNEL else None),
                timeout=_HELLO_SECONDS,
                optional=True,
            )
        except Exception:
            # the engine may raise anything, and without this thread the check would stop
            _LOG.exception("a request to the server failed")
            return str(ReturnCode.COMM_ERROR)
        return str(reply.get_header(MessageHeaderKey.RETURN_CODE))

    def _answered(self, request: CellMessage) -> CellMessage:
        try:
            part = self._part(str(request.get_header(MessageHeaderKey.TOPIC)), bytes(request.payload))
        except Exception:
            # an exception's text may hold a private value
            _LOG.exception("a message could not be processed")
            part = _whole(_INTERNAL)
        return CellMessage({MessageHeaderKey.RETURN_CODE: ReturnCode.OK}, encode(part))

    def _part(self, kind: str, data: bytes) -> Part:
        message: Push | Pull = decode(data, Push) if kind == "push" else decode(data, Pull)
        try:
            most = self.most(message.study)
        except RefusedError as error:
            _LOG.warning("a call was refused: %s", error)
            return _whole(encode(Reply(code=error.code, text=str(error))))
        with self._lock:
            call = self._calls.get(message.study)
            if call is None or call.name != message.transfer:
                if isinstance(message, Pull):
                    return Part(state="lost")
                call = self._calls[message.study] = _Taken(message.transfer)
        if isinstance(message, Pull):
            return call.reply(message.offset, message.seconds)
        return call.take(message, most, lambda whole: self.answer(message.study, whole))


def _intercept_request(message: CellMessage) -> CellMessage | None:
    """Refuse requests from anybody but the server, and requests to the engine that do not concern a study."""
    head = message.get_header
    about = (head(MessageHeaderKey.CHANNEL), head(MessageHeaderKey.TOPIC))
    expected = about[0] == CHANNEL or about == (CellChannel.CELLNET, CellChannelTopic.Bye)
    if expected and head(MessageHeaderKey.ORIGIN) == FQCN.ROOT_SERVER:
        return None
    _LOG.warning("a message on channel %.40r was refused: it is not from the server, or not about a study", about[0])
    refusal = {MessageHeaderKey.RETURN_CODE: ReturnCode.UNAUTHENTICATED, MessageHeaderKey.ERROR: "not about a study"}
    return CellMessage(refusal, None)


class _Taken:
    """A call that is being received, processed or answered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._data = bytearray()
        self._started = False
        self._reply: bytes | None = None
        self._done = threading.Event()
        self._lock = threading.Lock()

    def take(self, push: Push, most: int, answer: Any) -> Part:
        """Add a part; with the last one, start processing."""
        if push.total > most + ENVELOPE_BYTES:
            return _whole(encode(Reply(code="refused", text="the message is larger than the study's limit")))
        with self._lock:
            if not self._started:
                if push.offset == len(self._data) and push.offset + len(push.body) <= push.total:
                    self._data += push.body
                if len(self._data) < push.total:
                    return Part(state="more", total=len(self._data))
                self._started = True
                whole, self._data = bytes(self._data), bytearray()
                threading.Thread(target=self._work, args=(answer, whole), daemon=True).start()
        return self.reply(0, push.seconds)

    def _work(self, answer: Any, data: bytes) -> None:
        try:
            self._reply = answer(data)
        except Exception:
            _LOG.exception("a call could not be answered")
            self._reply = _INTERNAL
        self._done.set()

    def reply(self, offset: int, seconds: float) -> Part:
        """Return the reply from `offset` on, or the state if there is none yet."""
        if not self._started:
            return Part(state="lost")
        if not self._done.wait(min(max(seconds, 0.0), _LONGEST_WAIT)):
            return Part(state="working")
        with self._lock:
            whole = self._reply
            if whole is None or offset < 0:
                return Part(state="lost")
            body = whole[offset : offset + PART_BYTES]
            if len(whole) > PART_BYTES and offset + len(body) == len(whole):
                # a large reply is not kept: if its end is lost, the call is repeated and the stored answer returned
                self._reply, self._started = None, False
                self._done.clear()
        return Part(state="part", total=len(whole), offset=offset, body=body)


def _whole(reply: bytes) -> Part:
    return Part(state="part", total=len(reply), offset=0, body=reply)
