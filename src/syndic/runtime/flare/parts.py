"""The messages between coordinator, server and sites: small parts of calls and replies."""

from typing import Literal

from syndic.kernel import Message

# few round trips for a large message, little memory for many messages
PART_BYTES = 4 << 20
# How many sites are asked at the same time.
MOST_AT_ONCE = 256

CHANNEL = "syndic"
HELLO = "hello"
# in the handshake of a connection: a random number of the process that makes it
PROCESS = "syndic_process"


class Push(Message):
    """A part of a call on its way to a site. The last one asks for the reply, for at most `seconds`."""

    study: str
    transfer: str
    total: int
    offset: int
    body: bytes
    seconds: float


class Pull(Message):
    """Asks for the reply from `offset` on; the site may wait `seconds` until there is one."""

    study: str
    transfer: str
    offset: int
    seconds: float


class Part(Message):
    """A site's response: `more` (has `total` bytes of the call), `working`, `lost` (start again), or a `part`."""

    state: Literal["more", "working", "lost", "part"]
    total: int = 0
    offset: int = 0
    body: bytes = b""


class Forward(Message):
    """A request of the coordinator's process to the server on the same machine."""

    site: str
    kind: Literal["push", "pull", "sites", "drop"]
    body: bytes
    seconds: float


class Forwarded(Message):
    """The site's bytes, or the reason why there are none."""

    body: bytes = b""
    reason: str = ""
