"""Base class of methods: public parameters, a plan, steps for the parties, one function for the coordinator."""

import abc
import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeVar

import numpy as np
from msgspec.structs import replace

from syndic.data import Domain
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
from syndic.kernel.terms import Terms, identified, member, most_parties, owner_of


class Method(Document, tag_field="method"):
    """A method. A subclass sets its name with `tag=`, has public parameters only, and keeps no state."""

    title: ClassVar[str]
    paper: ClassVar[str]
    partition: ClassVar[Literal["horizontal", "vertical"]]
    trust: ClassVar[str]

    @property
    def simulation_only(self) -> bool:
        """Whether this is a published variant that does not satisfy its guarantee: it runs in simulations only."""
        return bool(getattr(self, "as_published", False))

    @property
    def requires(self) -> Requires:
        """What the method requires of the study's terms; it may depend on the parameters."""
        return Requires()

    @step(reveals="public", fresh=True)
    def ready(self, party: Party, message: Nothing) -> Ready:
        """Confirm that the source has the columns and that the study fits under the cap. Charges nothing."""
        del message
        party.check_ready()
        return party.present()

    @step(reveals="public", fresh=True)
    def meet(self, party: Party, message: Agreements) -> Nothing:
        """Check that every party has signed its agreement and that no party's state is older than was seen."""
        party.meet(message)
        return Nothing()

    @abc.abstractmethod
    def plan(self, terms: Terms) -> Plan:
        """Compute everything public from terms that meet `requires`. Reads no row and checks no limits."""

    @abc.abstractmethod
    def coordinate(self, session: Session[Any]) -> Result:
        """Run the coordinator's side: send requests to the parties and combine their replies."""

    @abc.abstractmethod
    def read(self, plan: Any, folder: Path) -> Result:
        """Read the files that the result wrote into `folder`."""


def make_plan(method: Method, terms: Terms) -> Plan:
    """Check the method's requirements and compute its plan; raise `InputError` if that is not possible."""
    method.requires.check(terms)
    try:
        return _frozen(_for_owners(method, terms).plan(terms))
    except InputError:
        raise
    except (ValueError, ArithmeticError) as error:
        # the error of the mechanism names the number that is out of range
        raise InputError(f"no noise can be calibrated for these terms: {error}") from None


def _for_owners(method: Method, terms: Terms) -> Method:
    """Return the method with `colluding` as a number of parties, where organisations take part as several.

    A study counts organisations. One that colludes does so with all its parties, so the noise must be enough
    without the parties of those that have most. Servers that must not collude are of different organisations.
    """
    servers = [owner_of(member(terms, name)) for name in getattr(method, "servers", ()) or ()]
    if len(set(servers)) < len(servers):
        raise InputError("servers: two of them are parties of one organisation: name parties of different ones")
    colluding = getattr(method, "colluding", 0)
    parties = most_parties(terms, colluding)
    return method if parties == colluding else replace(method, colluding=parties)


Made = TypeVar("Made")
_PLAIN: Final = (str, int, float, Fraction, Domain)


def _frozen(value: Made) -> Made:
    """Return the plan with read-only arrays: coordinator and parties of one process share it."""
    seen, left = set[int](), [value]
    while left:
        one: Any = left.pop()
        # parties have many parts in common, and most parts are names and numbers
        if isinstance(one, _PLAIN) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            one.setflags(write=False)
        elif not (isinstance(one, tuple) and {*map(type, one)} == {str}):
            left.extend(_parts(one))
    return value


def _parts(value: Any) -> Iterable[Any]:
    """Return what a value of a plan is made of."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, Document):
        return [getattr(value, name) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return ()


def run(method: Method, session: Session[Any]) -> Result:
    """Ask every party whether it is ready, send each the agreements of all, and only then run the method.

    Nothing is spent if a party is not ready or has not agreed.
    """
    ready = session.ask(method.ready, Nothing())
    if identified(session.terms):
        # a simulation has no agreements to exchange
        session.ask(method.meet, Agreements.of(ready))
    return method.coordinate(session)
