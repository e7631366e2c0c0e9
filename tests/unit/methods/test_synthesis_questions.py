"""Synthesis: what a coordinator may ask, what a party answers, and what it refuses without being charged."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import Case, open_nodes, rows
from syndic import Study
from syndic.data import Domain, Table, open_source
from syndic.errors import RefusedError
from syndic.kernel import Call, Reply, answer, decode, encode, steps_of
from syndic.methods import Synthesis
from syndic.methods.synthesis.measure import Question, RoundLimits, answer_of, check_question
from syndic.methods.synthesis.rounds import fitting
from syndic.mpc.key import PublicKey
from syndic.mpc.masked_sum import SumDirectory, SumStart
from syndic.study.party_folder import run_digest
from unit.methods.synthesising import planned, sources, study

ROOM = RoundLimits(tables=2, cells=30)
PLAIN = tuple(tuple(range(size)) for size in (4, 5, 5))
SCAN = RoundLimits(tables=1, cells=1, parity=True)
HALVES = ((0, 1, 0, 1), (0, 0, 1, 1, 1), (1, 0, 0, 0, 0))
ALL = (("colour", "age", "score"),)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (Question(number=1, tables=()), "room for 1 to 2"),
        (Question(number=1, tables=(("age",), ("score",), ("colour",))), "room for 1 to 2"),
        (Question(number=1, tables=((),)), "different columns"),
        (Question(number=1, tables=(("age", "age"),)), "different columns"),
        (Question(number=1, tables=(("secret",),)), "different columns"),
        (Question(number=1, tables=(("colour", "age"), ("colour", "score"))), "40 cells together"),
        (Question(number=1, tables=(("age",), ("age",))), "twice"),
        (Question(number=1, tables=(("age", "score"), ("score", "age"))), "twice"),
        (Question(number=1, tables=(("age",),), groups=PLAIN[:2]), "all 3 columns"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], PLAIN[0], PLAIN[2])), "its 5 levels"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], (0, 0, 2, 2, 2), PLAIN[2])), "without gaps"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], (-1, 0, 1, 2, 3), PLAIN[2])), "without gaps"),
        (Question(number=1, tables=(("age",),), groups=((), PLAIN[1], PLAIN[2])), "its 4 levels"),
        (Question(number=1, tables=(("age",),), groups=((0, 1, 2, 2**62), PLAIN[1], PLAIN[2])), "its 4 levels"),
    ],
)
def test_what_may_not_be_asked(question: Question, text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        check_question(question, study().schema.domain, ROOM)


@pytest.mark.parametrize(
    ("question", "room", "text"),
    [
        (Question(number=1, tables=ALL, groups=HALVES, parity=True), ROOM, "tables in this round only"),
        (Question(number=1, tables=ALL, groups=HALVES), SCAN, "parities in this round only"),
        (Question(number=1, tables=ALL, parity=True), SCAN, "need groups"),
        (Question(number=1, tables=ALL, groups=PLAIN, parity=True), SCAN, "one or two groups"),
        (Question(number=1, tables=ALL * 2, groups=HALVES, parity=True), SCAN, "room for 1 to 1"),
        (Question(number=1, tables=(("age", "age"),), groups=HALVES, parity=True), SCAN, "different columns"),
        (
            Question(number=1, tables=ALL * 2, groups=HALVES, parity=True),
            RoundLimits(tables=2, cells=2, parity=True),
            "twice",
        ),
    ],
)
def test_what_may_not_be_asked_of_parities(question: Question, room: RoundLimits, text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        check_question(question, study().schema.domain, room)


def test_no_parity_needs_a_table_that_fills_a_partys_memory() -> None:
    """One number is asked, but it is summed from a table of all its columns' halves."""
    domain = Domain.of(dict.fromkeys(map(str, range(27)), 2))
    for columns, fits in ((5, True), (6, False), (27, False)):
        sets = (domain.names[:columns],)
        question = Question(number=1, tables=sets, groups=((0, 1),) * 27, parity=True)
        with nullcontext() if fits else pytest.raises(RefusedError, match="at most 5 columns"):
            check_question(question, domain, SCAN)


def test_what_may_be_asked() -> None:
    check_question(Question(number=1, tables=ALL, groups=HALVES, parity=True), study().schema.domain, SCAN)
    check_question(Question(number=1, tables=(("age", "colour"), ("score",))), study().schema.domain, ROOM)
    groups = ((0, 0, 1, 1), (0, 1, 0, 1, 0), PLAIN[2])
    check_question(Question(number=1, tables=(("age", "colour", "score"),), groups=groups), study().schema.domain, ROOM)


def test_a_round_leaves_out_what_it_has_no_room_for() -> None:
    domain = study().schema.domain
    wanted = [("age", "score"), ("colour", "age"), ("colour",), ("score",)]  # 25, 20, 4 and 5 cells
    assert fitting(wanted, domain, RoundLimits(tables=9, cells=99)) == tuple(wanted)
    assert fitting(wanted, domain, RoundLimits(tables=9, cells=30)) == (("age", "score"), ("colour",))
    assert fitting(wanted, domain, RoundLimits(tables=1, cells=99)) == (("age", "score"),)
    assert fitting(wanted[:1], domain, RoundLimits(tables=9, cells=14)) == (("colour",), ("age",), ("score",))


