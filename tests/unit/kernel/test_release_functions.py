"""The three release functions: nothing made from rows leaves without one of them."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from stubs import Stub
from support import rows, study_text
from syndic import Study
from syndic.kernel import (
    Call,
    Message,
    Node,
    Nothing,
    Party,
    Reply,
    answer,
    decode,
    encode,
    in_memory_node,
    make_plan,
    step,
    steps_of,
)
from syndic.noise import DiscreteLaplace
from syndic.privacy import Budget, Event, Ledger, PureEvent
from syndic.random import Randomness, SimulationRandomness, SystemRandomness

NOISE = DiscreteLaplace(sensitivity=1, epsilon=Fraction(1))


class Counts(Message):
    counts: NDArray[np.int64]


class Leaky(Stub, tag="leaky"):
    """Steps that do what they should, and steps that try not to."""

    title: ClassVar[str] = "leaky"
    charges: ClassVar[tuple[Event, ...]] = (NOISE.event, NOISE.event)

    printed: bool = False

    @property
    def simulation_only(self) -> bool:
        return self.printed

    @step(reveals="noisy")
    def honest(self, party: Party, message: Nothing) -> Counts:
        counts = party.table.count(["colour"]).values
        return Counts(counts=party.release(NOISE, counts, why="honest"))

    @step(reveals="noisy")
    def unpaid(self, party: Party, message: Nothing) -> Counts:
        return Counts(counts=party.table.count(["colour"]).values)

    @step(reveals="public")
    def called_public(self, party: Party, message: Nothing) -> Counts:
        party.charge(NOISE.event, why="a charge does not make rows public")
        return Counts(counts=party.table.count(["colour"]).values)

    @step(reveals="noisy")
    def share_in_the_open(self, party: Party, message: Nothing) -> Counts:
        return Counts(counts=party.contribute(NOISE, party.table.count(["colour"]).values, why="share"))

    @step(reveals="masked")
    def share_masked(self, party: Party, message: Nothing) -> Counts:
        return Counts(counts=party.contribute(NOISE, party.table.count(["colour"]).values, why="share"))

    @step(reveals="noisy")
    def greedy(self, party: Party, message: Nothing) -> Nothing:
        for _ in range(3):
            party.charge(NOISE.event, why="more than declared")
        return message

    @step(reveals="public")
    def keep(self, party: Party, message: Nothing) -> Nothing:
        party.remember("kept", Counts(counts=np.arange(3)))
        return message

    @step(reveals="public")
    def bring(self, party: Party, message: Nothing) -> Counts:
        return party.recall("kept", Counts)

    @step(reveals="masked", fresh=True)
    def fresh_rows(self, party: Party, message: Nothing) -> Counts:
        return Counts(counts=party.table.count(["colour"]).values)

    @step(reveals="noisy", fresh=True)
    def fresh_charge(self, party: Party, message: Nothing) -> Nothing:
        party.charge(NOISE.event, why="asked again, it would be charged again")
        return message

    @step(reveals="public", fresh=True)
    def fresh_nothing(self, party: Party, message: Nothing) -> Nothing:
        return message

    @step(reveals="public")
    def keep_and_fail(self, party: Party, message: Nothing) -> Nothing:
        party.remember("kept", Counts(counts=np.arange(3)))
        raise ValueError("after remembering")


def node_at(
    folder: Path,
    *,
    printed: bool = False,
    randomness: Callable[[str], Randomness] | None = None,
    top: str = "",
) -> Node:
    study = Study.loads(study_text(top=top))
    ledger = Ledger.open(folder / "ledger.sqlite")
    ledger.declare("data", Budget(epsilon=Fraction(10)))
    protocol = Leaky(printed=printed)
    return in_memory_node(
        protocol,
        make_plan(protocol, study),
        "north",
        rows(20),
        randomness or (lambda label: SimulationRandomness(1, label)),
        study="s",
        dataset="data",
        ledger=ledger,
    )


def ask(node: Node, name: str, call: str = "1", *, study: str = "s", party: str = "north") -> Reply:
    question = Call(study=study, party=party, step=name, call=call, body=encode(Nothing()))
    return decode(answer(node, encode(question)), Reply)


def charged(node: Node) -> int:
    return sum(entry.kind == "reserve" for entry in node.state.ledger.entries())


def test_release_charges_then_answers(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    reply = ask(node, "honest")
    assert reply.code == "ok"
    assert charged(node) == 1
    exact = node.state.open_table().count(["colour"]).values
    noisy = decode(reply.body, Counts).counts
    expected = NOISE.apply(exact, SimulationRandomness(1, "1/1"))
    assert noisy.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["unpaid", "called_public", "share_in_the_open"])
def test_a_reply_made_from_rows_is_stopped(name: str, tmp_path: Path) -> None:
    reply = ask(node_at(tmp_path), name)
    assert (reply.code, reply.body) == ("internal", b"")


def test_a_masked_step_may_contribute(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    assert ask(node, "share_masked").code == "ok"
    assert charged(node) == 1


def test_more_than_was_declared_is_refused(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    reply = ask(node, "greedy")
    assert reply.code == "budget"
    assert charged(node) == 2
    assert reply.body == b""


def test_a_refused_call_asked_again_does_not_charge_again(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    assert ask(node, "greedy").code == "budget"
    before = charged(node)
    assert ask(node, "greedy").code == "budget"
    assert charged(node) == before == 2


def test_memory_lasts_between_calls_and_only_with_the_answer(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    assert ask(node, "bring", "1").code == "refused"
    assert ask(node, "keep_and_fail", "2").code == "internal"
    assert ask(node, "bring", "3").code == "refused"
    assert ask(node, "keep", "4").code == "ok"
    node.close()
    again = node_at(tmp_path)
    assert decode(ask(again, "bring", "5").body, Counts).counts.tolist() == [0, 1, 2]


def test_one_id_for_two_questions_is_refused(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    assert ask(node, "keep", "1").code == "ok"
    assert ask(node, "bring", "1").code == "refused"


def test_the_same_question_again_gets_the_stored_bytes_and_is_charged_once(tmp_path: Path) -> None:
    node = node_at(tmp_path, randomness=lambda _: SystemRandomness())
    first = ask(node, "honest")
    assert ask(node, "honest") == first
    assert charged(node) == 1


@pytest.mark.parametrize("tables", [("answers",), ("answers", "calls")])
def test_an_answer_that_is_gone_is_not_drawn_anew(tables: tuple[str, ...], tmp_path: Path) -> None:
    """Other noise on an old charge would be a second release: two of them tell more than one was charged for.

    Without `calls` nothing tells that there were answers, as where they are not kept in the file; the charge does.
    """
    node = node_at(tmp_path)
    assert ask(node, "honest").code == "ok"
    for table in tables:
        node.state.ledger.database.rows(f"DELETE FROM {table}")
    node.close()
    reply = ask(node_at(tmp_path), "honest")
    assert (reply.code, reply.body) == ("refused", b"")
    assert "stored answer was deleted" in reply.text


@pytest.mark.parametrize("name", ["fresh_rows", "fresh_charge"])
def test_what_is_answered_anew_each_time_neither_reads_rows_nor_charges(name: str, tmp_path: Path) -> None:
    reply = ask(node_at(tmp_path), name)
    assert (reply.code, reply.body) == ("internal", b"")


def test_what_is_answered_anew_each_time_is_not_stored(tmp_path: Path) -> None:
    node = node_at(tmp_path)
    assert ask(node, "fresh_nothing").code == "ok"
    assert node.state.memory.answer("1") is None
    assert ask(node, "keep").code == "ok"
    assert node.state.memory.answer("1") is not None


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ({"study": "another"}, "the call is for study another, but north agreed to s"),
        ({"party": "south"}, "the call is for another party, not for north"),
        ({"call": "c" * 65}, "a call id has at most 64 letters"),
        ({"name": "coordinate"}, "leaky has no such step in this study; its steps are"),
        ({"name": "spends"}, "has no such step"),
    ],
)
def test_a_call_for_somebody_or_something_else_is_refused(question: dict[str, str], text: str, tmp_path: Path) -> None:
    node = node_at(tmp_path)
    reply = ask(node, **{"name": "honest", **question})
    assert (reply.code, reply.body) == ("refused", b"")
    assert text in reply.text
    assert charged(node) == 0
    assert ask(node, "honest", "c" * 64).code == "ok"


def test_a_message_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    node = node_at(tmp_path, top="[limits]\nmessage_mb = 1\n")
    reply = decode(answer(node, bytes(10**6 + 1)), Reply)
    assert (reply.code, reply.text) == ("refused", "the message is larger than the study's limit of 1 MB")
    assert "is not a valid Call" in decode(answer(node, bytes(10**6)), Reply).text


def test_a_printed_variant_never_meets_real_parties(tmp_path: Path) -> None:
    node = node_at(tmp_path, printed=True, randomness=lambda _: SystemRandomness())
    reply = ask(node, "honest")
    assert reply.code == "refused"
    assert "simulations only" in reply.text
    assert charged(node) == 0


def test_steps_are_found_with_their_messages() -> None:
    steps = steps_of(Leaky)
    assert set(steps) == {
        "ready",
        "meet",
        "honest",
        "unpaid",
        "called_public",
        "share_in_the_open",
        "share_masked",
        "greedy",
        "keep",
        "bring",
        "keep_and_fail",
        "fresh_rows",
        "fresh_charge",
        "fresh_nothing",
    }
    assert (steps["honest"].takes, steps["honest"].returns, steps["honest"].reveals) == (Nothing, Counts, "noisy")


def test_events_declared_are_events() -> None:
    assert NOISE.event == PureEvent(epsilon=Fraction(1), what=NOISE.event.what)
