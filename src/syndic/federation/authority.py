"""The keys that sign a federation's certificates: a root, and an issuing authority if the root is kept elsewhere.

The root's key may have a passphrase, be in a PKCS#11 token, which it never leaves, or belong to an organisation's own
certificate authority. Parties trust the root. With an issuing authority it is needed once a year, and nothing changes
at the parties when the issuing key is replaced.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError, MissingExtraError
from syndic.federation import certificate as certificates
from syndic.study.study_folder import write_whole

ROOT_DAYS: Final = 3650
PASSPHRASE: Final = "SYNDIC_PASSPHRASE"  # noqa: S105  # its name
_DAYS: Final = 365
_KEY_BITS: Final = 3072
_PADDING: Final = padding.PKCS1v15


def from_environment(what: str) -> str:
    """Return the passphrase in the environment.

    Raises:
        InputError: if there is none.
    """
    if PASSPHRASE not in os.environ:
        raise InputError(f"{what} has a passphrase: set {PASSPHRASE}, or use the command line, which asks for it")
    return os.environ[PASSPHRASE]


@final
class TokenKey(Document):
    """Where a key is: the PKCS#11 module (a shared library), the token's label and the key's. None of it is secret."""

    module: str
    token: str
    label: str = "syndic root"


def open_key(place: TokenKey, ask: Callable[[str], str], *, make: bool = False) -> rsa.RSAPrivateKey:
    """Return the key, which signs in the token; `make` it there if there is none of this label.

    Raises:
        InputError: if module, token, key or PIN are not right.
    """
    pin = ask(f"token {place.token}")
    with _session(place, pin, rw=make) as (pkcs11, session):
        if make and not _objects(pkcs11, session, "PUBLIC_KEY", place.label):
            session.generate_keypair(pkcs11.KeyType.RSA, _KEY_BITS, label=place.label, store=True)
        (public,) = _objects(pkcs11, session, "PUBLIC_KEY", place.label) or (None,)
        if public is None:
            raise InputError(f"token {place.token}: there is no key with the label '{place.label}'")
        numbers = [public[pkcs11.Attribute[name]] for name in ("PUBLIC_EXPONENT", "MODULUS")]
    exponent, modulus = (int.from_bytes(one, "big") for one in numbers)
    return _InToken(place, pin, rsa.RSAPublicNumbers(exponent, modulus).public_key())


@contextmanager
def _session(place: TokenKey, pin: str, *, rw: bool = False) -> Iterator[tuple[Any, Any]]:
    """Open the token and log in; a session is short, because a token lets a process log in once at a time."""
    try:
        import pkcs11  # noqa: PLC0415  # an extra
    except ModuleNotFoundError:
        raise MissingExtraError("python-pkcs11", "pkcs11") from None
    try:
        with pkcs11.lib(place.module).get_token(token_label=place.token).open(user_pin=pin, rw=rw) as session:
            yield pkcs11, session
    except (pkcs11.PKCS11Error, RuntimeError, ValueError) as error:
        what = f"token {place.token}: {type(error).__name__}"
        raise InputError(f"{what}: check the module, the labels (one key each) and the PIN") from None


def _objects(pkcs11: Any, session: Any, kind: str, label: str) -> list[Any]:
    wanted = {pkcs11.Attribute.CLASS: pkcs11.ObjectClass[kind], pkcs11.Attribute.LABEL: label}
    return list(session.get_objects(wanted))


class _InToken(rsa.RSAPrivateKey):
    """An RSA key that signs in its token, with PKCS #1 v1.5 and SHA-256, as certificates need it."""

    def __init__(self, place: TokenKey, pin: str, public: rsa.RSAPublicKey) -> None:
        self._place, self._pin, self._public = place, pin, public

    @property
    def key_size(self) -> int:
        return self._public.key_size

    def public_key(self) -> rsa.RSAPublicKey:
        return self._public

    def sign(self, data: Any, padding: Any, algorithm: Any) -> bytes:
        if not isinstance(padding, _PADDING) or not isinstance(algorithm, hashes.SHA256):
            raise InputError("a key in a token signs with PKCS #1 v1.5 and SHA-256 only")
        with _session(self._place, self._pin) as (pkcs11, session):
            (key,) = _objects(pkcs11, session, "PRIVATE_KEY", self._place.label)
            return bytes(key.sign(bytes(data), mechanism=pkcs11.Mechanism.SHA256_RSA_PKCS))

    def decrypt(self, ciphertext: Any, padding: Any) -> NoReturn:  # noqa: ARG002
        raise InputError("a key in a token only signs")

    def private_numbers(self) -> NoReturn:
        raise InputError("a key in a token does not leave it")

    def private_bytes(self, encoding: Any, format: Any, encryption_algorithm: Any) -> NoReturn:  # noqa: A002, ARG002
        raise InputError("a key in a token does not leave it")

    def __copy__(self) -> "_InToken":
        return self

    def __deepcopy__(self, memo: Any) -> "_InToken":
        return self


