"""Levels that are too rare to distinguish from noise are counted as one group, and separated again afterwards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.data.column import code_type
from syndic.data.counting import DenseCounter
from syndic.errors import InputError
from syndic.model.markov.measurement import Impossible, Measurement, in_groups
from syndic.model.selection.levels import merge_neighbours

# Pairs are counted over at least so many groups of levels of a column: that many groups of equal counts keep 94 % of a
# normal number's variance, about what intervals of a release need (`syndic.model.interval.one_step.LEAST_MEASURED`).
FEWEST_LEVELS = 8


@final
@dataclass(frozen=True)
class Grouping:
    """For each column the group of every level. Public: computed from the schema and noisy counts only."""

    domain: Domain
    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if tuple(len(one) for one in self.groups) != self.domain.sizes:
            raise InputError(f"groups must be given for all levels: {self.domain.sizes} of {list(self.domain.names)}")
        for name, one in zip(self.domain.names, self.groups, strict=True):
            # a file may contain any number, however large: never count up to it
            if max(one) >= len(one) or set(one) != set(range(max(one) + 1)):
                raise InputError(f"groups of {name!r} must be numbered from 0 without gaps")

    @classmethod
    def none(cls, domain: Domain) -> Self:
        """Return the grouping in which every level is its own group."""
        return cls(domain, tuple(tuple(range(size)) for size in domain.sizes))

    @cached_property
    def domain_of_groups(self) -> Domain:
        """The columns with a level for each group."""
        return Domain(self.domain.names, tuple(max(one) + 1 for one in self.groups))

    @cached_property
    def by_column(self) -> dict[str, NDArray[np.int64]]:
        """The groups as arrays, by column."""
        return {name: np.array(one) for name, one in zip(self.domain.names, self.groups, strict=True)}

    def then(self, coarser: "Grouping") -> "Grouping":
        """Return the grouping of levels whose groups are put into groups themselves."""
        both = zip(self.groups, coarser.groups, strict=True)
        return Grouping(self.domain, tuple(tuple(others[group] for group in one) for one, others in both))

    def recode(self, codes: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the groups of coded rows."""
        sizes = dict(zip(self.domain.names, self.domain_of_groups.sizes, strict=True))
        return {name: self.by_column[name].astype(code_type(sizes[name]))[column] for name, column in codes.items()}

    def count(self, codes: Mapping[str, NDArray[Any]], tables: Sequence[tuple[str, ...]]) -> list[Factor]:
        """Return how many coded rows are in each cell of groups."""
        counter = DenseCounter(self.domain_of_groups, list(tables))
        counter.add(self.recode({name: codes[name] for name in counter.names}))
        return counter.factors()

    def gather(self, table: Measurement) -> Measurement:
        """Return a table over all levels summed to groups, with the mean variance of a group."""
        values = in_groups(table.values, [self.by_column[name] for name in table.names])
        return Measurement(table.names, values, table.variance * table.values.size / values.size)

    def grouped(self, table: Measurement) -> Measurement:
        """Return a table over groups with the group of every level, or as it is if every level is its own group."""
        if self.domain_of_groups == self.domain:
            return table
        return replace(table, groups=tuple(self.by_column[name] for name in table.names))

    def zeros(self, zeros: Iterable[Impossible]) -> list[Impossible]:
        """Return impossible cells over groups; only columns without groups may have them."""
        kept = list(zeros)
        for one in kept:
            if any(len(set(self.by_column[name])) < len(self.by_column[name]) for name in one.names):
                raise InputError(f"columns {list(one.names)} have impossible cells, so their levels cannot be grouped")
        return kept

    def spread(self, table: Factor, weights: Mapping[str, NDArray[np.float64]]) -> Factor:
        """Return a table over groups as one over levels: each group is divided in proportion to the levels' weights."""
        values = table.values
        for axis, name in enumerate(table.domain.names):
            shape = [1] * values.ndim
            shape[axis] = -1
            values = values.take(self.by_column[name], axis=axis) * self.shares(name, weights).reshape(shape)
        return Factor(self.domain.project(table.domain.names), values)

    def shares(self, name: str, weights: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return each level's share of its group, from noisy weights; equal shares if no weight is positive."""
        groups = self.by_column[name]
        positive = np.maximum(weights[name], 0.0)
        sums, sizes = np.bincount(groups, weights=positive)[groups], np.bincount(groups)[groups]
        return np.where(sums > 0, positive / np.where(sums > 0, sums, 1.0), 1 / sizes)

    def expand(
        self,
        codes: Mapping[str, NDArray[Any]],
        weights: Mapping[str, NDArray[np.float64]],
        generator: np.random.Generator,
    ) -> dict[str, NDArray[Any]]:
        """Return rows of groups as rows of levels, with levels assigned in proportion to the weights."""
        return {name: self._expand_column(name, column, weights, generator) for name, column in codes.items()}

    def _expand_column(
        self,
        name: str,
        column: NDArray[Any],
        weights: Mapping[str, NDArray[np.float64]],
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        groups, shares = self.by_column[name], self.shares(name, weights)
        levels = np.zeros(len(column), dtype=code_type(len(groups)))
        for group in range(int(groups.max()) + 1):
            members = np.flatnonzero(groups == group)
            rows = generator.permutation(np.flatnonzero(column == group))
            # systematic sampling: the number of rows of a level is its expected number rounded up or down
            places = (np.arange(len(rows)) + generator.random()) / max(1, len(rows))
            ends = np.cumsum(shares[members])
            levels[rows] = members[np.minimum(np.searchsorted(ends, places * ends[-1], side="right"), len(members) - 1)]
        return levels


def group_rare(
    domain: Domain,
    one_way: Sequence[Measurement],
    *,
    least: float,
    most_levels: int,
    alone: Iterable[str] = (),
    given: Mapping[str, NDArray[np.int64]] | None = None,
    adjacent: Mapping[str, int] | None = None,
) -> Grouping:
    """Group the levels of each column whose noisy count is below `least` standard deviations of its noise.

    At most `most_levels` groups per column: beyond that the levels with the smallest noisy counts are grouped too.
    Columns in `alone` keep all their levels; those in `given` have these groups. In `adjacent` are columns of at most
    `most_levels` levels of which so many are in order: of these only neighbours are grouped.
    """
    counts = {one.names[0]: one for one in one_way}
    groups = []
    for name, size in zip(domain.names, domain.sizes, strict=True):
        values, threshold = counts[name].values, least * float(np.sqrt(counts[name].variance))
        if name in alone:
            one = np.arange(size)
        elif given is not None and name in given:
            one = given[name]
        elif adjacent is not None and name in adjacent:
            rare = (values <= threshold) & (np.arange(size) < adjacent[name])
            one = np.cumsum(np.append(True, ~(rare[1:] & rare[:-1]))) - 1
        else:
            common = np.flatnonzero(values > threshold)
            if len(common) + (len(common) < size) > most_levels:
                common = np.sort(np.argsort(-values, kind="stable")[: most_levels - 1])
            if len(common) >= size - 1:
                common = np.arange(size)
            one = np.full(size, len(common))
            one[common] = np.arange(len(common))
        groups.append(tuple(one.tolist()))
    return Grouping(domain, tuple(groups))


def pair_groups(
    grouping: Grouping, one_way: Mapping[str, NDArray[np.float64]], useful: int, ordered: Mapping[str, int]
) -> Grouping:
    """Return groups of the model's groups: ordered columns have so few that noise does not hide cells of pairs.

    A table over fewer groups has the same noise on each of fewer cells, so associations stand out that were hidden.
    `useful`: how many cells a table may have.
    """
    return coarsened(grouping, one_way, max(FEWEST_LEVELS, isqrt(useful)), ordered)


def coarsened(
    grouping: Grouping, one_way: Mapping[str, NDArray[np.float64]], most: int, ordered: Mapping[str, int]
) -> Grouping:
    """Return groups of a grouping's groups: of ordered columns with many more than `most`, neighbours are put together.

    `ordered` says how many levels of a column are in order; each of those that follow stays by itself. A column is
    merged if that halves the cells of its table with another such column.
    """
    found = []
    for name, one in zip(grouping.domain.names, grouping.groups, strict=True):
        groups = np.arange(max(one) + 1)
        if name in ordered and groups.size**2 > 2 * most**2:
            counts = np.bincount(one, np.maximum(one_way[name], 0.0)).astype(np.float64)
            last = one[ordered[name] - 1] + 1
            groups = merge_neighbours(counts[:last], min(most, last))
            groups = np.append(groups, groups.max() + 1 + np.arange(counts.size - last))
        found.append(tuple(groups.tolist()))
    return Grouping(grouping.domain_of_groups, tuple(found))
