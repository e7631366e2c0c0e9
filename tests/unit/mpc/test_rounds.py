"""Masked sums round by round: exact whoever falls silent, lost or closed whenever something is wrong."""

from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from many_parties import AddUp, Fleet
from stubs import StubPlan
from syndic.errors import InputError, PartyError
from syndic.kernel import Message, Party, Session, Terms, decode, encode, step
from syndic.mpc.graph import SumPlan, neighbours_of
from syndic.mpc.ring import Ring
from syndic.mpc.rounds import (
    MaskedRounds,
    RoundMasked,
    Rounds,
    RoundsDirectory,
    RoundsStart,
    RoundSurvivors,
    RoundTotal,
    plan_rounds,
)


class Ask(Message):
    round: int


class AddRoundsPlan(StubPlan, kw_only=True):
    masked_rounds: MaskedRounds

    @property
    def rounds(self) -> tuple[str, ...]:
        # a party is asked for its masks also where nobody may be missing, to see that it refuses
        return ("rounds_keys", "rounds_meet", "add_round", "round_open")


class AddRounds(AddUp, tag="add-rounds"):
    """Adds up, in every round, the party's vector times the round's number."""

    def plan(self, terms: Terms) -> AddRoundsPlan:
        graph = plan_rounds(len(terms.parties), colluding=self.colluding, missing=self.missing)
        return AddRoundsPlan(terms=terms, masked_rounds=MaskedRounds(label="one", graph=graph))

    @step(reveals="masked")
    def add_round(self, party: Party[AddRoundsPlan], message: Ask) -> RoundMasked:
        """Mask this party's vector."""
        ring, masked_rounds = self.ring(party.terms), party.plan.masked_rounds
        masks = masked_rounds.masks(party, message.round, self.length, ring)
        return masked_rounds.hide(message.round * self.vector(party.name), masks, ring)


ROOM = 20  # rounds that the values of a fleet leave room for


def fleet_of(parties: int, folder: Path, *, missing: int = 0, colluding: int = 0) -> Fleet:
    return Fleet(AddRounds(missing=missing, colluding=colluding, bound=1000 * ROOM), parties, folder)


def started(fleet: Fleet) -> Rounds[Ask]:
    session: Session[Any] = fleet.session()
    return fleet.study.plan_as(AddRoundsPlan).masked_rounds.start(session)


def ring_of(fleet: Fleet) -> Ring:
    return fleet.protocol.ring(fleet.study)


def total(fleet: Fleet, rounds: Rounds[Ask]) -> RoundTotal | None:
    protocol = fleet.protocol
    assert isinstance(protocol, AddRounds)
    return rounds.total(
        protocol.add_round, lambda number: Ask(round=number), count=protocol.length, ring=ring_of(fleet)
    )


@pytest.mark.parametrize(("parties", "missing"), [(2, 0), (3, 0), (40, 0), (4, 1), (40, 1)])
def test_every_round_opens_the_plain_sum(parties: int, missing: int, tmp_path: Path) -> None:
    fleet = fleet_of(parties, tmp_path, missing=missing)
    rounds = started(fleet)
    for number in range(1, 4):
        opened = total(fleet, rounds)
        assert opened is not None
        assert opened.present == tuple(fleet.names)
        assert np.array_equal(opened.values, ring_lift(fleet, number * fleet.expected(fleet.names)))


def ring_lift(fleet: Fleet, values: NDArray[np.int64]) -> NDArray[np.int64]:
    ring = ring_of(fleet)
    return ring.lift(ring.reduce(values))


def test_others_may_be_missing_in_every_round(tmp_path: Path) -> None:
    fleet = fleet_of(7, tmp_path, missing=2, colluding=1)
    rounds = started(fleet)
    for number, lost in enumerate([{"p0", "p3"}, set(), {"p6"}, {"p0", "p1"}], 1):
        fleet.lost = {"add_round": lost}
        opened = total(fleet, rounds)
        counted = [name for name in fleet.names if name not in lost]
        assert opened is not None
        assert opened.present == tuple(counted)
        assert np.array_equal(opened.values, ring_lift(fleet, number * fleet.expected(counted)))


