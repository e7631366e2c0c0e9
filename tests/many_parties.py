"""Many parties in one process that compute masked sums, and a runtime that loses and changes messages."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stubs import Stub, StubPlan
from support import study_text
from syndic import Study
from syndic.kernel import (
    Call,
    Delivery,
    Member,
    Message,
    Nothing,
    Party,
    Reply,
    Session,
    Terms,
    answer,
    decode,
    encode,
    in_memory_node,
    step,
)
from syndic.mpc.graph import sum_graph
from syndic.mpc.masked_sum import MaskedSum, SumCoordinator, SumMasked, Total
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.seal import Mail
from syndic.mpc.secret import SecretDone, SecretMail, SecretOffer, SecretOffers, SecretStart, SharedSecret
from syndic.random import SimulationRandomness


class View(Message):
    secret: bytes


class AddUpPlan(StubPlan, kw_only=True):
    masked_sum: MaskedSum

    @property
    def rounds(self) -> tuple[str, ...]:
        # a party is asked for its masks also where nobody may be missing, to see that it refuses
        return (*self.asked, "sum_keys", "sum_meet", "sum_open")


class AddUp(Stub, tag="add-up"):
    """Adds up a public function of each party's name; `extreme` takes the largest values the ring was made for."""

    length: int = 20
    bound: int = 1000
    extreme: int = 0
    colluding: int = 0
    missing: int = 0

    def plan(self, terms: Terms) -> AddUpPlan:
        graph = sum_graph(len(terms.parties), colluding=self.colluding, missing=self.missing)
        masked_sum = MaskedSum(label="one", graph=graph, count=self.length, ring=self.ring(terms))
        return AddUpPlan(terms=terms, asked=super().plan(terms).asked, masked_sum=masked_sum)

    def ring(self, terms: Terms) -> Ring:
        return ring_for(self.bound * len(terms.parties))

    def vector(self, name: str) -> NDArray[np.int64]:
        if self.extreme:
            return np.full(self.length, self.extreme * self.bound)
        draws = np.random.default_rng(list(name.encode()))
        return draws.integers(-self.bound, self.bound + 1, self.length)

    @step(reveals="masked")
    def add(self, party: Party[AddUpPlan], message: Nothing) -> SumMasked:
        """Mask this party's vector."""
        return party.plan.masked_sum.masks(party).hide(self.vector(party.name))

    @step(reveals="public")
    def tell(self, party: Party, message: Nothing) -> View:
        """Give the shared secret away, for a test."""
        return View(secret=SharedSecret(label="one").value(party))

    # shared secrets under any label, as a study with several would have them

    @step(reveals="public")
    def secret_offer(self, party: Party, message: SecretStart) -> SecretOffer:
        return SharedSecret(label=message.label).secret_offer(party, message)

    @step(reveals="sealed")
    def secret_send(self, party: Party, message: SecretOffers) -> Mail:
        return SharedSecret(label=message.label).secret_send(party, message)

    @step(reveals="public")
    def secret_check(self, party: Party, message: SecretMail) -> SecretDone:
        return SharedSecret(label=message.label).secret_check(party, message)


Change = Callable[[str, str, bytes], bytes]


def unchanged(step: str, party: str, body: bytes) -> bytes:
    return body


@final
class Fleet:
    """Nodes and their carrier. `lost[step]` never answer that step; `ask` and `reply` may change what is carried."""

    def __init__(self, protocol: AddUp, parties: int, folder: Path, *, seed: int = 0) -> None:
        del folder
        names = [f"p{number}" for number in range(parties)]
        base = Study.loads(study_text())
        self.study = Study(
            name="fleet",
            unit=base.unit,
            budget=base.budget,
            protocol=protocol,  # type: ignore[arg-type]  # a method of the tests
            parties=tuple(Member(name=name) for name in names),
            schema=base.schema,
        )
        self.protocol = protocol
        self.names = names
        self.lost: Mapping[str, set[str]] = {}
        self.ask: Change = unchanged
        self.reply: Change = unchanged
        self.seen: dict[tuple[str, str], bytes] = {}
        self.nodes = {
            name: in_memory_node(
                protocol,
                self.study.plan,
                name,
                None,
                lambda label, name=name: SimulationRandomness(seed, name, label),  # type: ignore[misc]
                study=self.study.digest,
            )
            for name in names
        }

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies, silent = {}, {}
        for party, data in calls.items():
            call = decode(data, Call)
            if party in self.lost.get(call.step, ()):
                silent[party] = "lost"
                continue
            body = self.ask(call.step, party, call.body)
            changed = replace(call, body=body, check=None)
            reply = decode(answer(self.nodes[party], encode(changed)), Reply)
            self.seen[(call.step, party)] = reply.body
            body = self.reply(call.step, party, reply.body) if reply.code == "ok" else b""
            replies[party] = encode(Reply(code=reply.code, body=body, text=reply.text))
        return Delivery(replies=replies, silent=silent)

    def close(self) -> None: ...

    def session(self) -> Session:
        return Session(
            runtime=self,
            study=self.study.digest,
            method=self.protocol,
            plan=self.study.plan,
            randomness=SimulationRandomness(0),
        )

    def total(self) -> Total:
        return self.masked_sum.open(self.session(), self.protocol.add)

    @property
    def masked_sum(self) -> MaskedSum:
        return self.study.plan_as(AddUpPlan).masked_sum

    def expected(self, names: Any) -> NDArray[np.int64]:
        """The same sum without any of this."""
        total: NDArray[np.int64] = np.sum([self.protocol.vector(name) for name in names], axis=0)
        return total

    def asked_again(self, step: str, party: str, body: Message) -> Reply:
        """Ask one step once more, under another call id."""
        call = Call(study=self.study.digest, party=party, step=step, call="f" * 32, body=encode(body))
        return decode(answer(self.nodes[party], encode(call)), Reply)


# Many sums, one after the other.


class Ask(Message):
    common = ("round",)
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


def ring_lift(fleet: Fleet, values: NDArray[np.int64]) -> NDArray[np.int64]:
    ring = ring_of(fleet)
    return ring.lift(ring.reduce(values))
