"""Predict the error of a logistic regression on the release, for columns of two values on grids small enough to draw.

The fit sees every cell's count at a few points spread over its bin. The randomness of draws within bins is added as
noise on the gradient, with the covariance that it has at the population's own coefficients.
"""

from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import expit

from syndic.advice.population import Population
from syndic.advice.question import Question
from syndic.advice.scale import Numbers, listed, scale_of
from syndic.advice.task import Task
from syndic.data import Categorical
from syndic.data.schema import Column

_POINTS: Final = 4
_TEST_POINTS: Final = 1000
_REPEATS: Final = 600
_FITS: Final = 400
_FITTED_ROWS: Final = 400
_RIDGE: Final = 1e-3
_STEPS: Final = 12


@final
class Logit(Question):
    """Logistic regression on all other columns; a very small ridge keeps separable tables finite."""

    def __init__(self, task: Task, population: Population) -> None:
        """Prepare the points of every cell of the other columns, and where the counts of both values are."""
        self.task = task
        self.summands = ()
        columns, domain = population.schema.columns, population.schema.domain
        place = population.schema.names.index(task.column)
        others = [other for other in range(len(columns)) if other != place]
        codes = [np.asarray(axis) for axis in domain.unravel(np.arange(domain.size))]
        usable = (codes[place] == 0) & np.all([scale_of(columns[o]).valid[codes[o]] > 0 for o in others], axis=0)
        self._failures = np.flatnonzero(usable)
        chosen = [axis[usable] for axis in codes]
        chosen[place] = np.ones_like(chosen[place])
        self._successes = domain.index(chosen)
        shifts = [_shifts(turn) for turn in range(1, len(others) + 1)]
        points = [_at_codes(columns[o], chosen[o], shift) for o, shift in zip(others, shifts, strict=True)]
        self._points = _with_ones([part for feature in points for part in feature])
        raw = [_at_numbers(columns[o], population.numbers[o]) for o in others]
        self._rows = _with_ones([part for feature in raw for part in feature])
        self._outcomes = population.numbers[place]

    @cached_property
    def _best(self) -> Numbers:
        """The coefficients of a fit to the whole population."""
        return np.asarray(_fit(self._rows[None], self._outcomes[None], np.ones((1, self._outcomes.size)))[0])

    def errors(self, sums: Numbers, counts: Numbers | None) -> Numbers:
        """Return mean squared errors of predicted probabilities; at most `_REPEATS` of them."""
        del sums
        if counts is None:
            raise ValueError("a logistic regression needs the counts of all cells")
        failures, successes = counts[:_REPEATS, self._failures], counts[:_REPEATS, self._successes]
        kick = self._kick(failures, successes)
        total = np.repeat((failures + successes) / _POINTS, _POINTS, axis=1)
        hits = np.repeat(successes / _POINTS, _POINTS, axis=1)
        return self._errors_of(_fit_cells(self._points, total, hits, kick))

    def own_error(self, people: int, generator: np.random.Generator) -> float:
        """Return the error of fits to drawn people; for many people, that of fewer people scaled down."""
        rows = min(people, _FITTED_ROWS)
        chosen = generator.integers(self._rows.shape[0], size=(_FITS, rows))
        fitted = _fit(self._rows[chosen], self._outcomes[chosen], np.ones((_FITS, rows)))
        return float(self._errors_of(fitted).mean()) * rows / people

    def _errors_of(self, coefficients: Numbers) -> Numbers:
        points = self._rows[:_TEST_POINTS]
        return np.asarray(((_chance(coefficients @ points.T) - _chance(self._best @ points.T)) ** 2).mean(axis=1))

    def _kick(self, failures: Numbers, successes: Numbers) -> Numbers:
        """Draw the gradient noise from random positions within bins; the same standard draws for every release."""
        chance = _chance(self._points @ self._best)[:, None]
        size = self._points.shape[1]
        spreads = [_within(-chance * self._points), _within((1 - chance) * self._points)]
        covariance = (failures @ spreads[0] + successes @ spreads[1]).reshape(-1, size, size)
        values, vectors = np.linalg.eigh(covariance)
        draws = np.random.default_rng(size).standard_normal((_REPEATS, size))[: len(values)]
        return np.asarray((vectors @ (np.sqrt(np.maximum(values, 0)) * draws)[:, :, None])[:, :, 0])


