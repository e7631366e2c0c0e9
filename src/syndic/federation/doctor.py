"""Check a party folder or a coordinator's folder, name the problems and their cures. Reads no row, asks no party.

What `syndic join` uses is what is tried: the same channel, with the same proxy, certificate and source.
"""

import datetime
import os
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from cryptography import x509

from syndic.data import open_source
from syndic.document import Document
from syndic.errors import InputError, SyndicError
from syndic.federation import certificate as certificates
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import check_site, connection_of, proxy_of, workspace_of
from syndic.federation.requests import SERVER_NAME, Approval
from syndic.federation.run import check_list
from syndic.privacy.audit import AuditLog
from syndic.runtime.flare.coordinator import Flare
from syndic.study.agreement import Standing, studies
from syndic.study.document import Study
from syndic.study.machine import check_machine
from syndic.study.party_folder import PartyFile, PartyFolder, booking, run_digest
from syndic.study.party_rows import open_table
from syndic.study.study_folder import StudyFolder
from syndic.version import __version__

_SOON_DAYS = 30
_SECONDS = 5.0
_ENGINE = "2.9."
_CLOCK_SECONDS = 60.0
_LITTLE_BYTES = 10**9
_TOO_LITTLE_BYTES = 10**8


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
    startup = workspace_of(home) / "startup"
    advice = f"correct what it names; syndic party accept {home / 'connection.json'} --home {home} restores the kit"
    yield _tried("kit, key and policy", lambda: f"as accepted, for {check_site(home).party}", advice)
    yield from _dates("certificate", startup / "client.crt", "syndic party init --renew, then approve and accept")
    yield from _channel(approval, startup, home)
    yield from _folder(home, (home / "identity.key", home / "ledger.sqlite", startup / "client.key"))
    yield _audited(PartyFolder(folder=home).audit)
    yield from _agreed(PartyFolder(folder=home), study)


def _coordinator(coordinator: Coordinator, study: Study | None) -> Iterator[Finding]:
    startup = coordinator.workspace / "startup"
    yield from _dates("root certificate", coordinator.root, "a new root means a new federation: plan it in time")
    yield from _dates("server certificate", startup / "server.crt", "syndic coordinator renew, then start again")
    yield _tried("server key", lambda: _server_pair(coordinator), "syndic coordinator renew, then start again")
    keys = (coordinator.keys, *coordinator.authority.keys, startup / "server.key")
    yield from _folder(coordinator.folder, keys)
    yield _audited(coordinator.audit)
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
        yield _tried("study", lambda: _on_the_list(study, coordinator), "syndic coordinator fill writes identities")


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


def _channel(approval: Approval, startup: Path, home: Path) -> Iterator[Finding]:
    """Ask the server through the channel of a site; if nothing answers, find out where it ends."""
    try:
        from syndic.runtime.flare.look import NoLookError, look  # noqa: PLC0415  # gRPC comes with the engine
    except ImportError:
        return
    where, proxy = f"{approval.host}:{approval.port}", proxy_of(approval.host, os.environ)
    through = f" through the proxy of {proxy}" if proxy else ""
    try:
        seen = look(approval.host, approval.port, startup, seconds=_SECONDS)
    except (NoLookError, OSError) as error:
        if getattr(error, "reached", False):
            yield _bad(
                "connection", f"{where} answers{through}, but as another version or program", "upgrade the server"
            )
        elif proxy:
            cure = f"add {approval.host} to no_proxy, or let the proxy pass {where} without opening TLS; join anew"
            yield _bad("proxy", f"{proxy} is set, and nothing answers at {where}{through}", cure)
        else:
            yield from _without_answer(approval, startup)
        return
    yield _good("connection", f"{where} answers under mutual TLS{through}")
    if not seen.admitted:
        cure = "ask the coordinator, then syndic party init --renew, approve and accept"
        yield _bad("admission", "the server does not list this certificate: removed, or replaced", cure)
    elif seen.twice:
        yield _bad("site", f"two processes are connected as {approval.party}", "stop the one with a copy of the folder")
    elif seen.connected:
        yield _good("site", f"{approval.party} is connected")
    else:
        yield Finding(what="site", state="look", found="is not connected", advice=f"syndic join {home}")
    ahead = datetime.datetime.now(datetime.UTC).timestamp() - seen.time
    if abs(ahead) > _CLOCK_SECONDS:
        told = f"this machine's clock is {abs(ahead):.0f} seconds {'ahead of' if ahead > 0 else 'behind'} the server's"
        yield _bad("clock", told, "set the clock that is wrong, and let it follow a time server (NTP)")
    else:
        yield _good("clock", "as the server's, within a minute")
    if seen.syndic != __version__:
        found = f"the server has Syndic {seen.syndic}, this machine {__version__}"
        yield Finding(what="version", state="look", found=found, advice="install the same version everywhere")


def _without_answer(approval: Approval, startup: Path) -> Iterator[Finding]:
    """Find out why the server does not answer, without a proxy: name, port, TLS or what is behind it."""
    address = _resolved(approval.host)
    yield address
    if address.state == "good":
        yield _handshake(approval, startup)


