"""The half of a protocol that a suite about its other half has no use for."""

from pathlib import Path
from typing import ClassVar, Literal

from syndic.errors import InputError
from syndic.kernel import Disclosure, Resources, Result, Session, Terms, TermsMethod
from syndic.privacy import Event


class Stub(TermsMethod):
    """Needs nothing, charges nothing and says nothing; subclasses give the steps."""

    title: ClassVar[str] = "stub"
    paper: ClassVar[str] = "none"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = "none"

    @property
    def simulation_only(self) -> bool:
        return False

    def check(self, terms: Terms) -> None: ...

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        return ()

    def estimate(self, terms: Terms) -> Resources:
        return Resources(memory_bytes=0, reply_bytes=0, seconds=0)

    def disclosure(self, terms: Terms) -> Disclosure:
        return Disclosure(sees={}, sensitivity="", not_protected=())

    def coordinate(self, session: Session) -> Result:
        raise InputError("not run here")

    def read_result(self, terms: Terms, folder: Path) -> Result:
        raise InputError("not run here")
