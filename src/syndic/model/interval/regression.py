"""Coefficients of regressions on the shares of cells, with their influence functions; neither believes its model."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

Floats = NDArray[np.float64]

_STEPS: Final = 50
_CLOSE: Final = 1e-10
_SINGULAR: Final = 1e-10


def linear(shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats) -> tuple[float, Floats]:
    """Return the coefficient of the first regressor by least squares, and its influence in each cell."""
    weights, y, x, kept = _rows(shares, outcome, regressors, given)
    inverse = _inverse((x * weights[:, None]).T @ x)
    coefficients = inverse @ (x.T @ (weights * y))
    return float(coefficients[1]), _spread((x @ inverse[1]) * (y - x @ coefficients), kept, shares.shape)


def logistic(shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats) -> tuple[float, Floats]:
    """Return the coefficient of the first regressor by logistic regression, and its influence in each cell."""
    weights, y, x, kept = _rows(shares, outcome, regressors, given)
    mean = weights @ x[:, 1:] / weights.sum()
    scale = np.append(1.0, np.sqrt(weights @ (x[:, 1:] - mean) ** 2 / weights.sum()))
    if not (scale > 0).all():
        raise InputError("a column of the regression has one value only")
    centred = np.column_stack([x[:, 0], x[:, 1:] - mean]) / scale
    coefficients = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-centred @ coefficients))
        inverse = _inverse((centred * (weights * chance * (1 - chance))[:, None]).T @ centred)
        step = inverse @ (centred.T @ (weights * (y - chance)))
        coefficients += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _CLOSE:
            break
    else:
        raise InputError("the logistic regression has no finite coefficients: a group has one outcome only")
    influence = (centred @ inverse[1]) * (y - chance) / scale[1]
    return float(coefficients[1] / scale[1]), _spread(influence, kept, shares.shape)


def _rows(
    shares: Floats, outcome: Floats, regressors: Sequence[Floats], given: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return weights, outcome and regressors, with a constant first, of the cells that count."""
    parts = [np.broadcast_to(one, shares.shape).ravel() for one in (outcome, *regressors)]
    kept = np.broadcast_to(given == 1, shares.shape).ravel() & (shares.ravel() > 0)
    for one in parts:
        kept = kept & np.isfinite(one)
    if not kept.any():
        raise InputError("no row has all columns of the regression")
    y, *x = (one[kept] for one in parts)
    return shares.ravel()[kept], y, np.column_stack([np.ones(len(y)), *x]), kept


def _inverse(matrix: Floats) -> Floats:
    scale = np.sqrt(np.diag(matrix))
    if not (np.isfinite(matrix).all() and (scale > 0).all()):
        raise InputError("a column of the regression has one value only")
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] < _SINGULAR:
        raise InputError("the columns of the regression determine each other: leave one out")
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _spread(influence: Floats, kept: NDArray[np.bool_], shape: tuple[int, ...]) -> Floats:
    every = np.zeros(kept.size)
    every[kept] = influence
    return every.reshape(shape)
