"""A party's view of a run: one digest of everything that an honest coordinator tells all parties alike.

A message class names its `common` fields. View k is V_k = SHA-256(V_(k-1), D_k), where D_k is the digest of the step
and of the common fields of request k, and V_0 is that of the study. A party stores its view in one transaction with
the answer, so a repeated call does not change it. A party that missed requests gets their digests D with its next call.

*How views are compared.* The masks of a masked sum are derived from the view too (`syndic.mpc.masked_sum`). Parties
with different views have masks that do not cancel: what opens is uniform. This needs no message, round or signature. It
comes after the charge, which is enough: a coordinator can always let parties pay for nothing, by dropping replies.
*Why that is sound.* Equal views mean equal sequences of D, unless SHA-256 has a collision. A party cannot be told that
it missed a request it answered: its own D is already in its view. For requests that it did miss it takes any D, and has
answered nothing to them. *Not covered*: fields that differ between parties by design; what these may be is the
sub-protocol's own argument. Steps that each party answers with the whole noise need no comparison.
"""

import hashlib
from itertools import pairwise
from typing import Final, Self, final

from syndic.errors import RefusedError
from syndic.kernel.codec import Message, common_part

_START: Final = b"syndic view 1\n"
_BYTES: Final = 32


def told(step: str, message: Message) -> bytes:
    """Return the digest of what a request tells all parties alike."""
    return hashlib.sha256(step.encode() + b"\x00" + common_part(message)).digest()


@final
class View(Message):
    """How many requests a party knows of, and the digest of what they told all parties."""

    number: int
    digest: bytes

    @classmethod
    def of(cls, study: str) -> Self:
        """Return the view before the first request of the study with this digest."""
        return cls(number=0, digest=hashlib.sha256(_START + study.encode()).digest())

    def after(self, number: int, missed: bytes, last: bytes) -> "View":
        """Return the view after request `number`, which tells `last`; `missed` has the digests of those before it.

        With number 0 the request is the next one that this party knows of.

        Raises:
            RefusedError: if this party answered that request or a later one, or digests in between are missing.
        """
        number = number or self.number + 1
        before, rest = divmod(len(missed), _BYTES)
        if number <= self.number:
            raise RefusedError(
                f"request {number} came after request {self.number}: each is answered once, in order; set a new "
                "edition to start again"
            )
        gap = number - 1 - self.number
        if rest or before < gap:
            raise RefusedError(f"request {number} came after request {self.number}, without those in between")
        ends = range(len(missed) - gap * _BYTES, len(missed) + 1, _BYTES)
        digest = self.digest
        for one in (*(missed[start:end] for start, end in pairwise(ends)), last):
            digest = hashlib.sha256(digest + one).digest()
        return View(number=number, digest=digest)
