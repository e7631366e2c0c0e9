"""Keys of 256 bits: agreed on with X25519, and bound to their purpose with HKDF-SHA256.

Two parties exchange public keys, fresh in every run, through the coordinator. If the study gives the parties'
identities, they also mix in the shared secret of these identities (as the pattern KK of the Noise protocol framework
does, Perrin 2018). A coordinator that substitutes its own keys then learns no secret of any two parties, and messages
that they sealed do not open. In a study without identities nothing binds a key to a party.
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
    """An X25519 key pair. `private` never leaves the party unencrypted; `public` is public."""

    private: bytes
    public: bytes


class PublicKey(Message):
    """A party's public key, as it publishes it."""

    public: bytes


def context(*parts: str | bytes | int) -> bytes:
    """Return an unambiguous encoding of the parts: ("ab", "c") differs from ("a", "bc")."""
    written = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join(struct.pack("<Q", len(part)) + part for part in written)


def derive(secret: bytes, *parts: str | bytes | int) -> bytes:
    """Return the key for one purpose, by HKDF-SHA256. Keys for other `parts` reveal nothing about it."""
    # RFC 5869 with an empty salt and one block of output; a test compares it with the `cryptography` library
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
    """Return the secrets of a party with others, by name, from keys of this run and from their identities.

    Parties use this function, not `agree`.
    """
    secrets = dict(zip(publics, agree_all(private, publics.values()), strict=True))
    return {name: _bonded(secret, party.bond(name)) for name, secret in secrets.items()}


def _bonded(secret: bytes, bond: bytes) -> bytes:
    # both have 32 bytes, so the concatenation is unambiguous
    return derive(secret + bond, "bonded") if bond else secret


def agree(private: bytes, public: bytes) -> bytes:
    """Return the 32 secret bytes that both owners of two key pairs can compute. Use them in `derive` only."""
    return agree_all(private, [public])[0]


def agree_all(private: bytes, publics: Iterable[bytes]) -> list[bytes]:
    """Return the secrets of one private key with many public keys."""
    own = X25519PrivateKey.from_private_bytes(private)
    try:
        return [own.exchange(X25519PublicKey.from_public_bytes(public)) for public in publics]
    except ValueError:
        # wrong length, or a point of small order, which would make the secret the same for everybody
        raise RefusedError("an invalid public key was received: run the study again") from None
