"""What a method is: frozen public parameters, a plan, the parties' side as steps, the coordinator's as one function."""

import abc
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.agreement import Agreements, Ready
from syndic.kernel.codec import Nothing
from syndic.kernel.disclosure import Disclosure
from syndic.kernel.party import Party
from syndic.kernel.plan import Plan, Resources
from syndic.kernel.requires import Requires
from syndic.kernel.result import Result
from syndic.kernel.session import Session
from syndic.kernel.step import step, steps_of
from syndic.kernel.terms import Terms, identified
from syndic.privacy import Event


class Method(Document, tag_field="method"):
    """A method. A subclass names itself with `tag=`, holds public parameters only, and keeps no state."""

    title: ClassVar[str]
    paper: ClassVar[str]
    partition: ClassVar[Literal["horizontal", "vertical"]]
    trust: ClassVar[str]

    @property
    def simulation_only(self) -> bool:
        """Whether this is a published variant that does not keep its promise; it never meets real parties."""
        return False

    @property
    def requires(self) -> Requires:
        """What the terms must have; it may depend on the parameters."""
        return Requires()

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

    @abc.abstractmethod
    def plan(self, terms: Terms) -> Plan:
        """Work out everything public from terms that meet `requires`. Reads no row and checks no limits."""

    @abc.abstractmethod
    def coordinate(self, session: Session[Any]) -> Result:
        """Run the coordinator's side: ask the parties, combine what passed their doors."""

    @abc.abstractmethod
    def read(self, plan: Any, folder: Path) -> Result:
        """Read back what the result wrote into `folder`."""


def make_plan(method: Method, terms: Terms) -> Plan:
    """Check what the method requires, and work out its plan; what cannot be made is an `InputError`."""
    method.requires.check(terms)
    try:
        return method.plan(terms)
    except InputError:
        raise
    except (ValueError, ArithmeticError) as error:
        # a mechanism that cannot be made from these budgets says which number is out of range
        raise InputError(f"the noise cannot be made: {error}") from None


def run(method: Method, session: Session[Any]) -> Result:
    """Ask every party whether it is ready, show each the agreements of all, and only then run the method.

    So nothing is spent if one is not ready or has not agreed.
    """
    ready = session.ask(method.ready, Nothing())
    if identified(session.terms):
        # in a simulation nobody has anything to show; it is asked all the same, so that calls have the same ids
        session.ask(method.meet, Agreements(agreements={name: one.agreement for name, one in ready.items()}))
    return method.coordinate(session)


# What follows goes with the last method that works everything out from the terms whenever it is asked.


class TermsPlan(Plan):
    """The plan of a method that works everything out from the terms whenever it is asked."""

    method: "TermsMethod"

    @cached_property
    def rounds(self) -> tuple[str, ...]:
        """Steps as the method lists them."""
        return tuple(name for name in self.method.asked(self.terms) if name not in {"ready", "meet"})

    def events(self, party: str) -> tuple[Event, ...]:
        """Ask the method."""
        return self.method.spends(self.terms, party)

    @cached_property
    def resources(self) -> Resources:
        """Ask the method."""
        return self.method.estimate(self.terms)

    @cached_property
    def disclosure(self) -> Disclosure:
        """Ask the method."""
        return self.method.disclosure(self.terms)

    def check(self) -> None:
        """Ask the method."""
        self.method.check(self.terms)


class TermsMethod(Method):
    """A method on the old interface: `check`, `spends`, `estimate` and `disclosure`, each from the terms."""

    @property
    def requires(self) -> Requires:
        """Nothing that is declared: `check` has it all."""
        return Requires(columns="any")

    def plan(self, terms: Terms) -> TermsPlan:
        """Return a plan that asks this method."""
        self.check(terms)
        return TermsPlan(terms=terms, method=self)

    def read(self, plan: Any, folder: Path) -> Result:
        """Read back what the result wrote into `folder`."""
        return self.read_result(plan.terms, folder)

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """Return the names of the steps that a run on these terms may ask: by default all. A party answers no other."""
        del terms
        return tuple(steps_of(type(self)))

    @abc.abstractmethod
    def check(self, terms: Terms) -> None:
        """Raise `InputError` if the method cannot run on these terms. Reads no row."""

    @abc.abstractmethod
    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Return everything that the party called `party` will be charged. Reads no row."""

    @abc.abstractmethod
    def estimate(self, terms: Terms) -> Resources:
        """Return what a run would need. Reads no row."""

    @abc.abstractmethod
    def disclosure(self, terms: Terms) -> Disclosure:
        """Return who sees what, and why the cost is what it is."""

    @abc.abstractmethod
    def read_result(self, terms: Terms, folder: Path) -> Result:
        """Read back what the result wrote into `folder`."""
