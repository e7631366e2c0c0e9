"""Check a party folder or a coordinator's folder and name the problems. Reads no row and asks no party anything."""

import datetime
import socket
import ssl
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from cryptography import x509

from syndic.document import Document
from syndic.errors import InputError, SyndicError
from syndic.federation import certificate as certificates
from syndic.federation.coordinator import Coordinator
from syndic.federation.flare_config import SERVER_NAME
from syndic.federation.party import check_site, connection_of, workspace_of
from syndic.federation.requests import Approval
from syndic.federation.run import check_list
from syndic.runtime.flare.coordinator import Flare
from syndic.study.agreement import studies
from syndic.study.document import Study
from syndic.study.party_folder import PartyFolder, run_digest
from syndic.version import __version__

_SOON_DAYS = 30
_SECONDS = 5.0
_ENGINE = "2.9."


class Finding(Document):
    """The result of one check; `advice` says what to do if it is not good."""

    what: str
    state: Literal["good", "look", "bad"]
    found: str
    advice: str = ""


def examine(folder: Path, study: Study | None = None) -> tuple[Finding, ...]:
    """Check a folder of either kind; with a study, also whether it could run."""
    if (folder / "coordinator.json").is_file():
        return (_versions(), *_coordinator(Coordinator.open(folder), study))
    if (folder / "connection.json").is_file() or (folder / "flare").is_dir():
        return (_versions(), *_party(folder, study))
    raise InputError(f"{folder}: this is neither a party folder nor a coordinator's folder: give one of them")


def _versions() -> Finding:
    try:
        engine = version("nvflare")
    except PackageNotFoundError:
        return _bad("versions", f"Syndic {__version__}, no nvflare", "pip install 'syndic[flare]'")
    found = f"Syndic {__version__}, nvflare {engine}"
    if not engine.startswith(_ENGINE):
        return _bad("versions", found, f"nvflare {_ENGINE}x was tested: pip install 'syndic[flare]'")
    return _good("versions", found)


def _party(home: Path, study: Study | None) -> Iterator[Finding]:
    try:
        approval = connection_of(home)
    except InputError as error:
        yield _bad("admission", str(error), "send request.json to the coordinator, then accept its approval")
        return
    yield _tried("kit, key and policy", lambda: f"as accepted, for {check_site(home).party}")
    startup = workspace_of(home) / "startup"
    yield from _dates("certificate", startup / "client.crt", "syndic party init --renew, then approve and accept")
    address = _resolved(approval.host)
    yield address
    if address.state == "good":
        yield _connected(approval, startup)
    yield from _agreed(home, study)


def _coordinator(coordinator: Coordinator, study: Study | None) -> Iterator[Finding]:
    startup = coordinator.workspace / "startup"
    yield from _dates("root certificate", coordinator.root, "a new root means a new federation: plan it in time")
    yield from _dates("server certificate", startup / "server.crt", "syndic coordinator renew, then start again")
    yield _tried("server key", lambda: _server_pair(coordinator))
    yield _resolved(coordinator.federation.host)
    try:
        here = Flare(coordinator.socket, study="", most=0).connected()
        yield _good("server", f"runs; connected: {', '.join(here) or 'nobody'}")
    except InputError as error:
        here = ()
        yield _bad("server", str(error), "syndic coordinator start")
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    for one in coordinator.admitted():
        state = "connected" if one.party in here else "not connected"
        found = f"certificate until {one.expires}, {state}"
        if one.expires < today:
            yield _bad(f"party {one.party}", found, "it sends a new request: syndic party init --renew")
        else:
            yield _good(f"party {one.party}", found)
    if study is not None:
        yield _tried("study", lambda: _on_the_list(study, coordinator))


