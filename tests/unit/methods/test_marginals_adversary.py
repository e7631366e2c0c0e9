"""Marginal tables from untouched nodes, asked by a coordinator that makes up who takes part and who survived.

The noise is zero, so that whatever opens shows as the exact counts of some parties. The coordinator colludes with the
last party and takes off all masks that this one knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, final

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from support import rows, study_text, two_parties
from syndic import Study
from syndic.data import SourceSpec, Table, open_source
from syndic.errors import PartyError
from syndic.kernel import Call, Delivery, Message, Node, Reply, decode, encode
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.histogram.tables import MarginalTables
from syndic.mpc.graph import Seats, SumGraph, bits
from syndic.mpc.masked_sum import Masks, SumDirectory, SumMasked, SumSurvivors, _Met, _Sent
from syndic.mpc.ring import OVERFLOW, Integers
from syndic.runtime import Local
from syndic.study import PartyFile, PartyFolder, simulate
from syndic.study.run import run_study

Kept = TypeVar("Kept", bound=Message)
Lie = Callable[[str, str, bytes], Message | None]
"""From step, party and the honest message, what is sent instead; None for the honest message."""


def study_of(parties: int, *, missing: int) -> Study:
    # a ring so large that nothing opens by chance
    members = "".join(f'[[parties]]\nname = "p{number}"\npeople = 1000000\n' for number in range(parties))
    protocol = f'method = "marginals"\nnoise = "laplace"\ncliques = [["colour"]]\ncolluding = 1\nmissing = {missing}'
    return Study.loads(study_text(protocol=protocol, budget="epsilon = 5000", parties=members))


@final
@dataclass
class Liar:
    """A coordinator that lies about lists of parties, and keeps what it hears."""

    study: Study
    nodes: Mapping[str, Node]
    lie: Lie
    heard: dict[tuple[str, str], Reply] = field(default_factory=dict)
    told: dict[str, SumSurvivors] = field(default_factory=dict)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies = {}
        for party, data in calls.items():
            call = decode(data, Call)
            lie = self.lie(call.step, party, call.body)
            body = call.body if lie is None else encode(lie)
            if call.step == "sum_open":
                self.told[party] = decode(body, SumSurvivors)
            changed = encode(replace(call, body=body, check=None))
            delivery = Local(self.nodes).send({party: changed}, seconds=seconds, arrived=arrived)
            reply = decode(delivery.replies[party], Reply)
            self.heard[call.step, party] = reply
            replies[party] = encode(Reply(code=reply.code, body=reply.body, text=reply.text))
        return Delivery(replies=replies, silent={})

    def close(self) -> None: ...

    def run(self) -> PartyError | None:
        try:
            run_study(self.study, self)
        except PartyError as error:
            return error
        return None

    @property
    def charged(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.state.ledger.charged(self.study.digest)]

    # What it has, to try.

    def opened_by(self) -> list[frozenset[int]]:
        """Return every set of honest parties whose exact counts are the sum of what they sent, masks it knows off."""
        plan = self.study.plan_as(MarginalsPlan)
        ring, names, exact = plan.masked_sum.ring, list(self.nodes), self.exact()
        honest = len(names) - 1
        left = np.stack([self._without_known_masks(place, ring) for place in range(honest)])
        chosen = (np.arange(1, 1 << honest)[:, None] >> np.arange(honest)) & 1
        differs = (chosen @ left - chosen @ exact[:honest]) % (1 << ring.bits)
        return [frozenset(np.flatnonzero(one).tolist()) for one in chosen[~differs.any(axis=1)]]

    def exact(self) -> NDArray[np.int64]:
        tables = [Table(self.study.schema, open_source(rows(30, place))) for place in range(len(self.nodes))]
        return np.stack([table.count(("colour",)).values.ravel() for table in tables])

    def _without_known_masks(self, place: int, ring: Integers) -> NDArray[np.int64]:
        """Return a party's values less its answer, less the masks that it shares with the colluding party."""
        masked_sum, names = self.study.plan_as(MarginalsPlan).masked_sum, tuple(self.nodes)
        seats = Seats(study=self.study.digest, label="marginals", names=names, graph=masked_sum.graph)
        known = {len(names) - 1: self._kept(names[-1], "met", _Met).pairs[place]}
        values = ring.unpack(decode(self.heard["count", names[place]].body, SumMasked).values, masked_sum.count)
        answer = ring.unpack(decode(self.heard["sum_open", names[place]].body, SumMasked).values, masked_sum.count)
        nothing = ring.reduce(np.zeros(masked_sum.count, dtype=np.int64))
        # it knows everything that it told the party, and so the party's views
        before = self._kept(names[place], "sent", _Sent).view
        in_values = seats.add_pairs(nothing, place, known, seats.bound("values", 1, before), ring)
        arrived, view = self.told[names[place]].arrived, self.nodes[names[place]].state.view.digest
        in_answer = seats.add_pairs(nothing, place, known, seats.bound("answer", 1, view), ring)
        if not arrived[(len(names) - 1) // 8] & (0x80 >> (len(names) - 1) % 8):
            in_values = in_answer = nothing
        net = ring.subtract(ring.subtract(values, in_values), ring.subtract(answer, in_answer))
        return net.astype(np.int64)

    def _kept(self, party: str, what: str, kind: type[Kept]) -> Kept:
        kept = self.nodes[party].state.memory.kept(f"sums marginals {what}")
        assert kept is not None
        return decode(kept, kind)


def liar(study: Study, folder: Path, lie: Lie) -> Liar:
    nodes = {}
    for place, party in enumerate(study.parties):
        home = PartyFolder(folder=folder / party.name)
        source = SourceSpec(path="not read")
        home.keep(study, PartyFile(name=party.name, dataset=party.name, source=source, cap=study.budget))
        nodes[party.name] = home.node(seed=None, source=rows(30, place))
    return Liar(study, nodes, lie)


def survivors(parties: int, places: set[int]) -> SumSurvivors:
    return SumSurvivors(label="marginals", number=1, arrived=bits(place in places for place in range(parties)))


ALL = set(range(14))
LISTS: dict[str, tuple[Callable[[int], set[int]], list[frozenset[int]]]] = {
    # what each of 14 parties is told, 5 of which may be missing, and which sums then open
    "the truth": (lambda _: ALL, [frozenset(range(13))]),
    "one is told of everybody, the others without it": (
        lambda place: ALL if place == 0 else ALL - {0},
        [frozenset(range(1, 13))],
    ),
    "the shortest list to those on it": (
        lambda place: ALL if place < 5 else ALL - set(range(5)),
        [frozenset(range(5, 13))],
    ),
    "two lists, each to half of its parties": (lambda place: ALL if place < 7 else ALL - {0}, []),
    "another list to everybody": (lambda place: ALL - {(place + 1) % 14}, []),
    "one party is told another list": (lambda place: ALL - {1} if place == 0 else ALL, []),
}


@pytest.mark.parametrize("name", LISTS)
def test_different_lists_to_different_parties_open_no_sum_of_fewer(name: str, tmp_path: Path) -> None:
    """No single party's counts, and no sum but one of at least 9 parties that were all told of each other."""
    told, opens = LISTS[name]
    study = study_of(14, missing=5)

    def lie(step: str, party: str, _body: bytes) -> Message | None:
        return survivors(14, told(int(party[1:]))) if step == "sum_open" else None

    made = liar(study, tmp_path, lie)
    made.run()
    assert made.opened_by() == opens


def test_parties_that_did_not_look_at_their_list_would_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what the liar tries would find something."""
    monkeypatch.setattr(SumGraph, "least", property(lambda _: 1))

    def lie(step: str, party: str, _body: bytes) -> Message | None:
        return survivors(14, {int(party[1:]), 13}) if step == "sum_open" else None

    made = liar(study_of(14, missing=5), tmp_path, lie)
    made.run()
    assert {frozenset({place}) for place in range(13)} <= set(made.opened_by())


def test_who_was_told_that_others_have_no_keys_answers_no_list_with_them(tmp_path: Path) -> None:
    """Or its answer would be hidden by masks of fewer parties than the list has."""
    study = study_of(14, missing=5)

    def lie(step: str, party: str, body: bytes) -> Message | None:
        if step != "sum_meet" or party != "p0":
            return None
        honest = decode(body, SumDirectory)
        # p1 to p5 are left out
        return SumDirectory(label="marginals", present=b"\x83\xfc", keys=honest.keys[5 * 32 :])

    made = liar(study, tmp_path, lie)
    failed = made.run()
    assert "p0: refused" in str(failed)
    assert "were not listed" in made.heard["sum_open", "p0"].text


@pytest.mark.parametrize("told", [26, 36])
def test_a_short_list_is_refused_by_every_party_of_a_sparse_graph(told: int, tmp_path: Path) -> None:
    """The same list to all 40, of which 3 may be missing: on it or not, nobody answers."""
    study = study_of(40, missing=3)
    graph = study.plan_as(MarginalsPlan).masked_sum.graph
    assert graph.neighbours == 12

    def lie(step: str, _party: str, _body: bytes) -> Message | None:
        return survivors(40, set(range(told))) if step == "sum_open" else None

    made = liar(study, tmp_path, lie)
    failed = made.run()
    replies = [made.heard["sum_open", name] for name in made.nodes]
    assert {reply.code for reply in replies} == {"refused"}
    assert all(f"the values of {told} parties arrived" in reply.text for reply in replies)
    assert not any(reply.body for reply in replies)
    assert "stays closed" in str(failed)


def test_too_few_keys_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    """Where 27 of 40 parties are said to take part, and later all to have arrived, 27 would be summed."""
    study = study_of(40, missing=3)

    def lie(step: str, party: str, body: bytes) -> Message | None:
        if step != "sum_meet":
            return None
        seats = Seats(
            study=study.digest,
            label="marginals",
            names=tuple(member.name for member in study.parties),
            graph=study.plan_as(MarginalsPlan).masked_sum.graph,
        )
        neighbours = seats.neighbours(int(party[1:]))
        keys = decode(body, SumDirectory).keys
        shown = [place for place, each in enumerate(neighbours) if each < 27]
        return SumDirectory(
            label="marginals",
            present=bits(each < 27 for each in range(40)),
            keys=b"".join(keys[32 * place : 32 * place + 32] for place in shown),
        )

    made = liar(study, tmp_path, lie)
    failed = made.run()
    assert "has 27 parties" in str(failed)
    assert made.charged == []
    assert not any(step == "count" for step, _ in made.heard)


SPOILED = study_text(protocol='method = "marginals"\ncliques = [["colour"]]', budget="epsilon = 1\ndelta = 1e-5")


def spoiled(monkeypatch: pytest.MonkeyPatch, shift: int, *, red: bool = False) -> NDArray[np.int64]:
    """Return a seeded table of 60 + 40 people; north has red rows only, or adds a number to what it masks."""
    tables, lies, hide = two_parties(), iter([shift, 0]), Masks.hide
    if red:
        values = pa.array(["red"] * tables["north"].num_rows)
        tables["north"] = tables["north"].set_column(0, "colour", values)
    with monkeypatch.context() as patch:
        patch.setattr(Masks, "hide", lambda masks, numbers: hide(masks, numbers + next(lies)))
        found = simulate(Study.loads(SPOILED), tables, seed=1).result
    assert isinstance(found, MarginalTables)
    return np.asarray(found.tables[0].values, dtype=np.int64)


def test_how_far_a_party_moves_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """By false rows as far as its people; by false sums three times what all people and the noise can be."""
    plan, honest, people = Study.loads(SPOILED).plan_as(MarginalsPlan), spoiled(monkeypatch, 0), 60
    moved = np.abs(spoiled(monkeypatch, 0, red=True) - honest)
    assert 0 < moved.max() <= people
    assert moved.sum() <= 2 * people
    room = 100 + plan.noise.tail(OVERFLOW / plan.noise.dimension, plan.noise.parties)
    ring = plan.masked_sum.ring
    moved = np.stack([np.abs(spoiled(monkeypatch, 2**power) - honest) for power in range(ring.bits + 2)])
    assert room < moved.max() <= 3 * room