def _shifts(turn: int) -> Numbers:
    """Return points over a bin of width 1, in another order for every column, with a uniform draw's variance."""
    order = np.random.default_rng(turn).permutation(_POINTS)
    return np.asarray(((order + 0.5) / _POINTS - 0.5) / np.sqrt(1 - 1 / _POINTS**2))


def _at_codes(column: Column, codes: Numbers, shifts: Numbers) -> list[Numbers]:
    """Return a column's features at every point of every cell."""
    if isinstance(column, Categorical):
        return [np.repeat(codes == code, shifts.size).astype(np.float64) for code in range(1, len(listed(column)))]
    scale = scale_of(column)
    numbers = scale.middle[codes][:, None] + np.sqrt(12 * scale.variance[codes])[:, None] * shifts
    return [(numbers.ravel() - scale.centre) / scale.half]


def _at_numbers(column: Column, numbers: Numbers) -> list[Numbers]:
    if isinstance(column, Categorical):
        return [(numbers == code).astype(np.float64) for code in range(1, len(listed(column)))]
    scale = scale_of(column)
    return [(numbers - scale.centre) / scale.half]


def _with_ones(features: list[Numbers]) -> Numbers:
    return np.column_stack([np.ones(features[0].size), *features])


def _within(scores: Numbers) -> Numbers:
    """Return every cell's covariance matrix of the gradient over its points, as one row."""
    size = scores.shape[1]
    parts = scores.reshape(-1, _POINTS, size)
    parts = parts - parts.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("cki,ckj->cij", parts, parts) / _POINTS).reshape(-1, size * size)


def _fit_cells(points: Numbers, total: Numbers, hits: Numbers, kick: Numbers) -> Numbers:
    """Return coefficients for many tables over the same points, by Newton's method."""
    size = points.shape[1]
    squares = (points[:, :, None] * points[:, None, :]).reshape(-1, size * size)
    coefficients = np.zeros((total.shape[0], size))
    for _ in range(_STEPS):
        chance = _chance(coefficients @ points.T)
        curvature = ((total * chance * (1 - chance)) @ squares).reshape(-1, size, size)
        gradient = (hits - total * chance) @ points + kick
        if _moved(coefficients, curvature, gradient):
            break
    return coefficients


def _fit(rows: Numbers, outcomes: Numbers, weights: Numbers) -> Numbers:
    """Return coefficients for many tables, each with its own rows, by Newton's method."""
    coefficients = np.zeros((rows.shape[0], rows.shape[2]))
    across = np.swapaxes(rows, 1, 2)
    for _ in range(_STEPS):
        chance = _chance((rows @ coefficients[:, :, None])[:, :, 0])
        curvature = (across * (weights * chance * (1 - chance))[:, None, :]) @ rows
        gradient = (across @ (weights * (outcomes - chance))[:, :, None])[:, :, 0]
        if _moved(coefficients, curvature, gradient):
            break
    return coefficients


def _moved(coefficients: Numbers, curvature: Numbers, gradient: Numbers) -> bool:
    """Take one Newton step in place; return whether it was too small to continue."""
    size = coefficients.shape[1]
    down = gradient - _RIDGE * coefficients
    change = np.linalg.solve(curvature + _RIDGE * np.eye(size), down[:, :, None])[:, :, 0]
    coefficients += change
    return bool(np.abs(change).max() < 1e-4)


def _chance(scores: Numbers) -> Numbers:
    return np.asarray(expit(np.clip(scores, -30, 30)))
