"""The envelope of every question and every answer.

Both carry what detects accidents on the way: a damaged message, or an answer that belongs to another question. Between
organisations a party also signs its answer, together with the digest of what it was asked: whoever stole its place in
the network cannot answer for it, and it cannot later deny what it answered.
"""

import hashlib
import zlib
from typing import Self

from msgspec.structs import replace

from syndic.kernel.codec import Message

# what an envelope adds to a body at most, in bytes
ENVELOPE_BYTES = 4096
_SIGNED = b"syndic reply 1\n"


class Call(Message):
    """A question to one party. No parameter of the study travels: the party computes from its own copy.

    `check` detects damage to the other fields; without it nothing is checked.
    """

    study: str
    party: str
    step: str
    call: str
    body: bytes
    check: int | None = None

    def __post_init__(self) -> None:
        """Refuse a damaged call: the party would store its answer to a question that nobody asked."""
        if self.check is not None and self.check != self._sum():
            raise ValueError("it was damaged on its way")

    def checked(self) -> Self:
        """Return the call with its check."""
        return replace(self, check=self._sum())

    def _sum(self) -> int:
        return _sum(f"{self.study} {self.party} {self.step} {self.call}", self.body)


class Reply(Message):
    """An answer: `code` is "ok" with a body, or an error's code with a text that holds nothing private.

    `asked` is the digest of the call that it answers, `check` detects damage; both are absent where a transport
    speaks for a party. `signature` is of the party's identity, where the study gives it one.
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
            raise ValueError("it was damaged on its way")

    def to(self, request: bytes) -> Self:
        """Return the reply as the one to these bytes, with its check."""
        asked = asked_of(request)
        return replace(self, asked=asked, check=self._sum(asked))

    def signed_text(self) -> bytes:
        """Return what a party signs: what it was asked, which names study, party and step, and what it answered."""
        answered = [self.code.encode(), self.text.encode(), self.body]
        return b"".join([_SIGNED, self.asked, *(hashlib.sha256(part).digest() for part in answered)])

    def _sum(self, asked: bytes) -> int:
        return _sum(f"{self.code} {self.text} {asked.hex()}", self.body)


def asked_of(request: bytes) -> bytes:
    """Return the digest by which a reply names the call that it answers."""
    return hashlib.sha256(request).digest()


def _sum(head: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(head.encode()))
