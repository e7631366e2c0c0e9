"""Everything a step may touch: the party's table, its three doors out, and its own memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, final

from syndic.data import Table
from syndic.errors import DoorError, RefusedError
from syndic.kernel.agreement import Agreements, check_all
from syndic.kernel.codec import Message, decode, encode
from syndic.kernel.memory import Memory
from syndic.kernel.plan import Planned
from syndic.kernel.step import Step
from syndic.kernel.terms import Terms
from syndic.noise import Mechanism
from syndic.privacy import Cost, Event, Ledger, Price
from syndic.random import Randomness
from syndic.version import __version__

Input = TypeVar("Input")
Output = TypeVar("Output")
Kept = TypeVar("Kept", bound=Message)


def _met() -> str:
    """Return under which name the agreements are kept: all were to this version of the code."""
    return f"agreements of all parties to Syndic {__version__}"


def no_bond(peer: str) -> bytes:
    """Return the empty bond of a simulation: everything is on one machine, and nobody has an identity."""
    del peer
    return b""


@final
@dataclass(frozen=True, kw_only=True)
class PartyState(Generic[Planned]):
    """What a party has for one study and keeps between calls.

    `study` is the digest of this party's own copy, `plan` what it works out from that copy, and `randomness` gives an
    independent stream for every label. `charges` is all that the study may charge to `dataset`, if that is more than
    this party's own events. `price` is the cost that the study states, for the ledger. Between organisations `bond`
    returns 32 bytes that only this party and the named one know, `agreement` this party's signed agreement, or raises
    if none is in force, and `sign` its identity's signature; `note_answered` notes outside the ledger, before a reply
    is sent, that a call was answered.
    """

    name: str
    plan: Planned
    study: str
    dataset: str
    ledger: Ledger
    memory: Memory
    open_table: Callable[[], Table]
    randomness: Callable[[str], Randomness]
    charges: tuple[Event, ...] | None = None
    price: Price | None = None
    bond: Callable[[str], bytes] = no_bond
    agreement: Callable[[], bytes] | None = None
    sign: Callable[[bytes], bytes] | None = None
    note_answered: Callable[[], None] | None = None

    @property
    def terms(self) -> Terms:
        """The public terms of the study."""
        return self.plan.terms

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All that the study may ever charge here."""
        return self.plan.events(self.name) if self.charges is None else self.charges

    @cached_property
    def limit(self) -> Cost:
        """The most that this study may cost this party's people; a study may have thousands of charges."""
        return Cost.of(self.events)

    def check_agreed(self, step: str) -> None:
        """Raise `RefusedError` unless the owner's agreement is in force and, but for the first steps, all have met."""
        if self.agreement is None:
            return
        self.agreement()
        if step not in {"ready", "meet"} and self.memory.kept(_met()) is None:
            raise RefusedError(f"{self.name} has not seen the agreements of all parties yet: ask 'meet' first")


@final
class Party(Generic[Planned]):
    """One party during one call.

    There are three doors out and no fourth: `release` (full noise here), `contribute` (a share of the noise,
    only in a masked reply) and `charge` (mechanisms that are random by themselves). Each charges the ledger
    durably first and only then hands out randomness.
    """

    def __init__(self, state: PartyState[Planned], *, call: str, step: Step) -> None:
        """Bind the party to one call of one step."""
        self.name = state.name
        self.plan = state.plan
        self.terms = state.plan.terms
        self.study = state.study
        self.rows_read = False
        self.doors_used = 0
        self.remembered: dict[str, bytes] = {}
        self._state = state
        self._call = call
        self._step = step

    @property
    def simulated(self) -> bool:
        """Whether this run repeats itself from a seed, and so protects nobody."""
        return self._state.randomness("simulated").simulated

    @property
    def table(self) -> Table:
        """The party's rows, coded by the schema. What is computed from them leaves through a door only."""
        self.rows_read = True
        return self._state.open_table()

    def check_ready(self) -> None:
        """Raise `PublicError` unless the source can be opened with every column and the cap has room for the study."""
        self._state.open_table()
        self._state.ledger.check(dataset=self._state.dataset, study=self._state.study, events=self._state.events)

    def agreement(self) -> bytes:
        """Return this party's signed agreement to the run; empty in a simulation."""
        return self._state.agreement() if self._state.agreement else b""

    def meet(self, message: Agreements) -> None:
        """Keep the agreements of all parties; raise `RefusedError` if one is missing or not good for this run."""
        if self._state.agreement is not None:
            check_all(message.agreements, self.terms, run=self.study, syndic=__version__)
            own = {one.name: message.agreements[one.name] for one in self.terms.parties}
            self.remember(_met(), Agreements(agreements=own))

    def bond(self, peer: str) -> bytes:
        """Return 32 bytes that only this party and `peer` can compute, from their identities; empty in a simulation.

        Private. Never use them alone: `syndic.mpc.key` mixes them into secrets that are new in every run.
        """
        return self._state.bond(peer)

    def release(self, mechanism: Mechanism[Input, Output], values: Input, *, why: str) -> Output:
        """Charge the mechanism's cost, then return its noisy output."""
        return mechanism.apply(values, self.charge(mechanism.event, why=why))

    def contribute(self, share: Mechanism[Input, Output], values: Input, *, why: str) -> Output:
        """Charge the cost of the whole sum, then return the values with this party's share of its noise.

        A share alone is too little noise, so this is refused unless the step's reply is masked.
        """
        if self._step.reveals != "masked":
            raise DoorError(f"step '{self._step.name}' contributes a share of noise but its reply is not masked")
        return share.apply(values, self.charge(share.event, why=why))

    def charge(self, event: Event, *, why: str) -> Randomness:
        """Charge an event durably and return the randomness to draw it with."""
        self.doors_used += 1
        door = str(self.doors_used)
        reservation = self._state.ledger.reserve(
            dataset=self._state.dataset,
            study=self._state.study,
            call=self._call,
            door=door,
            events=(event,),
            why=why,
            limit=self._state.limit,
            stated=self._state.price,
        )
        if reservation.reply is not None:
            # new noise on an old charge would be a second release: only the stored answer may be given
            raise RefusedError("this call was answered before and its stored answer is gone: use a new edition")
        return self._state.randomness(f"{self._call}/{door}")

    def disclose(self, what: str) -> None:
        """Record in the ledger, durably and before the reply, that this step shows something outside any epsilon."""
        self._state.ledger.log_disclosure(
            dataset=self._state.dataset,
            study=self._state.study,
            call=self._call,
            why=what,
            stated=self._state.price,
        )

    def key_randomness(self, label: str) -> Randomness:
        """Return randomness for keys and masks, another stream for every label.

        It is no door: noise that protects people comes from `charge`, after the ledger was written.
        """
        return self._state.randomness(f"{self._call}/entropy/{label}")

    def remember(self, name: str, value: Message) -> None:
        """Keep a message for later steps of this study; it becomes durable together with the answer."""
        self.remembered[name] = encode(value)

    def recall(self, name: str, kind: type[Kept]) -> Kept:
        """Return what an earlier step kept under `name`."""
        value = self.kept(name, kind)
        if value is None:
            raise RefusedError(f"step '{self._step.name}' was asked before the step that keeps '{name}'")
        return value

    def kept(self, name: str, kind: type[Kept]) -> Kept | None:
        """Return what an earlier step kept under `name`, or None if none did; what cannot be read is refused."""
        value = self.remembered[name] if name in self.remembered else self._state.memory.kept(name)
        return None if value is None else decode(value, kind)
