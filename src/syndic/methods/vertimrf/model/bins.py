"""Dimension reduction: columns with many values are encoded by bins, and spread over their values again afterwards.

The published formulas number bins beyond the last where the number of bins does not divide that of values, and the last
value of a bin as its first; here a bin is what they mean: `width` values, the last bin all that are left.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import Grouping

Floats = NDArray[np.float64]


def equal_width(domain: Domain, bins: int) -> Grouping:
    """Return `bins` groups of neighbouring values for every column that has more values than that."""
    return Grouping(domain, tuple(_groups(size, bins) for size in domain.sizes))


def _groups(size: int, bins: int) -> tuple[int, ...]:
    if size <= bins:
        return tuple(range(size))
    width = size // bins
    return tuple(min(value // width, bins - 1) for value in range(size))


def gathered(values: Floats, names: Sequence[str], grouping: Grouping) -> Floats:
    """Return a table over values summed to one over bins."""
    groups = dict(zip(grouping.domain.names, grouping.groups, strict=True))
    for axis, name in enumerate(names):
        lines = np.moveaxis(values, axis, 0)
        sums = np.zeros((max(groups[name]) + 1, *lines.shape[1:]))
        np.add.at(sums, np.array(groups[name]), lines)
        values = np.moveaxis(sums, 0, axis)
    return values


def shares_of_bins(name: str, bins: Grouping, groups: Grouping, weights: Mapping[str, Floats]) -> Floats:
    """Return which share of each bin of a column is in each of the model's groups of values: a row a group."""
    axis = bins.domain.axes((name,))[0]
    found = np.zeros((max(groups.groups[axis]) + 1, max(bins.groups[axis]) + 1))
    np.add.at(found, (np.array(groups.groups[axis]), np.array(bins.groups[axis])), bins.shares(name, weights))
    return found


def recovered(table: Floats, shares: Sequence[Floats]) -> Floats:
    """HisRec: return a table over bins as one over groups of values, `shares` of each axis as above."""
    for axis, one in enumerate(shares):
        table = np.moveaxis(np.tensordot(one, table, axes=(1, axis)), 0, axis)
    return table


def recovered_variance(variance: float, shares: Sequence[Floats]) -> float:
    """Return the variance of a cell at which the recovered table says as much as the table over bins did.

    A bin that is wrong by e is wrong by e times the share of it in each group, in squared sum by e^2 times that of
    the shares. So squares over the variance add up as before if it is multiplied by their sum over the number of bins.
    """
    for one in shares:
        variance *= float(np.square(one).sum()) / one.shape[1]
    return variance
