"""The minimiser of one party's objective, with a proven bound on its error.

The sensitivity is proven for the exact minimiser. A solver that stops early adds to it, so the result includes the
gradient's norm, computed after the last step: strong convexity turns it into a distance.
"""

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.model.erm.loss import Loss, Numbers, Objective

_NEWTON_STEPS = 50
_LONGEST = 100_000
# e to the minus this is the remaining share of an objective's distance from its minimum: less than rounding
_FOLDS = 40


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """Weights whose gradient has norm at most `gradient_norm`. Private, the norm too."""

    weights: NDArray[np.float64]
    gradient_norm: float
    regularisation: float

    @property
    def distance(self) -> float:
        """Bound on the distance to the exact minimiser: the objective is `regularisation`-strongly convex."""
        return self.gradient_norm / self.regularisation


def minimise(objective: Objective, rows: Numbers, labels: Numbers, *, tolerance: float = 1e-8) -> Solution:
    """Return the minimiser up to a gradient norm of `tolerance`, which is public and part of the sensitivity.

    L-BFGS comes close, Newton steps finish; if these stall where the curvature jumps, accelerated descent takes over,
    whose number of steps is known beforehand. If floating point cannot reach the tolerance, `InputError` is raised;
    with rows in the unit ball the rounding of a million of them is below 1e-8.
    """
    objective.check_minimiser()
    if len(rows) == 0:
        raise InputError("there are no rows to learn from: parties below the public minimum size abstain")

    def both(weights: Numbers) -> tuple[float, Numbers]:
        return objective.value(weights, rows, labels), objective.gradient(weights, rows, labels)

    start = np.zeros(rows.shape[1])
    found = scipy.optimize.minimize(
        both, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": tolerance}
    )
    weights = np.asarray(found.x, dtype=np.float64)
    norm = certified_norm(objective, weights, rows, labels)
    for _ in range(_NEWTON_STEPS):
        if norm <= tolerance:
            break
        weights = _newton(objective, weights, rows, labels)
        norm = certified_norm(objective, weights, rows, labels)
    else:
        weights = _accelerated(objective, weights, rows, labels, tolerance)
        norm = certified_norm(objective, weights, rows, labels)
    if not norm <= tolerance:  # nor is a tolerance that is not a number reached
        raise InputError(f"the solver did not reach a gradient norm of {tolerance:g}: set a larger tolerance")
    return Solution(weights=weights, gradient_norm=norm, regularisation=objective.regularisation)


def least_regularisation(loss: Loss) -> float:
    """Return the smallest penalty with which accelerated descent reaches a minimiser in time, for rows in the ball."""
    squared = (_FOLDS / _LONGEST) ** 2
    return loss.smoothness * squared / (1 - squared)


def _accelerated(objective: Objective, weights: Numbers, rows: Numbers, labels: Numbers, tolerance: float) -> Numbers:
    """Return the weights after Nesterov's method: with rows in the unit ball no step overshoots."""
    largest = objective.loss.smoothness + objective.regularisation
    root = sqrt(objective.regularisation / largest)
    momentum = (1 - root) / (1 + root)
    here = ahead = weights
    for _ in range(min(_LONGEST, ceil(_FOLDS / root))):
        gradient = objective.gradient(ahead, rows, labels)
        if float(np.linalg.norm(gradient)) <= tolerance / 2:
            break
        before, here = here, ahead - gradient / largest
        ahead = here + momentum * (here - before)
    return np.asarray(ahead)


def certified_norm(objective: Objective, weights: Numbers, rows: Numbers, labels: Numbers) -> float:
    """Return the gradient's norm at `weights`, increased by a bound on the floating-point error."""
    gradient = objective.gradient(weights, rows, labels)
    size = 1.0 + float(np.linalg.norm(weights)) * (1.0 + objective.regularisation)
    # the worst case of a sum of n products: n roundings, each of the size of a term
    rounding = 4 * np.finfo(np.float64).eps * sum(rows.shape) * size
    norm = float(np.linalg.norm(gradient))
    return norm + rounding if np.isfinite(norm) else inf


def _newton(objective: Objective, weights: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
    """Return the weights after one Newton step, halved until the gradient is shorter."""
    curvature = objective.loss.curvature(rows @ weights, labels)
    hessian = (rows.T * curvature) @ rows / len(rows) + objective.regularisation * np.eye(rows.shape[1])
    gradient = objective.gradient(weights, rows, labels)
    step = np.linalg.solve(hessian, gradient)
    length, before = 1.0, float(np.linalg.norm(gradient))
    while length > 1e-9:
        trial = np.asarray(weights - length * step)
        if np.linalg.norm(objective.gradient(trial, rows, labels)) < before:
            return trial
        length /= 2
    return weights
