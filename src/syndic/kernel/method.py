"""What a method is: frozen public parameters, the parties' side as steps, the coordinator's side as one function."""

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from syndic.document import Document
from syndic.kernel.agreement import Agreements, Ready
from syndic.kernel.codec import Nothing
from syndic.kernel.party import Party
from syndic.kernel.session import Session
from syndic.kernel.step import step, steps_of
from syndic.kernel.terms import Terms, identified
from syndic.privacy import Event


class Estimate(Document):
    """What a run would need, computed from public numbers before any row is read."""

    memory_bytes: int
    reply_bytes: int
    seconds: float
    rounds: int = 1
    notes: tuple[str, ...] = ()


class Disclosure(Document):
    """What each role sees, why the stated sensitivity holds, and what is not protected.

    `departures` is for printed variants: which claim of the paper is not met, and what holds instead.
    """

    sees: dict[str, str]
    sensitivity: str
    not_protected: tuple[str, ...]
    departures: tuple[str, ...] = ()


class Result(abc.ABC):
    """What a protocol publishes."""

    @abc.abstractmethod
    def write(self, folder: Path) -> list[Path]:
        """Write the result's files into `folder` and return their paths."""

    @abc.abstractmethod
    def summary(self) -> Mapping[str, Any]:
        """Return a few public facts for the terminal and the statement."""


class Method(Document, tag_field="method"):
    """A method. A subclass names itself with `tag=`, holds public parameters only, and keeps no state."""

    title: ClassVar[str]
    paper: ClassVar[str]
    partition: ClassVar[Literal["horizontal", "vertical"]]
    trust: ClassVar[str]

    @property
    @abc.abstractmethod
    def simulation_only(self) -> bool:
        """Whether this is a printed variant that does not keep its promise; it never meets real parties."""

    @step(reveals="public", fresh=True)
    def ready(self, party: Party, message: Nothing) -> Ready:
        """Say whether this party could answer: its source has the columns and its cap has room. Charges nothing."""
        del message
        party.check_ready()
        return Ready(agreement=party.agreement())

    @step(reveals="public", fresh=True)
    def meet(self, party: Party, message: Agreements) -> Nothing:
        """Check that every party has signed its agreement to this run; before that, nothing else is answered."""
        party.meet(message)
        return Nothing()

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the names of the steps that a run on these terms may ask: by default all. A party answers no other."""
        del terms
        return tuple(name for name in steps_of(type(self)) if name != "meet")

    @abc.abstractmethod
    def check(self, terms: Terms) -> None:
        """Raise `InputError` if the method cannot run on these terms. Reads no row."""

    @abc.abstractmethod
    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Return everything that the party called `party` will be charged. Reads no row."""

    @abc.abstractmethod
    def estimate(self, terms: Terms) -> Estimate:
        """Return what a run would need. Reads no row."""

    @abc.abstractmethod
    def disclosure(self, terms: Terms) -> Disclosure:
        """Return who sees what, and why the cost is what it is."""

    @abc.abstractmethod
    def coordinate(self, session: Session) -> Result:
        """Run the coordinator's side: ask the parties, combine what passed their doors."""

    @abc.abstractmethod
    def read_result(self, terms: Terms, folder: Path) -> Result:
        """Read back what the result wrote into `folder`."""


def steps_asked(protocol: Method, terms: Terms) -> tuple[str, ...]:
    """Return the names of all steps that a party answers, `meet` among them between organisations, in their order."""
    first = ("ready", "meet") if identified(terms) else ("ready",)
    return (*first, *(name for name in protocol.asked(terms) if name not in first))


def run(protocol: Method, session: Session) -> Result:
    """Ask every party whether it is ready, show each the agreements of all, and only then run the protocol.

    So nothing is spent if one is not ready or has not agreed.
    """
    ready = session.ask(protocol.ready, Nothing())
    if identified(session.terms):
        # in a simulation nobody has anything to show; it is asked all the same, so that calls have the same ids
        session.ask(protocol.meet, Agreements(agreements={name: one.agreement for name, one in ready.items()}))
    return protocol.coordinate(session)
