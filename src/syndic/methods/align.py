"""Alignment for vertical studies: find the people that all parties have, in one order; nobody sees others' ids.

It is a study of its own, before the studies that need aligned rows: those name its digest, and each party then reads
its rows in the common order. No other column is read. `syndic.mpc.align.steps` describes the protocol and its limits.
With `sets` it finds several groups, such as the people of a registry and each of three hospitals; a later study names
a set as the `group` of its parties.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal, final

from syndic.data.aligned import IdRule, Spelling, distinct_ids
from syndic.document import Document, from_file
from syndic.errors import InputError
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
from syndic.kernel.terms import check_name
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES
from syndic.mpc.align.sets import PrivateIntersections
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.table import table_shape
from syndic.mpc.align.work import CHUNK
from syndic.mpc.seal import OVERHEAD_BYTES
from syndic.mpc.secret import SharedSecret
from syndic.privacy import Event

LEARNT = "every party learns exactly which of its people are common to all parties"
LEARNT_IN_SETS = (
    "for each set of parties that it is in, every party learns exactly which of its people all of them have"
)
_FEW = 0.1
"""The share of the smallest bound below which a warning says that few people match."""
_HASH_SECONDS, _POWER_SECONDS, _TABLE_SECONDS = 3.2e-5, 4e-5, 1.5e-5


class PartySet(Document):
    """Parties whose common people are a group: the `name` that later studies give the group, and the `parties`."""

    name: str
    parties: tuple[str, ...]

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if len(set(self.parties)) != len(self.parties) or len(self.parties) < 2:
            raise ValueError(f"set '{self.name}': parties must name two or more parties, each once")


class CommonNote(Document):
    """The number of common people, a digest of their order, in hexadecimal, and the smallest public bound on ids.

    Where sizes are private there is no number and no digest.
    """

    people: int | None
    order: str
    bound: int

    @property
    def warning(self) -> str:
        """What to do if few people match, from public numbers only; empty if many do."""
        if self.people is None or self.people >= _FEW * self.bound:
            return ""
        return (
            f"{self.people:,} of at most {self.bound:,} people match. If more should, each owner looks at its ids with "
            "`syndic plan STUDY -s PARTY=FILE`: the parties may write them differently"
        )


class SetNotes(Document):
    """The common people of every set of parties, by its name."""

    sets: dict[str, CommonNote]


@final
@dataclass(frozen=True, kw_only=True)
class CommonPeople(Result):
    """What an alignment publishes. The orders themselves stay with the parties and are in no release.

    `sets` has one entry for each set of parties, by its name; a study without sets has one, without a name.
    """

    sets: Mapping[str, CommonNote]

    @property
    def note(self) -> CommonNote:
        """The common people of all parties, in a study without sets."""
        return self.sets[""]

    def files(self) -> Mapping[str, Any]:
        """Return `alignment.json`."""
        return {"alignment.json": self.sets.get("") or SetNotes(sets=dict(self.sets))}

    def summary(self) -> Mapping[str, Any]:
        """Return how many people are common, with a warning if these are few."""
        found: dict[str, Any] = {}
        warnings = [f"{name}: {note.warning}" if name else note.warning for name, note in self.sets.items()]
        for name, note in self.sets.items():
            of = f" of {name}" if name else ""
            if note.people is None:
                found[f"common people{of}"] = "known to their parties only"
            else:
                found |= {f"common people{of}": note.people, f"order{of}": note.order[:12]}
        told = "; ".join(text for note, text in zip(self.sets.values(), warnings, strict=True) if note.warning)
        return {**found, "WARNING": told} if told else found


@final
class AlignPlan(Plan):
    """The public bounds on each party's ids, and their intersections. It costs no privacy budget."""

    intersection: PrivateIntersections

    @property
    def sub_protocols(self) -> tuple[SubProtocol, ...]:
        """The intersections, and the shared secret that they start with."""
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
        sets = self.intersection.sets
        largest, parties = max(max(each.bounds.values()) for each in sets), max(len(each.bounds) for each in sets)
        part = max(min(each.shape.words, 1 << 20) for each in sets)
        seconds, carried = 1.0, 0
        for each in sets:
            count = len(each.bounds)
            powers = count if each.two else count + 1
            one = _HASH_SECONDS + powers * _POWER_SECONDS + (not each.two) * _TABLE_SECONDS
            seconds += max(each.bounds.values()) * one
            carried += 2 * POINT_BYTES * count * sum(each.bounds.values()) + 16 * count * each.shape.words
        return Resources(
            memory_bytes=15 * 10**7 + largest * (600 + HASH_BYTES + 8 * parties) + 64 * part,
            reply_bytes=max(POINT_BYTES * min(largest, CHUNK) + OVERHEAD_BYTES, 8 * part) + 1000,
            rounds=4 + sum(4 + each.chunks * (len(each.bounds) + 1) + 2 * each.parts for each in sets),
            seconds=round(seconds, 1),
            notes=(
                f"about {carried / 1e6:,.1f} MB through the coordinator",
                f"ids are padded to each party's bound, the largest {largest:,}: a bound that is too high costs time",
            ),
        )

    too_large = ("a run", "raise the limits, or lower the parties' bounds `people`")

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        sets = self.intersection.sets
        several = len(sets) > 1
        bound, told = max(max(each.bounds.values()) for each in sets), sets[0].told
        common = "how many people are common" + (" in each set of parties" if several else "")
        who = "who the common people are" + (" in its sets" if several else "")
        absences = (
            "against a party that brings ids of people it does not have: those found are kept out of later sets",
            "why a person is absent from a later set: whoever knows that all parties of the set have the person learns "
            "that one of them found the person in an earlier set, and so at other parties",
        )
        return Disclosure(
            sees={
                "coordinator": "the bounds in the study"
                + (f" and {common}; no ids, in any form" if told else "; no ids, in any form, and no sizes"),
                "each party": (
                    "for each set that it is in, which of its own people all parties of the set have and no party "
                    "found in an earlier set; nothing about its other people, and nothing about other sets"
                    if several
                    else "which of its own people all parties have; nothing about its other people"
                ),
                "anyone with the release": f"{common}, and a digest of their order" if told else "no sizes",
            },
            sensitivity="nothing is charged: only ids are read, and "
            + ("the numbers released are sizes of joined tables" if told else "no number is released")
            + (", which are public under neighbours = replace" if told else ""),
            discloses=(learnt(self.intersection),),
            not_protected=(
                f"{who}: every party learns it exactly and permanently, outside any epsilon. Do not "
                "align people whose presence in one of the tables is a secret",
                "parties that collude: they learn whether all other parties have an id that one of them brought; with "
                "two parties each learns that anyway",
                *_active_attacks(self.intersection),
                *(absences if several else ()),
                *_overlaps(self.intersection),
                f"against a party that brings ids of people it does not have: it learns which of them all other "
                f"parties have, for as many ids as its bound, {bound:,} at most" + (" in each set" if several else ""),
                "people whose id is spelled in ways that the public rule does not unify: they are left out",
            ),
        )


