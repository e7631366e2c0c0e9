"""Every protocol, on every runtime: the same release and ledger, charged as declared, silent about everything else."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pytest

from faulty_runtime import EVERY, run_over
from runtimes import session_over
from support import CASES, Case, charges, ledger_entries, open_nodes
from syndic.data import Source, Table, open_source
from syndic.errors import PartyError
from syndic.kernel import (
    Call,
    Delivery,
    Node,
    Nothing,
    Reply,
    Runtime,
    answer,
    decode,
    encode,
    run,
    steps_of,
    steps_of_run,
)
from syndic.runtime import Local
from syndic.study import PartyFolder, Release, simulate
from syndic.study.party_folder import run_digest

SEED = 7

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_paying_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.study.plan.events("north")], ids=lambda case: case.name
)


def everything(release: Release, folder: Path, parties: Iterable[str]) -> dict[str, Any]:
    """What two runs must agree on: what was published, what was said, what was charged."""
    paths = release.write(folder / "release")
    return {
        "files": {path.name: path.read_bytes() for path in paths},
        "statement": release.statement,
        "transcript": release.transcript,
        "ledgers": {
            party: [
                (entry.kind, entry.dataset, entry.study, entry.call, entry.door, entry.events, entry.cost, entry.why)
                for entry in ledger_entries(folder, party)
            ]
            for party in parties
        },
    }


@final
class Recording:
    """A runtime that keeps the calls to north."""

    def __init__(self, carrier: Runtime, calls: list[bytes]) -> None:
        self.carrier, self.calls = carrier, calls
        self.close = carrier.close

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.calls += [calls["north"]] if "north" in calls else []
        return self.carrier.send(calls, seconds=seconds, arrived=arrived)


@dataclass(frozen=True)
class Recorded:
    """A run of a case in this process: its release, its folder, and the calls to north."""

    release: Release
    folder: Path
    calls: list[bytes]

    @property
    def until_charged(self) -> list[bytes]:
        """The calls that north answers one after the other, the last of which is the first that charges it."""
        first = charges(self.folder, "north")[0].call
        calls = [call for call in self.calls if decode(call, Call).step != "ready"]
        return calls[: 1 + [decode(call, Call).call for call in calls].index(first)]


Runs = Callable[[Case], Recorded]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return a function that runs a case once for all tests."""
    made: dict[str, Recorded] = {}

    def run_once(case: Case) -> Recorded:
        if case.name not in made:
            folder, calls = tmp_path_factory.mktemp("recorded"), list[bytes]()
            release = run_over(case, folder, lambda carrier: Recording(carrier, calls), seed=SEED)
            made[case.name] = Recorded(release, folder, calls)
        return made[case.name]

    return run_once


# processes are dear to start: where there is time, those of every case, else of the first of each folder of methods
FIRST = {type(case.study.protocol).__module__.split(".")[2]: case for case in reversed(CASES)}
SOON = {"histogram", "learning", "synthesis", "regression", "align"}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if folder in SOON or EVERY else [pytest.mark.slow])
        for folder, case in ([(case.name, case) for case in CASES] if EVERY else FIRST.items())
    ],
)
def test_same_release_and_ledger_on_each_runtime(case: Case, recorded: Runs, tmp_path: Path) -> None:
    local = recorded(case)
    here = everything(local.release, local.folder, case.sources)
    apart = simulate(case.study, case.sources, seed=SEED, runtime="processes", folder=tmp_path)
    assert everything(apart, tmp_path, case.sources) == here
    published = simulate(case.study, case.sources, seed=SEED + 1).write(tmp_path / "other")[0]
    assert published.read_bytes() != here["files"][published.name]


@each_case
def test_spends_is_what_was_charged(case: Case, recorded: Runs) -> None:
    folder = recorded(case).folder
    for party in case.sources:
        charged = [event for entry in charges(folder, party) for event in entry.events]
        assert sorted(charged, key=repr) == sorted(case.study.plan.events(party), key=repr)


