"""Masked sums by rounds against a coordinator that asks again, out of order, or different parties different things."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from many_parties import ROOM, AddUp, AddUpPlan, Ask, Fleet, fleet_of, ring_lift, ring_of, started, total
from syndic.errors import PartyError
from syndic.kernel import Message, Party, decode, encode, step
from syndic.mpc.masked_sum import SumDirectory, SumMasked, SumStart, SumSurvivors


def test_a_round_is_answered_once_and_in_order(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    total(fleet, rounds)
    total(fleet, rounds)
    everybody, without = bytes([0b11111000]), bytes([0b11110000])
    for number in (-1, 0, 1, 2):
        assert fleet.asked_again("add_round", "p0", Ask(round=number)).code == "refused"
    for number, arrived in ((1, everybody), (2, everybody), (2, without), (3, everybody)):
        again = fleet.asked_again("sum_open", "p0", SumSurvivors(label="one", number=number, arrived=arrived))
        assert (again.code, again.body) == ("refused", b"")


def test_masks_of_another_round_than_the_one_that_is_due_stay_closed(tmp_path: Path) -> None:
    """Two answers about one round, for two lists, would show the masks in which the lists differ."""
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    asked = []

    def other(step: str, party: str, body: bytes) -> bytes:
        # between its values and its answer a party is open to one question
        if step == "sum_open":
            due = decode(body, SumSurvivors).number
            for number in {1, 2, 3, 4} - {due}:
                question = SumSurvivors(label="one", number=number, arrived=bytes([0b11111000]))
                asked.append(fleet.asked_again("sum_open", party, question).code)
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
    question = SumSurvivors(label="one", number=1, arrived=bytes([0b11100000]))
    reply = fleet.asked_again("sum_open", "p0", question)
    assert (reply.code, "a party answers once" in reply.text) == ("refused", True)


def test_keys_are_made_and_met_once_and_rounds_begin_at_one(tmp_path: Path) -> None:
    """A party that met others again, in the middle, would mask the next round with whoever it is told."""
    fleet = fleet_of(3, tmp_path)
    met: dict[str, SumDirectory] = {}

    def note(step: str, party: str, body: bytes) -> bytes:
        if step == "sum_meet":
            met[party] = decode(body, SumDirectory)
        return body

    fleet.ask = note
    early = fleet.asked_again("sum_meet", "p0", SumDirectory(label="one", present=b"\xc0", keys=bytes(64)))
    assert "requested after step 0" in early.text
    rounds = started(fleet)
    for number in (-1, 0):
        assert "answered once, in order" in fleet.asked_again("add_round", "p0", Ask(round=number)).text
    assert total(fleet, rounds) is not None
    for again, message in (("sum_keys", SumStart(label="one")), ("sum_meet", met["p0"])):
        reply = fleet.asked_again(again, "p0", message)
        assert (reply.code, "each is answered once, in order" in reply.text) == ("refused", True)


@pytest.mark.parametrize("arrived", [b"\xe0", b"\x78", b"", b"\xf8\x00"])
def test_a_party_answers_no_list_that_is_short_or_without_it(arrived: bytes, tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "sum_open" or party != "p0":
            return body
        return encode(SumSurvivors(label="one", number=1, arrived=arrived))

    fleet.ask = change
    assert total(fleet, rounds) is None
    assert fleet.seen[("sum_open", "p0")] == b""


def test_a_neighbour_without_a_key_cannot_arrive_later(tmp_path: Path) -> None:
    """Or p0, told of p1 that it has no key and of p2 that it fell silent, would be hidden from colluding p3 by none."""
    fleet = fleet_of(4, tmp_path, missing=1, colluding=1)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if party == "p0" and step == "sum_meet":
            keys = decode(body, SumDirectory).keys
            return encode(SumDirectory(label="one", present=bytes([0b10110000]), keys=keys[32:]))
        if party == "p0" and step == "sum_open":
            return encode(SumSurvivors(label="one", number=1, arrived=bytes([0b11010000])))
        return body

    fleet.ask = lie
    assert total(fleet, started(fleet)) is None
    assert fleet.seen[("add_round", "p0")] != b""
    assert fleet.seen[("sum_open", "p0")] == b""


def test_different_lists_open_nothing(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "sum_open" or party not in ("p0", "p1"):
            return body
        return encode(SumSurvivors(label="one", number=1, arrived=bytes([0b11110000])))

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
            answers[party] = ring.unpack(decode(body, SumMasked).values, 20)
        return body

    fleet.reply = late
    fleet.lost = {"add_round": {"p4"}}
    opened = total(fleet, rounds)
    assert opened is not None
    reply = fleet.asked_again("add_round", "p4", Ask(round=1))
    late_values = ring.unpack(decode(reply.body, SumMasked).values, 20)
    whole = ring.reduce(np.zeros(20, dtype=np.int64))
    for values in (*answers.values(), late_values):
        whole = ring.add(whole, values)
    opened_masks = [decode(fleet.seen[("sum_open", name)], SumMasked).values for name in fleet.names[:4]]
    for packed in opened_masks:
        whole = ring.subtract(whole, ring.unpack(packed, 20))
    # all that the coordinator has, added up as if p4 had been in time
    assert not np.any(ring.lift(whole) == ring_lift(fleet, fleet.expected(fleet.names)))
    assert not np.any(ring.lift(whole) == ring_lift(fleet, fleet.expected(["p4"])))
    assert fleet.asked_again("sum_open", "p4", SumSurvivors(label="one", number=1, arrived=b"\xf0")).code == "refused"


def test_another_round_and_another_label_have_other_masks(tmp_path: Path) -> None:
    fleet = fleet_of(4, tmp_path)
    rounds = started(fleet)
    ring, seen = ring_of(fleet), []
    for number in (1, 2):
        total(fleet, rounds)
        masked = ring.unpack(decode(fleet.seen[("add_round", "p0")], SumMasked).values, 20)
        seen.append(ring.subtract(masked, ring.reduce(number * fleet.protocol.vector("p0"))))
    assert not np.any(seen[0] == seen[1])


def test_a_directory_with_too_few_parties_is_refused(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "sum_meet":
            return body
        directory = decode(body, SumDirectory)
        return encode(SumDirectory(label="one", present=b"\xc0", keys=directory.keys[:64]))

    fleet.ask = change
    with pytest.raises(PartyError, match="has 2 parties; p0 answers only"):
        started(fleet)


def test_sums_under_another_label_are_not_begun(tmp_path: Path) -> None:
    """A party would otherwise have two keys, and values of one round could be asked for under both."""
    fleet = fleet_of(3, tmp_path, missing=1)
    total(fleet, started(fleet))
    survivors = SumSurvivors(label="two", number=1, arrived=bytes([0b11100000]))
    directory = SumDirectory(label="two", present=b"\xc0", keys=bytes(64))
    for step_name, message in (
        ("sum_keys", SumStart(label="two")),
        ("sum_meet", directory),
        ("sum_open", survivors),
    ):
        reply = fleet.asked_again(step_name, "p0", message)
        assert (reply.code, "unknown sums; the label" in reply.text) == ("refused", True)


class Weighted(Message):
    common = ("round", "factor")
    round: int
    factor: int


class AddWeighted(AddUp, tag="add-weighted"):
    """Adds up, in every round, the party's vector times a factor that the coordinator asks for."""

    @step(reveals="masked")
    def add_weighted(self, party: Party[AddUpPlan], message: Weighted) -> SumMasked:
        """Mask this party's vector."""
        masks = party.plan.masked_sum.masks_for(party, message.round, self.length, self.ring(party.terms))
        return masks.hide(message.factor * self.vector(party.name))


