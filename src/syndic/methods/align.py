"""Alignment of a vertical study: which people all parties hold, in one order, without showing anybody the others' ids.

It is a study of its own, before the studies that need aligned rows: those name its digest, and each party then reads
its rows in the common order. No other column is read. See `syndic.mpc.align.steps` for the way and its limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, final

from syndic.data.aligned import IdRule, Spelling
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Disclosure, Resources, Result, Session, Terms, member
from syndic.methods.refusals import check_fits
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES
from syndic.mpc.align.steps import UsesAlignment, align
from syndic.mpc.align.table import table_shape
from syndic.mpc.align.work import CHUNK, chunks_of, most_people, parts_of
from syndic.mpc.seal import OVERHEAD_BYTES
from syndic.privacy import Event

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

    def write(self, folder: Path) -> list[Path]:
        """Write `alignment.json`."""
        path = folder / "alignment.json"
        path.write_bytes(to_readable_json(self.note))
        return [path]

    def summary(self) -> Mapping[str, Any]:
        """Return how many people are common."""
        return {"common people": self.note.people, "order": self.note.order[:12]}


@final
class Align(UsesAlignment, tag="align"):
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
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    def align_rule(self) -> IdRule:
        """Return how ids are read."""
        return IdRule(spelling=self.spelling, duplicates=self.duplicates)

    # The coordinator's side; the parties' side is that of `syndic.mpc.align.steps`.

    def coordinate(self, session: Session) -> CommonPeople:
        """Carry the parties' sealed points round, add up their tables, and publish how many people are common."""
        done = align(session, self)
        return CommonPeople(note=CommonNote(people=done.people, order=done.digest.hex()))

    def read_result(self, terms: Terms, folder: Path) -> CommonPeople:
        """Read back `alignment.json`."""
        del terms
        return CommonPeople(note=from_file(folder / "alignment.json", CommonNote))

    # What is known before any row is read.

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        unit = terms.unit
        if unit.neighbours != "replace" or unit.rows != 1 or unit.parties != 1:
            raise InputError(
                'an alignment shows who is in: the unit must be neighbours = "replace" with one row, and unit.parties 1'
            )
        if len(terms.parties) < 2:
            raise InputError("an alignment needs two or more parties")
        for party in terms.parties:
            if party.people is None:
                raise InputError(f"party '{party.name}': set people, a public bound on its ids: it hides their number")
        check_fits(terms, self.estimate(terms), "raise the limits, or lower the bounds people")

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """Nothing: what it tells is outside differential privacy, and `disclosure` says so."""
        member(terms, party)
        return ()

    def estimate(self, terms: Terms) -> Resources:
        """Time for a party with a processor of its own, memory at the largest party, the largest message."""
        people, parties = most_people(terms), len(terms.parties)
        part = min(table_shape(people).words, 1 << 20)
        each = _HASH_SECONDS + (parties + 1) * _POWER_SECONDS + _TABLE_SECONDS
        carried = 2 * POINT_BYTES * parties * sum(party.people or 0 for party in terms.parties)
        carried += 16 * parties * table_shape(people).words
        return Resources(
            memory_bytes=15 * 10**7 + people * (600 + HASH_BYTES + 8 * parties) + 64 * part,
            reply_bytes=max(POINT_BYTES * min(people, CHUNK) + OVERHEAD_BYTES, 8 * part) + 1000,
            rounds=8 + chunks_of(terms) * (parties + 1) + 2 * parts_of(terms),
            seconds=round(1.0 + people * each, 1),
            notes=(
                f"about {carried / 1e6:,.1f} MB through the coordinator",
                f"ids are filled up to each party's bound, the largest {people:,}: a bound far too high costs time",
            ),
        )

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
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
            not_protected=(
                "who the common people are: every party learns it, exactly and for good, outside any epsilon. Somebody "
                "whose presence in one of the tables is a secret must not be aligned",
                pooled,
                *_lying(len(terms.parties)),
                f"a party that brings ids of people it does not hold: it learns which of them all the other parties "
                f"hold, for as many ids as its bound, {most_people(terms):,} at most",
                "people whose id is written in ways that the public rule does not make equal: they are left out",
            ),
        )


def _lying(parties: int) -> tuple[str, ...]:
    if parties == 2:  # all the others are the other one
        return ()
    return (
        "a coordinator that adds up wrong and helps a party: they may test one guess about which of that party's ids "
        "another one holds, and the run ends",
    )