@final
class Align(Method, tag="align"):
    """Parameters of an alignment: how ids are read, the same for every party.

    `id`: the columns that together are a person's id, unless a party's own file names others. `spelling`: the rules
    that unify spellings, of `syndic.data.aligned.IdRule`. `duplicates`: `drop` all rows of an id that occurs several
    times at a party, or keep the `first`. Each party's `people` is a public bound on its ids. `sets`: sets of parties
    whose common people are groups, in this order: a party leaves people that it found in an earlier set out of later
    ones. By default one set of all parties. `sizes`: `exact`, how many people are common is published, or `private`,
    only the parties of a set know it. Later studies cut or pad the people to the number that they declare.
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
    sets: tuple[PartySet, ...] = ()
    sizes: Literal["exact", "private"] = "exact"

    def __post_init__(self) -> None:
        if not self.id or len(set(self.id)) != len(self.id):
            raise ValueError("id must name one or more columns, each once")
        IdRule(spelling=self.spelling)
        if len({each.name.lower() for each in self.sets}) != len(self.sets):
            raise ValueError("sets: two sets have the same name, ignoring upper and lower case")
        for later, earlier in ((b, a) for place, b in enumerate(self.sets) for a in self.sets[:place]):
            if set(earlier.parties) <= set(later.parties):
                raise ValueError(
                    f"sets: everybody in set '{later.name}' would be in '{earlier.name}' already: put the set with "
                    "more parties first, and no set twice"
                )

    @property
    def rule(self) -> IdRule:
        """The rule by which ids are read."""
        return IdRule(spelling=self.spelling, duplicates=self.duplicates)

    # two or more parties, each with a public bound on its ids, which hides their number
    requires = Requires(
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
        known = {party.name: party.people or 0 for party in terms.parties}
        sets = {each.name: each.parties for each in self.sets} or {"": tuple(known)}
        for name, parties in sets.items():
            unknown = [party for party in parties if party not in known]
            if unknown:
                raise InputError(f"set '{name}': '{unknown[0]}' is not a party of this study")
        without = [party for party in known if not any(party in parties for parties in sets.values())]
        if without:
            raise InputError(f"party '{without[0]}' is in no set: add it to one of `sets`, or remove it")
        secret = SharedSecret(label="align")
        found = tuple(
            PrivateIntersection(
                bounds={party: known[party] for party in known if party in parties},
                rule=self.rule,
                shape=table_shape(max(known[party] for party in parties) if len(parties) > 2 else 0),
                chunk=CHUNK,
                secret=secret,
                name=name,
                told=self.sizes == "exact",
            )
            for name, parties in sets.items()
        )
        return AlignPlan(terms=terms, intersection=PrivateIntersections(sets=found, secret=secret))

    @step(reveals="sealed")
    def align_collect(self, party: Party[AlignPlan], message: Nothing) -> Nothing:
        """Read this party's ids, hash them, and pad them with random ids to the public bound. Sends nothing."""
        sets = party.plan.intersection
        one = sets.turn(party)
        one.begin(party)
        party.disclose(learnt(sets))
        table = party.table
        sets.check_columns(party, table.id_columns)
        ids = distinct_ids(table.source, table.id_columns, one.rule)
        one.keep(party, sets.new_ids(party, ids), table.id_columns)
        return message

    def coordinate(self, session: Session[AlignPlan]) -> CommonPeople:
        """Pass the sealed points from party to party, add up their tables, and publish how many people are common."""
        sets = session.plan.intersection
        done = sets.run(session, self.align_collect)
        notes = {
            each.name: CommonNote(
                people=done[each.name].people, order=done[each.name].digest.hex(), bound=min(each.bounds.values())
            )
            for each in sets.sets
        }
        return CommonPeople(sets=notes)

    def read(self, plan: AlignPlan, folder: Path) -> CommonPeople:
        """Read back `alignment.json`."""
        path, names = folder / "alignment.json", [each.name for each in plan.intersection.sets]
        if names == [""]:
            return CommonPeople(sets={"": from_file(path, CommonNote)})
        found = from_file(path, SetNotes).sets
        return CommonPeople(sets={name: found[name] for name in names})


