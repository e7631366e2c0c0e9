"""Alignment for vertical studies: find the people that all parties have, in one order; nobody sees others' ids.

It is a study of its own, before the studies that need aligned rows: those name its digest, and each party then reads
its rows in the common order. No other column is read. `syndic.mpc.align.steps` describes the protocol and its limits.
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
_FEW = 0.1
"""The share of the smallest bound below which a warning says that few people match."""
_HASH_SECONDS, _POWER_SECONDS, _TABLE_SECONDS = 3.2e-5, 4e-5, 1.5e-5


class CommonNote(Document):
    """The number of common people, a digest of their order, in hexadecimal, and the smallest public bound on ids."""

    people: int
    order: str
    bound: int

    @property
    def warning(self) -> str:
        """What to do if few people match, from public numbers only; empty if many do."""
        if self.people >= _FEW * self.bound:
            return ""
        return (
            f"{self.people:,} of at most {self.bound:,} people match. If more should, each owner looks at its ids with "
            "`syndic plan STUDY -s PARTY=FILE`: the parties may write them differently"
        )


@final
@dataclass(frozen=True, kw_only=True)
class CommonPeople(Result):
    """What an alignment publishes. The order itself stays with the parties and is in no release."""

    note: CommonNote

    def files(self) -> Mapping[str, Any]:
        """Return `alignment.json`."""
        return {"alignment.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return how many people are common, with a warning if these are few."""
        warning = {"WARNING": self.note.warning} if self.note.warning else {}
        return {"common people": self.note.people, "order": self.note.order[:12], **warning}


@final
class AlignPlan(Plan):
    """The public bounds on each party's ids, and their intersection. It costs no privacy budget."""

    intersection: PrivateIntersection

    @property
    def sub_protocols(self) -> tuple[SubProtocol, ...]:
        """The intersection, and the shared secret that it starts with."""
        return (self.intersection, self.intersection.secret)

    @property
    def rounds(self) -> tuple[str, ...]:
        """A shared secret, powers of points that pass from party to party, tables, and a comparison of the results."""
        return self.intersection.rounds("align_collect")

    def events(self, party: str) -> tuple[Event, ...]:
        """Nothing: what it reveals is outside differential privacy, and `disclosure` says so."""
        self.check_party(party)
        return ()

    @property
    def resources(self) -> Resources:
        """Time if each party has its own processor, memory at the largest party, the largest message."""
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
                f"ids are padded to each party's bound, the largest {people:,}: a bound that is too high costs time",
            ),
        )

    @property
    def too_large(self) -> tuple[str, str]:
        """What is too large if the run does not fit, and what to change."""
        return "a run", "raise the limits, or lower the parties' bounds `people`"

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        bounds = self.intersection.bounds
        pooled = (
            "parties that collude: they learn whether all other parties have an id that one of them brought; with two "
            "parties each learns that anyway"
        )
        return Disclosure(
            sees={
                "coordinator": "the bounds in the study and how many people are common; no ids, in any form",
                "each party": "which of its own people all parties have; nothing about its other people",
                "anyone with the release": "how many people are common, and a digest of their order",
            },
            sensitivity=(
                "nothing is charged: only ids are read, and the one number released is the size of the joined table, "
                "which is public under neighbours = replace"
            ),
            discloses=(LEARNT,),
            not_protected=(
                "who the common people are: every party learns it exactly and permanently, outside any epsilon. Do not "
                "align people whose presence in one of the tables is a secret",
                pooled,
                *_active_attacks(len(bounds)),
                f"against a party that brings ids of people it does not have: it learns which of them all other "
                f"parties have, for as many ids as its bound, {max(bounds.values()):,} at most",
                "people whose id is spelled in ways that the public rule does not unify: they are left out",
            ),
        )


@final
class Align(Method, tag="align"):
    """Parameters of an alignment: how ids are read, the same for every party.

    `id`: the columns that together are a person's id, unless a party's own file names others. `spelling`: the rules
    that unify spellings, of `syndic.data.aligned.IdRule`. `duplicates`: `drop` all rows of an id that occurs several
    times at a party, or keep the `first`. Each party's `people` is a public bound on its ids.
    """

    title: ClassVar[str] = "Alignment by private set intersection"
    paper: ClassVar[str] = "Meadows 1986; Huberman, Franklin and Hogg 1999; zero-sharing as in Kolesnikov et al. 2017"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: every role follows the protocol, and every party brings the ids of its own people; unless the "
        "study lists identities, the coordinator must not forge keys"
    )

    id: tuple[str, ...] = ("id",)
    spelling: tuple[Spelling, ...] = ("nfkc", "casefold")
    duplicates: Literal["drop", "first"] = "drop"

    def __post_init__(self) -> None:
        if not self.id or len(set(self.id)) != len(self.id):
            raise ValueError("id must name one or more columns, each once")
        IdRule(spelling=self.spelling)

    @property
    def rule(self) -> IdRule:
        """The rule by which ids are read."""
        return IdRule(spelling=self.spelling, duplicates=self.duplicates)

    @property
    def requires(self) -> Requires:
        """Two or more parties, each with a public bound on its ids, which hides their number."""
        return Requires(
            people="bound",
            columns="any",
            neighbours="replace",
            rows=1,
            parties=1,
            because="an alignment shows which people are in the data",
            least_parties=2,
        )

    def plan(self, terms: Terms) -> AlignPlan:
        """Compute the sizes of points and tables from the bounds."""
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
        """Read this party's ids, hash them, and pad them with random ids to the public bound. Sends nothing."""
        intersection = party.plan.intersection
        intersection.begin(party)
        party.disclose(LEARNT)
        table = party.table
        ids = distinct_ids(table.source, table.id_columns, intersection.rule)
        intersection.keep(party, ids, table.id_columns)
        return message

    def coordinate(self, session: Session[AlignPlan]) -> CommonPeople:
        """Pass the sealed points from party to party, add up their tables, and publish the number of common people."""
        done = session.plan.intersection.run(session, self.align_collect)
        bound = min(session.plan.intersection.bounds.values())
        return CommonPeople(note=CommonNote(people=done.people, order=done.digest.hex(), bound=bound))

    def read(self, plan: AlignPlan, folder: Path) -> CommonPeople:
        """Read back `alignment.json`."""
        del plan
        return CommonPeople(note=from_file(folder / "alignment.json", CommonNote))


def _active_attacks(parties: int) -> tuple[str, ...]:
    if parties == 2:  # with one other party there is nothing to combine
        return ()
    return (
        "against a coordinator that adds up wrongly and colludes with a party: they may test one guess about which of "
        "that party's ids another party has; the run then ends",
    )
