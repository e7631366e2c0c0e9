"""Each fault does what it says, and nothing else goes wrong."""

import sys
from collections.abc import Callable, Mapping
from typing import final, get_args

import msgspec
import pytest

from faults import Fault, Faulty, Kind
from syndic.errors import InputError
from syndic.kernel import Delivery, Reply, decode, encode
from syndic.runtime import Local, Processes

MOST = 1000


@final
class Recorder:
    """Parties that answer with what they were asked."""

    def __init__(self) -> None:
        self.given: list[tuple[str, bytes]] = []
        self.restarts: list[str] = []
        self.closed = False

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.given += calls.items()
        return Delivery(
            replies={party: encode(Reply(code="ok", body=data)) for party, data in calls.items()}, silent={}
        )

    def restart(self, party: str) -> None:
        self.restarts.append(party)

    def close(self) -> None:
        self.closed = True


def sent(carrier: Faulty, word: bytes) -> Delivery:
    return carrier.send({"north": word, "south": word}, seconds=1.0, arrived=lambda _: None)


def heard(delivery: Delivery) -> dict[str, bytes]:
    return {party: decode(reply, Reply).body for party, reply in delivery.replies.items()}


def given(kind: Kind, **more: int) -> tuple[Faulty, Recorder, Delivery, Delivery]:
    """Send twice; north's fault comes with the second."""
    recorder = Recorder()
    carrier = Faulty(recorder, (Fault(send=2, party="north", kind=kind, **more),), most=MOST)
    return carrier, recorder, sent(carrier, b"one"), sent(carrier, b"two")


def test_nothing_goes_wrong_that_is_not_told() -> None:
    for kind in get_args(Kind):
        _, recorder, first, second = given(kind)
        assert heard(first) == {"north": b"one", "south": b"one"}
        assert heard(Delivery(replies={"south": second.replies["south"]}, silent={})) == {"south": b"two"}
        assert recorder.given[:2] == [("north", b"one"), ("south", b"one")]


@pytest.mark.parametrize("kind", ["lose_request", "lose_reply", "late", "kill_before", "kill_after"])
def test_silence(kind: Kind) -> None:
    carrier, recorder, _, second = given(kind)
    assert list(second.silent) == ["north"]
    assert (("north", b"two") in recorder.given) == (kind not in {"lose_request", "kill_before"})
    assert recorder.restarts == (["north"] if kind.startswith("kill") else [])
    third = heard(sent(carrier, b"three"))
    # what came too late is there when the next answer is waited for
    assert third["north"] == (b"two" if kind == "late" else b"three")
    assert heard(sent(carrier, b"four"))["north"] == b"four"


def test_delivered_in_another_order_and_more_than_once() -> None:
    assert list(given("delay")[3].replies) == ["south", "north"]
    for kind, extra in (("repeat", b"two"), ("old_request", b"one")):
        carrier, recorder, _, second = given(kind)  # type: ignore[arg-type]
        assert [data for party, data in recorder.given if party == "north"] == [b"one", b"two", extra]
        assert heard(second)["north"] == b"two"
        assert len(carrier.delivered) == 5


def test_damaged_and_too_large() -> None:
    assert given("damage_request", place=1, flip=2)[1].given[2] == ("north", b"tuo")
    clean = encode(Reply(code="ok", body=b"two"))
    damaged = given("damage_reply", place=len(clean) + 1, flip=255)[3].replies["north"]
    assert [place for place in range(len(clean)) if clean[place] != damaged[place]] == [1]
    assert len(given("large_request")[1].given[2][1]) > MOST
    assert len(given("large_reply")[3].replies["north"]) > MOST


def test_a_restart_is_in_time_and_what_was_said_is_noted() -> None:
    carrier, recorder, _, second = given("restart")
    assert recorder.restarts == ["north"]
    assert heard(second)["north"] == b"two"
    assert {one.answered for one in carrier.delivered} == {True}
    carrier.close()
    assert recorder.closed


def test_a_fault_can_happen() -> None:
    for wrong in ({"send": 0}, {"place": -1}, {"flip": 0}, {"flip": 256}):
        with pytest.raises((ValueError, msgspec.ValidationError), match="send counts from 1"):
            Fault(**{"send": 1, "party": "north", "kind": "late", **wrong})  # type: ignore[arg-type]


def test_a_local_party_is_restarted_only_if_it_can_be_opened() -> None:
    with pytest.raises(InputError, match="was created without `reopen`"):
        Local({}).restart("north")


# answers every frame with the number of its process
SERVER = """
import os, socket, struct, sys
line, said = socket.socket(fileno=int(sys.argv[1])), str(os.getpid()).encode()
while (head := line.recv(8)):
    line.recv(struct.unpack("<Q", head)[0])
    line.sendall(struct.pack("<Q", len(said)) + said)
"""


def test_a_process_is_killed_and_started_anew() -> None:
    runtime = Processes({"north": [sys.executable, "-c", SERVER]}, most=MOST)

    def number() -> int:
        return int(runtime.send({"north": b"who"}, seconds=60.0, arrived=lambda _: None).replies["north"])

    first = number()
    assert number() == first == runtime._worker("north").process.pid
    runtime.restart("north")
    runtime.restart("north")
    assert number() != first
    runtime.close()
