"""Forecast survival curves and hazard ratios: the same formulas, on the table that the assumptions lead to expect."""

from functools import reduce
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from syndic.advice.advice import PublishedError, wider_words
from syndic.advice.assume import shares_of
from syndic.advice.drawn import Public
from syndic.advice.scale import listed
from syndic.data import Factor
from syndic.methods.survival.result import EVERYBODY, SurvivalNote, SurvivalResult
from syndic.methods.survival.survival import SurvivalPlan
from syndic.model.markov.score import MEAN_ABSOLUTE


def forecast_survival(public: Public) -> list[PublishedError]:
    """Return the error of curves and of hazard ratios, if times are spread evenly and columns are independent."""
    result = _expected(public)
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


def _expected(public: Public) -> SurvivalResult:
    plan = public.study.plan_as(SurvivalPlan)
    domain, schema = plan.domains[0], public.study.schema
    shares: list[NDArray[np.float64]] = []
    for name in domain.names:
        column = schema[name]
        known = shares_of(column, public.assumptions) if listed(column) else np.full(column.levels, 1 / column.levels)
        shares.append(np.append(known, np.zeros(column.size - known.size)))
    counts = public.people * reduce(np.multiply.outer, shares)
    deviation = max(plan.deviations(len(public.study.parties)))
    note = SurvivalNote(layout=plan.layout, present=(), standard_deviation=deviation)
    return SurvivalResult(note=note, table=Factor(domain, counts))
