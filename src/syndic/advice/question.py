"""Express a task as sums over released rows, the analyst's estimate from those sums, and its error.

All tasks are functions of sums over rows: of ones, of numbers, of products of two. One cell's contribution to a sum
is a product over columns, which gives exact averages over a grid of any size.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from syndic.advice.population import Population
from syndic.advice.scale import Numbers, Scale, listed, scale_of
from syndic.advice.task import Task
from syndic.data import Categorical

_TEST_POINTS: Final = 300
_FITS: Final = 1000
_FITTED_ROWS: Final = 400


class Part(NamedTuple):
    """One column's factor in a summand: its mean and mean square for each code, over draws within the bin."""

    first: Numbers
    second: Numbers


# by the column's position; a column without an entry has the factor 1
Summand = dict[int, Part]


@final
class _Averages:
    """The average of a column's number, or of an indicator for each of its values; errors are averaged over these."""

    def __init__(self, task: Task, population: Population) -> None:
        self.task = task
        self.summands: tuple[Summand, ...]
        place = population.schema.names.index(task.column)
        column = population.schema.columns[place]
        if task.kind == "mean":
            scale = scale_of(column)
            self._least, self._unit, self._unknown = -1.0, scale.half, 0.0
            values = (population.numbers[place] - scale.centre) / scale.half
            self._truth, self._variance = np.array([values.mean()]), float(values.var())
            self.summands = ({place: _constant(scale)}, {place: _linear(scale)})
        else:
            units = np.eye(column.size)[: column.levels]
            self._least, self._unit, self._unknown = 0.0, 1.0, 1 / len(units)
            shares = np.bincount(population.codes[place], minlength=column.levels) / population.codes[place].size
            self._truth, self._variance = shares, float((shares * (1 - shares)).mean())
            self.summands = tuple({place: Part(unit, unit)} for unit in units)

    def errors(self, sums: Numbers) -> Numbers:
        """Return squared errors; an average outside the bounds is moved to the bound."""
        counted = self.task.kind == "mean"
        total, above = (sums[:, :1], sums[:, 1:]) if counted else (sums.sum(axis=1, keepdims=True), sums)
        averages = np.divide(above, total, out=np.full_like(above, self._unknown), where=total > 0)
        return np.asarray(self._unit**2 * ((np.clip(averages, self._least, 1) - self._truth) ** 2).mean(axis=1))

    def own_error(self, people: int, generator: np.random.Generator) -> float:
        """Return variance / n."""
        del generator
        return self._unit**2 * self._variance / people


@final
@dataclass(frozen=True, eq=False)
class _Feature:
    """A column of the design matrix: the table column it comes from, and its numbers on the scale -1 to 1."""

    place: int
    part: Part
    square: Part
    raw: Numbers


@final
class _Fit:
    """Least squares; for a column of two values it predicts the probability of the second one."""

    def __init__(self, task: Task, population: Population) -> None:
        self.task = task
        names = population.schema.names
        self._scales = [scale_of(column) for column in population.schema.columns]
        outcome = names.index(task.column)
        features = [
            feature for place in range(len(names)) if place != outcome for feature in _features(place, population)
        ]
        self._features = [*features, _number_feature(outcome, population, self._scales[outcome])]
        self._half = self._scales[outcome].half
        self._pairs = [(i, j) for i in range(len(self._features) + 1) for j in range(i + 1)]
        self.summands = tuple(self._summand(i, j) for i, j in self._pairs)

    @cached_property
    def _rows(self) -> Numbers:
        return np.column_stack([np.ones(self._features[0].raw.size), *(feature.raw for feature in self._features)])

    @cached_property
    def _test(self) -> tuple[Numbers, Numbers]:
        """Some people, and the predictions for them by the best fit to the whole population."""
        points = self._rows[:_TEST_POINTS, :-1]
        return points, np.clip(points @ _solve((self._rows.T @ self._rows)[None])[0], -1, 1)

    def errors(self, sums: Numbers) -> Numbers:
        """Return mean squared errors of predictions, which are moved to the outcome's bounds."""
        size = len(self._features) + 1
        gram = np.empty((sums.shape[0], size, size))
        for place, (i, j) in enumerate(self._pairs):
            gram[:, i, j] = gram[:, j, i] = sums[:, place]
        return self._errors_of(gram)

    def own_error(self, people: int, generator: np.random.Generator) -> float:
        """Return the error of fits to drawn people; for many people, that of fewer people scaled down."""
        rows = min(people, _FITTED_ROWS)
        chosen = generator.integers(self._rows.shape[0], size=(_FITS, rows))
        gram = np.stack([(drawn := self._rows[places]).T @ drawn for places in chosen])
        return float(self._errors_of(gram).mean()) * rows / people

    def _errors_of(self, gram: Numbers) -> Numbers:
        points, truth = self._test
        usable = gram[:, 0, 0] > 0
        gram = np.where(usable[:, None, None], gram, np.eye(gram.shape[1]))
        predicted = np.clip(_solve(gram) @ points.T, -1, 1)
        return np.asarray(self._half**2 * ((predicted - truth) ** 2).mean(axis=1))

    def _summand(self, i: int, j: int) -> Summand:
        """Return the factors of one entry of the Gram matrix; rows with a missing number are left out."""
        summand = {
            place: _constant(scale) for place, scale in enumerate(self._scales) if not bool((scale.valid == 1).all())
        }
        chosen = [self._features[place - 1] for place in (i, j) if place > 0]
        if len(chosen) == 2 and chosen[0].place == chosen[1].place:
            one, other = chosen
            both = Part(one.part.first * other.part.first, one.part.second * other.part.second)
            summand[one.place] = one.square if i == j else both
            return summand
        return summand | {feature.place: feature.part for feature in chosen}


def _features(place: int, population: Population) -> Iterable[_Feature]:
    """Yield the number of a column, or one indicator for each category but the first."""
    column = population.schema.columns[place]
    scale = scale_of(column)
    if not isinstance(column, Categorical):
        yield _number_feature(place, population, scale)
        return
    for code in range(1, len(listed(column))):
        unit = np.eye(column.size)[code]
        signs = (2 * unit - 1) * scale.valid
        part = Part(signs, signs**2)
        yield _Feature(place, part, Part(signs**2, signs**4), 2.0 * (population.codes[place] == code) - 1)


def _number_feature(place: int, population: Population, scale: Scale) -> _Feature:
    raw = (population.numbers[place] - scale.centre) / scale.half
    part, variance = _linear(scale), scale.variance / scale.half**2
    # fourth moment of a uniform draw around its middle: 1.8 variance^2
    fourth = part.first**4 + 6 * part.first**2 * variance + 1.8 * variance**2
    return _Feature(place, part, Part(part.first**2 + variance, fourth), raw)


def _constant(scale: Scale) -> Part:
    return Part(scale.valid, scale.valid)


def _linear(scale: Scale) -> Part:
    middle = (scale.middle - scale.centre) / scale.half * scale.valid
    return Part(middle, middle**2 + scale.variance / scale.half**2)


def _solve(gram: Numbers) -> Numbers:
    """Return least-squares coefficients of the last column on the others, the shortest if there are several."""
    inverse = np.linalg.pinv(gram[:, :-1, :-1], rcond=1e-9, hermitian=True)
    return np.asarray((inverse @ gram[:, :-1, -1:])[:, :, 0])


Question = _Averages | _Fit


def ask(task: Task, population: Population) -> Question:
    """Return the question of a task about a population: what is summed, and the squared error of the answer."""
    return (_Averages if task.kind in ("mean", "shares") else _Fit)(task, population)
