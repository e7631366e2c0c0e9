"""An organisation's identity: two public keys, written as one line of text in the study file.

The first key verifies its signatures (Ed25519), the second is for key agreement with it (X25519). The study's digest
covers these lines, so parties that agreed to the same digest agreed to the same keys.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Final, Self, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_START: Final = "sy1-"
_KEY_BYTES: Final = 32
# with 64 bytes of keys this gives 112 letters without padding; a typing error is missed once in 2^48
_CHECK_BYTES: Final = 6
_DIGITS: Final = 30


@final
@dataclass(frozen=True, kw_only=True)
class PublicIdentity:
    """An organisation's public keys. `str()` is the line for the study file. Public."""

    signing: bytes
    sealing: bytes

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the line; raise `ValueError` if a letter is wrong or missing."""
        try:
            data = base64.b32decode(text.removeprefix(_START).upper())
        except (binascii.Error, ValueError):
            data = b""
        keys = data[: 2 * _KEY_BYTES]
        found = cls(signing=keys[:_KEY_BYTES], sealing=keys[_KEY_BYTES:])
        if len(keys) != 2 * _KEY_BYTES or text != str(found):
            raise ValueError(f"identity must be the line that `syndic identity` prints; it begins with {_START}")
        return found

    def __str__(self) -> str:
        keys = self.signing + self.sealing
        return _START + base64.b32encode(keys + self._digest()[:_CHECK_BYTES]).decode().lower()

    @property
    def fingerprint(self) -> str:
        """Thirty digits in blocks of five (about 100 bits), to compare by telephone."""
        digits = str(int.from_bytes(self._digest()) % 10**_DIGITS).zfill(_DIGITS)
        return " ".join(digits[start : start + 5] for start in range(0, _DIGITS, 5))

    def signed(self, text: bytes, signature: bytes) -> bool:
        """Return whether this organisation signed exactly this text."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, text)
        except (InvalidSignature, ValueError):
            return False
        return True

    def _digest(self) -> bytes:
        return hashlib.sha256(b"syndic identity 1\n" + self.signing + self.sealing).digest()
