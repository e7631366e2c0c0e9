"""Glued synthesis: every party synthesises its own columns, and the coordinator joins them side by side.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public. *Cost*:
one account of Gaussian privacy over all parties: a person is at each of them, so their parts add up, and each party has
an equal part. Every party is charged for all parts, so that each ledger alone shows the cost of the release.
*Sensitivity*: one person changes two counts by one in each table, so the k tables of a round by 2 k in squared l2; at
one party those are its own tables only.

*Who sees what*: everybody sees each party's noisy tables and the rows drawn from them. No party depends on another, so
nobody is trusted and there is no cryptography. All dependence between columns of different parties is lost: their rows
are joined in random order. It is the baseline that a method for aligned rows must exceed.

Each party selects its tables as in PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), from noisy tables only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.data import Schema, decode_codes
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import (
    GROUPS,
    SAME_PEOPLE,
    Disclosure,
    Limits,
    Member,
    Message,
    Method,
    Nothing,
    Party,
    Plan,
    Resources,
    Session,
    Terms,
    everybody,
    member,
    schema_of,
    step,
)
from syndic.kernel.terms import ReadFrom, named, owned
from syndic.methods.synthesis.account import Account, RoundNoise, account_of
from syndic.methods.synthesis.expected import DrawnModel, reliability_of
from syndic.methods.synthesis.measure import Question, answer_of
from syndic.methods.synthesis.result import PublishedRows, RowsNote, notes_of, read_rows
from syndic.methods.synthesis.rounds import Answer, RoundCounts
from syndic.methods.synthesis.size import Size, check_choices, choosing, size_of
from syndic.methods.synthesis.trust import Reliability
from syndic.model.markov import Measurement
from syndic.model.selection import Adaptive, Grouping, synthesise
from syndic.privacy import Budget, Event, GaussianEvent, Unit
from syndic.random import generator


class OwnTable(Message):
    """A noisy table of a party's own columns, over groups of levels."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    variance: float


class OwnRows(Message):
    """A party's synthetic rows by column, the noisy tables behind them, and the group of every level it used."""

    codes: dict[str, NDArray[np.uint32]]
    tables: tuple[OwnTable, ...]
    groups: dict[str, tuple[int, ...]]


class GluedNote(RowsNote):
    """`groups`: for each column the group of every level, which tables after a party's first round count."""

    groups: dict[str, tuple[int, ...]]


class OwnPlan(Document):
    """One party's rounds: the selector of its tables, their parts of the budget, and the limits of each round."""

    selector: Adaptive
    account: Account
    size: Size


@final
class GluedPlan(Plan):
    """Every party's own rounds, by name. `account` has those of all parties in order; `rows` is the number to draw."""

    account: Account
    own: Mapping[str, OwnPlan]
    rows: int

    # one step: every party synthesises its own columns
    rounds = ("synthesise",)

    @cached_property
    def charged(self) -> tuple[GaussianEvent, ...]:
        """What each round costs at all parties together: a person is at all of them, and the parts add up."""
        parties, found = len(self.own), []
        rounds = len(self.account.events) // parties
        for place in range(rounds):
            each = self.account.events[place::rounds]
            mu_squared = sum((one.mu_squared for one in each), Fraction(0))
            slack = sum((one.slack for one in each), Fraction(0))
            what = f"Gaussian, mu {float(mu_squared) ** 0.5:.3g}, round {place + 1} at {parties} parties"
            found.append(GaussianEvent(mu_squared=mu_squared, slack=slack, what=what))
        return tuple(found)

    def events(self, party: str) -> tuple[Event, ...]:
        """One event per round, the same for every party: each is charged for the rounds of all."""
        self.check_party(party)
        return self.charged

    @cached_property
    def resources(self) -> Resources:
        """Memory of the largest party, bytes of its reply, time to fit."""
        sizes, rounds = [one.size for one in self.own.values()], len(self.charged)
        columns = max(len(party.columns or ()) for party in self.terms.parties)
        deviation = self.own[self.terms.parties[0].name].account.noise_of(rounds, 1, 1).variance(1) ** 0.5
        return Resources(
            memory_bytes=max(one.memory_bytes for one in sizes),
            expected_bytes=max(one.expected_bytes for one in sizes),
            reply_bytes=4 * self.rows * columns + 8 * max(sum(room.cells for room in one.rooms) for one in sizes),
            seconds=round(1.0 + rounds * self.rows / 1e6 + 3e-6 * max(one.model_cells for one in sizes), 1),
            notes=(
                f"{rounds} rounds at each party, by itself; standard deviation {deviation:.3g} on every count of the "
                "last round, times the square root of the number of tables in that round",
            ),
        )

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        return Disclosure(
            sees=everybody("every party's noisy tables of its own columns, and rows drawn from models fitted to them"),
            sensitivity=(
                "replacing one person's values at all parties at once changes two counts by one in every table, so the "
                f"k tables of one party's round by 2 k in squared l2; the rounds of all {len(self.own)} parties are in "
                "one account, an equal part for each, and every party is charged for all of them"
            ),
            not_protected=(
                "association between columns of different parties: it is not used, so the rows show nothing of it",
                "who the people are and how many: parties that align their rows know it",
                GROUPS,
                "the columns, bounds and labels: they are public",
            ),
        )


