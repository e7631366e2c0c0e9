"""What sharing is really worth in a setting: real noise, real rows, the analyst's own fit, many times over."""

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit

from syndic.advice.budgets import scaled
from syndic.data import Categorical, SparseCounts, decode_rows
from syndic.data.factor import gather
from syndic.data.schema import Column
from syndic.methods.histogram.homm import HommPlan, PublishedLaplace
from syndic.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram
from syndic.random import SimulationRandomness
from syndic.study import Study
from syndic_lab.bench.advise.settings import Numbers, Setting

_MANY = 200_000
_TEST_POINTS = 2000
LOWEST, HIGHEST, STEPS = 1 / 64, 64.0, 21


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """A setting with the answer that infinitely many people would give."""

    setting: Setting
    points: Numbers
    answer: Numbers

    def joint(self, factor: float, repeats: int) -> float:
        """Return the root mean squared error of the released table, all budgets times `factor`."""
        study = scaled(self.setting.study, factor)
        noises = {party.name: _noise(study, party.name) for party in study.parties}
        errors = [self._error(*self._release(study, noises, repeat)) for repeat in range(repeats)]
        return sqrt(float(np.mean(errors)))

    def alone(self, people: int, repeats: int) -> float:
        """Return the root mean squared error of this many people's own rows."""
        generator = np.random.default_rng([self.setting.number, people])
        errors = [self._error(self.setting.people(people, generator), np.ones(people)) for _ in range(repeats)]
        return sqrt(float(np.mean(errors)))

    def _error(self, columns: list[Numbers], weights: Numbers) -> float:
        return float(((answer(self.setting, columns, weights, self.points) - self.answer) ** 2).mean())

    def _release(
        self, study: Study, noises: dict[str, DiscreteLaplace | DiscreteGaussian], repeat: int
    ) -> tuple[list[Numbers], Numbers]:
        """Return released numbers and weights, by the protocol's own noise and draws."""
        generator = np.random.default_rng([self.setting.number, repeat])
        cells, counts = [], []
        for party in study.parties:
            people = self.setting.people(party.people or 0, generator)
            randomness = SimulationRandomness(repeat, party.name, str(self.setting.number))
            noisy = _sanitised(study, noises[party.name], people, randomness)
            cells.append(noisy.cells)
            counts.append(noisy.counts)
        size = np.abs(np.concatenate(counts))
        table = decode_rows(study.schema, np.concatenate(cells), size, generator).to_arrow()
        columns = [_numbers(column, table[column.name]) for column in study.schema.columns]
        return columns, np.repeat(np.sign(np.concatenate(counts)), size).astype(np.float64)


def truth_of(setting: Setting) -> Truth:
    """Return the setting's truth, from very many people."""
    many = setting.people(_MANY, np.random.default_rng([setting.number, 7]))
    design = _design(setting, [values[:_TEST_POINTS] for values in many])
    return Truth(setting=setting, points=design, answer=answer(setting, many, np.ones(_MANY), design))


def start_of(own: float, curve: dict[float, float]) -> float | None:
    """Return the factor from which on the joint error of a simulated curve stays below the own one."""
    factors = sorted(curve)
    worse = [place for place, factor in enumerate(factors) if curve[factor] >= own]
    if not worse:
        return factors[0]
    if worse[-1] == len(factors) - 1:
        return None
    left, right = factors[worse[-1]], factors[worse[-1] + 1]
    part = log(curve[left] / own) / log(curve[left] / curve[right])
    return exp(log(left) + part * log(right / left))


def answer(setting: Setting, columns: list[Numbers], weights: Numbers, points: Numbers) -> Numbers:
    """Return what the analyst says: a mean, or predictions at points (by least squares or logistic regression)."""
    if weights.sum() <= 0:
        return np.full(1 if setting.task.kind == "mean" else points.shape[0], 0.5)
    if setting.task.kind == "mean":
        return np.asarray(np.clip([weights @ columns[0] / weights.sum()], 0, 1))
    design, outcome = _design(setting, columns), columns[-1]
    fit = _logistic if setting.task.kind == "classify" else _least_squares
    return fit(design, outcome, weights, points)


def _least_squares(design: Numbers, outcome: Numbers, weights: Numbers, points: Numbers) -> Numbers:
    weighted = design * weights[:, None]
    return np.asarray(
        np.clip(points @ (np.linalg.pinv(weighted.T @ design, rcond=1e-10) @ (weighted.T @ outcome)), 0, 1)
    )


def _logistic(design: Numbers, outcome: Numbers, weights: Numbers, points: Numbers) -> Numbers:
    """Newton's method with a hair of ridge, which keeps separable tables finite."""
    coefficients = np.zeros(design.shape[1])
    for _ in range(12):
        chance = expit(np.clip(design @ coefficients, -30, 30))
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + 1e-3 * np.eye(design.shape[1])
        step = np.linalg.solve(curvature, design.T @ (weights * (outcome - chance)) - 1e-3 * coefficients)
        coefficients += step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(expit(np.clip(points @ coefficients, -30, 30)))


def _design(setting: Setting, columns: list[Numbers]) -> Numbers:
    parts = [np.ones(columns[0].size)]
    for column, values in zip(setting.study.schema.columns[:-1], columns[:-1], strict=True):
        parts += [values == code for code in (1, 2)] if isinstance(column, Categorical) else [values]
    return np.column_stack(parts).astype(np.float64)


def _numbers(column: Column, values: pa.ChunkedArray) -> Numbers:
    if isinstance(column, Categorical):
        return column.encode(values).astype(np.float64)
    return np.asarray(values.cast(pa.float64()))


def _noise(study: Study, party: str) -> DiscreteLaplace | DiscreteGaussian:
    noise = study.plan_as(HommPlan).noise[party]
    if isinstance(noise, PublishedLaplace):
        raise TypeError("settings use the sound noise only")
    return noise


def _sanitised(
    study: Study,
    noise: DiscreteLaplace | DiscreteGaussian,
    people: list[Numbers],
    randomness: SimulationRandomness,
) -> SparseCounts:
    schema, plan = study.schema, study.plan_as(HommPlan)
    codes = [_codes(column, values) for column, values in zip(schema.columns, people, strict=True)]
    cells, counts = gather(schema.domain.index(codes))
    if plan.clamp:
        rule = SparseHistogram(noise=noise, cells=schema.domain.size, at_least=plan.at_least)
        kept = rule.apply((cells.astype(np.uint64), counts), randomness)
        return SparseCounts(schema.domain, kept.places.astype(np.int64), kept.counts)
    noisy = noise.apply(SparseCounts(schema.domain, cells, counts).dense().values.ravel(), randomness)
    return SparseCounts(schema.domain, np.flatnonzero(noisy), noisy[noisy != 0])


def _codes(column: Column, values: Numbers) -> NDArray[np.int64]:
    ranked = isinstance(column, Categorical)
    return values.astype(np.int64) if ranked else column.encode(pa.array(values)).astype(np.int64)
