"""Alignment of a vertical study: which people all parties hold, in one order, without showing anybody the others' ids.

It is a study of its own, before the studies that need aligned rows: those name its digest, and each party then reads
its rows in the common order. No other column is read. See `syndic.mpc.align.steps` for the way and its limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, final

from syndic.data.aligned import IdRule, Spelling, distinct_ids
from syndic.document import Document, from_file
from syndic.kernel import (
    Disclosure,
    Method,
    Nothing,
    Party,
    Plan,
    Requires,
    Resources,
    Result,
    Session,
    SubProtocol,
    Terms,
    member,
    step,
)
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.table import table_shape
from syndic.mpc.align.work import CHUNK
from syndic.mpc.seal import OVERHEAD_BYTES
from syndic.mpc.secret import SharedSecret
from syndic.privacy import Event

LEARNT = "every party learns exactly which of its people are common to all parties"
_HASH_SECONDS, _POWER_SECONDS, _TABLE_SECONDS = 3.2e-5, 4e-5, 1.5e-5


class CommonNote(Document):
    """How many people are common, and a digest of their order, in hexadecimal letters."""

    people: int
    order: str


@final
@dataclass(frozen=True, kw_only=True)
class CommonPeople(Result):
    """What an alignment publishes. The order itself is at the parties and in no release."""

    note: CommonNote

    def files(self) -> Mapping[str, Any]:
        """Return `alignment.json`."""
        return {"alignment.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return how many people are common."""
        return {"common people": self.note.people, "order": self.note.order[:12]}


@final
class AlignPlan(Plan):
    """The bounds on everybody's ids and what is found between them: nothing of it costs privacy budget."""

    intersection: PrivateIntersection

    @property
    def sub_protocols(self) -> tuple[SubProtocol, ...]:
        """The intersection, and the secret that comes first in it."""
        return (self.intersection, self.intersection.secret)

    @property
    def rounds(self) -> tuple[str, ...]:
        """A shared secret, powers of points that go round, tables, and a comparison of what was found."""
        return self.intersection.rounds("align_collect")

    def events(self, party: str) -> tuple[Event, ...]:
        """Nothing: what it tells is outside differential privacy, and `disclosure` says so."""
        member(self.terms, party)
        return ()

    @property
    def resources(self) -> Resources:
        """Time for a party with a processor of its own, memory at the largest party, the largest message."""
        shape, bounds = self.intersection.shape, self.intersection.bounds
        people, parties = max(bounds.values()), len(bounds)
        part = min(shape.words, 1 << 20)
        each = _HASH_SECONDS + (parties + 1) * _POWER_SECONDS + _TABLE_SECONDS
        carried = 2 * POINT_BYTES * parties * sum(bounds.values()) + 16 * parties * shape.words
        return Resources(
            memory_bytes=15 * 10**7 + people * (600 + HASH_BYTES + 8 * parties) + 64 * part,
            reply_bytes=max(POINT_BYTES * min(people, self.intersection.chunk) + OVERHEAD_BYTES, 8 * part) + 1000,
            rounds=8 + self.intersection.chunks * (parties + 1) + 2 * self.intersection.parts,
            seconds=round(1.0 + people * each, 1),
            notes=(
                f"about {carried / 1e6:,.1f} MB through the coordinator",
                f"ids are filled up to each party's bound, the largest {people:,}: a bound far too high costs time",
            ),
        )

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "raise the limits, or lower the bounds people"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        bounds = self.intersection.bounds
        pooled = (
            "parties that pool what they know: of ids that one of them brought they learn whether all the others hold "
            "them; with two parties that is what each learns anyway"
        )
        return Disclosure(
            sees={
                "coordinator": "the bounds in the study and how many people are common; ids reach it in no form",
                "each party": "which of its own people all parties hold; of its other people nothing",
                "anyone with the release": "how many people are common, and a digest of their order",
            },
            sensitivity=(
                "nothing is charged: no value but the ids is read, and the one number that is released is the size of "
                "the joined table, which neighbours = replace holds public"
            ),
            discloses=(LEARNT,),
            not_protected=(
                "who the common people are: every party learns it, exactly and for good, outside any epsilon. Somebody "
                "whose presence in one of the tables is a secret must not be aligned",
                pooled,
                *_lying(len(bounds)),
                f"a party that brings ids of people it does not hold: it learns which of them all the other parties "
                f"hold, for as many ids as its bound, {max(bounds.values()):,} at most",
                "people whose id is written in ways that the public rule does not make equal: they are left out",
            ),
        )


