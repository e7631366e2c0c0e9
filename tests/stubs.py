"""Stubs for the parts of a method that a suite does not test."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from syndic.errors import InputError
from syndic.kernel import Disclosure, Method, Plan, Requires, Resources, Result, Session, Terms, steps_of
from syndic.privacy import Event


class StubPlan(Plan, kw_only=True):
    """Asks every step of its method."""

    asked: tuple[str, ...] = ()
    charges: tuple[Event, ...] = ()

    @property
    def rounds(self) -> tuple[str, ...]:
        return self.asked

    def events(self, party: str) -> tuple[Event, ...]:
        return self.charges

    @property
    def resources(self) -> Resources:
        return Resources(memory_bytes=0, reply_bytes=0, seconds=0)

    @property
    def disclosure(self) -> Disclosure:
        return Disclosure(sees={}, sensitivity="", not_protected=())


class Stub(Method):
    """Needs nothing, charges nothing and says nothing; subclasses give the steps, and what they charge."""

    title: ClassVar[str] = "stub"
    paper: ClassVar[str] = "none"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "none"
    charges: ClassVar[tuple[Event, ...]] = ()

    @property
    def requires(self) -> Requires:
        return Requires(columns="any")

    def plan(self, terms: Terms) -> StubPlan:
        kind: Any = type(self)
        asked = tuple(name for name in steps_of(kind) if name not in {"ready", "meet"})
        return StubPlan(terms=terms, asked=asked, charges=self.charges)

    def coordinate(self, session: Session) -> Result:
        raise InputError("not run here")

    def read(self, plan: Plan, folder: Path) -> Result:
        raise InputError("not run here")
