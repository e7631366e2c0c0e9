"""CarEst and tables over bins: from the parties' encodings to counts that agree with the columns' own.

Dimension reduction: columns with many values are encoded by bins, and divided among their values again afterwards.

The published formulas number bins beyond the last if the number of bins does not divide the number of values, and give
the last value of a bin as its first. Here a bin is what they intend: `width` values, the last bin all that remain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.estimate import cell_error, cell_table
from syndic.model.selection import Grouping
from syndic.noise.response import RandomisedResponse

Names = tuple[str, ...]
Floats = NDArray[np.float64]


class Across(Protocol):
    """Tables over bins, estimated from encodings."""

    def table(self, names: Names) -> Floats:
        """Return unbiased counts, unrounded and perhaps negative."""
        ...

    def variance(self, names: Names) -> float:
        """Return the approximate variance of a cell."""
        ...


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SketchTables:
    """Sketches by key and column: one key for each pair of columns, or one key, (), for all."""

    plan: SketchPlan
    people: float
    ranks: Mapping[tuple[Names, str], NDArray[np.uint16]]

    def table(self, names: Names) -> Floats:
        """Return all people minus the union of complements, by the maximum likelihood number of elements."""
        key = () if ((), names[0]) in self.ranks else names
        if any((key, name) not in self.ranks for name in names):
            raise InputError(f"the columns {list(names)} were not encoded under one key")
        return cell_table([self.ranks[key, name] for name in names], self.plan, self.people)

    def variance(self, names: Names) -> float:
        """Return the variance by the Fisher information."""
        key = () if ((), names[0]) in self.ranks else names
        sketches = sum(self.ranks[key, name].shape[1] - 1 for name in names)
        people = max(1, round(self.people))
        # if almost nothing can be estimated the error is infinite; any large number stands for it
        return min(cell_error(self.plan, people=people, sketches=sketches), 1e4 * people) ** 2


def decoded_table(responses: Sequence[RandomisedResponse], columns: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return unbiased counts of the table of some columns from their responses, unrounded and perhaps negative."""
    if len(responses) != len(columns) or not columns:
        raise InputError(f"{len(columns)} columns of answers were given for {len(responses)} responses")
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
        """Return the variance if all responses were equally frequent, which is nearly so for small epsilon."""
        return self.factor(names) * len(self.codes[names[0]])

    def factor(self, names: Names) -> float:
        """Return each person's part of that variance."""
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


def shares_of_bins(name: str, bins: Grouping, groups: Grouping, weights: Mapping[str, Floats]) -> Floats:
    """Return the share of each bin of a column in each of the model's groups of values: one row per group."""
    found = np.zeros((groups.domain_of_groups[name], bins.domain_of_groups[name]))
    np.add.at(found, (groups.by_column[name], bins.by_column[name]), bins.shares(name, weights))
    return found


def recovered(table: Floats, shares: Sequence[Floats]) -> Floats:
    """HisRec: return a table over bins as one over groups of values, `shares` of each axis as above."""
    for axis, one in enumerate(shares):
        table = np.moveaxis(np.tensordot(one, table, axes=(1, axis)), 0, axis)
    return table


def recovered_variance(variance: float, shares: Sequence[Floats]) -> float:
    """Return the variance of a cell at which the recovered table carries as much information as the table over bins.

    An error e of a bin becomes e times the share of each group, so e^2 times the sum of squared shares. Squared errors
    over the variance add up as before if the variance is multiplied by that sum over the number of bins.
    """
    for one in shares:
        variance *= float(np.square(one).sum()) / one.shape[1]
    return variance


def consistent(
    table: Floats, margins: Sequence[Floats], *, trust: float = 0.5, sweeps: int = 50, tolerance: float = 1e-6
) -> Floats:
    """Return the table, without negative cells and of the same total, with margins that agree with `margins`.

    Each sweep goes through the axes: the margin becomes the mean of the table's margin and the column's own counts, the
    difference is divided evenly among the cells of each value, and negative cells are set to 0. `trust` is the weight
    of the column's own counts: 1/2 as published; 1 if they are much more precise, so that they stay as they are.
    """
    total = sum(float(one.sum()) for one in margins) / len(margins)
    shares, own = shares_of(table), [shares_of(one) for one in margins]
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
            shares = shares_of(shares + spread.reshape(shape))
        if apart < tolerance:
            break
    return shares * total


def shares_of(values: Floats) -> Floats:
    """Return shares that sum to one, negative cells cut at zero; uniform if no cell is positive."""
    positive = np.maximum(values, 0.0)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(values.shape, 1 / values.size)