def test_who_has_no_keys_stays_out(tmp_path: Path) -> None:
    fleet = fleet_of(6, tmp_path, missing=2)
    fleet.lost = {"rounds_keys": {"p2"}, "rounds_meet": {"p5"}}
    rounds = started(fleet)
    fleet.lost = {}
    opened = total(fleet, rounds)
    assert opened is not None
    assert opened.present == ("p0", "p1", "p3", "p4")
    assert np.array_equal(opened.values, ring_lift(fleet, fleet.expected(opened.present)))


def test_a_round_with_an_unanswered_mask_is_lost_and_the_next_one_is_not(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    fleet.lost = {"round_open": {"p4"}}
    assert total(fleet, rounds) is None
    fleet.lost = {}
    opened = total(fleet, rounds)
    assert opened is not None
    assert np.array_equal(opened.values, ring_lift(fleet, 2 * fleet.expected(fleet.names)))


@pytest.mark.parametrize("silent", ["rounds_keys", "rounds_meet", "add_round"])
def test_too_many_silent_parties_end_the_run(silent: str, tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    fleet.lost = {silent: {"p0", "p1"}}
    with pytest.raises(PartyError, match=f"step '{silent}'"):
        total(fleet, started(fleet))


def test_who_is_silent_again_and_again_is_not_waited_for(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    fleet.lost = {"add_round": {"p1"}}
    asked: Counter[str] = Counter()

    def note(step: str, party: str, body: bytes) -> bytes:
        asked[party] += step == "add_round"
        return body

    fleet.ask = note
    for _ in range(5):
        assert total(fleet, rounds) is not None
    fleet.lost = {}
    assert total(fleet, rounds) is not None
    assert (asked["p0"], asked["p1"]) == (6, 0)


def test_a_round_is_answered_once_and_in_order(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    total(fleet, rounds)
    total(fleet, rounds)
    everybody, without = bytes([0b11111000]), bytes([0b11110000])
    for number in (-1, 0, 1, 2):
        assert fleet.asked_again("add_round", "p0", Ask(round=number)).code == "refused"
    for number, arrived in ((1, everybody), (2, everybody), (2, without), (3, everybody)):
        again = fleet.asked_again("round_open", "p0", RoundSurvivors(label="one", round=number, arrived=arrived))
        assert (again.code, again.body) == ("refused", b"")


def test_masks_of_another_round_than_the_one_that_is_due_stay_closed(tmp_path: Path) -> None:
    """Two answers about one round, for two lists, would show the masks in which the lists differ."""
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    asked = []

    def other(step: str, party: str, body: bytes) -> bytes:
        # between its values and its answer a party is open to one question
        if step == "round_open":
            due = decode(body, RoundSurvivors).round
            for number in {1, 2, 3, 4} - {due}:
                question = RoundSurvivors(label="one", round=number, arrived=bytes([0b11111000]))
                asked.append(fleet.asked_again("round_open", party, question).code)
        return body

    fleet.ask = other
    for number in (1, 2, 3):
        opened = total(fleet, rounds)
        assert opened is not None
        assert np.array_equal(opened.values, ring_lift(fleet, number * fleet.expected(fleet.names)))
    assert asked == ["refused"] * 3 * 5 * 3


def test_where_nobody_may_be_missing_there_is_nothing_to_answer(tmp_path: Path) -> None:
    fleet = fleet_of(3, tmp_path)
    total(fleet, started(fleet))
    question = RoundSurvivors(label="one", round=1, arrived=bytes([0b11100000]))
    reply = fleet.asked_again("round_open", "p0", question)
    assert (reply.code, "a party answers once" in reply.text) == ("refused", True)


def test_keys_are_made_and_met_once_and_rounds_begin_at_one(tmp_path: Path) -> None:
    """A party that met others again, in the middle, would mask the next round with whoever it is told."""
    fleet = fleet_of(3, tmp_path)
    met: dict[str, RoundsDirectory] = {}

    def note(step: str, party: str, body: bytes) -> bytes:
        if step == "rounds_meet":
            met[party] = decode(body, RoundsDirectory)
        return body

    fleet.ask = note
    early = fleet.asked_again("rounds_meet", "p0", RoundsDirectory(label="one", present=b"\xc0", keys=bytes(64)))
    assert "asked after step 0" in early.text
    rounds = started(fleet)
    for number in (-1, 0):
        assert "answered once, in order" in fleet.asked_again("add_round", "p0", Ask(round=number)).text
    assert total(fleet, rounds) is not None
    for again, message in (("rounds_keys", RoundsStart(label="one")), ("rounds_meet", met["p0"])):
        reply = fleet.asked_again(again, "p0", message)
        assert (reply.code, "each is answered once, in order" in reply.text) == ("refused", True)


@pytest.mark.parametrize("arrived", [b"\xe0", b"\x78", b"", b"\xf8\x00"])
def test_a_party_answers_no_list_that_is_short_or_without_it(arrived: bytes, tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "round_open" or party != "p0":
            return body
        return encode(RoundSurvivors(label="one", round=1, arrived=arrived))

    fleet.ask = change
    assert total(fleet, rounds) is None
    assert fleet.seen[("round_open", "p0")] == b""


def test_a_neighbour_without_a_key_cannot_arrive_later(tmp_path: Path) -> None:
    """Or p0, told of p1 that it has no key and of p2 that it fell silent, would be hidden from colluding p3 by none."""
    fleet = fleet_of(4, tmp_path, missing=1, colluding=1)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if party == "p0" and step == "rounds_meet":
            keys = decode(body, RoundsDirectory).keys
            return encode(RoundsDirectory(label="one", present=bytes([0b01100000]), keys=keys[32:]))
        if party == "p0" and step == "round_open":
            return encode(RoundSurvivors(label="one", round=1, arrived=bytes([0b11010000])))
        return body

    fleet.ask = lie
    assert total(fleet, started(fleet)) is None
    assert fleet.seen[("add_round", "p0")] != b""
    assert fleet.seen[("round_open", "p0")] == b""


def test_different_lists_open_nothing(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "round_open" or party not in ("p0", "p1"):
            return body
        return encode(RoundSurvivors(label="one", round=1, arrived=bytes([0b11110000])))

    fleet.ask = change
    opened = total(fleet, rounds)
    assert opened is not None
    # neither the sum of all, nor that without p4: masks for different lists do not cancel
    for names in (fleet.names, fleet.names[:4]):
        assert not np.any(opened.values == ring_lift(fleet, fleet.expected(names)))


def test_late_values_stay_closed(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    answers: dict[str, NDArray[np.unsignedinteger]] = {}
    ring = ring_of(fleet)

    def late(step: str, party: str, body: bytes) -> bytes:
        if step == "add_round":
            answers[party] = ring.unpack(decode(body, RoundMasked).values, 20)
        return body

    fleet.reply = late
    fleet.lost = {"add_round": {"p4"}}
    opened = total(fleet, rounds)
    assert opened is not None
    reply = fleet.asked_again("add_round", "p4", Ask(round=1))
    late_values = ring.unpack(decode(reply.body, RoundMasked).values, 20)
    whole = ring.reduce(np.zeros(20, dtype=np.int64))
    for values in (*answers.values(), late_values):
        whole = ring.add(whole, values)
    opened_masks = [decode(fleet.seen[("round_open", name)], RoundMasked).values for name in fleet.names[:4]]
    for packed in opened_masks:
        whole = ring.subtract(whole, ring.unpack(packed, 20))
    # all that the coordinator has, added up as if p4 had been in time
    assert not np.any(ring.lift(whole) == ring_lift(fleet, fleet.expected(fleet.names)))
    assert not np.any(ring.lift(whole) == ring_lift(fleet, fleet.expected(["p4"])))
    assert (
        fleet.asked_again("round_open", "p4", RoundSurvivors(label="one", round=1, arrived=b"\xf0")).code == "refused"
    )


def test_another_round_and_another_label_have_other_masks(tmp_path: Path) -> None:
    fleet = fleet_of(4, tmp_path)
    rounds = started(fleet)
    ring, seen = ring_of(fleet), []
    for number in (1, 2):
        total(fleet, rounds)
        masked = ring.unpack(decode(fleet.seen[("add_round", "p0")], RoundMasked).values, 20)
        seen.append(ring.subtract(masked, ring.reduce(number * fleet.protocol.vector("p0"))))
    assert not np.any(seen[0] == seen[1])


def test_a_directory_with_too_few_neighbours_is_refused(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "rounds_meet":
            return body
        directory = decode(body, RoundsDirectory)
        return encode(RoundsDirectory(label="one", present=b"\xc0", keys=directory.keys[:64]))

    fleet.ask = change
    with pytest.raises(PartyError, match="2 of p0's 4 neighbours"):
        started(fleet)


@pytest.mark.parametrize(
    ("parties", "colluding", "missing"),
    [(4, 0, 2), (5, 1, 2), (50, 10, 20), (3, 3, 0), (3, 0, -1), (3, -1, 0), (1, 0, 0)],
)
def test_lists_that_could_both_be_answered_are_not_planned(parties: int, colluding: int, missing: int) -> None:
    with pytest.raises(InputError):
        plan_rounds(parties, colluding=colluding, missing=missing)


def test_no_plan_holds_a_graph_that_is_not_safe() -> None:
    """Its author wrote it down without a look at what is safe."""
    graph = SumPlan(parties=4, colluding=0, missing=2, neighbours=3, threshold=1, failure_bits=inf)
    with pytest.raises(InputError, match="safe with fewer than 2 missing"):
        MaskedRounds(label="one", graph=graph)


def test_sums_under_another_label_are_not_begun(tmp_path: Path) -> None:
    """A party would otherwise have two keys, and values of one round could be asked for under both."""
    fleet = fleet_of(3, tmp_path, missing=1)
    total(fleet, started(fleet))
    survivors = RoundSurvivors(label="two", round=1, arrived=bytes([0b11100000]))
    directory = RoundsDirectory(label="two", present=b"\xc0", keys=bytes(64))
    for step_name, message in (
        ("rounds_keys", RoundsStart(label="two")),
        ("rounds_meet", directory),
        ("round_open", survivors),
    ):
        reply = fleet.asked_again(step_name, "p0", message)
        assert (reply.code, "under no other" in reply.text) == ("refused", True)


@pytest.mark.parametrize(
    ("parties", "colluding", "missing", "neighbours"),
    [
        # up to 32 parties everybody with everybody
        (2, 0, 0, 1),
        (32, 0, 0, 31),
        (32, 3, 3, 31),
        # beyond, one more than may be taken out on either side, or as many as a party's number has bits
        (33, 0, 0, 2 * 6),
        (33, 3, 4, 2 * 8),
        (33, 7, 7, 2 * 15),
        (200, 9, 9, 2 * 19),
        (200, 0, 12, 2 * 13),
        (50_000, 0, 0, 2 * 16),
        # until that is everybody again
        (33, 8, 7, 32),
        (33, 10, 10, 32),
        (34, 10, 6, 33),
    ],
)
def test_more_neighbours_on_either_side_than_may_be_taken_out(
    parties: int, colluding: int, missing: int, neighbours: int
) -> None:
    plan = plan_rounds(parties, colluding=colluding, missing=missing)
    assert (plan.neighbours, plan.threshold) == (neighbours, neighbours - missing)
    assert len(neighbours_of(plan, "study", 0)) == neighbours


@pytest.mark.parametrize(
    ("parties", "colluding", "missing"), [(2, 1, 0), (4, 1, 1), (33, 3, 4), (60, 5, 5), (200, 9, 9)]
)
def test_whoever_is_taken_out_the_others_stay_connected(parties: int, colluding: int, missing: int) -> None:
    plan = plan_rounds(parties, colluding=colluding, missing=missing)
    near = [set(neighbours_of(plan, "study", place).tolist()) for place in range(parties)]
    draws = np.random.default_rng(0)
    seats = sorted(range(parties), key=lambda place: -len(near[place] & near[0]))
    for attempt in range(20):
        # some at random, some the nearest to one party, which would be the worst
        out = seats[1 : 1 + colluding + missing] if attempt == 0 else draws.permutation(parties)[: colluding + missing]
        left = set(range(parties)) - {int(place) for place in out}
        reached, edge = set(), {min(left)}
        while edge:
            reached |= edge
            edge = {each for place in edge for each in near[place] & left} - reached
        assert reached == left
