"""A runtime that injects faults on a schedule: for tests, and for rehearsing a study over an unreliable network.

Nothing is random or depends on the clock, so that every failure can be reproduced. A party that "is killed" is stopped
and opened again from its own folder, as after a power failure.
"""

import hashlib
import typing
from collections.abc import Callable, Mapping
from typing import Literal, final

from syndic.document import Document
from syndic.kernel import Delivery, Reply, Runtime, decode

Kind = Literal[
    "lose_request",
    "lose_reply",
    "late",
    "delay",
    "repeat",
    "old_request",
    "damage_request",
    "damage_reply",
    "large_request",
    "large_reply",
    "restart",
    "kill_before",
    "kill_after",
]

_LATE = "no answer in time"
_DEAD = "its process ended"


class Fault(Document):
    """One thing that goes wrong: at which send of the run (from 1), for which party, and what.

    `late`: the reply comes after the time is up, and is there when the next one is waited for. `delay`: it comes after
    all others. `repeat`: the request is delivered twice. `old_request`: an earlier request is delivered once more.
    `damage_*`: the byte at `place` is changed. `large_*`: the message is larger than the study allows. `restart`: the
    party is stopped and back in time; `kill_before` and `kill_after`: it is gone before or after it stored its answer.
    """

    send: int
    party: str
    kind: Kind
    place: int = 0
    flip: int = 1

    def __post_init__(self) -> None:
        """Check that the fault can happen."""
        if self.send < 1 or self.place < 0 or not 1 <= self.flip <= 255:
            raise ValueError("send counts from 1, place from 0, and flip is 1 to 255")


class Delivered(Document):
    """What a party was given and what it said, as digests: also what never arrived at the coordinator."""

    party: str
    request_sha256: str
    reply_sha256: str
    answered: bool


class Restartable(Runtime, typing.Protocol):
    """A runtime whose parties can be stopped and opened again."""

    def restart(self, party: str) -> None:
        """Stop a party as a power cut would; it is opened from its own folder when it is next called."""
        ...


@final
class Faulty:
    """Carries bytes over `runtime`, with the faults of a schedule. `most` is the study's largest message, in bytes."""

    def __init__(self, runtime: Restartable, faults: tuple[Fault, ...], *, most: int) -> None:
        """Let these things go wrong, and no others."""
        self.delivered: list[Delivered] = []
        self._runtime = runtime
        self._faults = {(fault.send, fault.party): fault for fault in faults}
        self._most = most
        self._sends = 0
        self._late: dict[str, bytes] = {}
        self._asked: dict[str, list[bytes]] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Carry every call, one party after the other."""
        self._sends += 1
        replies: dict[str, bytes] = {}
        silent: dict[str, str] = {}
        for party in sorted(calls, key=self._delayed):
            outcome = self._carried(party, calls[party], seconds)
            self._asked.setdefault(party, []).append(calls[party])
            if isinstance(outcome, bytes):
                replies[party] = outcome
            else:
                silent[party] = outcome
            arrived(len(replies))
        return Delivery(replies=replies, silent=silent)

    def close(self) -> None:
        """Close the runtime underneath."""
        self._runtime.close()

    def _delayed(self, party: str) -> bool:
        fault = self._faults.get((self._sends, party))
        return fault is not None and fault.kind == "delay"

    def _carried(self, party: str, data: bytes, seconds: float) -> bytes | str:
        """Return what the coordinator hears: a reply, or in words why there is none."""
        waiting = self._late.pop(party, None)
        fault = self._faults.get((self._sends, party))
        if fault is not None and fault.kind in {"lose_request", "kill_before", "restart"}:
            if fault.kind != "lose_request":
                self._runtime.restart(party)
            if fault.kind != "restart":
                return waiting or (_LATE if fault.kind == "lose_request" else _DEAD)
        outcome = self._asked_of(party, data, fault, seconds)
        return waiting or outcome

    def _asked_of(self, party: str, data: bytes, fault: Fault | None, seconds: float) -> bytes | str:
        kind = None if fault is None else fault.kind
        if fault is not None and kind == "damage_request":
            return self._given(party, _damaged(data, fault), seconds)
        if kind == "large_request":
            return self._given(party, data + bytes(self._most), seconds)
        reply = self._given(party, data, seconds)
        if kind == "repeat":
            reply = self._given(party, data, seconds)
        elif fault is not None and kind == "old_request":
            for old in self._asked.get(party, [])[fault.place :][:1]:
                self._given(party, old, seconds)
        if fault is None or isinstance(reply, str):
            return reply
        return self._spoilt(party, reply, fault)

    def _spoilt(self, party: str, reply: bytes, fault: Fault) -> bytes | str:
        if fault.kind == "damage_reply":
            return _damaged(reply, fault)
        if fault.kind == "large_reply":
            # what follows a whole message would be refused as well: it must be the size that is looked at first
            return reply + bytes(2 * self._most)
        if fault.kind == "late":
            self._late[party] = reply
        if fault.kind == "kill_after":
            self._runtime.restart(party)
            return _DEAD
        return _LATE if fault.kind in {"late", "lose_reply"} else reply

    def _given(self, party: str, data: bytes, seconds: float) -> bytes | str:
        """Give a party bytes, and note what it said."""
        delivery = self._runtime.send({party: data}, seconds=seconds, arrived=lambda _: None)
        if party not in delivery.replies:
            return delivery.silent[party]
        reply = delivery.replies[party]
        asked, said = (hashlib.sha256(each).hexdigest() for each in (data, reply))
        answered = decode(reply, Reply).code == "ok"
        self.delivered.append(Delivered(party=party, request_sha256=asked, reply_sha256=said, answered=answered))
        return reply


def _damaged(data: bytes, fault: Fault) -> bytes:
    place = fault.place % len(data)
    return data[:place] + bytes([data[place] ^ fault.flip]) + data[place + 1 :]
