"""The optimiser of the weighted sum of squares. It uses small tables only; cliques stay inside the passes."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.measurement import Measurement
from syndic.model.markov.passes import AnyPasses

Floats = NDArray[np.float64]
Zeros = Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]]

# passes between two fresh starts in log space, which remove errors of rounding and of the floor
RESTART = 100
# the largest change of a logarithm in one pass, and of all tables together: exp of it times a cell stays finite
LONGEST, LONGEST_SUM = 5.0, 400.0
MEMORY = 10
# weight of the first proximal step: a unit of divergence costs as much as this share of all rows
PULL, LEAST_PULL, LESS = 1.0, 1.0 / 512, 0.7


def dot(left: Floats, right: Floats) -> float:
    """Return the inner product by numpy's own loop: a threaded BLAS used 20 times the processor time."""
    return float(np.einsum("i,i->", left, right))


def longest(passes: AnyPasses, direction: Floats) -> float:
    """Return the largest step of one pass along a direction."""
    most = min(LONGEST, LONGEST_SUM / len(passes.sets))
    return most / max(float(np.abs(direction).max()), 1e-300)


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """The objective, tables flattened in order: half the sum of weight * (total * probability - value)^2."""

    values: Floats
    weights: Floats
    total: float

    @classmethod
    def of(cls, tables: Sequence[Measurement], length: int, total: float) -> Self:
        """Flatten the tables; positions up to `length` that no table fills have weight 0."""
        values, weights = np.zeros(length), np.zeros(length)
        begin = 0
        for one in tables:
            end = begin + one.values.size
            values[begin:end] = one.values.reshape(-1)
            weights[begin:end] = 1 / one.variance
            begin = end
        return cls(values, weights, total)

    @property
    def noise(self) -> float:
        """The expected loss from noise alone: half a unit per cell."""
        return 0.5 * float(np.count_nonzero(self.weights))

    def residuals(self, probabilities: Floats) -> Floats:
        """Return expected minus measured counts."""
        return self.total * probabilities - self.values

    def loss(self, residuals: Floats) -> float:
        """Return half the weighted sum of squares."""
        return 0.5 * dot(self.weights, residuals * residuals)


@final
@dataclass(frozen=True)
class Limits:
    """When to stop: after a number of passes, at a share of the noise's loss, or when passes gain too little."""

    iterations: int
    target: float
    tolerance: float

    def reached(self, used: int, loss: float, problem: Problem) -> bool:
        """Return whether the passes are used up or the loss is down to the level of the noise."""
        return used >= self.iterations or loss <= self.target * problem.noise


Optimiser = Callable[[AnyPasses, Problem, Floats, Zeros, Limits], tuple[Floats, float, int]]
"""From a model's logarithms to better ones, the loss and the number of passes; the passes end at that model."""


def dual(passes: AnyPasses, problem: Problem, logs: Floats, zeros: Zeros, limits: Limits) -> tuple[Floats, float, int]:
    """Proximal steps, each through its dual problem by limited-memory BFGS.

    A step minimises the sum of squares plus `pull` * total times the Kullback-Leibler divergence from the model before
    it. With x the change of logarithms, the dual is total * log mass - <x, values> + 1/2 <x, ridge x>: convex, smooth
    and unconstrained, and one pass gives its gradient. The ridge of a cell is `pull` times its variance, so no
    logarithm changes much, however negative a noisy count is. The pull decreases from step to step. The first model has
    independent columns, so stopping early leaves out dependence that could come from the noise alone.
    """
    active = problem.weights > 0
    variance = np.divide(1.0, problem.weights, out=np.ones_like(logs), where=active)
    scale = np.maximum(problem.values, 0.0) + variance
    search = _Search(passes, problem, active)
    pull = PULL
    ridge = np.where(active, pull * variance, 0.0)
    history = _History(ridge)
    search.begin(logs, np.zeros_like(logs), ridge, zeros)
    best, loss = logs, problem.loss(search.residuals)
    care = 1.0
    while not limits.reached(search.used, loss, problem) and care > 1e-3:
        _descend(search, scale, history, zeros, limits, care * limits.tolerance * problem.noise / pull)
        before, fresh = loss, problem.loss(search.residuals)
        if fresh < loss:
            best, loss = search.fixed + search.point, fresh
        # a proximal step never increases the loss if it is solved accurately enough
        if before - fresh < limits.tolerance * before and (pull < PULL or fresh > before):
            care /= 10
            continue
        pull, care = max(LESS * pull, LEAST_PULL), 1.0
        ridge = np.where(active, pull * variance, 0.0)
        search.stay(ridge)
        history.renew(ridge)
    # also removes rounding errors; an interrupted line search is discarded
    passes.start(best, zeros)
    return best, loss, search.used


