"""Masked sums, one or many: exact whoever falls silent, lost or closed whenever something is wrong."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from many_parties import AddUp, AddUpPlan, Fleet
from syndic.errors import PartyError
from syndic.kernel import Message, Nothing, Party, decode, encode, step
from syndic.mpc.masked_sum import SumCoordinator, SumDirectory, SumMasked, SumStart, SumSurvivors, Total
from syndic.mpc.ring import Ring, ring_for

STEPS = ["sum_keys", "sum_meet", "add"]


class Ask(Message):
    round: int


class AddRounds(AddUp, tag="add-rounds"):
    """Adds up, in every round, the party's vector times the round's number."""

    @step(reveals="masked")
    def add_round(self, party: Party[AddUpPlan], message: Ask) -> SumMasked:
        """Mask this party's vector."""
        masks = party.plan.masked_sum.masks_for(party, message.round, self.length, self.ring(party.terms))
        return masks.hide(message.round * self.vector(party.name))


ROOM = 20  # rounds that the values of a fleet leave room for


def fleet_of(parties: int, folder: Path, *, missing: int = 0, colluding: int = 0) -> Fleet:
    return Fleet(AddRounds(missing=missing, colluding=colluding, bound=1000 * ROOM), parties, folder)


def started(fleet: Fleet) -> SumCoordinator[Ask]:
    return fleet.masked_sum.start(fleet.session())


def ring_of(fleet: Fleet) -> Ring:
    return fleet.protocol.ring(fleet.study)


def total(fleet: Fleet, rounds: SumCoordinator[Ask]) -> Total | None:
    protocol = fleet.protocol
    assert isinstance(protocol, AddRounds)
    return rounds.total(
        protocol.add_round, lambda number: Ask(round=number), count=protocol.length, ring=ring_of(fleet)
    )


@pytest.mark.parametrize(("parties", "missing"), [(2, 0), (3, 0), (40, 0), (4, 1), (40, 1)])
def test_every_sum_opens_the_plain_sum(parties: int, missing: int, tmp_path: Path) -> None:
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
    fleet.lost = {"sum_keys": {"p2"}, "sum_meet": {"p5"}}
    rounds = started(fleet)
    fleet.lost = {}
    opened = total(fleet, rounds)
    assert opened is not None
    assert opened.present == ("p0", "p1", "p3", "p4")
    assert np.array_equal(opened.values, ring_lift(fleet, fleet.expected(opened.present)))


def test_a_round_with_an_unanswered_mask_is_lost_and_the_next_one_is_not(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)
    rounds = started(fleet)
    fleet.lost = {"sum_open": {"p4"}}
    assert total(fleet, rounds) is None
    fleet.lost = {}
    opened = total(fleet, rounds)
    assert opened is not None
    assert np.array_equal(opened.values, ring_lift(fleet, 2 * fleet.expected(fleet.names)))


@pytest.mark.parametrize("silent", ["sum_keys", "sum_meet", "add_round"])
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
            return encode(SumDirectory(label="one", present=bytes([0b01100000]), keys=keys[32:]))
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


def test_a_directory_with_too_few_neighbours_is_refused(tmp_path: Path) -> None:
    fleet = fleet_of(5, tmp_path, missing=1)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step != "sum_meet":
            return body
        directory = decode(body, SumDirectory)
        return encode(SumDirectory(label="one", present=b"\xc0", keys=directory.keys[:64]))

    fleet.ask = change
    with pytest.raises(PartyError, match="2 of p0's 4 neighbours"):
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


# A single sum.


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("parties", [3, 4, 7, 33, 50])
def test_the_total_is_the_plain_sum(parties: int, missing: int, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=missing), parties, tmp_path)
    total = fleet.total()
    assert total.present == tuple(fleet.names)
    assert np.array_equal(total.values, fleet.expected(fleet.names))
    assert (("sum_open", "p0") in fleet.seen) == (missing > 0)


