"""Forecast the intervals of `describe` and `survival`: the same formulas, on the counts that one would expect."""

from functools import reduce
from math import log, sqrt

import numpy as np

from syndic.advice.advice import PublishedError, wider_words
from syndic.advice.assume import bin_shares_of, moments_of, shares_of
from syndic.advice.drawn import Public
from syndic.advice.scale import listed
from syndic.data import Factor
from syndic.data.coding import bins_of
from syndic.data.schema import Column
from syndic.kernel import Group
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.describe.opened import ONE, Readings
from syndic.methods.describe.result import DescribeResult, Row
from syndic.methods.survival.result import EVERYBODY, SurvivalNote, SurvivalResult
from syndic.methods.survival.survival import SurvivalPlan
from syndic.model.describe.sums import Floats
from syndic.model.selection.score import MEAN_ABSOLUTE


def forecast_describe(public: Public) -> list[PublishedError]:
    """Return the error of each kind of statistic where it is widened most, if columns are independent."""
    result = _described(public)
    rows, worst = list(result.rows()), dict[str, Row]()
    for row in rows:
        if row.found.widened is not None and (row.what not in worst or row.found.widened > _factor(worst[row.what])):
            worst[row.what] = row
    hidden = {row.what: row for row in rows if row.found.value is None and row.what not in worst}
    found = [_error(result, row) for row in worst.values()]
    words = "of 1; too few people to show any"
    return [*found, *(PublishedError(what=_named(row), error=1.0, words=words) for row in hidden.values())]


def _error(result: DescribeResult, row: Row) -> PublishedError:
    lower, upper = row.found.lower or 0.0, row.found.upper or 0.0
    width, unit = upper - lower, "of 1"
    if "ratio" in row.what:
        # a ratio per unit of a narrow column may be beyond a double
        width, unit = log(max(upper, 1e-300)) - log(max(lower, 1e-300)), "of 1 in its logarithm"
    elif row.what in {"mean", "standard deviation", "difference of means", "linear coefficient by regression"}:
        middles = bins_of(result.schema[row.column])[0]
        width, unit = width / max(float(np.ptp(middles)) / 6, 1e-300), "of a standard deviation"
    return PublishedError.of_interval(_named(row), width, _factor(row), unit)


def _factor(row: Row) -> float:
    return row.found.widened or 1.0


def _named(row: Row) -> str:
    return f"{row.what}, {row.column}, {row.group}"


def _described(public: Public) -> DescribeResult:
    """Return the study's result for as many people as are public, in their assumed shares, without noise in it."""
    plan = public.study.plan_as(DescribePlan)
    groups, total = plan.cut.groups, np.zeros(plan.masked_sum.count)
    for place, group in enumerate(groups):
        parts = [_one_group(public, one, place, len(groups), group) for one in plan.readings]
        total += np.concatenate(parts)
    note = plan.noted(tuple(party.name for party in public.study.parties))
    return DescribeResult(note=note, sums=np.rint(note.parts * total).astype(np.int64), schema=plan.terms.schema)


def _one_group(public: Public, readings: Readings, place: int, groups: int, group: Group) -> Floats:
    """Return the sums of the expected counts of a group of people."""
    schema, names = public.study.schema, readings.block.clique
    shares = reduce(np.multiply.outer, (_shares(schema[name], public) for name in names))
    people = group.people if group.counted_by(names) else 0
    return readings.sums(np.rint(shares * people * ONE), place, groups) / ONE


def _shares(column: Column, public: Public, *, even: bool = False) -> Floats:
    """Return the assumed share of every level: of a number that of a normal distribution, or all `even`."""
    found = np.zeros(column.size)
    if listed(column):
        known = shares_of(column, public.assumptions)
        found[: known.size] = known
        return found
    declared = np.full(column.levels, 1 / column.levels) if even else bin_shares_of(column, public.assumptions)
    if declared is None:
        mean, deviation = moments_of(column, public.assumptions)
        density = np.exp(-(((bins_of(column)[0] - mean) / deviation) ** 2) / 2)
        declared = density / density.sum()
    found[: declared.size] = declared
    return found


def forecast_survival(public: Public) -> list[PublishedError]:
    """Return the error of curves and of hazard ratios, if times are spread evenly and columns are independent."""
    result = _survival(public)
    found = []
    for by in (None, *(one.name for one in result.note.layout.by)):
        for level, curve in result.curves(by).items():
            noise, sampling = (float(np.diag(one).max(initial=0.0)) for one in (curve.noise, curve.sampling))
            name = level if by is None else f"{by}: {level}"
            if not curve.times.size:
                found.append(PublishedError(what=f"survival of {name}", error=1.0, words="too few people to show any"))
                continue
            wider = sqrt(1 + noise / max(sampling, 1e-300))
            found.append(
                PublishedError(
                    what="survival curve" if level == EVERYBODY and by is None else f"survival of {name}",
                    error=MEAN_ABSOLUTE * sqrt(noise),
                    words=f"of a probability where it is worst; {wider_words(wider)}",
                    chance=MEAN_ABSOLUTE * sqrt(sampling),
                    wider=wider,
                )
            )
    for one in (result.hazard_ratios() if result.note.layout.by else None) or ():
        width = log(one.upper / one.lower)
        named = f"hazard ratio of {one.term}"
        found.append(PublishedError.of_interval(named, width, one.widened, "of 1 in its logarithm"))
    return found


def _survival(public: Public) -> SurvivalResult:
    """Return the study's result for as many people as are public, in their assumed shares, numbers spread evenly."""
    plan = public.study.plan_as(SurvivalPlan)
    domain, schema = plan.domains[0], public.study.schema
    shares = (_shares(schema[name], public, even=True) for name in domain.names)
    counts = public.people * reduce(np.multiply.outer, shares)
    deviation = max(plan.deviations(len(public.study.parties)))
    note = SurvivalNote(layout=plan.layout, present=(), standard_deviation=deviation)
    return SurvivalResult(note=note, table=Factor(domain, counts))
