"""A party's own folder: its copy of the study, where its rows are, its ledger, its memory, its log.

Nothing in it travels. `party.toml` says where the rows live and how much the owner lets all studies together
spend on the people in them.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from syndic.data import SourceSpec, Table, open_source
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Desk, Memory, Node, schema_of
from syndic.privacy import Budget, Ledger
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic.study.document import Study


class PartyFile(Document):
    """What an owner writes into `party.toml`: the data set's name, where it is, and the most it may cost."""

    name: str
    dataset: str
    source: SourceSpec
    cap: Budget


@final
@dataclass(frozen=True, kw_only=True)
class Home:
    """A folder of one party."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.folder / "ledger.sqlite"

    @property
    def study(self) -> Path:
        """The party's own copy of the study."""
        return self.folder / "study.json"

    @property
    def party(self) -> Path:
        """Where the rows are and what they may cost."""
        return self.folder / "party.json"

    def cap(self, dataset: str) -> Budget | None:
        """Return the cap that the ledger has for the data set, if there is one."""
        if not self.ledger.exists():
            return None
        with Ledger.open(self.ledger) as ledger:
            return ledger.spent(dataset).cap if dataset in ledger.datasets() else None

    def keep(self, study: Study, party: PartyFile) -> None:
        """Write the party's own copies; a cap that the party file did not say before goes into the ledger."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        before = self.known()
        with Ledger.open(self.ledger) as ledger:
            if party.dataset not in ledger.datasets() or before is None or before.cap != party.cap:
                ledger.declare(party.dataset, party.cap, why="the owner's party file")
        for path, content in ((self.study, study), (self.party, party)):
            # whole or not at all, for a party whose process is just reading it
            draft = path.with_name(f"{path.name}.{os.getpid()}")
            draft.write_bytes(to_readable_json(content))
            draft.replace(path)

    def known(self) -> PartyFile | None:
        """Return what an earlier run kept of the party's file, if there was one."""
        return from_file(self.party, PartyFile) if self.party.exists() else None

    def node(self, *, seed: int | None, source: Any = None) -> Node:
        """Open the party's side of its study; `source` stands in for the file's when rows are in memory."""
        study = from_file(self.study, Study)
        party = from_file(self.party, PartyFile)
        ledger = Ledger.open(self.ledger)
        if party.dataset not in ledger.datasets():
            ledger.declare(party.dataset, party.cap, why="the owner's party file")
        desk = Desk(
            name=party.name,
            terms=study,
            study=run_digest(study, seed),
            spends=study.protocol.spends(study, party.name),
            dataset=party.dataset,
            ledger=ledger,
            memory=Memory(self.folder / "memory.sqlite"),
            open_table=lambda: _open_table(study, party.name, party.source if source is None else source),
            randomness=randomness_of(study, seed, party.name),
        )
        return Node(protocol=study.protocol, desk=desk)

    @contextmanager
    def logging(self, name: str) -> Iterator[None]:
        """Send what the party has to say about its calls to its own log file and nowhere else."""
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


def run_digest(study: Study, seed: int | None) -> str:
    """Return the digest that calls carry. A seeded run has another one, so it can never pass for the real study."""
    if seed is None:
        return study.digest
    return hashlib.sha256(f"simulation {seed} of {study.digest}".encode()).hexdigest()


def randomness_of(study: Study, seed: int | None, role: str) -> Callable[[str], Randomness]:
    """Return where a role gets its randomness: the operating system, or a stream per label in simulation."""
    if seed is None:
        return lambda _label: SystemRandomness()
    return lambda label: SimulationRandomness(seed, study.digest, role, label)


def _open_table(study: Study, name: str, source: Any) -> Table:
    try:
        return Table(
            schema=schema_of(study, name),
            source=open_source(source),
            person=study.unit.person,
            rows_per_person=study.unit.rows,
        )
    except InputError as error:
        raise InputError(f"party '{name}': {error}") from None