def test_answers_are_exact_counts_of_groups_cut_to_the_public_bound() -> None:
    agreed, held = study(), rows(60, 1)
    table = Table(agreed.schema, open_source(held))
    question = Question(number=1, tables=(("colour", "age"), ("score",)))
    counts = [table.count(names).values for names in question.tables]
    assert np.array_equal(answer_of(question, table, 60), np.concatenate([one.ravel() for one in counts]))
    assert answer_of(question, table, 3).max() == 3
    groups = ((0, 0, 1, 1), (0, 1, 0, 1, 0), PLAIN[2])
    grouped = answer_of(Question(number=1, tables=(("colour", "age"),), groups=groups), table, 60).reshape(2, 2)
    wanted = counts[0].reshape(2, 2, 5).sum(axis=1)
    assert np.array_equal(grouped, np.stack([wanted[:, ::2].sum(axis=1), wanted[:, 1::2].sum(axis=1)], axis=1))


def test_parities_are_exact_sums_cut_to_the_public_bound() -> None:
    agreed, held = study(), rows(60, 1)
    table = Table(agreed.schema, open_source(held))
    question = Question(number=3, tables=(*ALL, ("age", "score")), groups=HALVES, parity=True)
    signs = [1 - 2 * np.array(half) for half in HALVES]
    joint = table.count(ALL[0]).values
    expected = [np.einsum("abc,a,b,c->", joint, *signs), np.einsum("abc,b,c->", joint, *signs[1:])]
    assert answer_of(question, table, 60).tolist() == expected
    assert expected[0] != expected[1]
    assert max(np.abs(expected)) > 3
    assert answer_of(question, table, 3).tolist() == np.clip(expected, -3, 3).tolist()


def opened_nodes(agreed: Study, held: dict[str, pa.Table], folder: Path) -> dict[str, Any]:
    return open_nodes(Case("here", agreed, held), folder)


def ask(node: Any, agreed: Study, step: str, message: Any, call: str) -> Reply:
    asked = Call(study=run_digest(agreed, 7), party=node.name, step=step, call=call * 32, body=encode(message))
    return decode(answer(node, encode(asked)), Reply)


def meet(nodes: dict[str, Any], agreed: Study) -> None:
    """Let two parties agree on their keys."""
    keys = {
        name: decode(ask(node, agreed, "sum_keys", SumStart(label="synthesis"), "1").body, PublicKey).public
        for name, node in nodes.items()
    }
    for name, node in nodes.items():
        other = next(key for each, key in keys.items() if each != name)
        directory = SumDirectory(label="synthesis", present=b"\xc0", keys=other)
        assert ask(node, agreed, "sum_meet", directory, "2").code == "ok"


def test_a_coordinator_that_asks_too_much_gets_nothing_and_nothing_is_spent(tmp_path: Path) -> None:
    agreed = study()
    nodes = opened_nodes(agreed, sources(), tmp_path)
    meet(nodes, agreed)
    node = nodes["north"]
    last = len(planned(agreed).size.rooms)
    bad = {
        "large": Question(number=1, tables=(("age", "score"),)),  # the first round is of single columns
        "unknown": Question(number=1, tables=(("secret",),)),
        "no round": Question(number=last + 1, tables=(("age",),)),
        "round 0": Question(number=0, tables=(("age",),)),
        "groups": Question(number=1, tables=(("age",),), groups=((0,), (0,), (0,))),
        "many": Question(number=1, tables=(("age",), ("colour",), ("score",), ("age", "colour"), ("age", "age"))),
    }
    for call, (name, question) in zip("abcdef", bad.items(), strict=True):
        assert (name, ask(node, agreed, "count", question, call).code) == (name, "refused")
    assert ask(node, agreed, "measure", Question(number=1, tables=(("age",),)), "g").code == "refused"
    assert [entry.kind for entry in node.state.ledger.entries()] == ["declare"]


def test_every_round_is_answered_once_and_costs_its_part_whatever_is_asked(tmp_path: Path) -> None:
    agreed = study()
    nodes = opened_nodes(agreed, sources(), tmp_path)
    meet(nodes, agreed)
    node = nodes["north"]
    for number, room in enumerate(planned(agreed).size.rooms, 1):
        groups = HALVES if room.parity else ()
        first, second = (
            Question(number=number, tables=((name,),), groups=groups, parity=room.parity) for name in ("age", "colour")
        )
        assert ask(node, agreed, "count", first, chr(96 + number)).code == "ok"
        assert ask(node, agreed, "count", second, "z").code == "refused"
    charged = [e for entry in node.state.ledger.entries() if entry.kind == "reserve" for e in entry.events]
    assert charged == list(planned(agreed).events("north"))


def test_different_questions_in_one_round_open_nothing(tmp_path: Path) -> None:
    agreed = study(budget="epsilon = 12\ndelta = 1e-5")
    asked = {"north": ("age",), "south": ("score",)}  # of five values each
    for different in (False, True):
        nodes = opened_nodes(agreed, sources(), tmp_path / str(different))
        meet(nodes, agreed)
        total: Any = 0
        for name, node in nodes.items():
            question = Question(number=1, tables=(asked[name] if different else ("age",),))
            noise = planned(agreed).account.noise(question)
            ring = noise.ring(120, 5)
            masked = decode(ask(node, agreed, "count", question, "c").body, steps_of(Synthesis)["count"].returns)
            values = ring.unpack(masked.values, 5)  # type: ignore[attr-defined]
            total = ring.add(total, values) if isinstance(total, np.ndarray) else values
        opened = ring.lift(total) / noise.scale
        near = np.abs(opened - 24) < 100
        assert near.all() == (not different)