def _dates(what: str, path: Path, advice: str) -> Iterator[Finding]:
    try:
        found = certificates.read_certificate(path.read_bytes(), path.name)
    except (OSError, InputError) as error:
        yield _bad(what, str(error), advice)
        return
    now = datetime.datetime.now(datetime.UTC)
    held = f"{found.not_valid_before_utc:%Y-%m-%d} to {found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < found.not_valid_before_utc:
        told = f"it is {now:%Y-%m-%d %H:%M} UTC here, before the {what} was made ({held})"
        yield _bad("clock", told, "set this machine's clock")
    elif now > found.not_valid_after_utc:
        yield _bad(what, f"expired: {held}; it is {now:%Y-%m-%d %H:%M} UTC here", advice)
    elif (found.not_valid_after_utc - now).days < _SOON_DAYS:
        yield Finding(what=what, state="look", found=f"expires soon: {held}", advice=advice)
    else:
        yield _good(what, held)


def _resolved(host: str) -> Finding:
    try:
        addresses = {str(one[4][0]) for one in socket.getaddrinfo(host, None)}
    except OSError:
        return _bad("name", f"{host} does not resolve", "ask for a DNS entry, or add it to this machine's hosts file")
    return _good("name", f"{host} is {', '.join(sorted(addresses))}")


def _connected(approval: Approval, startup: Path) -> Finding:
    """Make the TLS handshake with the server as a site does, and disconnect."""
    where = f"{approval.host}:{approval.port}"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.set_alpn_protocols(["h2"])
    try:
        context.load_cert_chain(startup / "client.crt", startup / "client.key")
        with (
            socket.create_connection((approval.host, approval.port), timeout=_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=approval.host) as line,
        ):
            _check_server(line)
            line.settimeout(2.0)
            # a server that refuses our certificate does so with the first bytes
            line.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _bad("server's certificate", error.verify_message, "compare the root's fingerprint with the coordinator")
    except ssl.SSLError as error:
        return _bad("handshake", f"{where} refuses: {error.reason}", "renew this site's certificate")
    except TimeoutError:
        return _bad("port", f"{where} does not answer", "open the port outwards in the firewall: see the table")
    except OSError as error:
        return _bad("port", f"{where}: {error.strerror or error}", "is the server running, and the port open?")
    return _good("connection", f"{where} answers under mutual TLS")


def _check_server(line: ssl.SSLSocket) -> None:
    shown = line.getpeercert(binary_form=True)
    if shown is None or certificates.common_name(x509.load_der_x509_certificate(shown).subject) != SERVER_NAME:
        raise OSError("another kind of server answers at this address")


def _agreed(home: Path, study: Study | None) -> Iterator[Finding]:
    try:
        standings = studies(PartyFolder(folder=home))
    except SyndicError as error:
        yield _bad("party.toml", str(error), "correct party.toml: see docs/how-to/agree.md")
        return
    for one in standings:
        yield _good(f"study {one.run[:12]}", f"{one.study}: {one.state}")
    if study is None:
        return
    held = [one for one in standings if run_digest(study, one.rehearsal) == one.run]
    if not any(one.state in {"agreed", "finished"} for one in held):
        yield _bad(f"study {study.digest[:12]}", "this file is not agreed to", "compare digests, then syndic agree")


def _server_pair(coordinator: Coordinator) -> str:
    startup = coordinator.workspace / "startup"
    signed = certificates.read_certificate((startup / "server.crt").read_bytes(), "server.crt")
    if not certificates.same_key(certificates.read_key(startup / "server.key"), signed):
        raise InputError("server.key does not match server.crt")
    return "matches its certificate"


def _on_the_list(study: Study, coordinator: Coordinator) -> str:
    check_list(study, coordinator)
    return f"{study.name}: digest {study.digest[:12]}, every party is admitted"


def _tried(what: str, look: Callable[[], str]) -> Finding:
    try:
        return _good(what, look())
    except SyndicError as error:
        return _bad(what, str(error), "see the deployment guide")


def _good(what: str, found: str) -> Finding:
    return Finding(what=what, state="good", found=found)


def _bad(what: str, found: str, advice: str) -> Finding:
    return Finding(what=what, state="bad", found=found, advice=advice)
