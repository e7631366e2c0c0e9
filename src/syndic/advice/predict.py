"""Predict the error of each task under a HOMM study, alone and jointly. Reads no row, spends nothing."""

from collections.abc import Callable, Sequence
from itertools import count
from math import sqrt
from statistics import fmean
from typing import Final, get_args

import numpy as np

from syndic.advice.advice import Advice, TaskAdvice, verdict_of, way_out
from syndic.advice.assume import Assumptions, bin_shares_of, check_public, moments_of, shares_of
from syndic.advice.budgets import break_even, largest_epsilon, party_advice
from syndic.advice.forecast import Forecast, Sums
from syndic.advice.population import Shape, draw_population
from syndic.advice.question import ask
from syndic.advice.scale import Numbers, listed
from syndic.advice.task import Task, default_tasks
from syndic.data import Date
from syndic.errors import InputError
from syndic.kernel import Progress, silent_progress
from syndic.study import Study

LOWEST: Final = 1 / 128
"""The smallest epsilon that is tried, of the party with the largest budget."""

HIGHEST: Final = 64.0
"""The largest epsilon that is tried, of the party with the largest budget."""

SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)
"""The shape of the population is not known, so errors are averaged over three."""

_STEPS: Final = 26


def advise_tasks(
    study: Study,
    *,
    tasks: Sequence[Task | str] | None = None,
    assumptions: Assumptions | None = None,
    progress: Progress = silent_progress,
    seed: int = 0,
) -> Advice:
    """Predict what a HOMM study is worth to each party. Arguments are those of `syndic.advise`."""
    assumptions = assumptions or Assumptions()
    people, chosen = check_public(study, assumptions), _checked(study, tasks)
    # 1, then the factors on all budgets that move the largest of them from `LOWEST` to `HIGHEST`
    factors = np.array([1.0, *(np.geomspace(LOWEST, HIGHEST, _STEPS + 1) / largest_epsilon(study))])
    # one population serves means and shares together, and each prediction has its own
    plain = [task for task in chosen if task.kind in ("mean", "shares")]
    groups: list[tuple[str | None, list[Task]]] = [(None, plain)] if plain else []
    groups += [(task.column, [task]) for task in chosen if task not in plain]
    total, done = len(groups) * len(SHAPES) * len(factors), count(1)

    def tick() -> None:
        progress("predict", next(done), total)

    answers: dict[Task, TaskAdvice] = {}
    nobody = 0.0
    for place, (outcome, group) in enumerate(groups):
        draws = np.random.default_rng([seed, place])
        found, nobody = _predict(study, assumptions, outcome, group, factors, draws, tick)
        answers |= found
    advised = tuple(answers[task] for task in chosen)
    noise = f"about {nobody:,.0f} of {people + nobody:,.0f} rows would be noise"
    verdict, words = verdict_of(advised, "task", noise)
    words += f". {way_out(advised)}" if verdict == "do not share" else ""
    return Advice(
        study=study.name,
        digest=study.digest,
        verdict=verdict,
        words=words,
        people=people,
        rows_of_nobody=nobody,
        tasks=advised,
        assumptions=_described(study, assumptions, chosen),
    )


def _predict(
    study: Study,
    assumptions: Assumptions,
    outcome: str | None,
    tasks: list[Task],
    factors: Numbers,
    generator: np.random.Generator,
    tick: Callable[[], None],
) -> tuple[dict[Task, TaskAdvice], float]:
    """Return the advice on tasks that one population serves, and the expected number of rows made of noise."""
    curves, own = [], []
    nobody, sizes = 0.0, sorted({party.people or 0 for party in study.parties} | {study.people or 0})
    for shape in SHAPES:
        population = draw_population(study.schema, assumptions, generator, outcome=outcome, shape=shape)
        questions = [ask(task, population) for task in tasks]
        forecast = Forecast(study, population)
        sums = [Sums(forecast, question.summands, generator) for question in questions]
        curve = np.empty((len(tasks), factors.size))
        for place, factor in enumerate(factors):
            kept = forecast.kept(float(factor))
            curve[:, place] = [one.errors(each.drawn(kept)).mean() for one, each in zip(questions, sums, strict=True)]
            tick()
        curves.append(curve)
        # without noise or bins, for every party's number of people and for their sum
        own.append([{size: question.own_error(size, generator) for size in sizes} for question in questions])
        nobody = forecast.rows_of_nobody()
    answers = {}
    for place, task in enumerate(tasks):
        errors = {size: fmean(one[place][size] for one in own) for size in own[0][place]}
        answers[task] = _answer(study, task, np.array([one[place] for one in curves]), factors, errors)
    return answers, nobody


def _checked(study: Study, tasks: Sequence[Task | str] | None) -> tuple[Task, ...]:
    named = default_tasks(study.schema) if tasks is None else tasks
    chosen = [Task.of(task) if isinstance(task, str) else task for task in named]
    if not chosen:
        raise InputError("advise needs at least one task, such as mean:age")
    for task in chosen:
        task.check(study.schema)
    return tuple(dict.fromkeys(chosen))


def _answer(study: Study, task: Task, curves: Numbers, factors: Numbers, errors: dict[int, float]) -> TaskAdvice:
    """Return the advice from mean squared errors (shapes x factors)."""
    curve = curves.mean(axis=0)
    joint, low, high = float(curve[0]), float(curves[:, 0].min()), float(curves[:, 0].max())
    parties = []
    for party in study.parties:
        own, depends = errors[party.people or 0], low <= errors[party.people or 0] <= high
        factor = break_even(factors[1:], curve[1:], own)
        parties.append(
            party_advice(study, party.name, own=sqrt(own), joint=sqrt(joint), factor=factor, depends=depends)
        )
    return TaskAdvice(
        task=task.name,
        joint=sqrt(joint),
        joint_range=(sqrt(low), sqrt(high)),
        pooled=sqrt(errors[study.people or 0]),
        parties=tuple(parties),
    )


def _described(study: Study, assumptions: Assumptions, tasks: tuple[Task, ...]) -> tuple[str, ...]:
    texts = []
    for column in study.schema.columns:
        source = "declared" if column.name in assumptions.columns else "assumed"
        if listed(column):
            shares = zip(listed(column), shares_of(column, assumptions), strict=True)
            texts.append(
                f"{column.name}: " + ", ".join(f"{name} {share:.0%}" for name, share in shares) + f" ({source})"
            )
        elif bin_shares_of(column, assumptions) is not None:
            texts.append(f"{column.name}: shares of its bins (declared)")
        else:
            mean, sd = moments_of(column, assumptions)
            shown = f"{mean:.4g}" if not isinstance(column, Date) else str(np.int64(round(mean)).astype(column.clock))
            texts.append(f"{column.name}: mean {shown}, standard deviation {sd:.3g} ({source})")
    if any(task.kind in ("linear", "classify") for task in tasks):
        texts.append(f"the other columns explain {assumptions.r2:.0%} of the variance of what is predicted (r2)")
    return (*texts, "columns that are not predicted are independent; no value is missing; each person has one row")
