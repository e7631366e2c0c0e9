"""A party's own folder: its copy of the study, the place of its rows, its ledger and memory, its log.

Nothing in it is sent to anybody. `party.toml` names the source of the rows and the cap: the most that all studies
together may spend on the people in them. In a simulation a party folder has one study. An organisation's folder has its
keys, one ledger for all studies, and a folder for each study that its owner was asked to agree to.
"""

import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import msgspec

from syndic.data import SourceSpec, Table
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel import (
    Memory,
    Node,
    PartyState,
    account_of,
    identified,
    member,
    no_bond,
    owner_of,
)
from syndic.kernel.memory import choice_key
from syndic.privacy import Account, Budget, Called, Ledger
from syndic.privacy.audit import AuditLog
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic.study.document import Study, coordinator_of, price_of, seeded_digest
from syndic.study.identity import Identity, rehearsed_bonds
from syndic.study.machine import check_machine
from syndic.study.party_rows import open_table
from syndic.study.study_folder import StudyFolder, linked, write_whole


class PartyFile(Document):
    """What an owner writes into `party.toml`: the name of the data set, its source, and its cap.

    `id` names the column or columns by which its people are aligned with those of other organisations. `ledger` is the
    ledger of an organisation that takes part as several parties: all of them name the same one.
    """

    name: str
    dataset: str
    source: SourceSpec
    cap: Budget
    id: str | tuple[str, ...] = ()
    ledger: str | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a party file; its paths are relative to its folder."""
        party, here = from_file(path, cls), path.parent.absolute()
        named = {name: getattr(party.source, name) for name in ("path", "duckdb")}
        found = {name: str(here / file) for name, file in named.items() if file is not None}
        ledger = None if party.ledger is None else str(here / party.ledger)
        return msgspec.structs.replace(party, source=msgspec.structs.replace(party.source, **found), ledger=ledger)

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that `id` names."""
        return (self.id,) if isinstance(self.id, str) else self.id

    @property
    def booked_as(self) -> str:
        """The party's name if it shares a ledger, which then keeps it apart from the others; else empty."""
        return self.name if self.ledger is not None else ""


