"""Draw artificial people with associated columns, and run synthesis methods on them. No row of any party is read.

Each person belongs to one of a few kinds. In each column a person has, with some probability, the value of its kind,
and otherwise one drawn by the column's shares. Columns differ in that probability, as in real tables: some are nearly
copies of each other, some are independent. They also differ in how evenly values are spread: the share of a value
falls as 1 / rank^e, with e at least 0.

Methods make their own choices and add their own noise, without cryptography or parties. Noise is drawn in floating
point: it does not protect, and there is nobody to protect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.advice.assume import Assumptions
from syndic.advice.population import draw_population
from syndic.advice.scale import listed, scale_of
from syndic.data import Domain, Schema
from syndic.evaluation.distance import tvd
from syndic.kernel import schema_of, strictest_mu_squared
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.cut import CutReach
from syndic.methods.synthesis.measure import Question, RoundLimits
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.rounds import Answer, RoundCounts
from syndic.methods.vertimrf.messages import fitted_of, model_of, own_model
from syndic.methods.vertimrf.model.tables import OracleTables
from syndic.methods.vertimrf.plan import Account as Encodings
from syndic.methods.vertimrf.plan import Layout, VertimrfPlan
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.model.selection import synthesise
from syndic.model.selection.parity import parity_sums
from syndic.random import SimulationRandomness
from syndic.study import Study

Names = tuple[str, ...]
Codes = dict[str, NDArray[np.int64]]
KINDS: Final = 30


@final
@dataclass(frozen=True)
class Crowd:
    """An artificial population: `tied` is the mean probability over columns, `uneven` the largest exponent e."""

    tied: float
    uneven: float


CROWDS: Final = (Crowd(0.85, 4.5), Crowd(0.55, 3.5), Crowd(0.5, 2.0))
"""From easy to hard to synthesise, chosen so that distances measured on Adult and Fire, both public, lie within."""

IN_WORDS: Final = (
    "three artificial populations, by association of columns and unevenness of values: "
    + "; ".join(f"{one.tied:g} and {one.uneven:g}" for one in CROWDS),
    "real tables have other shapes: plan with the range, not with the middle",
)


def made_up(schema: Schema, crowd: Crowd, people: int, assumptions: Assumptions, draws: np.random.Generator) -> Codes:
    """Return the codes of artificial people."""
    weights = 1 / np.arange(1, KINDS + 1)
    kind = draws.choice(KINDS, people, p=weights / weights.sum())
    found = {}
    # probabilities are spread evenly over columns, so that populations differ only as intended
    chances = _even(len(schema.columns), draws) ** ((1 - crowd.tied) / crowd.tied)
    for chance, (name, shares) in zip(chances, _shares(schema, crowd, assumptions, draws).items(), strict=True):
        typical = draws.choice(len(shares), KINDS, p=shares)
        alike = draws.random(people) < chance
        found[name] = np.where(alike, typical[kind], draws.choice(len(shares), people, p=shares))
    return found


def distance(one: Codes, other: Codes, domain: Domain, sets: list[tuple[str, ...]]) -> float:
    """Return the mean total variation distance of two tables over sets of columns."""
    apart = []
    for names in sets:
        part = domain.project(names)
        cells = [part.index([codes[name] for name in names]) for codes in (one, other)]
        apart.append(tvd(*(np.bincount(each, minlength=part.size) for each in cells)))
    return fmean(apart)


def _even(columns: int, draws: np.random.Generator) -> NDArray[np.float64]:
    """Return numbers that are evenly spread over 0 to 1, in random order."""
    return (draws.permutation(columns) + 0.5) / columns


def _shares(
    schema: Schema, crowd: Crowd, assumptions: Assumptions, draws: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Return the shares of every column's codes: as declared, or as uneven as the population."""
    usual = draw_population(schema, assumptions, draws).codes if assumptions.columns else ()
    found = {}
    shares: NDArray[np.float64]
    exponents = crowd.uneven * _even(len(schema.columns), draws)
    for place, column in enumerate(schema.columns):
        if column.name in assumptions.columns:
            shares = np.bincount(usual[place]).astype(np.float64)
        else:
            values = len(listed(column)) or int(scale_of(column).valid.sum())
            shares = np.arange(1, values + 1, dtype=np.float64) ** -exponents[place]
        whole = np.zeros(column.size)
        whole[: len(shares)] = shares
        found[column.name] = whole / whole.sum()
    return found


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
    fitted = synthesise(plan.selector, counts, plan.account.whole, zeros=plan.impossible)
    return _drawn(fitted.sample(counts.people or 0, draws))