@pytest.mark.parametrize("silent", STEPS)
@pytest.mark.parametrize("parties", [5, 9, 40])
def test_parties_may_fall_silent_at_every_step_before_their_values_arrive(
    parties: int, silent: str, tmp_path: Path
) -> None:
    missing = (parties - 1) // 2 if parties < 33 else 4
    lost = {f"p{number}" for number in range(0, 2 * missing, 2)}
    fleet = Fleet(AddUp(missing=missing), parties, tmp_path)
    # whoever fell silent stays silent
    fleet.lost = dict.fromkeys(STEPS[STEPS.index(silent) :], lost)
    total = fleet.total()
    counted = [name for name in fleet.names if name not in lost]
    assert total.present == tuple(counted)
    assert np.array_equal(total.values, fleet.expected(counted))


def test_parties_may_fall_silent_one_after_the_other(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=3), 12, tmp_path)
    fleet.lost = {"sum_keys": {"p1"}, "sum_meet": {"p4"}, "add": {"p11"}}
    total = fleet.total()
    assert np.array_equal(total.values, fleet.expected([f"p{number}" for number in (0, 2, 3, 5, 6, 7, 8, 9, 10)]))


@pytest.mark.parametrize("silent", STEPS)
def test_too_few_survivors_end_a_run_of_one_sum(silent: str, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    fleet.lost = {silent: {"p0", "p1"}}
    with pytest.raises(PartyError, match=f"step '{silent}'"):
        fleet.total()


def test_a_survivor_without_an_answer_ends_the_run_and_is_asked_again_in_the_next(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    fleet.lost = {"sum_open": {"p3"}}
    with pytest.raises(PartyError, match=r"step 'sum_open'.*p3: lost.*its charge remains.*from the same folder"):
        fleet.total()
    before = dict(fleet.seen)
    fleet.lost = {}
    total = fleet.total()
    assert np.array_equal(total.values, fleet.expected(fleet.names))
    # the others gave the answers that they had stored
    assert all(fleet.seen[place] == body for place, body in before.items())


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bound", [1, 127, 2**31, 2**60])
def test_the_extreme_values_do_not_overflow(bound: int, sign: int, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(bound=bound, extreme=sign, length=3, missing=1), 4, tmp_path)
    assert fleet.total().values.tolist() == [4 * sign * bound] * 3
    assert ring_for(4 * bound).bits == (4 * bound).bit_length() + 1


def test_values_of_one_sum_are_given_once_and_after_the_keys(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    everybody = SumSurvivors(label="one", number=1, arrived=bytes([0b11111000]))
    for step_name, message in (("add", Nothing()), ("sum_open", everybody)):
        assert "before the step that stores" in fleet.asked_again(step_name, "p0", message).text
    fleet.total()
    for step_name, message in (("add", Nothing()), ("sum_open", everybody)):
        reply = fleet.asked_again(step_name, "p0", message)
        assert (reply.code, reply.body, "answer" in reply.text) == ("refused", b"", True)


@pytest.mark.parametrize(
    ("step_name", "message"),
    [
        ("sum_open", SumSurvivors(label="one", number=1, arrived=b"")),
        ("sum_open", SumSurvivors(label="one", number=1, arrived=b"\xf8\x00")),
        ("sum_meet", SumDirectory(label="one", present=b"", keys=b"")),
        ("sum_meet", SumDirectory(label="one", present=b"\xf0", keys=bytes(127))),
        ("sum_meet", SumDirectory(label="one", present=b"\xf0", keys=bytes(128))),
    ],
)
def test_messages_of_the_wrong_size_and_keys_of_nobody_are_refused(
    step_name: str, message: Message, tmp_path: Path
) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)

    def change(asked: str, party: str, old: bytes) -> bytes:
        return encode(message) if asked == step_name else old

    fleet.ask = change
    with pytest.raises(PartyError, match="p0: refused"):
        fleet.total()