@final
@dataclass(frozen=True, kw_only=True)
class PartyFolder:
    """The folder of one party."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """The party's one SQLite file: its ledger, its answers and its memory."""
        return self._ledger_of(self._file())

    @property
    def study(self) -> Path:
        """The party's own copy of the study."""
        return self.folder / "study.json"

    @property
    def party(self) -> Path:
        """The party's own copy of its party file."""
        return self.folder / "party.json"

    @property
    def keys(self) -> Path:
        """The organisation's private keys."""
        return self.folder / "identity.key"

    @property
    def audit(self) -> AuditLog:
        """The organisation's audit log."""
        return AuditLog(self.folder)

    def owner(self) -> PartyFile:
        """Return the owner's `party.toml`."""
        return PartyFile.read(self.folder / "party.toml")

    def identity(self, study: Study, name: str) -> Identity:
        """Return the organisation's keys; raise `InputError` if the study names other keys for this party."""
        identity = Identity.load(self.keys)
        if member(study, name).identity != str(identity.public):
            raise InputError(
                f"party '{name}': the study does not contain the identity of {self.keys}: run syndic identity and send "
                "the line to the author of the study"
            )
        return identity

    def open_ledger(self) -> Ledger:
        """Open the ledger; create it only if it is the party's own and it never took part in a study.

        Raises:
            IntegrityError: if it did and the ledger is missing or empty: its charges would be lost.
        """
        return self._opened(self.ledger)

    def _ledger_of(self, own: PartyFile | None) -> Path:
        return self.folder / "ledger.sqlite" if own is None or own.ledger is None else Path(own.ledger)

    def _opened(self, path: Path) -> Ledger:
        alone = path == self.folder / "ledger.sqlite" and not self._began
        return Ledger.open(path, create=alone and not any(self.folder.glob("studies/*/agreement.json")))

    @property
    def _began(self) -> bool:
        """Whether a simulation began here: `keep` creates the ledger before it writes these files."""
        return self.study.exists() or self.party.exists()

    def check_ledger(self, path: Path) -> None:
        """Raise `IntegrityError` if a simulation began here and its ledger is lost: its charges would be lost."""
        if self._began and not (path.is_file() and path.stat().st_size):
            raise IntegrityError(
                f"{path}: the ledger of an earlier run is missing or empty: restore its newest copy. A run in another "
                "folder would not know what was spent"
            )

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Run the block; if it raises, put back the copies that an earlier run stored, with the cap now in force."""
        before, kept = self.known(), self.folder / "study.json.before"
        if before is None or not self.study.exists():
            yield
            return
        if not linked(kept, self.study):
            shutil.copy(self.study, kept)
        try:
            yield
        except BaseException:
            now = self.known()
            if now and kept.exists():
                kept.replace(self.study)
                cap = now.cap if now.dataset == before.dataset else before.cap
                write_whole(self.party, to_readable_json(msgspec.structs.replace(before, cap=cap)))
            raise
        finally:
            # two names of one file are not replaced by each other
            kept.unlink(missing_ok=True)

    def cap(self, dataset: str, shared: str | None = None) -> Budget | None:
        """Return the cap of the data set in the ledger, or in the `shared` one, if there is one."""
        path = self.ledger if shared is None else Path(shared)
        if not path.exists():
            return None
        with Ledger.open(path) as ledger:
            return ledger.spent(dataset).cap if dataset in ledger.datasets() else None

    def keep(self, study: Study, party: PartyFile, *, same: Path | None = None) -> None:
        """Store the party's copies of study and party file; declare the cap in the ledger if it is new.

        `same` is a file with the same study: of many parties on one disk, each links to it.
        """
        before, path = self.known(), self._ledger_of(party)
        for folder in (self.folder, path.parent):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        with Ledger.open(path) as ledger:
            stated = None if before is None else (before.dataset, before.cap)
            if party.dataset not in ledger.datasets() or stated != (party.dataset, party.cap):
                ledger.declare(party.dataset, party.cap, why="the owner's party file")
        write_whole(self.party, to_readable_json(party))
        if same is None or not linked(self.study, same):
            write_whole(self.study, to_readable_json(study))

    def known(self) -> PartyFile | None:
        """Return the party file that an earlier run stored, if any."""
        return from_file(self.party, PartyFile) if self.party.exists() else None

    def booked(self, run: str) -> str:
        """Return the name under which the party's ledger keeps a run."""
        own = self._file()
        return Account(run=run, party=own.booked_as if own else "").name

    def _file(self) -> PartyFile | None:
        """Return the owner's party file, or the one that a simulation stored."""
        return self.owner() if (self.folder / "party.toml").is_file() else self.known()

    def node(
        self,
        *,
        seed: int | None,
        source: Any = None,
        study: Study | None = None,
        party: PartyFile | None = None,
    ) -> Node:
        """Open the party's side of its study; `source` replaces that of the party file if rows are in memory.

        Many parties in one process share one `study`: a copy for each would have all the others in it. `party` is the
        content of the party file, if it was read before.
        """
        study, party = study or from_file(self.study, Study), party or from_file(self.party, PartyFile)
        return self._node(study, party, seed, source)

    def agreed_node(self, digest: str) -> Node:
        """Open the organisation's side of the run with this digest; every call checks the agreement again.

        Raises:
            RefusedError: if the owner has not agreed or has withdrawn, or if the agreement has expired.
        """
        stored, party = StudyFolder.of(self.folder, digest), self.owner()
        agreement = stored.agreement(party.name)
        if agreement is None:
            raise RefusedError(f"{party.name} has not agreed to study {digest[:12]}: its owner runs syndic agree")
        study = stored.study()
        if run_digest(study, agreement.rehearsal) != digest:
            raise RefusedError(f"{party.name}'s copy of study {digest[:12]} was changed: agree again")
        identity, coordinator = self.identity(study, party.name), coordinator_of(study)
        node = self._node(study, party, agreement.rehearsal)
        ledger, memory, log, booked = node.state.ledger, node.state.memory, self.audit, node.state.booked
        caller = f"coordinator {coordinator.fingerprint}"

        def audit(step: str, why: str) -> None:
            what, who = f"call {step}" if step else "call", caller if step else "unsigned call"
            if why:
                log.refuse(what, who=who, study=digest, why=why)
            else:
                log.add(what, who=who, study=digest)

        # the owner may have lowered the cap after agreeing
        ledger.declare(party.dataset, party.cap, why="the owner's party file")
        state = replace(
            node.state,
            agreement=lambda: stored.in_force(study, party.name, ledger, booked),
            sign=identity.sign,
            coordinator=coordinator,
            note_answered=lambda: stored.note_head(memory.head()),
            audit=audit,
        )
        if agreement.rehearsal is None:
            state = replace(state, bond=identity.bonds(study, digest, party.name))
        try:
            stored.in_force(study, party.name, ledger, booked)
            stored.check_head(memory.head(), party.name)
            check_owner(study, party, booking(study, party, digest), ledger)
        except RefusedError:
            node.close()
            raise
        return replace(node, state=state)

    def forget(self, run: str) -> None:
        """Delete the answers and secrets of a finished run; its charges stay in the ledger."""
        with Ledger.open(self.ledger, create=False) as ledger:
            Memory(ledger.database, self.booked(run)).forget()

    def log_refusal(self, run: str, data: bytes, code: str, why: str) -> None:
        """Log a call that was refused because no agreement to its run is in force.

        Runs that this party never agreed to are logged as one, without a name: a sender can make up any number.
        """
        party, asked = self.owner(), hashlib.sha256(data).hexdigest()
        agreement = StudyFolder.of(self.folder, run).agreement(party.name)
        known = self.booked(run) if agreement is not None and agreement.run == run else ""
        self.audit.refuse("call", who="coordinator", study=run if known else "", why=why)
        with self.open_ledger() as ledger:
            ledger.log_call(Called(dataset=party.dataset, study=known, call="", step="", asked=asked, reply=code))

    def _node(self, study: Study, party: PartyFile, seed: int | None, source: Any = None) -> Node:
        digest, path = run_digest(study, seed), self._ledger_of(party)
        account, ledger = booking(study, party, digest), self._opened(path)
        if party.dataset not in ledger.datasets():
            ledger.declare(party.dataset, party.cap, why="the owner's party file")
        memory, randomness = Memory(ledger.database, account.name), randomness_of(study, seed, party.name)
        plan = study.plan

        def table() -> Table:
            check_machine(plan.resources.party_bytes or 0, f"party '{party.name}': ")
            return open_table(
                study,
                party.name,
                party.source if source is None else source,
                ledger=path,
                id_columns=party.id_columns,
                seed=seed,
                key=choice_key(study.unit, memory, randomness),
            )

        state = PartyState(
            name=party.name,
            plan=plan,
            study=digest,
            dataset=party.dataset,
            ledger=ledger,
            memory=memory,
            price=price_of(study, party.name),
            account=None if account == Account(run=digest) else account,
            open_table=table,
            randomness=randomness,
            bond=no_bond if seed is None or not identified(study) else rehearsed_bonds(digest, party.name),
        )
        return Node(method=study.protocol, state=state)

    def command(self, *, study: str | None = None, seed: int | None = None) -> list[str]:
        """Return the command of the process that answers from this folder; the descriptor of a socket comes last.

        It answers the folder's one study, with the `seed` of a simulation, or the agreed `study` with this digest.
        """
        # -P: no module is taken from the folder in which it is started
        module = [sys.executable, "-P", "-m", "syndic.study.serve", "--home", str(self.folder)]
        options = {"--study": study, "--seed": seed}
        return [*module, *(str(part) for one in options.items() if one[1] is not None for part in one), "--socket"]

    @contextmanager
    def logging(self, name: str) -> Iterator[None]:
        """Write the party's log messages to its own log file only."""
        log = logging.getLogger("syndic.party").getChild(name)
        handler = logging.FileHandler(self.folder / "party.log", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.propagate = True
            handler.close()


def booking(study: Study, party: PartyFile, run: str) -> Account:
    """Return under which name a party's ledger keeps a run.

    Raises:
        InputError: if the study says that an organisation has several parties, and this one's ledger is its own.
    """
    account = account_of(study, party.name, run)
    if account.party and not party.booked_as:
        raise InputError(
            f"party '{party.name}' is one of several of {owner_of(member(study, party.name))}: name the ledger that "
            "they share, with `ledger` in party.toml"
        )
    return msgspec.structs.replace(account, party=party.booked_as, cap=party.cap if party.booked_as else None)


def check_owner(study: Study, party: PartyFile, account: Account, ledger: Ledger) -> None:
    """Check that the study knows of all parties as which this organisation takes part with the same people.

    Raises:
        RefusedError: if it takes them for different organisations: its noise may be for people who are at fewer.
    """
    unknown = ledger.agreed_as(account.run, party.dataset) - {account.name, *account.beside}
    if unknown and 1 + len(account.beside) + len(unknown) > study.unit.parties:
        raise RefusedError(
            f"party '{party.name}': its people take part in this study as another party too, but the study names no "
            "`owner` of both: ask its author to name it"
        )


def party_file(source: Any) -> PartyFile | None:
    """Return the party file if the source is the path of one."""
    named = isinstance(source, str | Path) and Path(source).name.endswith("party.toml")
    return PartyFile.read(Path(source)) if named else None


def run_digest(study: Study, seed: int | None) -> str:
    """Return the digest that calls carry; a seeded run has its own."""
    return study.digest if seed is None else seeded_digest(study.digest, seed)


def randomness_of(study: Study, seed: int | None, role: str) -> Callable[[str], Randomness]:
    """Return the randomness of a role by label: from the operating system, or from the seed of a simulation."""
    if seed is None:
        return lambda _label: SystemRandomness()
    return lambda label: SimulationRandomness(seed, study.digest, role, label)
