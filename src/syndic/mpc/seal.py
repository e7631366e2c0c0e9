"""Sealed messages: encrypted from one party to another, and carried by the coordinator.

X25519 gives two parties a secret, HKDF-SHA256 turns it into one key for each message's place (study, label, sender,
receiver), and ChaCha20-Poly1305 encrypts and authenticates. A message that was changed, sent to another party,
taken from another study, label or round, or returned to its sender does not open.

If the study gives the parties' identities, the secret also depends on these (`syndic.mpc.key.agree_with`), and a
coordinator that substitutes its own keys can neither read nor forge a message. Without identities it could mount a
man-in-the-middle attack; messages are then protected only from a coordinator that just reads what it carries. Which
parties write to each other, when, and how much, is visible.
"""

from dataclasses import dataclass
from typing import final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from syndic.errors import RefusedError
from syndic.kernel import Message
from syndic.mpc.key import context, derive
from syndic.random import Randomness

_NONCE_BYTES = 12
_TAG_BYTES = 16
OVERHEAD_BYTES = _NONCE_BYTES + _TAG_BYTES


class PublicKeys(Message):
    """Public keys by party, as the coordinator passes them on."""

    keys: dict[str, bytes]


class Mail(Message):
    """Sealed boxes: by receiver when a party sends them, by sender when it gets them."""

    boxes: dict[str, bytes]


@final
@dataclass(frozen=True, kw_only=True)
class Place:
    """What a sealed message is bound to. One place is for one message: a second one needs another label."""

    study: str
    label: str
    sender: str
    receiver: str

    def written(self) -> bytes:
        """Return the place as bytes."""
        return context("seal", self.study, self.label, self.sender, self.receiver)


def seal(secret: bytes, text: bytes, place: Place, randomness: Randomness) -> bytes:
    """Encrypt `text` under the secret that sender and receiver `agree` on; 28 bytes longer than the text."""
    # a random nonce: a party restored from a backup may seal another text for the same place
    nonce = randomness.bytes(_NONCE_BYTES)
    return nonce + ChaCha20Poly1305(derive(secret, place.written())).encrypt(nonce, text, None)


def unseal(secret: bytes, box: bytes, place: Place) -> bytes:
    """Return the text of a box.

    Raises:
        RefusedError: if it is not, bit for bit, what the sender sealed for this place.
    """
    try:
        cipher = ChaCha20Poly1305(derive(secret, place.written()))
        return cipher.decrypt(box[:_NONCE_BYTES], box[_NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        raise RefusedError(
            f"the sealed message from {place.sender} to {place.receiver} ({place.label}) does not open: "
            "it was changed, replayed or sent to the wrong party in transit"
        ) from None
