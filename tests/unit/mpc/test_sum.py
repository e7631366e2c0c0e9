"""Masked sums: exact whoever falls silent and when, closed whenever something is wrong."""

from pathlib import Path

import numpy as np
import pytest

from many_parties import AddUp, Fleet
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Message, decode, encode
from syndic.mpc.graph import plan_sum
from syndic.mpc.key import KEY_BYTES
from syndic.mpc.masked import Secrets, openings
from syndic.mpc.ring import ring_for
from syndic.mpc.secret import SecretStart
from syndic.mpc.shamir import recover
from syndic.mpc.sum import SumBoxes, SumInbox, SumOpenings, SumStart, SumSurvivors

STEPS = ["sum_keys", "sum_shares", "add", "sum_open"]


@pytest.mark.parametrize("parties", [2, 3, 4, 7, 33, 50])
def test_the_total_is_the_plain_sum(parties: int, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), parties, tmp_path)
    total = fleet.total()
    assert total.present == tuple(fleet.names)
    assert np.array_equal(total.values, fleet.expected(fleet.names))


@pytest.mark.parametrize("silent", STEPS)
@pytest.mark.parametrize("parties", [5, 9, 40])
def test_parties_may_fall_silent_at_every_step(parties: int, silent: str, tmp_path: Path) -> None:
    missing = (parties - 2) // 2 if parties < 33 else 4
    lost = {f"p{number}" for number in range(0, 2 * missing, 2)}
    fleet = Fleet(AddUp(missing=missing), parties, tmp_path)
    # whoever fell silent stays silent
    fleet.lost = dict.fromkeys(STEPS[STEPS.index(silent) :], lost)
    total = fleet.total()
    counted = [name for name in fleet.names if silent == "sum_open" or name not in lost]
    assert total.present == tuple(counted)
    assert np.array_equal(total.values, fleet.expected(counted))


def test_parties_may_fall_silent_one_after_the_other(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=4), 12, tmp_path)
    fleet.lost = {
        "sum_keys": {"p1"},
        "sum_shares": {"p4"},
        "add": {"p11"},
        "sum_open": {"p0"},
    }
    total = fleet.total()
    assert np.array_equal(total.values, fleet.expected([f"p{number}" for number in (0, 2, 3, 5, 6, 7, 8, 9, 10)]))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bound", [1, 127, 2**31, 2**60])
def test_the_extreme_values_do_not_overflow(bound: int, sign: int, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(bound=bound, extreme=sign, length=3), 4, tmp_path)
    assert fleet.total().values.tolist() == [4 * sign * bound] * 3
    assert ring_for(4 * bound).bits == (4 * bound).bit_length() + 1


