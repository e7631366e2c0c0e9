"""Masked sums, one or many: exact whoever falls silent, lost or closed whenever something is wrong."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from many_parties import AddUp, Fleet, fleet_of, ring_lift, started, total
from syndic.errors import PartyError
from syndic.kernel import Message, Nothing, encode
from syndic.mpc.masked_sum import SumDirectory, SumSurvivors
from syndic.mpc.ring import ring_for

STEPS = ["sum_keys", "sum_meet", "add"]


@pytest.mark.parametrize(("parties", "missing"), [(2, 0), (3, 0), (40, 0), (4, 1), (40, 1)])
def test_every_sum_opens_the_plain_sum(parties: int, missing: int, tmp_path: Path) -> None:
    fleet = fleet_of(parties, tmp_path, missing=missing)
    rounds = started(fleet)
    for number in range(1, 4):
        opened = total(fleet, rounds)
        assert opened is not None
        assert opened.present == tuple(fleet.names)
        assert np.array_equal(opened.values, ring_lift(fleet, number * fleet.expected(fleet.names)))


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
