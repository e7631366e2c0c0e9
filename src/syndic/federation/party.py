"""A party folder as a site of a federation: its keys never leave it; requests and approvals are exchanged.

A renewal keeps the old key and certificate in use until the approval of the new ones is accepted.
"""

import fcntl
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cryptography import x509

from syndic.document import from_file, from_toml, to_readable_json
from syndic.errors import InputError
from syndic.federation import certificate as certificates
from syndic.federation.flare_config import check_files, site_kit, write_files
from syndic.federation.requests import Approval, Request, check_name
from syndic.study import PartyFolder
from syndic.study.draft_text import toml_of
from syndic.study.identity import Identity
from syndic.study.party_folder import PartyFile
from syndic.study.study_folder import write_new, write_whole
from syndic.version import __version__

_CONNECTION = "connection.json"


def workspace_of(home: Path) -> Path:
    """Return the workspace of the engine's site, inside the party folder."""
    return home.absolute() / "flare"


def prepare(home: Path, *, name: str, renew: bool = False) -> Request:
    """Make the site's key and the party's identity, if it has none, and return the request to send.

    Raises:
        InputError: if there is a key already and `renew` was not asked for.
    """
    check_name(name)
    startup = workspace_of(home) / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    for folder in (home, workspace_of(home), startup):
        folder.chmod(0o700)
    if (startup / "client.key").exists() and not renew:
        raise InputError(f"{home}: there is a key already: add --renew to replace it")
    keys = PartyFolder(folder=home).keys
    identity = Identity.load(keys) if keys.exists() else Identity.make(keys)
    key = certificates.new_key()
    # beside the key in use, so that the site works until the approval arrives
    (startup / "next.key").unlink(missing_ok=True)
    certificates.write_key(startup / "next.key", key)
    request = Request(
        party=name,
        certificate_request=certificates.make_request(name, key),
        identity=str(identity.public),
        syndic=__version__,
    )
    write_whole(home / "request.json", to_readable_json(request))
    return request


def write_owner(home: Path, *, name: str, source: Path, cap: str) -> None:
    """Write a new `party.toml` with the source of the rows and the cap, EPSILON or EPSILON,DELTA.

    An existing one is never overwritten.
    """
    found = re.fullmatch(r"([\d.]+)(?:,([\d.e-]+))?", cap)
    if found is None:
        raise InputError(f"--cap {cap}: expected epsilon, or epsilon and delta, such as 4,1e-5")
    budget = {"epsilon": found[1], "delta": found[2]}
    where = toml_of(str(source.absolute()))
    text = f"name = {toml_of(name)}\ndataset = {toml_of(f'rows of {name}')}\nsource = {{ path = {where} }}\n"
    text += f"cap = {{ {', '.join(f'{key} = {toml_of(value)}' for key, value in budget.items() if value)} }}\n"
    from_toml(text, PartyFile, where="party.toml")
    write_new(home / "party.toml", text)


def accept(home: Path, approval: Approval) -> None:
    """Install an approval for the key of the last request, and write the site's policy.

    Accepting the installed approval again restores the policy.
    """
    startup = workspace_of(home) / "startup"
    root = certificates.read_certificate(approval.root.encode(), "the root of the approval")
    chain = certificates.read_chain(approval.certificate.encode(), "the certificate of the approval")
    certificates.check_chain(chain, root, name=approval.party)
    key = _key_of(chain[0], startup)
    known = startup / "rootCA.pem"
    if known.is_file() and certificates.pem(root) != known.read_text():
        # another federation needs a new party folder, or removing the file on purpose
        raise InputError(
            f"the approval comes from another root than {known.name}: compare fingerprints by telephone; remove "
            "the file only if the federation really has a new root"
        )
    key.replace(startup / "client.key")
    write_whole(startup / "client.crt", approval.certificate.encode())
    write_whole(known, approval.root.encode())
    write_whole(home / _CONNECTION, to_readable_json(approval))
    write_files(workspace_of(home), site_kit(approval))


def connection_of(home: Path) -> Approval:
    """Return the approval that was installed."""
    if not (home / _CONNECTION).is_file():
        raise InputError(f"{home}: this party is not admitted yet: install its approval with syndic party accept")
    return from_file(home / _CONNECTION, Approval)


def check_site(home: Path) -> Approval:
    """Check policy, certificate and key as at every start; return the approval.

    Raises:
        InputError: if certificate or key are not usable.
        IntegrityError: if a file of the kit was changed or one was added.
    """
    approval, startup = connection_of(home), workspace_of(home) / "startup"
    check_files(workspace_of(home), site_kit(approval))
    root = certificates.read_certificate((startup / "rootCA.pem").read_bytes(), "rootCA.pem")
    chain = certificates.read_chain((startup / "client.crt").read_bytes(), "client.crt")
    certificates.check_chain(chain, root, name=approval.party)
    if not certificates.same_key(certificates.read_key(startup / "client.key"), chain[0]):
        raise InputError("client.key does not match client.crt: restore both files, or renew them")
    owner = PartyFolder(folder=home).owner()
    if owner.name != approval.party:
        raise InputError(f"party.toml belongs to '{owner.name}', but the site was admitted as '{approval.party}'")
    return approval


def lock(folder: Path) -> IO[str]:
    """Lock a folder for this process; the lock ends with the returned file, at the latest with the process.

    Raises:
        InputError: if another process has the folder.
    """
    file = (folder / "process.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        other = file.read(20).strip()
        file.close()
        raise InputError(f"{folder}: process {other} serves this folder already: stop it first") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def proxy_of(host: str, environment: Mapping[str, str]) -> str:
    """Return the name of the variable whose proxy gRPC uses for a host, or an empty text."""
    without = environment.get("no_grpc_proxy") or environment.get("no_proxy") or ""
    if any(host == one or host.endswith(f".{one.lstrip('.')}") for each in without.split(",") if (one := each.strip())):
        return ""
    return next((name for name in ("grpc_proxy", "https_proxy", "http_proxy") if environment.get(name)), "")


def keep_inside(workspace: Path) -> None:
    """Keep the engine's temporary files inside this folder."""
    temporary = workspace / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    temporary.chmod(0o700)
    os.environ["TMPDIR"] = str(temporary)


def _key_of(signed: x509.Certificate, startup: Path) -> Path:
    """Return the key of a certificate: that of the last request, or the one in use."""
    keys = [path for path in (startup / "next.key", startup / "client.key") if path.is_file()]
    if not keys:
        raise InputError("no request is waiting for an approval: make one with syndic party init")
    for path in keys:
        if certificates.same_key(certificates.read_key(path), signed):
            return path
    raise InputError("the approval is for another key: send the last request.json and ask for a new approval")
