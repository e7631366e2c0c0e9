"""A root key in a PKCS#11 token: a hardware security module, a smart card, or SoftHSM. The key never leaves it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from syndic.document import Document
from syndic.errors import InputError, MissingExtraError

_KEY_BITS = 3072


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


_PADDING = padding.PKCS1v15