FORKS = {"this round": (2, 2), "an earlier round": (1, 2), "nothing": (3, 2)}


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("fork", FORKS)
def test_parties_that_were_asked_different_things_open_nothing_then_and_later(
    fork: str, missing: int, tmp_path: Path
) -> None:
    forked, until = FORKS[fork]
    protocol = AddWeighted(missing=missing, bound=1000 * ROOM)
    fleet = Fleet(protocol, 5, tmp_path)

    def change(step: str, party: str, body: bytes) -> bytes:
        told = decode(body, Weighted) if step == "add_weighted" and party == "p0" else None
        return body if told is None or told.round != forked else encode(Weighted(round=told.round, factor=3))

    fleet.ask = change
    sums = fleet.masked_sum.start(fleet.session())
    for _ in range(until):
        opened = sums.total(
            protocol.add_weighted,
            lambda number: Weighted(round=number, factor=1),
            count=protocol.length,
            ring=ring_of(fleet),
        )
    assert opened is not None
    plain = ring_lift(fleet, fleet.expected(fleet.names))
    other = ring_lift(fleet, fleet.expected(fleet.names) + 2 * protocol.vector("p0"))
    assert np.array_equal(opened.values, plain) == (fork == "nothing")
    assert fork == "nothing" or not np.any((opened.values == plain) | (opened.values == other))
