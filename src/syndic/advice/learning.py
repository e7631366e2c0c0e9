"""Forecast what noise costs a learnt model: artificial people go through the study's own scheme, with and without it.

Noise is drawn in floating point: it protects nobody, and there is nobody to protect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from syndic.advice.advice import PublishedError
from syndic.advice.artificial import CROWDS, Codes, made_up
from syndic.advice.assume import Assumptions
from syndic.advice.scale import listed
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.learning.query import ModelQuery, PartyRows, batches
from syndic.methods.learning.scheme import Averaging, Iterate, Opened
from syndic.model.erm.loss import Numbers
from syndic.model.erm.solve import minimise
from syndic.study import Study

_ROWS: Final = 1000
_REPEATS: Final = 8
_SEED: Final = 7
# a scheme may take smaller steps where there is noise
_HARDLY_ANY: Final = 1e-6


def forecast_learning(study: Study, assumptions: Assumptions) -> list[PublishedError]:
    """Return the share of people that noise makes the model predict wrongly, or the R2 that it loses."""
    plan, draws = study.plan_as(LearnPlan), np.random.default_rng(_SEED)
    everybody = _people(plan, assumptions, draws, 2 * _ROWS)
    train, test = (
        _Artificial({name: codes[half] for name, codes in everybody.items()})
        for half in (slice(0, _ROWS), slice(_ROWS, None))
    )
    scores = [_skill(plan, test, _learnt(plan, train, None))]
    scores += [_skill(plan, test, _learnt(plan, train, draws)) for _ in range(_REPEATS)]
    lost = max(0.0, scores[0] - float(np.mean(scores[1:])))
    if plan.design.classes:
        words = f"of all people predicted wrongly because of noise; {scores[0]:.0%} are right without noise"
    else:
        words = f"of its variance is lost (R2) because of noise; R2 {scores[0]:.2f} without noise"
    return [PublishedError(what=f"prediction of {plan.design.label}", error=min(1.0, lost), words=words)]


@final
@dataclass(frozen=True)
class _Artificial:
    """Coded artificial rows, read like a table."""

    codes: Codes

    def batches(self, names: Sequence[str]) -> Iterator[Codes]:
        yield {name: self.codes[name] for name in names}


def _people(plan: LearnPlan, assumptions: Assumptions, draws: np.random.Generator, people: int) -> Codes:
    """Return artificial people whose label follows a linear score of the features, as closely as `r2` says."""
    design = plan.design
    codes = made_up(design.schema, CROWDS[1], people, assumptions, draws)
    features = design.rows(codes)  # type: ignore[arg-type]  # wider integers than a table's
    score = features @ draws.normal(size=features.shape[1])
    score = (score - score.mean()) / (score.std() or 1.0)
    latent = assumptions.r2**0.5 * score + (1 - assumptions.r2) ** 0.5 * draws.normal(size=people)
    column = design.schema[design.label]
    values = len(listed(column)) or column.levels
    rank = np.argsort(np.argsort(latent))
    codes[design.label] = rank * values // people
    return codes


def _learnt(plan: LearnPlan, rows: _Artificial, draws: np.random.Generator | None) -> Iterate:
    """Return the last iterate; without `draws`, those without noise."""
    scheme, people, present = plan.scheme, sum(plan.people.values()), tuple(plan.people)
    table: Any = rows
    holding = PartyRows(table=table, design=plan.design, people=_ROWS, rows=plan.terms.unit.rows, share=1.0)
    state = scheme.start()
    for number in range(1, scheme.rounds + 1):
        noise = plan.noise_at(number)
        query, deviation = noise.query, noise.deviation(plan.people) * (_HARDLY_ANY if draws is None else 1.0)
        if isinstance(scheme, Averaging) and isinstance(query, ModelQuery):
            total = _minimiser(query, holding)
        else:
            total = np.asarray(
                query.values(holding, scheme.sent(state, number)) * (query.unit * people / _ROWS), dtype=np.float64
            )
        if draws is not None:
            total = total + draws.normal(0, deviation, total.shape)
        opened = Opened(total=total, deviation=deviation, people=people, present=present)
        state = scheme.update(state, number, opened)
    return state


def _minimiser(query: ModelQuery, holding: PartyRows) -> Numbers:
    rows, labels = holding.matrix()
    found = [minimise(query.objective, rows, each, tolerance=1e-4).weights for each in labels.T]
    return np.concatenate(found)


def _skill(plan: LearnPlan, rows: _Artificial, learnt: Iterate) -> float:
    """Return the share of right predictions, or R2 for a number."""
    (batch,) = batches(plan.design, rows)  # type: ignore[arg-type]  # it is read like a table
    predicted = plan.scheme.scores(learnt, batch.plain)
    if plan.design.models > 1:
        return float((predicted.argmax(axis=1) == batch.labels.argmax(axis=1)).mean())
    if plan.design.classes:
        return float((np.sign(predicted) == batch.labels).mean())
    left = np.square(np.clip(predicted, -1, 1) - batch.labels).mean()
    return 1.0 - float(left / max(batch.labels.var(), 1e-12))
