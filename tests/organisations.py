"""Organisations with party folders, identities and agreements in one process, for suites that need real ones."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from support import study_text, two_parties
from syndic import Study
from syndic.document import to_json
from syndic.kernel import Agreement, Call, CoordinatorKey, Message, Node, Nothing, Reply, answer, decode, encode
from syndic.kernel.agreement import Agreements, Ready
from syndic.privacy import Entry, Ledger
from syndic.runtime import Local
from syndic.study import PartyFolder
from syndic.study.agreement import agree
from syndic.study.identity import Identity
from syndic.study.party_folder import run_digest
from syndic.study.release import Release
from syndic.study.run import run_study

COORDINATOR = Identity(signing=bytes([101]) * 32, sealing=bytes([102]) * 32)
"""The coordinator of every study between organisations in the tests."""


def named(study: Study, identity: Identity = COORDINATOR) -> Study:
    """Return the study with its coordinator."""
    return replace(study, coordinator=CoordinatorKey(identity=str(identity.public)))


def signed_call(call: Call) -> bytes:
    """Return a call as the coordinator sends it."""
    return encode(replace(call, signature=COORDINATOR.sign(call.signed_text())))


def homes_for(study: Study, sources: Mapping[str, pa.Table], folder: Path) -> tuple[Study, dict[str, PartyFolder]]:
    """Give every party a home with keys, a party file and rows; return the study with their identities."""
    homes, members = {}, []
    for party in study.parties:
        home = PartyFolder(folder=folder / party.name)
        home.folder.mkdir(parents=True)
        identity = Identity.make(home.keys)
        pq.write_table(sources[party.name], home.folder / "rows.parquet")
        (home.folder / "party.toml").write_text(
            f'name = "{party.name}"\ndataset = "people of {party.name}"\nsource = {{ path = "rows.parquet" }}\n'
            "cap = { epsilon = 50, delta = 1e-4 }\n"
        )
        homes[party.name] = home
        members.append(replace(party, identity=str(identity.public)))
    return named(replace(study, parties=tuple(members))), homes


def agreed_nodes(study: Study, homes: Mapping[str, PartyFolder], *, rehearsal: int | None = None) -> dict[str, Node]:
    """Let every owner agree, and open the nodes."""
    for home in homes.values():
        agree(home, study, rehearsal=rehearsal)
    return {name: home.agreed_node(run_digest(study, rehearsal)) for name, home in homes.items()}


def rehearse(study: Study, homes: Mapping[str, PartyFolder], *, seed: int, runtime: Any = None) -> Release:
    """Run a study whose owners all agree to the rehearsal."""
    nodes = agreed_nodes(study, homes, rehearsal=seed)
    local = Local(nodes)
    try:
        return run_study(study, local if runtime is None else runtime(local), seed=seed, identity=COORDINATOR)
    finally:
        local.close()


class Organisations:
    """Two organisations, their study, and what a coordinator could send them."""

    def __init__(self, folder: Path) -> None:
        self.study, self.homes = homes_for(Study.loads(study_text()), two_parties(), folder)
        self.home = self.homes["north"]
        self.run = self.study.digest
        self.open: list[Node] = []

    def nodes(self) -> dict[str, Node]:
        nodes = agreed_nodes(self.study, self.homes)
        self.open += nodes.values()
        return nodes

    def node(self) -> Node:
        node = self.home.agreed_node(self.run)
        self.open.append(node)
        return node

    def ask(self, node: Node, step: str, body: Message, call: str = "") -> Reply:
        identifier = call or hashlib.sha256(f"{step}{node.name}".encode()).hexdigest()[:32]
        asked = Call(study=self.run, party=node.name, step=step, call=identifier, body=encode(body))
        return decode(answer(node, signed_call(asked)), Reply)

    def agreements(self, nodes: dict[str, Node]) -> dict[str, bytes]:
        replies = {name: self.ask(node, "ready", Nothing()) for name, node in nodes.items()}
        return {name: decode(reply.body, Ready).agreement for name, reply in replies.items()}

    def meet(self, nodes: dict[str, Node], **more: bytes) -> None:
        """Show every party the agreements of all, and whatever else is given."""
        shown = {**self.agreements(nodes), **more}
        for node in nodes.values():
            assert self.ask(node, "meet", Agreements(agreements=shown)).code == "ok"

    def entries(self, name: str = "north") -> list[Entry]:
        with Ledger.open(self.homes[name].ledger) as ledger:
            ledger.verify()
            return list(ledger.entries())

    def signed(self, name: str = "north", **changes: object) -> bytes:
        """Return an agreement that the organisation's own key signed, whatever is in it."""
        now = datetime.now(UTC)
        plain = Agreement(run=self.run, party=name, syndic="0.1.0", signed_at=now, expires=now + timedelta(days=1))
        changed = replace(plain, **changes)
        identity = Identity.load(self.homes[name].keys)
        return to_json(replace(changed, signature=identity.sign(changed.text()).hex()))
