"""CarEst, and tables over bins: from what the parties encoded to counts that agree with the columns' own.

Dimension reduction: columns with many values are encoded by bins, and spread over their values again afterwards.

The published formulas number bins beyond the last where the number of bins does not divide that of values, and the last
value of a bin as its first; here a bin is what they mean: `width` values, the last bin all that are left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.estimate import cell_error, cell_table
from syndic.methods.vertimrf.sketch.plan import SketchPlan
from syndic.model.markov import Grouping
from syndic.noise.response import RandomisedResponse

Names = tuple[str, ...]
Floats = NDArray[np.float64]


class Across(Protocol):
    """Tables over bins that follow from encodings."""

    def table(self, names: Names) -> Floats:
        """Return unbiased counts, unrounded and perhaps negative."""
        ...

    def variance(self, names: Names) -> float:
        """Return about the variance of one of their cells."""
        ...


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SketchTables:
    """Sketches by key and column: a key for each pair of columns, or one for all, then called ()."""

    plan: SketchPlan
    people: float
    ranks: Mapping[tuple[Names, str], NDArray[np.uint16]]

    def table(self, names: Names) -> Floats:
        """Return everybody less the union of complements, by the likeliest number of elements."""
        key = () if ((), names[0]) in self.ranks else names
        if any((key, name) not in self.ranks for name in names):
            raise InputError(f"the columns {list(names)} were not encoded under one key")
        return cell_table([self.ranks[key, name] for name in names], self.plan, self.people)

    def variance(self, names: Names) -> float:
        """Return the variance by Fisher's information."""
        key = () if ((), names[0]) in self.ranks else names
        sketches = sum(self.ranks[key, name].shape[1] - 1 for name in names)
        people = max(1, round(self.people))
        # where next to nothing can be told the error is infinite, and any large number says so
        return min(cell_error(self.plan, people=people, sketches=sketches), 1e4 * people) ** 2


def decoded_table(responses: Sequence[RandomisedResponse], columns: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return unbiased counts of the table of some columns from their responses, unrounded and perhaps negative."""
    if len(responses) != len(columns) or not columns:
        raise InputError(f"{len(columns)} columns of answers for {len(responses)} responses")
    shape = tuple(response.size for response in responses)
    places = np.ravel_multi_index([np.asarray(column) for column in columns], shape)
    counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    return decode_counts(responses, counts)


def decode_counts(responses: Sequence[RandomisedResponse], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply the inverse of each response along its axis: together the inverse of their Kronecker product."""
    for axis, response in enumerate(responses):
        counts = response.decode_counts(counts, axis=axis)
    return counts


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OracleTables:
    """Everybody's randomised responses, an array for each column."""

    responses: Mapping[str, RandomisedResponse]
    codes: Mapping[str, NDArray[np.integer]]

    def table(self, names: Names) -> Floats:
        """Return the counts of the responses, decoded axis by axis."""
        columns = [self.codes[name].astype(np.int64) for name in names]
        return decoded_table([self.responses[name] for name in names], columns)

    def variance(self, names: Names) -> float:
        """Return the variance if every response were equally frequent, which small epsilons make them nearly."""
        return self.factor(names) * len(self.codes[names[0]])

    def factor(self, names: Names) -> float:
        """Return what each person adds to that variance."""
        each = 1.0
        for name in names:
            response = self.responses[name]
            other = (1 - response.kept) / response.size
            square = ((1 - other) ** 2 + (response.size - 1) * other**2) / response.size
            each *= square / response.kept**2
        return each


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


def consistent(
    table: Floats, margins: Sequence[Floats], *, trust: float = 0.5, sweeps: int = 50, tolerance: float = 1e-6
) -> Floats:
    """Return the table, without negative cells and of the same total, with margins that agree with `margins`.

    Each sweep goes through the axes: the margin becomes the mean of what the table and the column's own counts say, the
    difference is spread evenly over the cells of each value, and negative cells are set to 0. `trust` is the weight of
    the column's own counts: 1/2 as published; 1 where they are much better known, so that they do not move.
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
