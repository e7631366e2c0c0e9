"""Forecast the error of rows that are drawn: from noisy counts of a grid, or from a model of noisy tables.

Assumed of the people: the share of a column's value falls as 1 / rank^1.75, and a pair of columns is 0.07 from
independent columns, in total variation distance. A fit leaves out what noise hides: see
`syndic.methods.synthesis.expected`, which computes the same from a release.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import hypot, sqrt
from statistics import fmean
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.advice.advice import PublishedError
from syndic.advice.assume import Assumptions
from syndic.data import Domain
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.histogram.homm import HommPlan
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.expected import HIDDEN, USUAL
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.model.selection.score import MEAN_ABSOLUTE
from syndic.study import Study

Shares = NDArray[np.float64]

DISTANCE: Final = "of all people in wrong cells (total variation distance)"
_PAIRS: Final = 100
_UNEVEN: Final = 1.75
# by the assumed shares, further levels of a column have next to no people
_LEVELS: Final = 256


@final
@dataclass(frozen=True)
class Public:
    """What a forecast is computed from: the study with its plan, the number of people, and what is assumed of them."""

    study: Study
    people: int
    assumptions: Assumptions

    @property
    def domain(self) -> Domain:
        """The columns with their levels."""
        return self.study.schema.domain


def forecast_homm(public: Public) -> list[PublishedError]:
    """Return the error of pairs: rows of nobody flatten them, and noise of all cells of the grid adds up."""
    plan = public.study.plan_as(HommPlan)
    domain, even = public.domain, public.people / len(plan.noise)
    size = {name: schema.domain.size for name, schema in plan.schemas.items()}
    variance = {name: float(noise.variance) for name, noise in plan.noise.items()}
    added = {name: _of_nobody(plan, name) for name in plan.noise}
    errors, nobody = [], sum(added.values())
    for pair in islice(combinations(domain.names, 2), _PAIRS) if len(domain) > 1 else [domain.names]:
        holders = [name for name, schema in plan.schemas.items() if set(pair) <= set(schema.names)]
        shares, cells = _share_of(domain, pair), domain.project(pair).size
        extra = sum(added[name] for name in holders)
        rows = max(1.0, even * len(holders) + extra)
        flat = float(np.abs(shares - 1 / shares.size).sum()) / 2
        noise = MEAN_ABSOLUTE * sqrt(cells * sum(size[name] * variance[name] for name in holders)) / (2 * rows)
        errors.append(min(1.0, hypot(flat * extra / rows, noise)) if holders else 1.0)
    words = f"{DISTANCE}; about {nobody:,.0f} of {public.people + nobody:,.0f} rows would be of nobody"
    what = "tables of two columns" if len(domain) > 1 else "tables of one column"
    return [PublishedError(what=what, error=fmean(errors), words=words)]


def _of_nobody(plan: HommPlan, party: str) -> float:
    """Return about how many rows a party's noise alone makes."""
    kept = plan.sparse(party)
    return 0.0 if kept is None else kept.expected_survivors * (plan.at_least + plan.noise[party].variance ** 0.5)


def forecast_synthesis(public: Public) -> list[PublishedError]:
    """Return the error of columns and pairs: tables that one party counts have less noise than the others."""
    plan, domain = public.study.plan_as(SynthesisPlan), public.domain
    reach, noise = plan.reach, _rounds(plan.account, len(domain))
    return _modelled(
        domain, public.people, noise, lambda names: 1.0 if reach is None else reach.noisier(domain.project(names))
    )


def forecast_glued(public: Public) -> list[PublishedError]:
    """Return the error of columns and pairs: those of different parties are unrelated in the rows."""
    plan = public.study.plan_as(GluedPlan)
    home = {name: party.name for party in public.study.parties for name in party.columns or ()}
    widest = max(plan.own.values(), key=lambda own: len(own.account.domain.names))
    noise = _rounds(widest.account, len(widest.account.domain.names))
    return _modelled(
        public.domain, public.people, noise, lambda names: 1.0 if home[names[0]] == home[names[-1]] else None
    )


def forecast_vertimrf(public: Public) -> list[PublishedError]:
    """Return the error of tables across parties, from bins: those of large columns count as even within a bin."""
    plan = public.study.plan_as(VertimrfPlan)
    domain, deviation = plan.layout.grouping.domain_of_groups, plan.cell_deviation
    pairs = islice(plan.layout.pairs, _PAIRS)
    errors = [_related(_share_of(domain, pair), deviation, public.people) for pair in pairs]
    return [_drawn("tables of two columns of different parties", errors)] if errors else []


def _rounds(account: Account, columns: int) -> tuple[float, float]:
    """Return the variance of a count of a column in the first round, and of a pair by all later rounds together."""
    tables = max(1, columns * (columns - 1) // 2)
    first = account.noise_of(1, columns, 1).variance(account.parties)
    rounds = range(min(2, len(account.events)), len(account.events) + 1)
    later = [account.noise_of(number, tables, 1).variance(account.parties) for number in rounds]
    return first, 1 / sum(1 / variance for variance in later)


def _modelled(
    domain: Domain,
    people: int,
    variances: tuple[float, float],
    noisier: Callable[[tuple[str, ...]], float | None],
) -> list[PublishedError]:
    """Return the error of rows drawn from a model of noisy columns and pairs.

    `noisier` is the variance of a table beside the usual one, or None if it is not counted.
    """
    pairs = {pair: noisier(pair) for pair in combinations(domain.names, 2)}
    precision = {name: 1 / (variances[0] * (noisier((name,)) or 1.0)) for name in domain.names}
    for (one, other), times in pairs.items():
        if times is not None:
            precision[one] += 1 / (variances[1] * times * domain[other])
            precision[other] += 1 / (variances[1] * times * domain[one])
    single = {name: _noise(_share_of(domain, (name,)), precision[name] ** -0.5, people) for name in domain.names}
    found = [_drawn("tables of one column", list(single.values()))]
    errors = []
    for pair, times in islice(pairs.items(), _PAIRS):
        off = USUAL
        if times is not None:
            off = _related(_share_of(domain, pair), sqrt(variances[1] * times), people)
        errors.append(hypot(off, *(single[name] for name in pair)))
    return [*found, _drawn("tables of two columns", errors)] if errors else found


def _drawn(what: str, errors: Sequence[float]) -> PublishedError:
    return PublishedError(what=what, error=min(1.0, fmean(errors)), words=DISTANCE)


def _noise(shares: Shares, deviation: float, people: int) -> float:
    return MEAN_ABSOLUTE * float(np.minimum(shares, deviation / people).sum()) / 2


def _related(shares: Shares, deviation: float, people: int) -> float:
    """Return the error of an association of the assumed strength, or of one that noise just hides."""
    noise = _noise(shares, deviation, people)
    could = hypot(USUAL, HIDDEN * noise * (2 / shares.size) ** 0.25)
    return could * noise / hypot(could, noise)


def _share_of(domain: Domain, names: Sequence[str]) -> Shares:
    """Return assumed shares of the cells of a table: uneven columns, independent of each other."""
    found = np.ones(1)
    for name in names:
        shares = np.arange(1, min(domain[name], _LEVELS) + 1, dtype=np.float64) ** -_UNEVEN
        found = np.outer(found, shares / shares.sum()).ravel()
    return found