@final
@dataclass(frozen=True, kw_only=True)
class Authority:
    """The folder with a federation's root and issuing authority; `ask` is asked for passphrases and PINs."""

    folder: Path
    ask: Callable[[str], str] = from_environment

    @property
    def root(self) -> Path:
        """The root certificate, which parties trust."""
        return self.folder / "root.crt"

    @property
    def keys(self) -> tuple[Path, ...]:
        """The files with private keys."""
        return tuple(self.folder / name for name in ("root.key", "issuing.key", "next.key"))

    def create(self, name: str, *, passphrase: str = "", token: TokenKey | None = None) -> None:
        """Make the root, with its key in a file or in a token."""
        if token is None:
            key: rsa.RSAPrivateKey = certificates.new_key()
            certificates.write_key(self.folder / "root.key", key, passphrase)
        else:
            key = open_key(token, self.ask, make=True)
            write_whole(self.folder / "token.json", to_readable_json(token))
        self._put_root(certificates.make_root(f"{name} root", key, days=ROOT_DAYS))

    def issue(self, name: str, public_key: rsa.RSAPublicKey, *, host: str | None, days: int) -> str:
        """Return a certificate in PEM, with that of the issuing authority if there is one.

        Raises:
            InputError: if nobody would accept it.
        """
        path = self.folder / "issuing.crt"
        chain = certificates.read_chain(path.read_bytes(), path.name) if path.is_file() else []
        issuer, key = (chain[0], self._key("issuing")) if chain else (self.certificate, self._key("root"))
        signed = certificates.make_certificate(name, public_key, root=issuer, root_key=key, host=host, days=days)
        # the key may belong to another certificate, and the issuing authority may have expired
        certificates.check_chain([signed, *chain], self.certificate, name=name)
        return "".join(map(certificates.pem, [signed, *chain]))

    @property
    def certificate(self) -> x509.Certificate:
        """The root certificate."""
        return certificates.read_certificate(self.root.read_bytes(), "root.crt")

    def appoint(self, name: str, *, passphrase: str = "", days: int = _DAYS) -> None:
        """Make an issuing authority, signed by the root's key, which is then not needed until the next one."""
        root_key, key = self._key("root"), certificates.new_key()
        issuing = certificates.make_issuing(
            f"{name} issuing", key.public_key(), root=self.certificate, root_key=root_key, days=days
        )
        certificates.check_chain([issuing], self.certificate, name=f"{name} issuing", depth=1)
        certificates.write_key(self.folder / "next.key", key, passphrase)
        self._use([issuing])

    def request(self, name: str, *, passphrase: str = "") -> Path:
        """Make a key for an issuing authority and the request that another certificate authority signs."""
        key = certificates.new_key()
        certificates.write_key(self.folder / "next.key", key, passphrase)
        path = self.folder / "issuing.csr"
        write_whole(path, certificates.make_request(f"{name} issuing", key).encode())
        return path

    def install(self, content: bytes, *, new_root: bool) -> None:
        """Use a signed issuing certificate, and its root if `new_root`; the chain has the issuing one first.

        Raises:
            InputError: if it is for another key, signed by another root, or may not sign certificates.
        """
        chain = certificates.read_chain(content, "the chain")
        root = chain.pop() if chain[-1].subject == chain[-1].issuer else self.certificate
        if not chain:
            raise InputError("the chain must begin with the issuing certificate: this is a root alone")
        if root != self.certificate and not new_root:
            raise InputError("the chain ends in another root than the one that admitted parties trust")
        certificates.check_chain(chain, root, name=certificates.common_name(chain[0].subject), depth=len(chain))
        if not certificates.same_key(self._key("next"), chain[0]):
            raise InputError("the chain is for another key: send the last issuing.csr")
        self._put_root(root)
        self._use(chain)

    def _use(self, chain: list[x509.Certificate]) -> None:
        write_whole(self.folder / "issuing.crt", "".join(map(certificates.pem, chain)).encode())
        (self.folder / "next.key").replace(self.folder / "issuing.key")

    def _key(self, name: str) -> rsa.RSAPrivateKey:
        path = self.folder / f"{name}.key"
        if name == "root" and (self.folder / "token.json").is_file():
            return open_key(from_file(self.folder / "token.json", TokenKey), self.ask)
        if not path.is_file():
            raise InputError(f"{path}: no such key: bring it back for this command, and take it away afterwards")
        return certificates.read_key(path, lambda: self.ask(path.name))

    def _put_root(self, root: x509.Certificate) -> None:
        write_whole(self.root, certificates.pem(root).encode())
