"""What a method is: frozen public parameters, a plan, the parties' side as steps, the coordinator's as one function."""

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.agreement import Agreements, Ready
from syndic.kernel.codec import Nothing
from syndic.kernel.party import Party
from syndic.kernel.plan import Plan
from syndic.kernel.requires import Requires
from syndic.kernel.result import Result
from syndic.kernel.session import Session
from syndic.kernel.step import step
from syndic.kernel.terms import Terms, identified


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
        return _frozen(method.plan(terms))
    except InputError:
        raise
    except (ValueError, ArithmeticError) as error:
        # a mechanism that cannot be made from these budgets says which number is out of range
        raise InputError(f"the noise cannot be made: {error}") from None


Made = TypeVar("Made")


def _frozen(value: Made) -> Made:
    """Return a plan whose arrays nobody can change: coordinator and parties of one process share it."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, Mapping):
        for each in value.values():
            _frozen(each)
    elif isinstance(value, tuple | list):
        for each in value:
            _frozen(each)
    elif isinstance(value, Document):
        for name in value.__struct_fields__:
            _frozen(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _frozen(getattr(value, field.name))
    return value


def run(method: Method, session: Session[Any]) -> Result:
    """Ask every party whether it is ready, show each the agreements of all, and only then run the method.

    So nothing is spent if one is not ready or has not agreed.
    """
    ready = session.ask(method.ready, Nothing())
    if identified(session.terms):
        # in a simulation nobody has anything to show; it is asked all the same, so that calls have the same ids
        session.ask(method.meet, Agreements(agreements={name: one.agreement for name, one in ready.items()}))
    return method.coordinate(session)
