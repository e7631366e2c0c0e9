"""How far a model is from the truth, judged by noisy tables only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.counts import Names
from syndic.model.markov.field import MarkovField
from syndic.model.markov.measurement import Measurement

Floats = NDArray[np.float64]
# mean absolute value of a standard normal variable
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
# cells the model takes for empty may still be wrong: each counts as if it had this share of an even distribution
EVEN_SHARE = 0.1


def noisy_distance(noisy: Floats, expected: Floats, variance: float) -> float:
    """Estimate the l1 distance between the table behind `noisy` and `expected`, in rows; negative if noise explains it.

    The squared deviation of a cell is taken to be c times its expected count. c is estimated by least squares from
    squared deviations less the variance of the noise, so that large, telling cells count more than many small ones.
    """
    weights = np.maximum(expected, 0.0)
    weights = weights + EVEN_SHARE * max(float(weights.sum()), 1.0) / weights.size
    excess = np.square(noisy - expected) - variance
    factor = float((weights * excess).sum() / np.square(weights).sum())
    return math.copysign(MEAN_ABSOLUTE * math.sqrt(abs(factor)) * float(np.sqrt(weights).sum()), factor)


def outside_scores(field: MarkovField, pairs: Mapping[Names, Measurement]) -> dict[Names, float]:
    """Return for each measured pair of columns that no clique holds how far the model is from it, in rows."""
    outside = [names for names in pairs if field.tree.home(names) is None]
    expected = field.marginals(outside)
    return {
        names: noisy_distance(pairs[names].values, table.values, pairs[names].variance)
        for names, table in zip(outside, expected, strict=True)
    }


def strengths(field: MarkovField, pairs: Iterable[Names]) -> dict[Names, float]:
    """Return the l1 distance of each pair's table in the model from the product of its margins, in rows."""
    found = {}
    for names, table in zip(pairs := list(pairs), field.marginals(pairs), strict=True):
        product = np.outer(table.values.sum(axis=1), table.values.sum(axis=0)) / max(field.total, 1.0)
        found[names] = float(np.abs(table.values - product).sum())
    return found


def pairs_of(names: Sequence[str]) -> list[Names]:
    """Return all pairs, in order."""
    return list(combinations(names, 2))
