"""Protocols between organisations, with identities and agreements: the simulation's release, logged at each owner."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

import pytest

from organisations import COORDINATOR, agreed_nodes, homes_for, rehearse
from support import CASES, Case
from syndic.kernel import Call, Delivery, decode
from syndic.privacy import Entry, Ledger
from syndic.runtime import Local
from syndic.study import PartyFolder, simulate
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study

SEED = 7
# one of every way in which parties agree on secrets, and one without any
NAMES = (
    "homm laplace",
    "average",
    "marginals gaussian",
    "estimate masked",
    "synthesis adaptive",
    "learn mpc_grad",
    "marginals passive",
    "gram of three",
    "mixing",
    "estimate groups",
    "synthesis across",
    "align of three",
)
EACH = [case for case in CASES if case.name in NAMES]

each_case = pytest.mark.parametrize("case", EACH, ids=lambda case: case.name)


def test_every_name_is_a_case() -> None:
    assert len(EACH) == len(NAMES)


@final
class Noting:
    """A local runtime that notes which bytes every party was sent."""

    def __init__(self, local: Local) -> None:
        self.local = local
        self.sent: dict[str, list[bytes]] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        for party, data in calls.items():
            self.sent.setdefault(party, []).append(data)
        return self.local.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        self.local.close()


def entries_of(home: PartyFolder) -> list[Entry]:
    with Ledger.open(home.ledger) as ledger:
        ledger.verify()
        return list(ledger.entries())


@each_case
def test_a_rehearsal_gives_the_release_of_the_simulation(case: Case, tmp_path: Path) -> None:
    study, homes = homes_for(case.study, case.sources, tmp_path / "homes")
    rehearsed = rehearse(study, homes, seed=SEED)
    simulated = simulate(study, case.sources, seed=SEED)
    written = [release.write(tmp_path / name) for name, release in (("one", rehearsed), ("other", simulated))]
    files = [{path.name: path.read_bytes() for path in paths if path.name != "transcript.json"} for paths in written]
    assert files[0] == files[1]
    # only the agreements themselves make a difference in what was said
    said = [
        [(each.step, each.party, each.reply_sha256) for each in release.transcript if each.step != "ready"]
        for release in (rehearsed, simulated)
    ]
    assert said[0] == said[1]


@each_case
def test_a_real_run_charges_what_it_says_and_logs_every_call(case: Case, tmp_path: Path) -> None:
    study, homes = homes_for(case.study, case.sources, tmp_path / "homes")
    carrier = Noting(Local(agreed_nodes(study, homes)))
    release = run_study(study, carrier, identity=COORDINATOR)
    carrier.close()
    assert release.statement.protects
    for name, home in homes.items():
        entries = entries_of(home)
        charged = [event for entry in entries for event in entry.events]
        assert sorted(charged, key=repr) == sorted(study.plan.events(name), key=repr)
        calls = [entry for entry in entries if entry.kind == "call"]
        # the parties meet again at the end; a step that is answered afresh is logged once
        *sent, ready, meet = carrier.sent[name]
        assert [decode(data, Call).step for data in (ready, meet)] == ["ready", "meet"]
        assert [entry.asked for entry in calls] == [hashlib.sha256(data).hexdigest() for data in sent]
        assert [entry.why for entry in calls] == [decode(data, Call).step for data in sent]
        replies = [each.reply_sha256 for each in release.transcript if each.party == name]
        assert sorted(entry.reply for entry in calls) == sorted(replies)


def test_real_bonds_are_other_ones_than_those_of_a_rehearsal(tmp_path: Path) -> None:
    study, homes = homes_for(EACH[0].study, EACH[0].sources, tmp_path / "homes")
    nodes = agreed_nodes(study, homes)
    rehearsed = agreed_nodes(study, homes, rehearsal=SEED)
    one, other = list(homes)
    assert nodes[one].state.bond(other) == nodes[other].state.bond(one)
    assert rehearsed[one].state.bond(other) == rehearsed[other].state.bond(one)
    assert nodes[one].state.bond(other) != rehearsed[one].state.bond(other)
    assert nodes[one].state.study == study.digest != rehearsed[one].state.study == run_digest(study, SEED)
    for node in (*nodes.values(), *rehearsed.values()):
        node.close()
