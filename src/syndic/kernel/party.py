"""Everything a step may use: the party's table, the three ways to send something out, and its own memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar, final

from syndic.data import Table
from syndic.errors import MethodError, RefusedError
from syndic.kernel.agreement import Agreements, Ready, check_all
from syndic.kernel.codec import Message, decode, encode
from syndic.kernel.identity import PublicIdentity
from syndic.kernel.memory import Head, Memory
from syndic.kernel.plan import Planned
from syndic.kernel.step import Step
from syndic.kernel.terms import Terms
from syndic.kernel.view import View
from syndic.noise import Mechanism
from syndic.privacy import Account, Cost, Event, Ledger, Price
from syndic.random import Randomness
from syndic.version import __version__

Input = TypeVar("Input")
Output = TypeVar("Output")
Kept = TypeVar("Kept", bound=Message)
_VIEW: Final = "view of the run"


def _agreements_key() -> str:
    """Return the name under which the agreements are stored; it contains the version that was agreed to."""
    return f"agreements of all parties to Syndic {__version__}"


def no_bond(peer: str) -> bytes:
    """Return the empty bond of a simulation: it runs on one machine, and no party has an identity."""
    del peer
    return b""


@final
@dataclass(frozen=True, kw_only=True)
class PartyState(Generic[Planned]):
    """A party's state for one study, kept between calls.

    `study` is the digest of this party's own copy, `plan` is computed from that copy, and `randomness` returns an
    independent stream for every label. `charges` is all that the study may charge to `dataset`, if that is more than
    this party's own events. `price` is the cost that the study states, for the ledger. Between organisations, `bond`
    returns 32 bytes known only to this party and the named one. `agreement` returns this party's signed agreement, or
    raises if none is in force; `sign` signs with its identity, and calls that `coordinator` did not sign are refused.
    `account` is the name of the run in ledger and memory, if its organisation takes part as several parties.
    `note_answered` records outside the ledger, before a reply is sent, that a call was answered. `audit` writes the
    owner's audit log: a step and, if it was refused, why.
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
    account: Account | None = None
    bond: Callable[[str], bytes] = no_bond
    agreement: Callable[[], bytes] | None = None
    sign: Callable[[bytes], bytes] | None = None
    coordinator: PublicIdentity | None = None
    note_answered: Callable[[], None] | None = None
    audit: Callable[[str, str], None] | None = None

    @property
    def terms(self) -> Terms:
        """The public terms of the study."""
        return self.plan.terms

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All that the study may charge to this party."""
        return self.plan.events(self.name) if self.charges is None else self.charges

    @cached_property
    def limit(self) -> Cost:
        """The most that this study may cost this party's people, over all its charges."""
        return Cost.of(self.events)

    @property
    def booked(self) -> str:
        """The name under which ledger and memory keep the run."""
        return self.study if self.account is None else self.account.name

    @property
    def view(self) -> View:
        """What this party was told in this study, as a digest."""
        kept = self.memory.kept(_VIEW)
        return View.of(self.study) if kept is None else decode(kept, View)

    def check_agreed(self, step: str) -> None:
        """Raise `RefusedError` unless the owner has agreed and, after the first two steps, all parties have.

        Also if the party's stored answers are older than its ledger.
        """
        if self.agreement is None:
            return
        self.agreement()
        self.ledger.check_answers(dataset=self.dataset, study=self.booked)
        if step not in {"ready", "meet"} and self.memory.kept(_agreements_key()) is None:
            raise RefusedError(f"{self.name} has not seen the agreements of all parties yet: run the step 'meet' first")


