"""One party's part of a glued synthesis: its own columns, counted and modelled at home with its part of the budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from syndic.data import Domain, Schema
from syndic.kernel import Limits, Member, Party, Terms, member, schema_of
from syndic.methods.refusals import check_people
from syndic.methods.synthesis.account import Account, RoundNoise
from syndic.methods.synthesis.measure import Question, RoundLimits, answer_of, rows_counted, split
from syndic.methods.synthesis.rounds import fitting
from syndic.model.markov import Grouping, Measurement
from syndic.model.markov.counts import Names
from syndic.privacy import Budget, GaussianEvent, Unit


@final
@dataclass(frozen=True, kw_only=True)
class OwnTerms:
    """The terms of a study as if one party, with its own columns, were all of it. Public."""

    schema: Schema
    unit: Unit
    budget: Budget
    parties: tuple[Member, ...]
    limits: Limits


def own_terms(terms: Terms, name: str) -> OwnTerms:
    """Return the terms of the party called `name` by itself."""
    return OwnTerms(
        schema=schema_of(terms, name),
        unit=terms.unit,
        budget=terms.budget,
        parties=(member(terms, name),),
        limits=terms.limits,
    )


def own_account(account: Account, domain: Domain, parties: int) -> Account:
    """Return one party's account: the rounds of all parties are listed one party after the other, and are alike."""
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


@final
class OwnCounts:
    """A party's own rows, counted with noise round by round: all that a selector sees of them."""

    def __init__(
        self, party: Party, account: Account, rooms: Sequence[RoundLimits], events: Sequence[GaussianEvent], people: int
    ) -> None:
        """Begin before the first round; each round is charged its event, which covers all parties' rounds."""
        self.domain: Domain = account.domain
        self.people: int | None = people
        self._party, self._account, self._rooms, self._events = party, account, rooms, events
        self._number, self._rows = 0, people

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of a count of one table at this much of the party's budget."""
        return self._account.variance(mu_squared)

    def noisier(self, table: Domain) -> float | None:
        """Return 1: every table has the same noise."""
        del table
        return 1.0

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Release noisy tables: the next round. They share its part of the budget evenly; `mu_squared` is not asked."""
        del mu_squared
        kept = fitting(tables, grouping.domain_of_groups, self._rooms[self._number])
        self._number += 1
        groups = () if grouping == Grouping.none(self.domain) else grouping.groups
        question = Question(number=self._number, tables=kept, groups=groups)
        counts = answer_of(question, self._party.table, self._rows)
        check_people(self._party, rows_counted(question, counts, self.domain))
        own = self._account.noise(question)
        noise = RoundNoise(own.noise, self._events[self._number - 1])
        why = f"round {self._number} of its own synthesis: {len(kept)} tables"
        noisy = self._party.release(noise, counts, why=why) / own.scale
        parts = split(question, self.domain, noisy)
        return [Measurement(names, part, own.variance(1)) for names, part in zip(kept, parts, strict=True)]