@final
class Align(Method, tag="align"):
    """Parameters of an alignment: how ids are read, the same for everybody.

    `id`: the columns that together are a person's id, where a party's own file does not name others. `spelling`: what
    makes two spellings one: `nfkc`, `casefold`, `alphanumeric`, `digits`. `duplicates`: `drop` every row of
    an id that a party has in several rows, or keep its `first`. Each party's `people` is a public bound on its ids.
    """

    title: ClassVar[str] = "Alignment by private set intersection"
    paper: ClassVar[str] = "Meadows 1986; Huberman, Franklin and Hogg 1999; zero-sharing as in Kolesnikov et al. 2017"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps and brings its own people's ids; in a study without identities the "
        "coordinator must not forge keys"
    )

    id: tuple[str, ...] = ("id",)
    spelling: tuple[Spelling, ...] = ("nfkc", "casefold")
    duplicates: Literal["drop", "first"] = "drop"

    def __post_init__(self) -> None:
        if not self.id or len(set(self.id)) != len(self.id):
            raise ValueError("id must name one or more columns, each once")
        if {"alphanumeric", "digits"} <= set(self.spelling) or len(set(self.spelling)) != len(self.spelling):
            raise ValueError("spelling names a rule twice, or both alphanumeric and digits: the latter contains it")

    @property
    def rule(self) -> IdRule:
        """How ids are read."""
        return IdRule(spelling=self.spelling, duplicates=self.duplicates)

    @property
    def requires(self) -> Requires:
        """Two or more parties, a public bound on the ids of each: it hides their number."""
        return Requires(
            people="bound",
            columns="any",
            neighbours="replace",
            rows=1,
            parties=1,
            because="an alignment shows who is in",
            least_parties=2,
        )

    def plan(self, terms: Terms) -> AlignPlan:
        """Size the points and tables by the bounds."""
        bounds = {party.name: party.people or 0 for party in terms.parties}
        intersection = PrivateIntersection(
            bounds=bounds,
            rule=self.rule,
            shape=table_shape(max(bounds.values())),
            chunk=CHUNK,
            secret=SharedSecret(label="align"),
        )
        return AlignPlan(terms=terms, intersection=intersection)

    @step(reveals="sealed")
    def align_collect(self, party: Party[AlignPlan], message: Nothing) -> Nothing:
        """Read this party's ids, hash them, and fill up with random ones to the public bound. Sends nothing."""
        intersection = party.plan.intersection
        intersection.begin(party)
        party.disclose(LEARNT)
        table = party.table
        ids = distinct_ids(table.source, table.id_columns, intersection.rule)
        intersection.keep(party, ids, table.id_columns)
        return message

    def coordinate(self, session: Session[AlignPlan]) -> CommonPeople:
        """Carry the parties' sealed points round, add up their tables, and publish how many people are common."""
        done = session.plan.intersection.run(session, self.align_collect)
        return CommonPeople(note=CommonNote(people=done.people, order=done.digest.hex()))

    def read(self, plan: AlignPlan, folder: Path) -> CommonPeople:
        """Read back `alignment.json`."""
        del plan
        return CommonPeople(note=from_file(folder / "alignment.json", CommonNote))


def _lying(parties: int) -> tuple[str, ...]:
    if parties == 2:  # all the others are the other one
        return ()
    return (
        "a coordinator that adds up wrong and helps a party: they may test one guess about which of that party's ids "
        "another one holds, and the run ends",
    )
