"""Coefficients of regressions on the shares of cells, with their influence functions; neither believes its model.

Each comes with what it was divided by, and the influence of that: the variation of the regressor that the others do not
explain. If noise hides that, the coefficient is not known.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.model.interval.measured import NoValueError

Floats = NDArray[np.float64]
Fitted = tuple[float, Floats, float, Floats]

_STEPS: Final = 50
_CLOSE: Final = 1e-10
_SINGULAR: Final = 1e-10


def linear(shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats) -> Fitted:
    """Return the coefficient of the first regressor by least squares, and its influence in each cell."""
    weights, y, x, kept = _rows(shares, outcome, regressors, given)
    inverse = inverse_of((x * weights[:, None]).T @ x)
    coefficients = inverse @ (x.T @ (weights * y))
    influence = _spread((x @ inverse[1]) * (y - x @ coefficients), kept, shares.shape)
    return float(coefficients[1]), influence, *_divisor(x, inverse, 1.0, kept, shares.shape)


def logistic(shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats) -> Fitted:
    """Return the coefficient of the first regressor by logistic regression, and its influence in each cell."""
    weights, y, x, kept = _rows(shares, outcome, regressors, given)
    mean = weights @ x[:, 1:] / weights.sum()
    scale = np.append(1.0, np.sqrt(weights @ (x[:, 1:] - mean) ** 2 / weights.sum()))
    if not (scale > 0).all():
        raise NoValueError("a column of the regression has one value only")
    centred = np.column_stack([x[:, 0], x[:, 1:] - mean]) / scale
    coefficients = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-centred @ coefficients))
        inverse = inverse_of((centred * (weights * chance * (1 - chance))[:, None]).T @ centred)
        step = inverse @ (centred.T @ (weights * (y - chance)))
        coefficients += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _CLOSE:
            break
    else:
        raise NoValueError("the logistic regression has no finite coefficients: a group has one outcome only")
    influence = _spread((centred @ inverse[1]) * (y - chance) / scale[1], kept, shares.shape)
    divisor = _divisor(centred, inverse, chance * (1 - chance), kept, shares.shape)
    return float(coefficients[1] / scale[1]), influence, *divisor


def _divisor(
    x: Floats, inverse: Floats, weights: Floats | float, kept: NDArray[np.bool_], shape: tuple[int, ...]
) -> tuple[float, Floats]:
    """Return what a coefficient was divided by, and its influence in each cell."""
    known = 1 / float(inverse[1, 1])
    return known, _spread(weights * (known * (x @ inverse[1])) ** 2, kept, shape) - known


def _rows(
    shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return weights, outcome and regressors, with a constant first, of the cells that count."""
    parts = [np.broadcast_to(one, shares.shape).ravel() for one in (outcome, *regressors)]
    kept = np.broadcast_to(given == 1, shares.shape).ravel() & (shares.ravel() > 0)
    for one in parts:
        kept = kept & np.isfinite(one)
    if not kept.any():
        raise NoValueError("no row has all columns of the regression")
    y, *x = (one[kept] for one in parts)
    return shares.ravel()[kept], y, np.column_stack([np.ones(len(y)), *x]), kept


def inverse_of(matrix: Floats) -> Floats:
    """Return the inverse of a matrix of products; refuse one that is as good as singular."""
    scale = np.sqrt(np.diag(matrix))
    if not (np.isfinite(matrix).all() and (scale > 0).all()):
        raise NoValueError("a column of the regression has one value only")
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] < _SINGULAR:
        raise NoValueError(
            "the columns of the regression determine each other, or the outcome of nearly all rows: leave one out"
        )
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _spread(influence: Floats, kept: NDArray[np.bool_], shape: tuple[int, ...]) -> Floats:
    every = np.zeros(kept.size)
    every[kept] = influence
    return every.reshape(shape)