def learnt(sets: PrivateIntersections) -> str:
    """Return what every party learns outside any epsilon."""
    return LEARNT_IN_SETS if len(sets.sets) > 1 else LEARNT


def _active_attacks(sets: PrivateIntersections) -> tuple[str, ...]:
    counts, several = [len(each.bounds) for each in sets.sets], len(sets.sets) > 1
    wrong_sum = (
        "against a coordinator that adds up wrongly and colludes with a party: they may test one guess"
        + (" in each set of three or more parties" if several else "")
        + " about which of that party's ids another party has; a wrong one ends the run"
    )
    made_points = (
        "against a party that makes points which are no ids'"
        + (" in a set of two parties" if several else "")
        + ": each can ask whether the other party has all of several people"
    )
    sizes = "against a coordinator that colludes with a party of the study: sizes of sets of three or more parties"
    found = {
        wrong_sum: max(counts) > 2,
        made_points: min(counts) == 2,
        sizes: several and max(counts) > 2 and not sets.sets[0].told,
    }
    return tuple(text for text, is_possible in found.items() if is_possible)


def _overlaps(sets: PrivateIntersections) -> tuple[str, ...]:
    """Return which sets may have the same people, as no party is in both; the first such pair stands for all."""
    for one, other in combinations(sets.sets, 2):
        if not one.bounds.keys() & other.bounds.keys():
            return (
                f"people in several sets that share no party, such as {one.name} and {other.name}: nobody leaves them "
                "out of one. A study that uses both sets must count them, by `parties` in [unit]",
            )
    return ()