@each_case
def test_the_planned_steps_are_asked_in_order_and_no_other_is_answered(
    case: Case, recorded: Runs, tmp_path: Path
) -> None:
    asked = [exchange.step for exchange in recorded(case).release.transcript]
    planned = list(steps_of_run(case.study.protocol, case.study.plan))
    assert set(asked) == set(planned)
    # forward through the plan, and back to where a loop begins: to one step, to the keys of the product of coins, to
    # the stages of servers
    back = {after for before, after in pairwise(asked) if planned.index(after) < planned.index(before)}
    assert len(back - ({"product_keys", "product_served"} if "ask_round" in planned else set())) <= 1
    if not back:
        assert list(dict.fromkeys(asked)) == planned
    nodes = open_nodes(case, tmp_path)
    for step in {*steps_of(type(case.study.protocol)), "coordinate"} - set(planned):
        call = Call(study=run_digest(case.study, SEED), party="north", step=step, call="0" * 32, body=encode(Nothing()))
        reply = decode(answer(nodes["north"], encode(call)), Reply)
        assert (reply.code, "no such step" in reply.text) == ("refused", True)
    for node in nodes.values():
        node.close()


@final
class SpyingSource:
    """Counts how often rows are asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.reads = 0

    def names(self) -> tuple[str, ...]:
        return self.source.names()

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        self.reads += 1
        return self.source.batches(columns)

    def describe(self) -> str:
        return self.source.describe()


@final
class WatchedRuntime:
    """A local runtime that notes, for every call, whether rows were read and whether the ledger was charged."""

    def __init__(self, nodes: Mapping[str, Node], spies: Mapping[str, SpyingSource]) -> None:
        self.nodes = nodes
        self.spies = spies
        self.seen: list[tuple[str, bool, bool]] = []

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies = {}
        for party, data in calls.items():
            reads, spent = self.spies[party].reads, self._entries(party)
            replies[party] = answer(self.nodes[party], data)
            step = decode(data, Call).step
            self.seen.append((step, self.spies[party].reads > reads, self._entries(party) > spent))
        return Delivery(replies=replies, silent={})

    def _entries(self, party: str) -> int:
        return sum(1 for _ in self.nodes[party].state.ledger.entries())

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


@each_case
def test_a_step_that_reads_rows_charges_or_masks(case: Case, tmp_path: Path) -> None:
    nodes = open_nodes(case, tmp_path)
    spies = {name: SpyingSource(open_source(source)) for name, source in case.sources.items()}
    watched = {}
    for name, node in nodes.items():

        def open_table(spy: SpyingSource = spies[name], node: Node = node) -> Table:
            return replace(node.state.open_table(), source=spy)

        watched[name] = replace(node, state=replace(node.state, open_table=open_table))
    runtime = WatchedRuntime(watched, spies)
    steps = steps_of(type(case.study.protocol))
    run(case.study.protocol, session_over(runtime, case.study, seed=SEED))
    runtime.close()
    assert any(reads for _, reads, _ in runtime.seen)
    for step, reads, charged in runtime.seen:
        assert not reads or charged or steps[step].reveals in {"masked", "sealed"}, step


def answered(node: Node, calls: Iterable[bytes]) -> None:
    for call in calls:
        assert decode(answer(node, call), Reply).code == "ok"


@each_paying_case
def test_a_resent_call_returns_the_same_bytes_and_is_charged_once(case: Case, recorded: Runs, tmp_path: Path) -> None:
    *before, call = recorded(case).until_charged
    node = open_nodes(case, tmp_path)["north"]
    answered(node, before)
    first = answer(node, call)
    assert decode(first, Reply).code == "ok"
    entries = list(node.state.ledger.entries())
    assert answer(node, call) == first
    assert list(node.state.ledger.entries()) == entries


@each_paying_case
def test_calls_that_must_be_refused(case: Case, recorded: Runs, tmp_path: Path) -> None:
    node = open_nodes(case, tmp_path)["north"]
    good = decode(recorded(case).until_charged[0], Call)
    data = encode(good)
    bad = {
        "foreign study": encode(Call(**{**fields(good), "study": "f" * 64})),
        "another party": encode(Call(**{**fields(good), "party": "south"})),
        "unknown step": encode(Call(**{**fields(good), "step": "coordinate"})),
        "body of another shape": encode(Call(**{**fields(good), "body": b"\x93\x01\x02\x03"})),
        "truncated": data[:-3],
        "not a message": b"\xff\x00garbage",
        "empty": b"",
    }
    for name, message in bad.items():
        reply = decode(answer(node, message), Reply)
        assert (name, reply.code) == (name, "refused")
        assert reply.body == b""
    assert [entry.kind for entry in node.state.ledger.entries()] == ["declare"]


@each_paying_case
def test_asking_again_under_another_id_is_not_paid_for(case: Case, recorded: Runs, tmp_path: Path) -> None:
    node = open_nodes(case, tmp_path)["north"]
    calls = recorded(case).until_charged
    answered(node, calls)
    spent = len(list(node.state.ledger.entries()))
    again = encode(Call(**{**fields(decode(calls[-1], Call)), "call": "d" * 32}))
    # a step of several in order is refused before it comes to the ledger
    assert decode(answer(node, again), Reply).code in ({"budget", "refused"} if len(calls) == 1 else {"refused"})
    assert len(list(node.state.ledger.entries())) == spent


@final
class SecretSource:
    """A source that fails with a private value in its error."""

    def names(self) -> tuple[str, ...]:
        return ("id", "colour", "age", "score", *(f"c{number}" for number in range(6)))

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        raise RuntimeError("patient 4711 has the value secret")

    def describe(self) -> str:
        return "secret"


@each_case
def test_no_exception_text_crosses(case: Case, tmp_path: Path) -> None:
    # of an estimate on a cut, south may have no rows to read
    party = (*getattr(case.study.plan, "counting", ("south",)), "south")[0]
    sources = {**case.sources, party: SecretSource()}
    with pytest.raises(PartyError) as error:
        simulate(case.study, sources, seed=SEED, folder=tmp_path)
    assert "internal error" in str(error.value)
    assert "secret" not in str(error.value)
    assert "4711" not in str(error.value)
    assert "patient 4711" in (tmp_path / "parties" / party / "party.log").read_text()
    assert charges(tmp_path, party) == []


@each_paying_case
def test_a_lost_answer_is_not_drawn_again(case: Case, recorded: Runs, tmp_path: Path) -> None:
    calls = recorded(case).until_charged
    node = open_nodes(case, tmp_path)["north"]
    answered(node, calls)
    node.close()
    folder = tmp_path / "parties" / "north"
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as file, file:
        file.executescript("DELETE FROM answers; DELETE FROM kept;")
    again = PartyFolder(folder=folder).node(seed=SEED, source=case.sources["north"])
    reply = [decode(answer(again, call), Reply) for call in calls][-1]
    assert reply.code == "refused"
    assert "stored answer was deleted" in reply.text


@each_case
def test_the_statement_is_public_json(case: Case, recorded: Runs, tmp_path: Path) -> None:
    recorded(case).release.write(tmp_path)
    statement = json.loads((tmp_path / "statement.json").read_text())
    for key in ("unit", "epsilon", "delta", "curve", "trust", "sees", "not_protected", "sensitivity"):
        assert statement[key] not in (None, "", [])
    assert statement["protects"] is False
    assert "seed" in statement["randomness"]


def fields(call: Call) -> dict[str, Any]:
    """Return what a call says, less its check: a changed call has none."""
    return {name: getattr(call, name) for name in call.__struct_fields__ if name != "check"}


def test_local_closes_what_it_opened(recorded: Runs, tmp_path: Path) -> None:
    call = recorded(CASES[0]).until_charged[0]
    nodes = open_nodes(CASES[0], tmp_path)
    Local(nodes).close()
    reply = decode(answer(nodes["north"], call), Reply)
    assert reply.code == "internal"
