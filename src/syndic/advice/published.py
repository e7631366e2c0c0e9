"""Forecast the error of what a method publishes, from the noise of its plan: closed forms that take milliseconds.

An error is what noise adds to the numbers of all rows together, as a share of its scale: of all people for counts
(total variation distance), of a standard deviation for averages and parameters, of 1 for correlations, of the label's
variance or of the people for predictions. A cell of expected count m whose noise has the standard deviation d is off
by about sqrt(2/pi) d, and by sqrt(2/pi) min(m, d) where rows are drawn from the counts.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf, sqrt
from statistics import median
from typing import Any, Final

import numpy as np

from syndic.advice.advice import NoiseAdvice, PublishedError, wider_words
from syndic.advice.assume import Assumptions, check_public, declared_words, moments_of, shares_of
from syndic.advice.drawn import (
    DISTANCE,
    Public,
    forecast_glued,
    forecast_homm,
    forecast_synthesis,
    forecast_vertimrf,
)
from syndic.advice.estimate import assumed, predicted
from syndic.advice.intervals import forecast_describe, forecast_survival
from syndic.advice.scale import bounds_of, listed
from syndic.data import Boolean
from syndic.data.schema import Column
from syndic.errors import InputError, SyndicError
from syndic.kernel import PARTNERS, Plan
from syndic.methods.comparison.distdiffgen_plan import DistdiffgenPlan
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.estimate.plan import EstimatePlan
from syndic.methods.histogram.average import AveragePlan
from syndic.methods.histogram.homm import HommPlan
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.mixing_plan import MixingPlan
from syndic.methods.survival.survival import SurvivalPlan
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.model.gram.fit import least_above_noise
from syndic.model.selection.score import MEAN_ABSOLUTE
from syndic.study import Study

_SHOWN: Final = 10
_LARGER: Final = "Use a larger epsilon or more people"


def advise_published(study: Study, assumptions: Assumptions | None = None) -> NoiseAdvice:
    """Forecast the error of everything that a study publishes. Reads no row, spends nothing.

    Raises:
        InputError: if the study cannot run, a party's number of people is missing, or nothing is published with noise.
    """
    assumptions = assumptions or Assumptions()
    errors, change = forecast_errors(study, assumptions)
    return NoiseAdvice(
        study=study.name,
        digest=study.digest,
        people=max(1, study.people or 0),
        errors=tuple(errors[:_SHOWN]),
        change=f"{_LARGER}, or {change}",
        assumptions=(
            *declared_words(study, assumptions),
            "all parties take part; values fit their bounds and lists",
            "where nothing is declared: a standard deviation of a sixth of the range, shares of 1, 1/2, 1/3, ...; "
            f"other columns explain {assumptions.r2:g} of a column's variance",
        ),
    )


def forecast_errors(study: Study, assumptions: Assumptions) -> tuple[list[PublishedError], str]:
    """Return all forecast errors, the worst first, and what would make them smaller; raises as `advise_published`."""
    public = Public(study, max(1, check_public(study, assumptions)), assumptions)
    for kind, (forecast, change) in _FAMILIES.items():
        if isinstance(study.plan, kind):
            errors = sorted(forecast(public), key=lambda one: -one.error)
            if errors:
                return errors, change
            break
    raise InputError(f"{study.protocol.title} publishes no number with noise that can be forecast")


def warning(study: Study) -> str:
    """Return one line if the forecast is poor, with what to change; nothing if it is not, or cannot be computed."""
    with suppress(SyndicError, ArithmeticError, LookupError, TypeError, ValueError):
        advice = advise_published(study)
        if advice.grade == "poor":
            return advice.words
    return ""


# Tables that are published as they were counted.


def _counted(tables: Sequence[tuple[int, int, float]], people: int) -> list[PublishedError]:
    """Return the error of noisy tables, by number of columns: columns, cells, and the standard deviation of a count.

    Widths are those of the share of a mean cell.
    """
    columns, *rest = np.array(tables, dtype=np.float64).T
    found = []
    for ways in map(int, np.unique(columns)):
        size, deviation = (one[columns == ways] for one in rest)
        off, cells = MEAN_ABSOLUTE * float(deviation.mean()), float(size.mean())
        squares = 1 + deviation**2 * size**2 / (people * np.maximum(size - 1, 1))
        wider = sqrt(float(squares.mean()))
        found.append(
            PublishedError(
                what="tables of one column" if ways == 1 else f"tables of {ways} columns",
                error=min(1.0, MEAN_ABSOLUTE * float((size * deviation).mean()) / (2 * people)),
                words=f"{DISTANCE}; a count is off by about {off:,.3g} people, where a mean cell has "
                f"{people / cells:,.3g}; {wider_words(wider)}",
                chance=min(1.0, MEAN_ABSOLUTE * float(np.sqrt(size / people).mean()) / 2),
                wider=wider,
            )
        )
    return found


def _marginals(public: Public) -> list[PublishedError]:
    plan = public.study.plan_as(MarginalsPlan)
    deviations, layout = plan.deviations(len(public.study.parties)), plan.cut
    tables = zip(map(len, layout.tables), map(layout.size, layout.tables), deviations, strict=True)
    return _counted(list(tables), public.people)


def _leaves(public: Public) -> list[PublishedError]:
    """Return the error of the leaves by class: a specialisation replaces a group by its children."""
    plan = public.study.plan_as(DistdiffgenPlan)
    most = max((len(below) for tree in plan.every.values() for below in tree.children), default=1)
    leaves = min(public.domain.size, plan.classes * most ** min(plan.times, 20), 1 << 16)
    deviation = plan.account.noise_of(2, 1, 2).variance(PARTNERS) ** 0.5
    (found,) = _counted([(1, leaves, deviation)], public.people)
    return [PublishedError(what="counts of the leaves", error=found.error, words=found.words)]


# Numbers in the unit of a column.


def _averages(public: Public) -> list[PublishedError]:
    plan = public.study.plan_as(AveragePlan)
    found = []
    for name, spread in zip(plan.fixed_point.names, plan.spreads, strict=True):
        _, deviation = moments_of(public.study.schema[name], public.assumptions)
        words = f"of a standard deviation; off by about {MEAN_ABSOLUTE * spread:.3g}"
        error = MEAN_ABSOLUTE * spread / deviation
        found.append(
            PublishedError(
                what=f"average of {name}", error=error, words=words, chance=MEAN_ABSOLUTE / sqrt(public.people)
            )
        )
    return found


def _parameters(public: Public) -> list[PublishedError]:
    plan = public.study.plan_as(EstimatePlan)
    protocol: Any = public.study.protocol
    theta = assumed(plan.layout, public.study, public.assumptions)
    family = plan.layout.model.family
    errors, spreads = predicted(public.study, protocol, theta), np.diag(np.atleast_2d(family.spread(theta)))
    return [
        PublishedError(
            what=f"{name} of {protocol.column}",
            error=float(sqrt(error / max(spread, 1e-300))),
            words=f"of the standard deviation of one person's estimate, sampling error included; off by about "
            f"{MEAN_ABSOLUTE * sqrt(error):.3g}",
            chance=1 / sqrt(public.people),
        )
        for name, error, spread in zip(family.parameters, errors, spreads, strict=True)
    ]


# Sums of products, and regressions on them.


def _gram(public: Public) -> list[PublishedError]:
    plan = public.study.plan_as(GramPlan)
    scaling = plan.stages.scaling
    spread = _spread(public.study, public.assumptions)
    if scaling is not None:
        # the standard deviation of rescaled numbers, unless their bounds are nearer; short rows are a third shorter
        kept = min(1.0, 0.7 * float(scaling.length) * scaling.spread**2)
        spread = max(1 / scaling.spread, spread * sqrt(scaling.length)) * sqrt(kept)
    return _products(
        plan.sigma, spread, len(plan.features) - 1, public.people, public.assumptions.r2, plan.no_intervals
    )


def _mixing(public: Public) -> list[PublishedError]:
    plan = public.study.plan_as(MixingPlan)
    spread = _spread(public.study, public.assumptions)
    # noise times values, noise times noise and, if rows are mixed, products of different people
    size, rows = public.people * spread**2, plan.mixes or public.people
    left = size**2 / rows if plan.mixes else 0.0
    sigma = sqrt(2 * plan.tau**2 * size + rows * plan.tau**4 + left)
    return _products(sigma, spread, len(plan.features), public.people, public.assumptions.r2)


def _products(  # a formula's numbers
    sigma: float, spread: float, features: int, people: int, r2: float, no_intervals: str = ""
) -> list[PublishedError]:
    """Return the error of correlations and of least squares, with noise `sigma` on a sum of products in [-1, 1].

    `no_intervals` says why there are none, if so; nor are there any where eigenvalues do not exceed the noise.
    """
    off = sigma / (people * spread**2)
    clear = not no_intervals and 1 / off > least_above_noise(max(1, features - 1))
    wider = sqrt(1 + people * off**2) if clear else inf
    # each coefficient is off by as much; shrinkage never loses more than there is to explain
    loss = max(1, features - 1) * off**2 * (1 + r2)
    lost = r2 * loss / (r2 + loss) if r2 + loss > 0 else 0.0
    found = PublishedError(
        what="correlation of two columns",
        error=min(1.0, MEAN_ABSOLUTE * off),
        words="of 1; so much also for a coefficient, of predictors and a label of variance 1; "
        + (f"no intervals: {no_intervals}" if no_intervals else wider_words(wider)),
        chance=MEAN_ABSOLUTE / sqrt(people),
        wider=wider,
    )
    words = f"of its variance is lost (R2) beside the same fit without noise, whose R2 is assumed to be {r2:g}"
    return [found, PublishedError(what="prediction of a column from all others", error=lost, words=words)]


def _spread(study: Study, assumptions: Assumptions) -> float:
    """Return the standard deviation of a typical feature in [-1, 1]."""
    return median(each for column in study.schema.columns for each in _spreads(column, assumptions))


def _spreads(column: Column, assumptions: Assumptions) -> list[float]:
    if not listed(column):
        lower, upper = bounds_of(column)
        return [moments_of(column, assumptions)[1] / ((upper - lower) / 2 or 1.0)]
    shares = shares_of(column, assumptions)
    deviations = [float(sqrt(share * (1 - share))) for share in shares]
    return [2 * deviations[0]] if isinstance(column, Boolean) else deviations


def _learning(public: Public) -> list[PublishedError]:
    from syndic.advice.learning import forecast_learning  # noqa: PLC0415  # artificial people need scipy's heavy parts

    return forecast_learning(public.study, public.assumptions)


_FAMILIES: Final[Mapping[type[Plan], tuple[Callable[[Public], list[PublishedError]], str]]] = {
    SurvivalPlan: (forecast_survival, "use fewer bins for the time, or fewer columns in `by`"),
    DescribePlan: (forecast_describe, "use fewer columns, groups and regressions, or narrower bounds"),
    MarginalsPlan: (_marginals, "name fewer `cliques`, or use fewer bins or values"),
    DistdiffgenPlan: (_leaves, "set fewer `specialisations`, or use the method synthesis"),
    AveragePlan: (_averages, "name fewer `columns` or narrower bounds"),
    EstimatePlan: (_parameters, "use narrower bounds, or another `scheme`: see `syndic advise`"),
    GramPlan: (_gram, "use fewer columns and values"),
    MixingPlan: (_mixing, "use the method gram, or fewer columns and values"),
    LearnPlan: (_learning, "name fewer `features`, or use the scheme newton"),
    HommPlan: (forecast_homm, "use fewer columns or bins, or the method synthesis, which needs no grid"),
    SynthesisPlan: (forecast_synthesis, "use fewer columns, bins or values"),
    GluedPlan: (forecast_glued, "use the method synthesis, which keeps relations between parties"),
    VertimrfPlan: (forecast_vertimrf, "use fewer `bins`, or the method synthesis"),
}
