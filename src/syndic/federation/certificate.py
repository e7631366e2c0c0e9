"""Keys and certificates of a federation: a root, maybe an issuing authority, one certificate per server and site.

Every private key is made where it is used and stays there; only certificate requests and certificates travel.
RSA, because the engine's own registration signs with RSA.
"""

import datetime
import hashlib
import ipaddress
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syndic.errors import InputError
from syndic.study.study_folder import write_whole

_KEY_BITS = 3072
# a clock that is slightly behind must not refuse a new certificate
_EARLIER = datetime.timedelta(hours=1)


def new_key() -> rsa.RSAPrivateKey:
    """Make a private key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)


def write_key(path: Path, key: rsa.RSAPrivateKey, passphrase: str = "") -> None:
    """Write a private key in one step, readable by its owner's account only, and encrypted if it has a passphrase."""
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    write_whole(path, content)


def read_key(path: Path, passphrase: Callable[[], str] | None = None) -> rsa.RSAPrivateKey:
    """Read a private key; `passphrase` is asked if the key is encrypted."""
    try:
        content = path.read_bytes()
        asked = passphrase().encode() if passphrase and b"ENCRYPTED" in content else None
        key = serialization.load_pem_private_key(content, password=asked)
    except FileNotFoundError:
        raise InputError(f"{path}: no such key") from None
    except (ValueError, TypeError):
        raise InputError(f"{path}: this is not a private key, or the passphrase is wrong") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InputError(f"{path}: this is not an RSA key")
    return key


def read_certificate(content: bytes, where: str) -> x509.Certificate:
    """Read a certificate in PEM, the first of a chain."""
    return read_chain(content, where)[0]


def read_chain(content: bytes, where: str) -> list[x509.Certificate]:
    """Read certificates in PEM, in their order."""
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise InputError(f"{where}: this is not a certificate") from None


def make_root(name: str, key: rsa.RSAPrivateKey, *, days: int) -> x509.Certificate:
    """Make a federation's root certificate, signed by itself."""
    return _signed(name, key.public_key(), x509.BasicConstraints(ca=True, path_length=1), key=key, days=days)


def make_issuing(
    name: str, public_key: rsa.RSAPublicKey, *, root: x509.Certificate, root_key: rsa.RSAPrivateKey, days: int
) -> x509.Certificate:
    """Make the certificate of an issuing authority, which signs those of server and sites and no other authority's."""
    below = x509.BasicConstraints(ca=True, path_length=0)
    return _signed(name, public_key, below, key=root_key, days=days, above=root)


def make_request(name: str, key: rsa.RSAPrivateKey) -> str:
    """Make a certificate request in PEM: the name, the public key, and a proof of holding the private one."""
    request = x509.CertificateSigningRequestBuilder().subject_name(_subject(name)).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def read_request(text: str, *, name: str) -> rsa.RSAPublicKey:
    """Return the public key of a request for exactly this name, signed with its private key."""
    try:
        request = x509.load_pem_x509_csr(text.encode())
        key = request.public_key()
    except ValueError:
        raise InputError("the certificate request cannot be read: ask the party to send it again") from None
    if not request.is_signature_valid or not isinstance(key, rsa.RSAPublicKey) or key.key_size < _KEY_BITS:
        raise InputError("the certificate request is not signed by its own key: ask the party to make a new one")
    if common_name(request.subject) != name:
        raise InputError(f"the certificate request is not for '{name}'")
    return key


def make_certificate(
    name: str,
    public_key: rsa.RSAPublicKey,
    *,
    root: x509.Certificate,
    root_key: rsa.RSAPrivateKey,
    host: str | None,
    days: int,
) -> x509.Certificate:
    """Sign a certificate: of a server if it has a `host`, of a site if not."""
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if host is None else ExtendedKeyUsageOID.SERVER_AUTH
    uses = (
        x509.ExtendedKeyUsage([purpose]),
        x509.SubjectAlternativeName([_alternative(name if host is None else host)]),
    )
    leaf = x509.BasicConstraints(ca=False, path_length=None)
    return _signed(name, public_key, leaf, *uses, key=root_key, days=days, above=root)


def check_chain(
    chain: Sequence[x509.Certificate], root: x509.Certificate, *, name: str, depth: int | None = None
) -> None:
    """Raise `InputError` unless the chain leads from this name to the root, through authorities, and is valid now.

    `depth` is how many of its certificates, from the root's side, must be authorities: all but the first if not given.
    """
    links = [*chain, root]
    authorities = links[-((len(chain) - 1 if depth is None else depth) + 1) :]
    for below, above in pairwise(links):
        try:
            below.verify_directly_issued_by(above)
        except (InvalidSignature, ValueError, TypeError):
            raise InputError(f"the certificate of '{name}' was not signed by this federation's root") from None
    for place, one in enumerate(authorities):
        if not _may_sign(one, below=place):
            raise InputError(f"the certificate of '{name}' was signed by one that may not sign it")
    if not chain or common_name(chain[0].subject) != name:
        raise InputError(f"the certificate is not for '{name}' but for '{common_name(links[0].subject)}'")
    now = datetime.datetime.now(datetime.UTC)
    for one in chain:
        if not one.not_valid_before_utc <= now <= one.not_valid_after_utc:
            raise InputError(
                f"the certificate of '{common_name(one.subject)}' is valid from {one.not_valid_before_utc:%Y-%m-%d} to "
                f"{one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: check the clock, or renew it"
            )


def _may_sign(certificate: x509.Certificate, *, below: int) -> bool:
    """Return whether this is an authority that may have so many authorities below it, with a key like ours."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    room = constraints.path_length is None or constraints.path_length >= below
    return constraints.ca and usage.key_cert_sign and room and isinstance(certificate.public_key(), rsa.RSAPublicKey)


def common_name(name: x509.Name) -> str:
    """Return the common name of a subject."""
    values = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(values[0].value) if values else ""


def same_key(key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> bool:
    """Return whether the certificate is for this key."""
    return _spki(key.public_key()) == _spki(certificate.public_key())


def pem(certificate: x509.Certificate) -> str:
    """Return the certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def key_fingerprint(key: rsa.RSAPublicKey) -> str:
    """Return a public key's fingerprint, in groups that can be read out over the telephone."""
    return grouped(hashlib.sha256(_spki(key)).hexdigest())


def fingerprint(certificate: x509.Certificate) -> str:
    """Return a certificate's fingerprint, in groups that can be read out over the telephone."""
    return grouped(certificate.fingerprint(hashes.SHA256()).hex())


def grouped(digest: str) -> str:
    """Return the first 32 hexadecimal digits in groups of four."""
    return " ".join(digest[place : place + 4] for place in range(0, 32, 4))


def _spki(key: object) -> bytes:
    return key.public_bytes(  # type: ignore[attr-defined,no-any-return]  # every public key has it
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _signed(
    name: str,
    public_key: rsa.RSAPublicKey,
    constraints: x509.BasicConstraints,
    *uses: x509.ExtensionType,
    key: rsa.RSAPrivateKey,
    days: int,
    above: x509.Certificate | None = None,
) -> x509.Certificate:
    """Sign a certificate with the key of the one `above` it, or with its own key if there is none."""
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(_subject(name) if above is None else above.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        # a certificate is of no use after the one that signed it
        .not_valid_after(end if above is None else min(end, above.not_valid_after_utc))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(_usage(signs_certificates=constraints.ca), critical=True)
    )
    if above is not None:
        uses = (*uses, x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()))
    for one in uses:
        builder = builder.add_extension(one, critical=False)
    return builder.sign(key, hashes.SHA256())


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
