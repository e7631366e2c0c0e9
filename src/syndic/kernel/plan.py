"""The plan: everything public about a run. Each process computes it from its own copy of the study; never sent."""

import abc
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.disclosure import Disclosure
from syndic.kernel.step import Step, steps_of
from syndic.kernel.terms import Terms, identified, member
from syndic.privacy import Cost, Event

if TYPE_CHECKING:
    # PEP 696: a bare `Party` means `Party[Plan]`, so code that does not use its own plan need not name it
    from typing_extensions import TypeVar

    Planned = TypeVar("Planned", bound="Plan", covariant=True, default="Plan")  # noqa: PLC0105
else:
    from typing import TypeVar

    Planned = TypeVar("Planned", bound="Plan", covariant=True)  # noqa: PLC0105

Value = TypeVar("Value")

PROCESS_BYTES: Final = 250 * 10**6
"""What Python, its libraries and rows read a batch at a time take, whatever a method computes."""


class Resources(Document):
    """The resources a run needs, computed from public numbers before any row is read.

    `memory_bytes` is an upper bound, which is compared with the study's limits. `expected_bytes` is what such a run is
    likely to use, where much less than the bound is usual. `party_bytes` is the same of a party alone, where the
    coordinator uses more.
    """

    memory_bytes: int
    reply_bytes: int
    seconds: float
    rounds: int = 1
    notes: tuple[str, ...] = ()
    expected_bytes: int | None = None
    party_bytes: int | None = None

    @property
    def likely_bytes(self) -> int:
        """What such a run is likely to use: what is expected, or else the bound."""
        return self.memory_bytes if self.expected_bytes is None else self.expected_bytes

    @property
    def memory_in_words(self) -> str:
        """The memory of the busiest role."""
        most = f"at most {self.memory_bytes / 1e6:,.0f} MB of memory"
        return most if self.expected_bytes is None else f"{most}, about {self.expected_bytes / 1e6:,.0f} MB expected"


class SubProtocol(Document):
    """A small protocol within a plan: public numbers, and its own steps that every party answers.

    A plan has at most one sub-protocol of each class, since step names must be unique. A step that reads rows belongs
    to the method, which passes the data on.
    """


class Plan(Document, dict=True):
    """What a method computes from the terms. Frozen and equal in every process; subclasses add what steps need."""

    terms: Terms

    @property
    @abc.abstractmethod
    def rounds(self) -> tuple[str, ...]:
        """The names of the steps of a run, in order. A party answers no other step."""

    @abc.abstractmethod
    def events(self, party: str) -> tuple[Event, ...]:
        """Return all privacy events that the party called `party` will be charged for."""

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """The cost that each party's ledger will be charged, by party."""
        return self.by_party(Cost.of)

    def by_party(self, value_of: Callable[[tuple[Event, ...]], Value]) -> dict[str, Value]:
        """Return what follows from each party's events, worked out once for events that are equal."""
        charged = {party.name: self.events(party.name) for party in self.terms.parties}
        # most parties have the same objects, and fractions are slow to hash
        places = {name: tuple(map(id, events)) for name, events in charged.items()}
        same = {places[name]: events for name, events in charged.items()}
        known = {events: value_of(events) for events in dict.fromkeys(same.values())}
        values = {place: known[events] for place, events in same.items()}
        return {name: values[place] for name, place in places.items()}

    def check_party(self, name: str) -> None:
        """Raise `InputError` unless the study has a party of this name."""
        if name not in self._names:
            member(self.terms, name)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(party.name for party in self.terms.parties)

    @property
    @abc.abstractmethod
    def resources(self) -> Resources:
        """The resources a run needs."""

    @property
    @abc.abstractmethod
    def disclosure(self) -> Disclosure:
        """Who sees what, and the argument for the cost."""

    @property
    def held(self) -> tuple[str, ...]:
        """Who holds what, in lines, where groups of people have several parties or lack columns."""
        return ()

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Tables that cannot be counted, or only for a part of the people."""
        return ()

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run exceeds the limits (start of a sentence), and what to change."""
        return "a run", "use fewer columns"

    @property
    def largest_message(self) -> int:
        """The size of the largest message in bytes; override it if that is not a reply."""
        return self.resources.reply_bytes

    @property
    def sub_protocols(self) -> tuple[SubProtocol, ...]:
        """The sub-protocols among the fields."""
        fields: list[Any] = [getattr(self, name) for name in self.__struct_fields__]
        return tuple(field for field in fields if isinstance(field, SubProtocol))

    def check(self) -> None:
        """Raise `InputError` if the run exceeds the study's limits."""
        limits, needs = self.terms.limits, self.resources
        if needs.memory_bytes > limits.memory_mb * 10**6 or self.largest_message > limits.message_mb * 10**6:
            what, way_out = self.too_large
            raise InputError(
                f"{what} may need {needs.memory_bytes / 1e6:,.0f} MB of memory (limit {limits.memory_mb}) and "
                f"messages of {self.largest_message / 1e6:,.1f} MB (limit {limits.message_mb}): {way_out}"
            )


def steps_of_run(method: object, plan: Plan) -> Mapping[str, tuple[Step, object]]:
    """Return the steps of a run in order, each with the object that implements it: the method or a sub-protocol."""
    declared: dict[str, tuple[Step, object]] = {}
    for owner in (method, *plan.sub_protocols):
        kind: Any = type(owner)
        for name, each in steps_of(kind).items():
            if name in declared:
                raise TypeError(f"two steps of {type(method).__name__} are called '{name}'")
            declared[name] = (each, owner)
    # agreements are exchanged between organisations only
    first = ("ready", "meet") if identified(plan.terms) else ("ready",)
    return {name: declared[name] for name in (*first, *plan.rounds)}
