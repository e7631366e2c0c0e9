"""The envelope of every request and every reply.

Both carry checks that detect a damaged message, or a reply that belongs to another request. Between organisations both
are signed: the call by the coordinator that the study names, the reply by its party, together with the digest of the
call. Somebody who takes over a network address can neither ask nor answer, and nobody can later deny what was sent.

A runtime carries their bytes to parties and back; no other layer depends on how it does so.
"""

import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, Self, final

from msgspec.structs import replace

from syndic.kernel.codec import Message, encode

# the most bytes that an envelope adds to a body
ENVELOPE_BYTES = 4096
_SIGNED = b"syndic reply 1\n"
_SIGNED_CALL = b"syndic call 1\n"


class Call(Message):
    """A request to one party. It carries no parameter of the study: the party computes from its own copy.

    `number` counts the study's requests, and `missed` has what those told that this party did not answer
    (`syndic.kernel.view`). `check` is a checksum of the fields before it; without it nothing is checked. `signature` is
    made with the identity of the study's coordinator, if the study names one.
    """

    study: str
    party: str
    step: str
    call: str
    body: bytes
    number: int = 0
    missed: bytes = b""
    check: int | None = None
    signature: bytes = b""

    def __post_init__(self) -> None:
        """Refuse a damaged call: the party would store an answer to a request that was never sent."""
        if self.check is not None and self.check != self._sum():
            raise ValueError("it was damaged in transit")

    def checked(self) -> Self:
        """Return the call with its checksum."""
        return replace(self, check=self._sum())

    def signed_text(self) -> bytes:
        """Return the bytes that a coordinator signs: all fields before the checksum."""
        return _SIGNED_CALL + hashlib.sha256(encode(replace(self, check=None, signature=b""))).digest()

    def _sum(self) -> int:
        head = f"{self.study} {self.party} {self.step} {self.call} {self.number} {self.missed.hex()}"
        return _sum(head, self.body)


class Reply(Message):
    """A reply: `code` is "ok" with a body, or an error's code with a text that contains nothing private.

    `asked` is the digest of the call that it answers, `check` a checksum; both are absent if the transport replied in
    place of the party. `signature` is made with the party's identity, if the study gives it one.
    """

    code: str
    body: bytes = b""
    text: str = ""
    asked: bytes = b""
    check: int | None = None
    signature: bytes = b""

    def __post_init__(self) -> None:
        """Refuse a damaged reply."""
        if self.check is not None and self.check != self._sum(self.asked):
            raise ValueError("it was damaged in transit")

    def to(self, request: bytes) -> Self:
        """Return this reply bound to the request with these bytes, with its checksum."""
        asked = asked_of(request)
        return replace(self, asked=asked, check=self._sum(asked))

    def signed_text(self) -> bytes:
        """Return the bytes that a party signs: the digest of the request (study, party and step), and the reply."""
        answered = [self.code.encode(), self.text.encode(), self.body]
        return b"".join([_SIGNED, self.asked, *(hashlib.sha256(part).digest() for part in answered)])

    def _sum(self, asked: bytes) -> int:
        return _sum(f"{self.code} {self.text} {asked.hex()}", self.body)


INTERNAL_ERROR: Final = Reply(code="internal", text="internal error; the reason is in the party's own log")
"""The reply to a call that failed with an error whose text may contain a private value."""


def asked_of(request: bytes) -> bytes:
    """Return the digest with which a reply identifies the call that it answers."""
    return hashlib.sha256(request).digest()


def _sum(head: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(head.encode()))


@final
@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The replies by party, and the reason for every party that gave none."""

    replies: Mapping[str, bytes]
    silent: Mapping[str, str]


class Runtime(Protocol):
    """Carries bytes between a coordinator and parties."""

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Send every party its bytes, wait at most `seconds`, and call `arrived` with the number of replies so far."""

    def close(self) -> None:
        """Release processes, sockets and files."""