@final
@dataclass(frozen=True, kw_only=True)
class OwnTerms:
    """The terms of a study reduced to one party and its own columns. Public."""

    schema: Schema
    unit: Unit
    budget: Budget
    parties: tuple[Member, ...]
    limits: Limits
    read_from: ReadFrom = UNSET

    @property
    def by_name(self) -> dict[str, Member]:
        """The party by its name."""
        return named(self.parties)

    @property
    def by_owner(self) -> dict[str, tuple[Member, ...]]:
        """The party by its owner."""
        return owned(self.parties)


@final
class Glued(Method, tag="glued"):
    """Parameters of the glued synthesis.

    `selector`, `rounds`, `model_cells` and `rows` are as in the method `synthesis`, for each party by itself; `rows` is
    by default the public number of people.
    """

    title: ClassVar[str] = "Every party's own synthesis, joined side by side"
    paper: ClassVar[str] = "none: a baseline for methods on aligned rows; uses Cai et al. 2021 and McKenna et al. 2022"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = "nobody: each party trusts only itself; no cryptography is needed"

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        check_choices(selector=self.selector, rounds=self.rounds, model_cells=self.model_cells, rows=self.rows)

    # the same people, different columns at each party; Gaussian noise needs delta
    requires = SAME_PEOPLE

    def plan(self, terms: Terms) -> GluedPlan:
        """Split the strictest budget into equal parts, one for each party, and each part into rounds."""
        parties = len(terms.parties)
        account = account_of(
            terms,
            lambda whole: [part / parties for part in self._selector(1).budgets(whole)] * parties,
            colluding=0,
            missing=0,
            shares=1,
        )
        own = {party.name: self._own(terms, account, party.name) for party in terms.parties}
        rows = self.rows if self.rows is not None else terms.parties[0].people or 0
        return GluedPlan(terms=terms, account=account, own=own, rows=rows)

    # The parties' side.

    @step(reveals="noisy")
    def synthesise(self, party: Party[GluedPlan], message: Nothing) -> OwnRows:
        """Measure own columns round by round, fit a model to the noisy tables, draw rows from it."""
        del message
        own, counts = party.plan.own[party.name], _own_counts(party)
        fitted = synthesise(own.selector, counts, own.account.whole)  # SELECT and MEASURE, with noise and a charge
        drawn = fitted.sample(party.plan.rows, generator(party.key_randomness("rows")))  # GENERATE
        measured = [table for one in fitted.rounds for table in one]
        return OwnRows(
            codes={name: codes.astype(np.uint32) for name, codes in drawn.items()},
            tables=tuple(OwnTable(names=one.names, values=one.values, variance=one.variance) for one in measured),
            groups=dict(zip(own.account.domain.names, fitted.grouping.groups, strict=True)),
        )

    # The coordinator's side.

    def coordinate(self, session: Session[GluedPlan]) -> PublishedRows:
        """Join every party's rows side by side, each party's in its own random order."""
        schema, draws = session.terms.schema, generator(session.randomness)
        answers = session.ask(self.synthesise, Nothing())
        codes: dict[str, NDArray[np.uint32]] = {}
        for answer in answers.values():
            order = draws.permutation(session.plan.rows)
            codes |= {name: column[order] for name, column in answer.codes.items()}
        try:
            table = decode_codes(schema, codes, draws)
        except (ValueError, IndexError):
            raise InputError("a party answered with rows that do not have its columns") from None
        tables = tuple(
            Measurement(one.names, one.values, one.variance) for answer in answers.values() for one in answer.tables
        )
        groups = {name: found for answer in answers.values() for name, found in answer.groups.items()}
        note = GluedNote(tables=notes_of(tables), groups=groups)
        return PublishedRows(table=table, tables=tables, note=note)

    def read(self, plan: GluedPlan, folder: Path) -> PublishedRows:
        """Read back the rows and the noisy tables."""
        del plan
        return read_rows(folder, GluedNote)

    def _own(self, terms: Terms, account: Account, party: str) -> OwnPlan:
        """Return one party's rounds, with the largest model that the study allows; `InputError` if none fits."""
        own = OwnTerms(
            schema=schema_of(terms, party),
            unit=terms.unit,
            budget=terms.budget,
            parties=(member(terms, party),),
            limits=terms.limits,
        )
        # the rounds of all parties are listed party by party, and are the same
        parties = len(terms.parties)
        rounds = account.events[: len(account.events) // parties]
        part = changed(account, domain=own.schema.domain, whole=account.whole / parties, events=rounds)
        selector, size = size_of(own, part, self._selector, (), model_cells=self.model_cells, rows=self.rows)
        return OwnPlan(selector=selector, account=part, size=size)

    def _selector(self, cells: int) -> Adaptive:
        """Return the selector of tables for a model of this many cells."""
        # one grouping of levels is published for all tables
        return replace(choosing(self.selector, self.rounds, cells), merge_pairs=False)


def _own_counts(party: Party[GluedPlan]) -> RoundCounts:
    """Return a party's own rows, counted with noise; each round is charged its event, which covers all parties'."""
    own, events, people = party.plan.own[party.name], party.plan.charged, member(party.terms, party.name).people

    def release(question: Question) -> Answer:
        counts, noise = answer_of(question, party.table, people or 0), own.account.noise(question)
        why = f"round {question.number} of its own synthesis: {len(question.tables)} tables"
        noisy = party.release(RoundNoise(noise.noise, events[question.number - 1]), counts, why=why)
        return Answer(values=noisy / noise.scale, variance=noise.variance(1), present=(party.name,))

    return RoundCounts(account=own.account, rooms=own.size.rooms, people=people, ask=release)


def reliability_of_glued(schema: Schema, people: int, published: PublishedRows) -> Reliability:
    """Return the expected errors of every column and pair: those of different parties are unrelated in the rows."""
    note, table, domain = published.note, published.table.to_arrow(), schema.domain
    if not isinstance(note, GluedNote):
        raise InputError("these rows are not of a glued synthesis")
    grouping = Grouping(domain, tuple(note.groups[name] for name in schema.names))
    plain = [one.values.shape == domain.project(one.names).sizes for one in published.tables]
    fitted = DrawnModel(
        grouping=grouping,
        one_way={
            one.names[0]: one.values
            for one, whole in reversed(list(zip(published.tables, plain, strict=True)))
            if whole and len(one.names) == 1
        },
        rounds=tuple((one,) for one in published.tables),
        total=float(people),
    )
    codes = {column.name: column.encode(table[column.name]) for column in schema.columns}
    return reliability_of(schema, fitted, [() if whole else grouping.groups for whole in plain], codes)
