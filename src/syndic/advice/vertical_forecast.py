"""Run vertical methods on artificial people: their own choices and noise, without cryptography or parties.

Noise is drawn in floating point: it does not protect, and there is nobody to protect.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.advice.vertical_people import Codes
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.cut import CutReach
from syndic.methods.synthesis.measure import Question, RoundLimits
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.rounds import Answer, RoundCounts
from syndic.model.markov.parity import parity_sums
from syndic.privacy import mu_squared_for
from syndic.study import Study


def made_up_counts(
    codes: Codes,
    account: Account,
    rooms: Sequence[RoundLimits],
    draws: np.random.Generator,
    reach: CutReach | None = None,
) -> RoundCounts:
    """Return tables of artificial people with the noise that a study's rounds would have.

    `reach` gives the tables that parties can count together, and their noise.
    """

    def count(question: Question) -> Answer:
        grouping, tables = question.grouping(account.domain), question.tables
        noise = account.noise_of(question.number, len(tables), 1, question.parities)
        least, domain = noise.variance(account.parties), grouping.domain_of_groups
        times = [1.0 if reach is None else reach.noisier(domain.project(names)) or 1.0 for names in tables]
        exact = [one.values for one in grouping.count(codes, tables)]
        if question.parity:
            exact = list(parity_sums(grouping, tables, lambda some: grouping.count(codes, some)))
        found = [
            (one + draws.normal(0, (least * each) ** 0.5, one.shape)).ravel()
            for one, each in zip(exact, times, strict=True)
        ]
        variances = tuple(least * each for each in times)
        return Answer(values=np.concatenate(found), variance=max(variances), present=(), variances=variances)

    people = len(next(iter(codes.values())))
    return RoundCounts(account=account, rooms=rooms, people=people, ask=count, reach=reach)


def forecast_shares(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that a synthesis would make from artificial people."""
    plan = study.plan_as(SynthesisPlan)
    counts = made_up_counts(people, plan.account, plan.size.rooms, draws, plan.reach)
    fitted = plan.selector.run(counts, plan.account.whole, zeros=plan.impossible)
    return _drawn(fitted.sample(counts.people or 0, draws))


def forecast_glued(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that each party would make on its own from artificial people, side by side."""
    found: Codes = {}
    for own in study.plan_as(GluedPlan).own.values():
        codes = {name: people[name] for name in own.account.domain.names}
        counts = made_up_counts(codes, own.account, own.size.rooms, draws)
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