@final
class Party(Generic[Planned]):
    """One party during one call.

    Data derived from rows leaves in three ways only: `release` (full noise), `contribute` (a share of the noise, only
    in a masked reply) and `charge` (for mechanisms that are random by themselves). Each of these release functions
    writes the charge to the ledger durably before it returns any randomness.
    """

    def __init__(self, state: PartyState[Planned], *, call: str, step: Step, view: View) -> None:
        """Bind the party to one call of one step; `view` includes the call, unless the step is fresh."""
        self.name = state.name
        self.plan = state.plan
        self.terms = state.plan.terms
        self.study = state.study
        self.rows_read = False
        self.charges = 0
        self.remembered: dict[str, bytes] = {} if step.fresh else {_VIEW: encode(view)}
        # what masks are bound to: parties that were told different things have different ones
        self.view = view.digest
        self._state = state
        self._call = call
        self._step = step

    @property
    def simulated(self) -> bool:
        """Whether this run is seeded, and therefore not private."""
        return self._state.randomness("simulated").simulated

    @property
    def table(self) -> Table:
        """The party's rows, coded by the schema. Results leave through `release`, `contribute` or `charge` only."""
        self.rows_read = True
        return self._state.open_table()

    def check_ready(self) -> None:
        """Raise `PublicError` unless the source has every column and the study fits under the cap."""
        self._state.open_table()
        state = self._state
        state.ledger.check(dataset=state.dataset, study=state.booked, events=state.events, account=state.account)

    def present(self) -> Ready:
        """Return this party's signed agreement to the run and the heads that it knows; empty in a simulation."""
        if self._state.agreement is None:
            return Ready()
        met = self.kept(_agreements_key(), Agreements)
        return Ready(
            agreement=self._state.agreement(), head=self._state.memory.head(), seen=met.heads if met is not None else {}
        )

    def meet(self, message: Agreements) -> None:
        """Keep the agreements and heads of all parties.

        Raises:
            RefusedError: if an agreement is missing or not valid for this run, or if somebody saw a newer state of this
                party than it has, or this party saw a newer one of another.
        """
        if self._state.agreement is None:
            return
        check_all(message.agreements, self.terms, run=self.study, syndic=__version__)
        met = self.kept(_agreements_key(), Agreements)
        known = met.heads if met is not None else {}
        now = {one.name: message.heads.get(one.name, Head()) for one in self.terms.parties}
        for name, head in now.items():
            if name == self.name:
                self._state.memory.head().check(message.seen.get(name, Head()), f"the stored state of {name}")
            else:
                head.check(known.get(name, Head()), f"the stored state of {name}")
        own = {name: message.agreements[name] for name in now}
        others = {name: head for name, head in now.items() if name != self.name}
        self.remember(_agreements_key(), Agreements(agreements=own, heads=others))

    def bond(self, peer: str) -> bytes:
        """Return 32 bytes that only this party and `peer` can compute, from their identities; empty in a simulation.

        Private. Never use them alone: `syndic.mpc.key` combines them with secrets that are fresh in every run.
        """
        return self._state.bond(peer)

    def release(self, mechanism: Mechanism[Input, Output], values: Input, *, why: str) -> Output:
        """Charge the mechanism's cost to the ledger, then return its noisy output."""
        return mechanism.apply(values, self.charge(mechanism.event, why=why))

    def contribute(self, share: Mechanism[Input, Output], values: Input, *, why: str) -> Output:
        """Charge the cost of the whole sum, then return the values with this party's share of its noise added.

        One share is too little noise by itself, so this is refused unless the step's reply is masked.
        """
        if self._step.reveals != "masked":
            raise MethodError(f"step '{self._step.name}' contributes a share of noise but its reply is not masked")
        return share.apply(values, self.charge(share.event, why=why))

    def charge(self, event: Event, *, why: str) -> Randomness:
        """Charge an event durably and return the randomness to draw it with."""
        self.charges += 1
        reservation = self._state.ledger.reserve(
            dataset=self._state.dataset,
            study=self._state.booked,
            call=self._call,
            door=str(self.charges),
            events=(event,),
            why=why,
            limit=self._state.limit,
            stated=self._state.price,
            account=self._state.account,
        )
        if reservation.reply is not None:
            # new noise for an old charge would be a second release: only the stored answer may be returned
            raise RefusedError(
                "this call was answered before, but its stored answer was deleted: set a new edition in the study"
            )
        return self._state.randomness(f"{self._call}/{self.charges}")

    def disclose(self, what: str) -> None:
        """Record in the ledger, durably and before the reply, that this step shows something outside any epsilon."""
        self._state.ledger.log_disclosure(
            dataset=self._state.dataset,
            study=self._state.booked,
            call=self._call,
            why=what,
            stated=self._state.price,
        )

    def key_randomness(self, label: str) -> Randomness:
        """Return randomness for keys and masks, an independent stream for every label.

        Not for noise: noise that protects people comes from `charge`, after the ledger was written.
        """
        return self._state.randomness(f"{self._call}/entropy/{label}")

    def remember(self, name: str, value: Message) -> None:
        """Store a message for later steps of this study; it becomes durable together with the answer."""
        self.remembered[name] = encode(value)

    def recall(self, name: str, kind: type[Kept]) -> Kept:
        """Return the message that an earlier step stored under `name`."""
        value = self.kept(name, kind)
        if value is None:
            raise RefusedError(f"step '{self._step.name}' was requested before the step that stores '{name}'")
        return value

    def kept(self, name: str, kind: type[Kept]) -> Kept | None:
        """Return the message stored under `name`, or None if there is none; refuse one that cannot be decoded."""
        value = self.remembered[name] if name in self.remembered else self._state.memory.kept(name)
        return None if value is None else decode(value, kind)
