"""Keys: 256 bits each, agreed on by X25519, and bound by HKDF-SHA256 to what they are for.

Two parties exchange public keys that are made anew in every run, through a coordinator. Where the study gives the
parties' identities, they mix the bond of their two identities into what they agree on (as the pattern KK of the Noise
protocol framework does, Perrin 2018): a coordinator that passes on keys of its own knows no secret of any two parties,
and what one of them sealed does not open at the other. In a study without identities nothing ties a key to a party.
"""

import hmac
import struct
from collections.abc import Iterable, Mapping

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.random import Randomness

KEY_BYTES = 32


class KeyPair(Message):
    """An X25519 key pair. `private` never leaves the party in the clear; `public` is for everybody."""

    private: bytes
    public: bytes


def context(*parts: str | bytes | int) -> bytes:
    """Return the parts as bytes from which they can be told apart again: ("ab", "c") is not ("a", "bc")."""
    written = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join(struct.pack("<Q", len(part)) + part for part in written)


def derive(secret: bytes, *parts: str | bytes | int) -> bytes:
    """Return the key for one purpose, by HKDF-SHA256. Keys for other `parts` tell nothing about it."""
    # RFC 5869 with the empty salt and one block of output; a test compares with the `cryptography` library's
    extracted = hmac.digest(bytes(KEY_BYTES), secret, "sha256")
    return hmac.digest(extracted, context(*parts) + b"\x01", "sha256")


def key_pair(randomness: Randomness) -> KeyPair:
    """Return a new key pair."""
    private = randomness.bytes(KEY_BYTES)
    return KeyPair(private=private, public=public_of(private))


def public_of(private: bytes) -> bytes:
    """Return the public key of a private key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree_with(party: Party, private: bytes, publics: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the secrets of a party with others, by name, from keys of this run and the bonds of their identities.

    This is what parties use.
    """
    secrets = dict(zip(publics, agree_all(private, publics.values()), strict=True))
    return {name: _bonded(secret, party.bond(name)) for name, secret in secrets.items()}


def _bonded(secret: bytes, bond: bytes) -> bytes:
    # both have 32 bytes, so the two cannot run into each other
    return derive(secret + bond, "bonded") if bond else secret


def agree(private: bytes, public: bytes) -> bytes:
    """Return the 32 secret bytes that both sides of two key pairs can compute. Only ever use them in `derive`."""
    return agree_all(private, [public])[0]


def agree_all(private: bytes, publics: Iterable[bytes]) -> list[bytes]:
    """Return the secrets of one private key with many public keys."""
    own = X25519PrivateKey.from_private_bytes(private)
    try:
        return [own.exchange(X25519PublicKey.from_public_bytes(public)) for public in publics]
    except ValueError:
        # wrong length, or a point of small order, which would make the secret the same for everybody
        raise RefusedError("a public key that no honest party makes was sent: run the study again") from None