@pytest.mark.parametrize("silent", STEPS)
def test_too_few_survivors_end_the_run(silent: str, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    fleet.lost = {silent: {"p0", "p1"}}
    with pytest.raises(PartyError, match=f"step '{silent}'"):
        fleet.total()


def flipped(body: bytes, place: int) -> bytes:
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


def test_a_changed_box_is_refused_before_anything_is_masked(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 4, tmp_path)

    def change(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("add", "p2"):
            return body
        inbox = decode(body, SumInbox)
        return encode(SumInbox(label=inbox.label, dealt=inbox.dealt, boxes=flipped(inbox.boxes, 100)))

    fleet.ask = change
    with pytest.raises(PartyError, match=r"from p1 to p2 .* does not open"):
        fleet.total()


def test_boxes_in_another_order_are_refused(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 4, tmp_path)

    def change(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("sum_shares", "p2"):
            return body
        boxes = decode(body, SumBoxes).boxes
        return encode(SumBoxes(boxes=boxes[92:184] + boxes[:92] + boxes[184:]))

    fleet.reply = change
    with pytest.raises(PartyError, match=r"from p2 to p0 .* does not open"):
        fleet.total()


@pytest.mark.parametrize("gone", [set(), {"p1"}])
def test_a_wrong_share_is_found_and_nothing_opens(gone: set[str], tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    fleet.lost = {"add": gone}

    def change(step: str, party: str, body: bytes) -> bytes:
        # p0's second neighbour is p2, its first p1; X25519 ignores the lowest bits of a key, so change a later byte
        place = 5 if gone else 37
        if (step, party) != ("sum_open", "p0"):
            return body
        return encode(SumOpenings(halves=flipped(decode(body, SumOpenings).halves, place)))

    fleet.reply = change
    with pytest.raises(RefusedError, match="p1's mask key" if gone else "p2's seed"):
        fleet.total()


def test_every_step_is_answered_once_and_in_order(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    everybody = SumSurvivors(label="one", arrived=bytes([0b11111000]))
    assert "asked after step 0" in fleet.asked_again("sum_open", "p0", everybody).text
    fleet.total()
    # the other story would open the other kind of share
    without = SumSurvivors(label="one", arrived=bytes([0b10111000]))
    for step, body in (("sum_open", without), ("sum_open", everybody), ("sum_keys", SumStart(label="one"))):
        reply = fleet.asked_again(step, "p0", body)
        assert (reply.code, reply.body) == ("refused", b"")
    inbox = SumInbox(label="one", dealt=b"\xf0", boxes=bytes(4 * 92))
    assert fleet.asked_again("add", "p0", inbox).code == "refused"


@pytest.mark.parametrize("arrived", [0b10100000, 0b01111000, 0b11000000])
def test_a_party_opens_nothing_for_too_few_or_without_itself(arrived: int, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)

    def change(step: str, party: str, body: bytes) -> bytes:
        if step == "sum_open" and party == "p0":
            return encode(SumSurvivors(label="one", arrived=bytes([arrived])))
        return body

    fleet.ask = change
    fleet.total()  # the others are enough
    assert fleet.seen[("sum_open", "p0")] == b""


def test_messages_of_the_wrong_size_are_refused(tmp_path: Path) -> None:
    wrong: list[tuple[str, Message]] = [
        ("sum_open", SumSurvivors(label="one", arrived=b"")),
        ("add", SumInbox(label="one", dealt=b"\xf0\x00", boxes=b"")),
        ("add", SumInbox(label="one", dealt=b"\xf0", boxes=bytes(91))),
    ]
    for step, body in wrong:
        fleet = Fleet(AddUp(), 5, tmp_path)

        def change(asked: str, party: str, old: bytes, step: str = step, body: Message = body) -> bytes:
            return encode(body) if asked == step and party == "p0" else old

        fleet.ask = change
        with pytest.raises(PartyError, match="p0: refused"):
            fleet.total()


def test_shares_of_a_party_without_keys_are_refused(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(missing=1), 5, tmp_path)
    fleet.lost = {"sum_keys": {"p1"}}

    def change(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("add", "p0"):
            return body
        inbox = decode(body, SumInbox)
        # p1 is p0's first neighbour
        return encode(SumInbox(label="one", dealt=b"\xf0", boxes=bytes(92) + inbox.boxes))

    fleet.ask = change
    with pytest.raises(PartyError, match="came from a party that published no keys"):
        fleet.total()


def test_two_sums_of_one_study_have_nothing_in_common(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    fleet.total()
    first = dict(fleet.seen)
    session = fleet.session()
    session.ask(fleet.protocol.secret_offer, SecretStart(label="x"))  # one round later, so under other call ids
    again = fleet.protocol.masked_sum(fleet.study, "two").open(session, fleet.protocol.add)
    assert np.array_equal(again.values, fleet.expected(fleet.names))
    assert all(fleet.seen[place] != body for place, body in first.items())


def test_coordinator_and_too_few_neighbours_cannot_open_a_seed(tmp_path: Path) -> None:
    """All that the coalition holds fits every seed: one more share, whatever its value, gives another."""
    fleet = Fleet(AddUp(colluding=2, missing=1), 8, tmp_path)
    plan = plan_sum(8, colluding=2, missing=1)
    fleet.total()
    victim = "p0"
    memory = fleet.nodes[victim].state.memory.kept("sum one secrets")
    assert memory is not None
    seed = decode(memory, Secrets).seed
    held = {}
    for point, name in enumerate(fleet.names[1:], 1):
        halves = decode(fleet.seen[("sum_open", name)], SumOpenings).halves
        held[point] = halves[:KEY_BYTES]  # p0 is everybody's first neighbour
    points = sorted(held)[: plan.threshold]
    assert recover([held[point] for point in points], points) == seed
    fewer = points[:-1]
    assert recover([held[point] for point in fewer], fewer) != seed
    opened = {recover([*(held[p] for p in fewer), bytes([guess]) * 32], points) for guess in range(256)}
    assert len(opened) == 256


def test_never_both_kinds_of_share() -> None:
    held = {1: b"s" * 32 + b"k" * 32, 2: b"S" * 32 + b"K" * 32}
    assert openings(held, [1]) == {1: b"s" * 32, 2: b"K" * 32}
