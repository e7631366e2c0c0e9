"""Tables across parties and the columns' own counts are made to agree (Zhao et al. 2024, Algorithm 6)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def consistent(
    table: Floats, margins: Sequence[Floats], *, trust: float = 0.5, sweeps: int = 50, tolerance: float = 1e-6
) -> Floats:
    """Return the table, without negative cells and of the same total, with margins that agree with `margins`.

    Each sweep goes through the axes: the margin becomes the mean of what the table and the column's own counts say, the
    difference is spread evenly over the cells of each value, and negative cells are set to 0. `trust` is the weight of
    the column's own counts: 1/2 as printed; 1 where they are much better known, so that they do not move.
    """
    total = sum(float(one.sum()) for one in margins) / len(margins)
    shares, own = _normalised(table), [_normalised(one) for one in margins]
    for _ in range(sweeps):
        apart = 0.0
        for axis, known in enumerate(own):
            rest = tuple(other for other in range(shares.ndim) if other != axis)
            found = shares.sum(axis=rest)
            mean = trust * known + (1 - trust) * found
            apart = max(apart, float(np.abs(mean - found).max()), float(np.abs(mean - known).max()))
            own[axis] = mean
            shape = [-1 if other == axis else 1 for other in range(shares.ndim)]
            spread = (mean - found) * found.size / shares.size
            shares = _normalised(shares + spread.reshape(shape))
        if apart < tolerance:
            break
    return shares * total


def _normalised(values: Floats) -> Floats:
    """Return non-negative shares that sum to one; uniform if there is nothing positive."""
    positive = np.maximum(values, 0.0)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(values.shape, 1 / values.size)