def _handshake(approval: Approval, startup: Path) -> Finding:
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
    cure = "is a proxy or firewall in between, or the server overloaded?"
    return _bad("connection", f"{where} accepts TLS and answers nothing within {_SECONDS:g} s", cure)


def _check_server(line: ssl.SSLSocket) -> None:
    shown = line.getpeercert(binary_form=True)
    if shown is None or certificates.common_name(x509.load_der_x509_certificate(shown).subject) != SERVER_NAME:
        raise OSError("another kind of server answers at this address")


def _folder(folder: Path, private: tuple[Path, ...]) -> Iterator[Finding]:
    """Check that there is room, and that nobody else may read the folder and its private files."""
    free = shutil.disk_usage(folder).free
    room, cure = f"{free / 10**9:.1f} GB free", f"free space: {_LITTLE_BYTES / 10**9:g} GB are enough for most studies"
    state: Literal["good", "look", "bad"] = "good" if free >= _LITTLE_BYTES else "look"
    state = state if free >= _TOO_LITTLE_BYTES else "bad"
    yield Finding(what="disk", state=state, found=room, advice="" if state == "good" else cure)
    modes = {folder: 700, **dict.fromkeys(private, 600)}
    wrong = {path: mode for path, mode in modes.items() if path.exists() and path.stat().st_mode & 0o077}
    for path, mode in wrong.items():
        yield _bad("file modes", f"other accounts may use {path}", f"chmod {mode} {path}")
    foreign = [path for path in (folder, *private) if path.exists() and not os.access(path, os.R_OK | os.W_OK)]
    for path in foreign:
        yield _bad("file modes", f"this account may not write {path}", "use the account that made it, or chown it")
    if not wrong and not foreign:
        yield _good("file modes", "private files are this account's alone")


def _audited(log: AuditLog) -> Finding:
    cure = "keep the file as evidence, move it away, and find out who changed it"
    return _tried("audit log", lambda: f"verified: {len(log.verify())} records", cure)


def _agreed(home: PartyFolder, study: Study | None) -> Iterator[Finding]:
    """Check the source, and every study that can still be asked; with a study, whether that one is."""
    try:
        party, standings = home.owner(), studies(home)
    except SyndicError as error:
        yield _bad("party.toml", str(error), "correct party.toml: see docs/how-to/agree.md")
        return
    cure = "correct source in party.toml, and let this account read it"
    yield _tried("source", lambda: f"{len(open_source(party.source).names())} columns", cure)
    for one in standings:
        yield from _standing(home, party, one)
    if study is None:
        return
    held = [one for one in standings if run_digest(study, one.rehearsal) == one.run]
    if not any(one.state in {"agreed", "finished"} for one in held):
        known = f"is {held[0].state}" if held else "is not in this folder"
        yield _bad(f"study {study.digest[:12]}", f"this file {known}", "compare digests, then syndic agree")


def _standing(home: PartyFolder, party: PartyFile, one: Standing) -> Iterator[Finding]:
    what, found = f"study {one.run[:12]}", f"{one.study}: {one.state}"
    if one.state in {"withdrawn", "expired", "pending", "damaged"}:
        until = f" on {one.expires:%Y-%m-%d %H:%M} UTC" if one.state == "expired" and one.expires else ""
        cure = "no call of it is answered: syndic agree, if it should be"
        yield Finding(what=what, state="look", found=found + until, advice=cure)
        return
    yield _good(what, found)
    if one.state == "agreed":
        cure = "correct source or cap in party.toml; or syndic withdraw, and agree to a study with these columns"
        yield _tried(f"{what} here", lambda: _could_run(home, party, one), cure)


def _could_run(home: PartyFolder, party: PartyFile, one: Standing) -> str:
    """Check what the step `ready` checks: every column is there, and the study fits under the cap."""
    study = StudyFolder.of(home.folder, one.run).study()
    check_machine(study.plan.resources.party_bytes or 0)
    open_table(study, party.name, party.source, ledger=home.ledger, id_columns=party.id_columns, seed=one.rehearsal)
    with home.open_ledger() as ledger:
        account, events = booking(study, party, one.run), study.plan.events(party.name)
        ledger.check(dataset=party.dataset, study=account.name, events=events, account=account)
    return "every column is in the source, and the cap covers it"


def _server_pair(coordinator: Coordinator) -> str:
    startup = coordinator.workspace / "startup"
    signed = certificates.read_certificate((startup / "server.crt").read_bytes(), "server.crt")
    if not certificates.same_key(certificates.read_key(startup / "server.key"), signed):
        raise InputError("server.key does not match server.crt")
    return "matches its certificate"


def _on_the_list(study: Study, coordinator: Coordinator) -> str:
    check_list(study, coordinator)
    return f"{study.name}: digest {study.digest[:12]}, every party is admitted"


def _tried(what: str, look: Callable[[], str], advice: str) -> Finding:
    try:
        return _good(what, look())
    except (SyndicError, OSError) as error:
        return _bad(what, str(error), advice)


def _good(what: str, found: str) -> Finding:
    return Finding(what=what, state="good", found=found)


def _bad(what: str, found: str, advice: str) -> Finding:
    return Finding(what=what, state="bad", found=found, advice=advice)
