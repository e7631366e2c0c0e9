"""Logistic regression of Adult among five parties: the method `learn`, beside Flower with its own noise and masks.

Flower's noise is made for a whole client: an update is cut to norm C, and the average over m clients gets N(0, (z C /
m)^2) in every coordinate. One client more or less moves the average by C / m, so T rounds are sqrt(T) / z-GDP. Read for
a person it depends on what clients do. Here a client takes k full gradient steps of length `rate` on its n rows, which
are in the unit ball. Replacing a row moves the end of a step by at most 2 rate / n, and a step of a smooth convex loss
with rate at most 2 / curvature moves nothing further apart, so all steps together move by at most 2 k rate / n. Cutting
moves nothing further apart either, and the random rounding of the masks moves each coordinate by at most one step of
their grid at either neighbour. k steps in T rounds so cost as much as k T rounds of one step, in fewer messages.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.methods import Learn
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.learning.result import LearnResult, weights_of
from syndic.model.erm.loss import Logistic, Objective
from syndic.model.erm.solve import minimise
from syndic.privacy import gaussian_epsilon, mu_squared_for
from syndic.study import simulate
from syndic_lab.bench.erm.study import PARTIES, StudyData, adult
from syndic_lab.bench.row import Row
from syndic_lab.peers.ask import ask, row

Numbers = NDArray[np.float64]

# below two over the largest curvature, a quarter and the penalty
_RATE: Final = 3.98
_ROUNDS: Final = 10
_STEPS: Final = 12
# weights stay within this range, on a grid that leaves room for five parties' sums below 2^32
_RANGE: Final = 64.0
_GRID: Final = 2**28
# Flower's documentation recommends this much or more
_RECOMMENDED: Final = 1.0


@final
@dataclass(frozen=True, eq=False)
class Ground:
    """Adult as numbers, for whoever learns: rows to learn from, in equal parts, and rows to test on."""

    data: StudyData
    rows: Numbers
    labels: Numbers
    tests: Numbers
    truth: Numbers
    epsilon: Fraction
    delta: Fraction
    penalty: float

    @property
    def people(self) -> int:
        """How many rows a party has."""
        return len(self.rows) // PARTIES


@final
@dataclass(frozen=True)
class Learnt:
    """How good a model is on the rows to test on, and what it took."""

    accuracy: float
    loss: float
    seconds: float
    megabytes: float


def rows(quick: bool) -> Iterator[Row]:
    """Yield accuracy, log loss, CPU seconds and traffic, beside Flower's under two readings of its noise."""
    ground = prepared()
    epsilon, delta = ground.epsilon, ground.delta
    title = f"logistic regression, Adult, {PARTIES} parties, epsilon {float(epsilon):g} for a person"
    best = minimise(Objective(Logistic(), ground.penalty), ground.rows, ground.labels, tolerance=1e-7).weights
    newton = ours(ground, {"scheme": "newton"})
    yield from _beside(f"{title}, newton, beside no privacy", newton, judged(ground, best, 0.0, 0.0))
    theirs = flower(ground, for_person(ground), clip=_RATE * _STEPS)
    yield from _beside(f"{title}, newton, beside Flower", newton, theirs)
    if not quick:
        descent = ours(ground, {"scheme": "mpc_grad", "iterations": _ROUNDS * _STEPS, "rate": _RATE})
        yield from _beside(f"{title}, mpc_grad of {_ROUNDS * _STEPS} rounds, beside Flower", descent, theirs)
    for name, multiplier in (
        (f"epsilon {float(epsilon):g}", for_party(epsilon, delta)),
        (f"noise multiplier {_RECOMMENDED:g}", _RECOMMENDED),
    ):
        theirs = flower(ground, multiplier, clip=1.0)
        yield from _beside(f"{title}, newton, beside Flower with {name} for a party", newton, theirs)
        spent = float(gaussian_epsilon(_ROUNDS / Fraction(multiplier) ** 2, delta))
        yield row(f"{title}, beside Flower with {name} for a party", "epsilon", float(epsilon), "", spent)


def for_party(epsilon: Fraction, delta: Fraction) -> float:
    """Return the noise multiplier at which one party more or less stays hidden over all rounds."""
    return sqrt(_ROUNDS / mu_squared_for(epsilon, delta))


def for_person(ground: Ground) -> float:
    """Return the noise multiplier at which the replacement of one row of one party stays hidden over all rounds."""
    rounding = 2 * sqrt(ground.rows.shape[1]) * 2 * _RANGE / _GRID
    moved = 2 * _STEPS * _RATE / ground.people + rounding
    return moved / (_STEPS * _RATE) * for_party(ground.epsilon, ground.delta)


def prepared() -> Ground:
    """Return Adult in the numbers that `learn` makes of it."""
    data = adult()
    study = data.study({"scheme": "newton"})
    protocol = study.protocol
    if not isinstance(protocol, Learn):
        raise InputError("the study of Adult does not use the method risk")
    design = study.plan_as(LearnPlan).design
    parts = (design.matrix(Table(schema=data.schema, source=open_source(part))) for part in (data.train, data.test))
    (x, labels), (tests, truths) = parts
    budget = study.budget
    return Ground(data, x, labels[:, 0], tests, truths[:, 0], budget.epsilon, budget.delta, protocol.regularisation)


def ours(ground: Ground, options: dict[str, Any]) -> Learnt:
    """Learn by `learn`, in a simulation of all parties with ledgers, masks and exact noise."""
    people = ground.people
    parts = {f"p{number}": ground.data.train.slice(number * people, people) for number in range(PARTIES)}
    start = time.process_time()
    release = simulate(ground.data.study(options), parts, seed=1)
    seconds = time.process_time() - start
    if not isinstance(release.result, LearnResult):
        raise InputError("the study of Adult did not learn a model")
    weights = weights_of(release.result.model, release.result.design)[0]
    sent = sum(exchange.request_bytes + exchange.reply_bytes for exchange in release.transcript)
    return judged(ground, weights, seconds, sent / 1e6)


def flower(ground: Ground, multiplier: float, clip: float) -> Learnt:
    """Learn by Flower, in its simulation, with its noise and its masks."""
    settings = {
        "parties": PARTIES,
        "people": ground.people,
        "rounds": _ROUNDS,
        "steps": _STEPS,
        "rate": _RATE,
        "penalty": ground.penalty,
        "clip": clip,
        "multiplier": multiplier,
        "range": _RANGE,
        "grid": _GRID,
        "seed": 1,
    }
    found = ask("flower", settings, {"features": ground.rows, "labels": ground.labels}).figures
    if found["rounds"] != _ROUNDS:
        raise InputError(f"Flower ended after {found['rounds']} of {_ROUNDS} rounds")
    return judged(ground, np.array(found["weights"]), found["seconds"], found["bytes"] / 1e6)


def judged(ground: Ground, weights: Numbers, seconds: float, megabytes: float) -> Learnt:
    """Return how good weights are on the rows to test on."""
    scores = ground.tests @ weights
    right = float(((scores > 0) == (ground.truth > 0)).mean())
    return Learnt(right, float(Logistic().value(scores, ground.truth).mean()), seconds, megabytes)


def _beside(what: str, one: Learnt, other: Learnt) -> Iterator[Row]:
    yield row(what, "accuracy", one.accuracy, "share", other.accuracy)
    yield row(what, "log loss", one.loss, "nats", other.loss)
    if other.seconds:
        yield row(what, "CPU seconds", one.seconds, "s, all parties", other.seconds)
        yield row(what, "megabytes", one.megabytes, "MB, all messages", other.megabytes)
