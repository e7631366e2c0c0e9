"""The plan of a glued synthesis: each party models its own columns with its part of the budget."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import final

from msgspec import UNSET

from syndic.data import Domain, Schema
from syndic.document import Document
from syndic.kernel import (
    GROUPS,
    Disclosure,
    Limits,
    Member,
    Party,
    Plan,
    Resources,
    Terms,
    everybody,
    member,
    schema_of,
)
from syndic.kernel.terms import ReadFrom
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.measure import Question, answer_of
from syndic.methods.synthesis.rounds import Answer, RoundCounts
from syndic.methods.synthesis.size import Size
from syndic.model.markov import Adaptive
from syndic.privacy import Budget, Event, GaussianEvent, Unit


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

    @property
    def rounds(self) -> tuple[str, ...]:
        """One step: every party synthesises its own columns."""
        return ("synthesise",)

    @cached_property
    def charged(self) -> tuple[GaussianEvent, ...]:
        """What each round costs at all parties together."""
        return charged(self.account, len(self.own))

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


def own_terms(terms: Terms, name: str) -> OwnTerms:
    """Return the terms of the study reduced to the party called `name`."""
    return OwnTerms(
        schema=schema_of(terms, name),
        unit=terms.unit,
        budget=terms.budget,
        parties=(member(terms, name),),
        limits=terms.limits,
    )


def own_account(account: Account, domain: Domain, parties: int) -> Account:
    """Return one party's account: the rounds of all parties are listed party by party, and are the same."""
    rounds = len(account.events) // parties
    return replace(account, domain=domain, whole=account.whole / parties, events=account.events[:rounds])


def charged(account: Account, parties: int) -> tuple[GaussianEvent, ...]:
    """Return what each round costs at all parties together: a person is at all of them, and the parts add up."""
    rounds = len(account.events) // parties
    found = []
    for place in range(rounds):
        each = account.events[place::rounds]
        mu_squared, slack = sum(one.mu_squared for one in each), sum((one.slack for one in each), Fraction(0))
        what = f"Gaussian, mu {float(mu_squared) ** 0.5:.3g}, round {place + 1} at {parties} parties"
        found.append(GaussianEvent(mu_squared=Fraction(mu_squared), slack=slack, what=what))
    return tuple(found)


def own_counts(party: Party[GluedPlan]) -> RoundCounts:
    """Return a party's own rows, counted with noise; each round is charged its event, which covers all parties'."""
    own, events, people = party.plan.own[party.name], party.plan.charged, member(party.terms, party.name).people

    def release(question: Question) -> Answer:
        counts, noise = answer_of(question, party.table, people or 0), own.account.noise(question)
        why = f"round {question.number} of its own synthesis: {len(question.tables)} tables"
        noisy = party.release(RoundNoise(noise.noise, events[question.number - 1]), counts, why=why)
        return Answer(values=noisy / noise.scale, variance=noise.variance(1), present=(party.name,))

    return RoundCounts(account=own.account, rooms=own.size.rooms, people=people, ask=release)
