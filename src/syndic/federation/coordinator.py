"""A coordinator's folder: root, keys that sign its calls, the server's files, admitted parties, the studies it ran.

`authority` signs certificates and is needed for nothing else.
"""

import ctypes
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, final

from cryptography.hazmat.primitives import hashes

from syndic.document import from_file, to_readable_json
from syndic.errors import InputError
from syndic.federation import certificate as certificates
from syndic.federation.authority import Authority, TokenKey, from_environment
from syndic.federation.flare_config import made_for, server_kit, write_files
from syndic.federation.requests import SERVER_NAME, Admitted, Approval, Federation, Request, check_name
from syndic.privacy.audit import AuditLog
from syndic.runtime.flare.coordinator import ask_server
from syndic.runtime.flare.parts import Forward
from syndic.study.draft_text import sections, unconfirmed, with_parties
from syndic.study.identity import Identity
from syndic.study.study_folder import alone, write_whole
from syndic.version import __version__

DEFAULT_DAYS: Final = 365
Ask = Callable[[str], str]
_SERVER_SECONDS: Final = 60.0


@final
@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """A coordinator's folder."""

    folder: Path
    ask: Ask = from_environment

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        name: str,
        host: str,
        port: int,
        days: int = DEFAULT_DAYS,
        passphrase: str = "",
        token: TokenKey | None = None,
        ask: Ask = from_environment,
    ) -> Self:
        """Make root, server key and server certificate; an existing folder is never overwritten.

        The root's key gets the passphrase, or is made in the token.
        """
        check_name(name)
        if (folder / "coordinator.json").exists():
            raise InputError(f"{folder}: this is a coordinator's folder already; its keys are never overwritten")
        made = cls(folder=folder, ask=(lambda _what: passphrase) if passphrase else ask)
        for place in (folder, folder / "authority", folder / "parties", made.workspace / "startup"):
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o700)
        made.authority.create(name, passphrase=passphrase, token=token)
        made._write_list()
        write_whole(folder / "coordinator.json", to_readable_json(Federation(name=name, host=host, port=port)))
        made._write_kit()
        made.renew(days=days)
        Identity.make(made.keys)
        return made

    @classmethod
    def open(cls, folder: Path, *, ask: Ask = from_environment) -> Self:
        """Open a folder that `create` made; if it was moved, its server files are rewritten."""
        if not (folder / "coordinator.json").is_file():
            raise InputError(f"{folder}: this is not a coordinator's folder: make one with syndic coordinator init")
        opened = cls(folder=folder.absolute(), ask=ask)
        if not made_for(opened.workspace):
            opened._write_kit()
        return opened

    @property
    def federation(self) -> Federation:
        """Name and address."""
        return from_file(self.folder / "coordinator.json", Federation)

    @property
    def keys(self) -> Path:
        """The private keys that sign this coordinator's calls."""
        return self.folder / "identity.key"

    @property
    def identity(self) -> Identity:
        """The keys that sign this coordinator's calls; made now if the folder is older than they."""
        return Identity.load(self.keys) if self.keys.exists() else Identity.make(self.keys)

    @property
    def root(self) -> Path:
        """The root certificate."""
        return self.authority.root

    @property
    def authority(self) -> Authority:
        """Root and issuing authority."""
        return Authority(folder=self.folder / "authority", ask=self.ask)

    @property
    def workspace(self) -> Path:
        """The workspace of the engine's server."""
        return self.folder.absolute() / "flare"

    @property
    def socket(self) -> Path:
        """The socket on which the running server accepts this coordinator."""
        return self.workspace / "relay.sock"

    @property
    def audit(self) -> AuditLog:
        """The organisation's audit log."""
        return AuditLog(self.folder)

    def admitted(self) -> tuple[Admitted, ...]:
        """Return the admitted parties by name."""
        return tuple(from_file(path, Admitted) for path in sorted((self.folder / "parties").glob("*.json")))

    def renew(self, *, days: int = DEFAULT_DAYS) -> None:
        """Make a new key and certificate for the server, used from its next start."""
        federation = self.federation
        key = certificates.new_key()
        signed = self.authority.issue(SERVER_NAME, key.public_key(), host=federation.host, days=days)
        startup = self.workspace / "startup"
        certificates.write_key(startup / "server.key", key)
        write_whole(startup / "server.crt", signed.encode())
        write_whole(startup / "rootCA.pem", self.root.read_bytes())
        self.audit.add("renew the server's certificate")

    def appoint(self, *, days: int = DEFAULT_DAYS, passphrase: str = "") -> None:
        """Replace the issuing authority by a new one; certificates that the old one signed stay valid."""
        with self.audit.attempt("appoint an issuing authority"):
            self.authority.appoint(self.federation.name, days=days, passphrase=passphrase)

    def install(self, chain: bytes) -> None:
        """Use an issuing certificate of another authority; another root only as long as no party is admitted."""
        with self.audit.attempt("install an issuing authority"):
            self.authority.install(chain, new_root=not self.admitted())

    def approve(self, request: Request, *, days: int = DEFAULT_DAYS) -> Approval:
        """Sign a party's certificate and admit the party; its previous certificate stays valid until the next renewal.

        Raises:
            InputError: if the party is on the list with another identity: somebody may be taking its place.
        """
        key = certificates.read_request(request.certificate_request, name=request.party)
        chain = self.authority.issue(request.party, key, host=None, days=days)
        signed = certificates.read_certificate(chain.encode(), "the new certificate")
        with self.audit.attempt(f"approve {request.party}"), alone(self.folder / "parties"):
            entry = Admitted(
                party=request.party,
                certificate_sha256=signed.fingerprint(hashes.SHA256()).hex(),
                expires=f"{signed.not_valid_after_utc:%Y-%m-%d}",
                identity=request.identity,
                former_sha256=self._former(request),
            )
            write_whole(self._entry(request.party), to_readable_json(entry))
            self._write_list()
        federation = self.federation
        return Approval(
            party=request.party,
            certificate=chain,
            root=self.root.read_text(),
            federation=federation.name,
            host=federation.host,
            port=federation.port,
            syndic=__version__,
        )

    def fill(self, text: str, *, people: Mapping[str, int], columns: Mapping[str, Sequence[str]]) -> str:
        """Return a study's text with identities of its parties and of this coordinator, and what else is given.

        A study without parties gets all admitted ones.

        Raises:
            InputError: if a party is not admitted, or values were read from rows and not confirmed.
        """
        if unconfirmed(text):
            raise InputError("this is a private draft: first syndic init --confirm")
        known = {one.party: one.identity for one in self.admitted()}
        names = [one.name for one in sections(text) if one.table == "parties"] or list(known)
        strangers = [name for name in dict.fromkeys([*names, *people, *columns]) if name not in known]
        if strangers:
            raise InputError(f"{', '.join(strangers)}: not admitted; admitted are {', '.join(known) or 'none'}")
        facts = {
            name: {"people": people.get(name), "columns": columns.get(name), "identity": known[name]}
            for name in dict.fromkeys([*names, *people, *columns])
        }
        return with_parties(text, facts, str(self.identity.public))

    def remove(self, party: str) -> None:
        """Remove a party: its connection ends and its certificate is refused from now on."""
        if not self._entry(party).is_file():
            known = ", ".join(one.party for one in self.admitted()) or "nobody"
            raise InputError(f"party '{party}' is not admitted; admitted are {known}")
        # a list that another process writes late would admit the party again
        with self.audit.attempt(f"remove {party}"), alone(self.folder / "parties"):
            self._entry(party).unlink()
            self._write_list()
        # a server that is not running has no connections
        ask_server(self.socket, Forward(site=party, kind="drop", body=b"", seconds=10.0))

    def _former(self, request: Request) -> str:
        """Return the admitted certificate of the party, if any.

        Raises:
            InputError: if another party is admitted under this name; case does not count.
        """
        known = {one.party.lower(): one for one in self.admitted()}.get(request.party.lower())
        if known is None:
            return ""
        if (known.party, known.identity) != (request.party, request.identity):
            raise InputError(
                f"{known.party} is admitted with another identity: telephone it; if it really has new keys, "
                "remove it first"
            )
        return known.certificate_sha256

    def _entry(self, party: str) -> Path:
        return self.folder / "parties" / f"{check_name(party)}.json"

    def _write_kit(self) -> None:
        """Write the files of the engine's server, except keys and certificates."""
        write_files(self.workspace, server_kit(self.workspace, self.federation))

    def _write_list(self) -> None:
        """Write the list that the server reads at every registration."""
        names = {
            one.party: [mark for mark in (one.certificate_sha256, one.former_sha256) if mark] for one in self.admitted()
        }
        write_whole(self.workspace / "admitted.json", json.dumps(names, indent=2).encode())


_PR_SET_PDEATHSIG: Final = 1
_SYSTEM: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def _ends_with_its_parent() -> None:
    """Let Linux stop this process when its parent is killed."""
    if _SYSTEM is not None:
        _SYSTEM.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def serving(coordinator: Coordinator) -> Iterator[None]:
    """Run the coordinator's server as another process; it is stopped at the end.

    Raises:
        InputError: if it ended or did not answer within a minute. `server.out` in the folder has what it printed.
    """
    printed = coordinator.folder / "server.out"
    command = [sys.executable, "-P", "-m", "syndic", "coordinator", "start", str(coordinator.folder)]
    with printed.open("wb") as file:
        printed.chmod(0o600)
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            preexec_fn=_ends_with_its_parent,  # noqa: PLW1509
        )
    # else it would outlive this process
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        end = time.monotonic() + _SERVER_SECONDS
        while ask_server(coordinator.socket, Forward(site="", kind="sites", body=b"", seconds=10.0)).reason:
            if process.poll() is not None or time.monotonic() > end:
                raise InputError(f"the server did not start: see {printed}")
            time.sleep(0.2)
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
