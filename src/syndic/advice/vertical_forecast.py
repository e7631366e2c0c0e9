"""Run vertical methods on artificial people: their own choices and noise, without cryptography or parties.

Noise is drawn in floating point: it does not protect, and there is nobody to protect.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.advice.vertical_people import Codes
from syndic.data import Domain
from syndic.methods.comparison.glued_plan import GluedPlan
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.cut import CutReach
from syndic.methods.synthesis.measure import RoundLimits
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.rounds import fitting
from syndic.model.markov import Grouping, Measurement
from syndic.model.markov.counts import Parities
from syndic.model.markov.parity import parity_sums
from syndic.privacy import mu_squared_for
from syndic.study import Study

Names = tuple[str, ...]


@final
class MadeUpCounts:
    """Tables of artificial people with the noise that a study's rounds would have."""

    def __init__(
        self,
        codes: Codes,
        account: Account,
        rooms: Sequence[RoundLimits],
        draws: np.random.Generator,
        reach: CutReach | None = None,
    ) -> None:
        """Start before the first round; `reach` gives the tables that parties can count together, and their noise."""
        self.domain: Domain = account.domain
        self.people: int | None = len(next(iter(codes.values())))
        self._codes, self._account, self._rooms, self._draws, self._reach = codes, account, rooms, draws, reach
        self._number = 0

    def variance(self, mu_squared: Fraction) -> float:
        """Return the variance of a count in one table at this part of the budget."""
        return self._account.variance(mu_squared)

    def noisier(self, table: Domain) -> float | None:
        """Return a table's variance as a multiple of that one; None if the parties cannot count it."""
        return 1.0 if self._reach is None else self._reach.noisier(table)

    def measure(self, tables: Sequence[Names], mu_squared: Fraction, grouping: Grouping) -> list[Measurement]:
        """Return the noisy tables of the next round that fit its limits."""
        del mu_squared
        self._number += 1
        reach, number, domain = self._reach, self._number, grouping.domain_of_groups
        takes: Callable[[Sequence[Names]], bool] | None = None
        if reach is not None:
            takes = lambda some: reach.takes(number, some, domain)  # noqa: E731
        kept = fitting(tables, domain, self._rooms[number - 1], takes)
        least = self._account.noise_of(number, len(kept), 1).variance(self._account.parties)
        found = []
        for names, counted in zip(kept, grouping.count(self._codes, kept), strict=True):
            variance = least * (self.noisier(domain.project(names)) or 1.0)
            noise = self._draws.normal(0, variance**0.5, counted.values.shape)
            found.append(Measurement(names, counted.values + noise, variance))
        return found

    def parities(self, sets: Sequence[Names], mu_squared: Fraction, halves: Grouping) -> Parities:
        """Return the noisy parities of the next round."""
        del mu_squared
        self._number += 1
        noise = self._account.noise_of(self._number, len(sets), len(sets), parity=True)
        sums = parity_sums(halves, sets, lambda tables: halves.count(self._codes, tables))
        variance = noise.variance(self._account.parties)
        return Parities(sets, sums + self._draws.normal(0, variance**0.5, len(sets)), variance)


def forecast_shares(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that a synthesis would make from artificial people."""
    plan = study.plan_as(SynthesisPlan)
    counts = MadeUpCounts(people, plan.account, plan.size.rooms, draws, plan.reach)
    fitted = plan.selector.run(counts, plan.account.whole, zeros=plan.impossible)
    return _drawn(fitted.sample(counts.people or 0, draws))


def forecast_glued(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that each party would make on its own from artificial people, side by side."""
    found: Codes = {}
    for own in study.plan_as(GluedPlan).own.values():
        codes = {name: people[name] for name in own.account.domain.names}
        counts = MadeUpCounts(codes, own.account, own.size.rooms, draws)
        fitted = own.selector.run(counts, own.account.whole)
        drawn = _drawn(fitted.sample(counts.people or 0, draws))
        order = draws.permutation(counts.people or 0)
        found |= {name: column[order] for name, column in drawn.items()}
    return found


def _drawn(codes: Mapping[str, NDArray[np.integer]]) -> Codes:
    return {name: column.astype(np.int64) for name, column in codes.items()}


def forecast_columns(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return rows of independent columns, each counted once, all at the whole budget together."""
    budgets = [study.budget, *(party.budget for party in study.parties if party.budget is not None)]
    mu_squared = float(min(mu_squared_for(one.epsilon, one.delta) for one in budgets))
    found, domain = {}, study.schema.domain
    # replacing a person moves two counts of each column by one
    deviation = (2 * len(domain) / mu_squared) ** 0.5
    for name in domain.names:
        counts = np.bincount(people[name], minlength=domain[name])
        noisy = np.maximum(counts + draws.normal(0, deviation, domain[name]), 0)
        shares = noisy / noisy.sum() if noisy.any() else np.full(domain[name], 1 / domain[name])
        found[name] = draws.choice(domain[name], len(people[name]), p=shares)
    return found
