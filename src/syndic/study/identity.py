"""An organisation's private keys: made once, on its own machine, and never sent anywhere.

It signs agreements with the first key (Ed25519). From the second key (X25519) and another organisation's public key it
computes a bond. Both organisations mix the bond into every secret that they agree on in a run, so a coordinator that
substitutes keys cannot read what they seal. Whoever copies an organisation's file can sign in its name, and can pretend
to this organisation to be any other. What was sealed before stays sealed: every run also makes its own keys.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from syndic.document import Document, from_json, to_readable_json
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel import PublicIdentity, Terms, member
from syndic.mpc.key import KEY_BYTES, agree, derive, public_of
from syndic.random import SystemRandomness

_FORMAT: Final = "syndic identity 1"


class _File(Document):
    format: str
    public: str
    signing: str
    sealing: str


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Identity:
    """An organisation's private keys. Private: without a text form."""

    signing: bytes
    sealing: bytes

    @classmethod
    def make(cls, path: Path) -> Self:
        """Make new keys in a file that only its owner may read; an existing file is never changed."""
        source = SystemRandomness()
        made = cls(signing=source.bytes(KEY_BYTES), sealing=source.bytes(KEY_BYTES))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(to_readable_json(made._file()))
            file.flush()
            os.fsync(file.fileno())
        try:
            # unlike a rename, a link never replaces an existing file
            path.hardlink_to(draft)
        except FileExistsError:
            raise InputError(f"{path}: there are keys already; they are never overwritten") from None
        finally:
            draft.unlink()
        return made

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the keys; refuse a file that others may read or that is damaged."""
        try:
            text, mode = path.read_bytes(), path.stat().st_mode
        except FileNotFoundError:
            raise InputError(
                f"{path}: there are no keys: make them with syndic identity --home {path.parent}"
            ) from None
        if stat.S_IMODE(mode) & 0o077:
            raise InputError(f"{path}: others may read these private keys: chmod 600 {path.name}, or make new ones")
        try:
            written = from_json(text, _File, where=path.name)
            found = cls(signing=bytes.fromhex(written.signing), sealing=bytes.fromhex(written.sealing))
            whole = written == found._file()
        except (InputError, ValueError):
            whole = False
        if not whole:
            # without the text of the error, which may quote a key
            raise IntegrityError(f"{path}: the private keys are damaged: restore your copy")
        return found

    @property
    def public(self) -> PublicIdentity:
        """The public keys."""
        signing = Ed25519PrivateKey.from_private_bytes(self.signing).public_key().public_bytes_raw()
        return PublicIdentity(signing=signing, sealing=public_of(self.sealing))

    def sign(self, text: bytes) -> bytes:
        """Return this organisation's signature of the text."""
        return Ed25519PrivateKey.from_private_bytes(self.signing).sign(text)

    def bonds(self, terms: Terms, run: str, name: str) -> Callable[[str], bytes]:
        """Return a function from a party to the bond with it in one run: 32 bytes that only the two can compute.

        A party may send messages to itself through the coordinator, so it also has a bond with itself.
        """
        known: dict[str, bytes] = {}

        def bond(peer: str) -> bytes:
            if peer not in known:
                line = member(terms, peer).identity
                if line is None:
                    raise RefusedError(f"{name} has no bond with {peer}: both need an identity in the study")
                secret = agree(self.sealing, PublicIdentity.read(line).sealing)
                known[peer] = derive(secret, "bond", run, *sorted((name, peer)))
            return known[peer]

        return bond

    def _file(self) -> _File:
        return _File(format=_FORMAT, public=str(self.public), signing=self.signing.hex(), sealing=self.sealing.hex())


def rehearsed_bonds(run: str, name: str) -> Callable[[str], bytes]:
    """Return substitutes for bonds in a seeded run: reproducible, and not secret."""
    return lambda peer: derive(run.encode(), "rehearsed bond", *sorted((name, peer)))