def forecast_glued(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that each party would make on its own from artificial people, side by side."""
    found: Codes = {}
    for own in study.plan_as(GluedPlan).own.values():
        codes = {name: people[name] for name in own.account.domain.names}
        counts = made_up_counts(codes, own.account, own.size.rooms, draws)
        fitted = synthesise(own.selector, counts, own.account.whole)
        drawn = _drawn(fitted.sample(counts.people or 0, draws))
        order = draws.permutation(counts.people or 0)
        found |= {name: column[order] for name, column in drawn.items()}
    return found


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class MadeUpTables:
    """Tables over bins of artificial people, with normal noise as large as that of their encodings."""

    layout: Layout
    account: Encodings
    codes: Codes
    draws: np.random.Generator
    known: dict[Names, NDArray[np.float64]] = field(default_factory=dict)

    def table(self, names: Names) -> NDArray[np.float64]:
        """Return the noisy table, the same at every call."""
        if names not in self.known:
            part = self.layout.grouping.domain_of_groups.project(names)
            counts = np.bincount(part.index([self.codes[name] for name in names]), minlength=part.size)
            self.known[names] = counts.reshape(part.sizes) + self.draws.normal(
                0, self.variance(names) ** 0.5, part.sizes
            )
        return self.known[names]

    def variance(self, names: Names) -> float:
        """Return the approximate variance of one cell of a table."""
        people, made = self.layout.people, self.account.sketches
        if made is None:
            return people * OracleTables(responses=self.account.responses, codes={}).factor(names)
        sketches = sum(self.layout.bins[name] - 1 for name in names)
        return min(cell_error(made, people=people, sketches=sketches), 1e4 * people) ** 2


def forecast_encoded(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return the rows that VertiMRF would make from artificial people."""
    protocol: Any = study.protocol
    plan, seed = study.plan_as(VertimrfPlan), int(draws.integers(2**31))
    layout, account = plan.layout, plan.account
    local = []
    for name, part in account.local.items():
        domain = schema_of(study, name).domain
        own = {column: people[column] for column in domain.names}
        randomness = SimulationRandomness(seed, name, "noise"), SimulationRandomness(seed, name, "choices")
        sent = own_model(layout, own, domain, part, protocol.learner(), randomness)
        local.append(model_of(sent, domain, layout.people, protocol.local_cells))
    across = MadeUpTables(layout=layout, account=account, codes=layout.grouping.recode(people), draws=draws)
    built = protocol.build(layout, across, people=layout.people, local=local, counts={})
    return _drawn(fitted_of(built).sample(layout.people, draws))


def _drawn(codes: Mapping[str, NDArray[np.integer]]) -> Codes:
    return {name: column.astype(np.int64) for name, column in codes.items()}


def forecast_columns(study: Study, people: Codes, draws: np.random.Generator) -> Codes:
    """Return rows of independent columns, each counted once, all at the whole budget together."""
    mu_squared = float(strictest_mu_squared(study))
    found, domain = {}, study.schema.domain
    # replacing a person moves two counts of each column by one
    deviation = (2 * len(domain) / mu_squared) ** 0.5
    for name in domain.names:
        counts = np.bincount(people[name], minlength=domain[name])
        noisy = np.maximum(counts + draws.normal(0, deviation, domain[name]), 0)
        shares = noisy / noisy.sum() if noisy.any() else np.full(domain[name], 1 / domain[name])
        found[name] = draws.choice(domain[name], len(people[name]), p=shares)
    return found