def _descend(search: "_Search", scale: Floats, history: "_History", zeros: Zeros, limits: Limits, least: float) -> None:
    """Minimise one dual until five passes gain less than `least`."""
    recent: deque[float] = deque([np.inf] * 5, maxlen=5)
    scale = scale + search.ridge
    while search.used < limits.iterations and np.any(search.gradient) and sum(recent) >= least:
        point, gradient, value = search.point, search.gradient, search.value
        search.move(history.direction(gradient, scale), limits.iterations)
        history.add(search.point - point, search.gradient - gradient)
        recent.append(value - search.value)
        if search.used - search.begun >= RESTART:
            search.begin(search.fixed, search.point, search.ridge, zeros)


@final
class _Search:
    """The current point of the dual, and line search along a direction. `fixed` is the start of the proximal step."""

    def __init__(self, passes: AnyPasses, problem: Problem, active: NDArray[np.bool_]) -> None:
        self.passes, self.problem, self.active = passes, problem, active
        self.used = self.begun = 0

    def begin(self, fixed: Floats, point: Floats, ridge: Floats, zeros: Zeros) -> None:
        """Start at a point, computed in log space."""
        self.fixed, self.ridge, self.begun = fixed, ridge, self.used
        self.passes.start(fixed + point, zeros)
        self._stand(point)

    def stay(self, ridge: Floats) -> None:
        """Start the next proximal step at the current point."""
        self.fixed, self.ridge = self.fixed + self.point, ridge
        self._stand(np.zeros_like(self.point))

    def _stand(self, point: Floats) -> None:
        self.point = point
        self.residuals = self.problem.residuals(self.passes.values[: self.passes.measured])
        self.gradient = np.where(self.active, self.residuals + self.ridge * point, 0.0)
        self.value = self.value_at(point)

    def value_at(self, point: Floats) -> float:
        """Return the dual at the current state of the passes, which is at `point`."""
        linear = dot(point, self.problem.values)
        return self.problem.total * self.passes.log_total - linear + 0.5 * dot(self.ridge, point * point)

    def move(self, direction: Floats, iterations: int) -> None:
        """Step along the direction until the value decreases enough; shorten a step that was too long."""
        slope = dot(self.gradient, direction)
        length = min(1.0, longest(self.passes, direction))
        moved = 0.0
        while True:
            self.passes.advance((length - moved) * direction)
            self.used += 1
            rise = self.value_at(self.point + length * direction) - self.value
            if rise <= 1e-4 * length * slope or self.used >= iterations or length < 1e-9:
                break
            moved = length
            # the parabola through value and slope here and value there
            length *= min(0.5, max(0.1, -0.5 * slope * length / (rise - slope * length)))
        self._stand(self.point + length * direction)


@final
class _History:
    """The last steps and the resulting changes of the gradient, for limited-memory BFGS (Nocedal 1980)."""

    def __init__(self, ridge: Floats) -> None:
        self.ridge = ridge
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)

    def add(self, step: Floats, change: Floats) -> None:
        """Store a step, unless the gradient hardly changed along it."""
        product = dot(step, change)
        if product > 1e-12 * np.sqrt(dot(step, step) * dot(change, change)):
            self.pairs.append((step, change, product))

    def renew(self, ridge: Floats) -> None:
        """Adapt the stored pairs to another ridge."""
        old, self.pairs = self.pairs, deque(maxlen=MEMORY)
        for step, change, _ in old:
            self.add(step, change + (ridge - self.ridge) * step)
        self.ridge = ridge

    def direction(self, gradient: Floats, scale: Floats) -> Floats:
        """Return the search direction; the initial approximation of the curvature is diagonal."""
        if not self.pairs:
            return -0.1 * gradient / scale
        result = -gradient
        shares = []
        for step, change, product in reversed(self.pairs):
            shares.append(dot(step, result) / product)
            result -= shares[-1] * change
        _, change, product = self.pairs[-1]
        result *= product / dot(change, change / scale) / scale
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            result += (share - dot(change, result) / product) * step
        return result
