"""Jayaraman et al.: the bounds on excess risk (3.2, 3.3, 3.6, 3.7) and Lemma A.3, with their constants set to 1.

Made-up rows in the unit ball: 20 parties of 100 records, so that every bound is far from trivial sizes. Population risk
is that of 20,000 further rows.
"""

from collections.abc import Iterator
from math import log
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from syndic.data.design import into_ball
from syndic_lab.bench.erm.cohort import Cohort
from syndic_lab.bench.erm.data import Split
from syndic_lab.bench.erm.experiment import TOLERANCE, Experiment
from syndic_lab.bench.erm.private import gradient_noise, model_noise
from syndic_lab.bench.row import Row, standard_error

PARTIES, RECORDS, DIMENSION, LAMBDA = 20, 100, 8, 0.01
_FURTHER: Final = 20_000
# of the bounds: one in twenty may be beyond
_DELTA: Final = 0.05


def _made() -> Split:
    draws = np.random.default_rng(2018)
    rows = into_ball(draws.normal(size=(PARTIES * RECORDS + _FURTHER, DIMENSION)) / 2, 1.0)
    chances = 1 / (1 + np.exp(-4 * rows[:, 0] + 2 * rows[:, 1]))
    labels = np.where(draws.random(len(rows)) < chances, 1.0, -1.0)
    train = PARTIES * RECORDS
    return Split("made", csr_array(rows[:train]), labels[:train], csr_array(rows[train:]), labels[train:])


def rows(quick: bool) -> Iterator[Row]:
    """Yield measured excess risks and distances beside the bounds; a bound holds where ours is no more."""
    repeats = 40 if quick else 400
    split = _made()
    experiment = Experiment(split=split, parties=PARTIES, repeats=repeats, regularisation=LAMBDA, iterations=300)
    setting, objective = experiment.setting, experiment._objective  # noqa: SLF001
    best, _ = Cohort.equal(split.rows, split.labels, 1, objective).average_minimiser(TOLERANCE)
    average, _ = experiment.cohort.average_minimiser(TOLERANCE)
    draws = np.random.default_rng(1)
    out = average + model_noise("MPC Out P", setting, "as_published").simulate(repeats, DIMENSION, draws)
    noise = gradient_noise("MPC Grad P", setting, "as_published")
    descents = experiment.cohort.descend(repeats, [300], lambda *_: noise.simulate((repeats, DIMENSION), draws).T)
    gradient = descents[0].T

    def risk(weights: np.ndarray, *, test: bool) -> float:
        part = (split.test_rows, split.test_labels) if test else (split.rows, split.labels)
        return float(objective.value(weights, *part))

    excess = {
        (name, test): [risk(one, test=test) - risk(best, test=test) for one in models]
        for name, models in (("Out P", out), ("Grad P", gradient))
        for test in (False, True)
    }
    bounds = _bounds(float(experiment.epsilon), float(experiment.delta), objective.loss.smoothness)
    yield Row(
        bench="erm", row="Lemma A.3, average of local minimisers", metric="distance from the joint minimiser",
        value=float(np.linalg.norm(average - best)), unit="length",
        published=(PARTIES - 1) / (RECORDS * LAMBDA), error=0.0, runs=1,
    )  # fmt: skip
    for number, name, test in (("3.2", "Out P", False), ("3.3", "Out P", True), ("3.6", "Grad P", False),
                               ("3.7", "Grad P", True)):  # fmt: skip
        values = excess[name, test]
        # the theorems on Out P hold with a probability, those on Grad P for the mean
        value = float(np.quantile(values, 1 - _DELTA) if name == "Out P" else np.mean(values))
        yield Row(
            bench="erm", row=f"Theorem {number}, MPC {name}", metric="excess risk", value=value, unit="nats",
            published=bounds[number], error=standard_error(values), runs=repeats,
        )  # fmt: skip


def _bounds(epsilon: float, delta: float, smoothness: float) -> dict[str, float]:
    """Return the printed bounds with constants 1 and G = 1."""
    tail = DIMENSION * log(DIMENSION / _DELTA)
    spread = PARTIES**2 + (tail / (PARTIES * epsilon)) ** 2 + tail / epsilon
    out = (LAMBDA + smoothness) / (RECORDS * LAMBDA) ** 2 * spread
    people = PARTIES * RECORDS
    logs = log(people) ** 2 * log(1 / delta)
    grad = smoothness * DIMENSION * logs / (people * LAMBDA * epsilon) ** 2
    population = log(1 / _DELTA) / (LAMBDA * people)
    return {"3.2": out, "3.3": out + population, "3.6": grad, "3.7": grad + population}
