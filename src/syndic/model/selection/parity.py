"""Parities: products of signs, which show what several columns have in common and no pair of them shows.

The levels of a column are cut into two halves of similar noisy counts, with the signs +1 and -1. The parity of a set of
columns is the sum over rows of the product of its signs, a Fourier coefficient of its table (Barak et al. 2007). If y
is the exclusive or of three columns, every pair of the four looks independent, and their parity is the number of rows.

A parity is one number where a table of k columns has at least 2^k, so thousands of them cost little. They are compared
with a model that was fitted to pairs; what stands out from the noise is measured as a table and held by the model.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.data.counting import cover
from syndic.model.markov.field import MarkovField
from syndic.model.selection.counts import Names, Parities
from syndic.model.selection.grouping import Grouping

SIZES: Final = (3, 4, 5)
"""Numbers of columns of a set."""

MOST_SETS: Final = 4096
"""The most sets in all: the variance of a parity grows with their number, and so do messages."""

FALSE_ALARM: Final = 0.01
"""The chance that noise alone makes any of the sets stand out."""

LEAST_DEVIATION: Final = 0.05
"""A parity that is off by less of the rows is left to the tables that are selected anyway."""

# Of the largest parity that the counts of its columns allow, a set must stand out with this much to be asked for.
_REACH: Final = 0.75
# A strong parity, as a share of rows, and how many standard deviations of its noise it must stand out by to be found.
_STRONG: Final = 0.9
_SURE: Final = 2.0
# Rows drawn to compute the parities of a model.
_DRAWN: Final = 1 << 16
# All changes of the signs of so many columns are tried.
_MOST_TRIED: Final = 16


def parity_sums(
    halves: Grouping, sets: Sequence[Names], count: Callable[[list[Names]], Sequence[Factor]]
) -> NDArray[np.int64]:
    """Return the parity of each set of columns. `count` returns tables over the halves; private if they are.

    Few tables of many columns contain all sets. The Walsh-Hadamard transform of one has the parities of all its sets.
    """
    domain = halves.domain_of_groups
    groups, homes = cover(domain, sets)
    transforms = [_walsh(one.values) for one in count(groups)]
    found = []
    for home, names in zip(homes, sets, strict=True):
        # a column of one half has the sign +1 throughout
        signs = tuple(int(name in names and domain[name] > 1) for name in groups[home])
        found.append(transforms[home][signs])
    return np.array(found, dtype=np.int64)


def _walsh(values: NDArray[Any]) -> NDArray[Any]:
    for axis, size in enumerate(values.shape):
        if size > 1:
            plus, minus = values.take(0, axis), values.take(1, axis)
            values = np.stack([plus + minus, plus - minus], axis)
    return values


@lru_cache(maxsize=8)
def most_flipped(sets: tuple[Names, ...]) -> int:
    """Return how many parities change at most if the signs of one row do: those of sets with an odd number of changes.

    All changes are tried where the sets have at most 16 columns: the transform of the sets has, for each change, how
    many more parities stay than change.
    """
    names = list(dict.fromkeys(name for one in sets for name in one))
    if len(names) > _MOST_TRIED:
        return len(sets)
    asked = np.zeros((2,) * len(names), dtype=np.int64)
    for one in sets:
        asked[tuple(int(name in one) for name in names)] += 1
    return (len(sets) - int(_walsh(asked).min())) // 2


def share_to_find(sets: int, variance: float, total: float) -> float:
    """Return the share of a budget at which a strong parity stands out among so many sets of `total` rows.

    `variance` is that of each at the whole budget.
    """
    least = (_STRONG * total / (_deviations(sets) + _SURE)) ** 2 - total
    return variance / least if least > 0 else 1.0


def split_levels(domain: Domain, counts: Mapping[str, NDArray[np.float64]], ordered: Sequence[str]) -> Grouping:
    """Return two halves of each column with counts as similar as possible: of neighbours where it is ordered.

    With random halves the sign of a column of two levels would be constant every other time.
    """
    halves = []
    for name in domain.names:
        mass = np.maximum(counts[name], 0.0)
        if name in ordered:
            before = np.append(0.0, np.cumsum(mass))[:-1]
            one = (before + mass / 2 > mass.sum() / 2).astype(np.int64)
        else:
            one, sums = np.zeros(mass.size, dtype=np.int64), [0.0, 0.0]
            for level in np.argsort(-mass, kind="stable"):
                one[level] = int(sums[1] < sums[0])
                sums[one[level]] += mass[level]
        halves.append(tuple(int(half) for half in one) if one.min() < one.max() else (0,) * mass.size)
    return Grouping(domain, tuple(halves))


def most_sets(columns: int) -> int:
    """Return the most sets that are asked for with this many columns."""
    return min(MOST_SETS, sum(math.comb(columns, size) for size in SIZES))


def sets_to_ask(
    balance: Mapping[str, float],
    smallest: Callable[[int], float],
    noisier: Callable[[Names], float | None] = lambda _: 1.0,
) -> list[Names]:
    """Return the sets of columns whose parity could stand out, small sets first.

    `balance` is twice the share of a column's smaller half. A parity beyond what fewer columns explain is at most the
    product of the balances, as a share of rows: no cell is negative. `smallest` is the smallest share that stands out
    among a number of sets, `noisier` how many times the variance a set has, None if it cannot be counted. Where there
    are too many sets, the columns with the least balance are left out. If nothing could stand out, one set is asked
    for.
    """
    names = sorted(balance, key=lambda name: -balance[name])
    largest: dict[Names, float] = {}
    for size in SIZES:
        width = len(names)
        while math.comb(width, size) > MOST_SETS - len(largest):
            width -= 1
        kept = [name for name in balance if name in names[:width]]
        for one in combinations(kept, size):
            times = noisier(one)
            if times is not None:
                largest[one] = math.prod(balance[name] for name in one) / math.sqrt(times)
    ordered = sorted(largest.values(), reverse=True)
    places = range(1, len(ordered) + 1)
    number = bisect_left(places, True, key=lambda place: _REACH * ordered[place - 1] < smallest(place))
    reached = [one for one in largest if number and _REACH * largest[one] >= smallest(number)]
    return sorted(reached, key=lambda one: (len(one), -largest[one]))[:number] or [tuple(balance)[: SIZES[0]]]


@final
@dataclass(frozen=True, eq=False)
class Scan:
    """The sets whose parities are measured, and two halves of each column: of all `levels`, and of the model's groups.

    Public: computed from noisy counts.
    """

    sets: Sequence[Names]
    levels: Grouping
    groups: Grouping

    def standing_out(self, field: MarkovField, opened: Parities) -> list[Names]:
        """Return the sets whose noisy parity is not that of the model, the largest difference first.

        The model's are computed from rows drawn with a fixed seed: whoever repeats it finds the same sets.
        """
        drawn = field.sample(_DRAWN, np.random.default_rng(0))
        sums = parity_sums(self.groups, opened.sets, lambda tables: self.groups.count(drawn, tables))
        expected = sums * (field.total / _DRAWN)
        # the drawn rows vary too
        drawing = field.total**2 / _DRAWN
        least = [_smallest(len(opened.sets), one + drawing, field.total) for one in opened.variances]
        off = np.abs(opened.values - expected) / field.total
        found = [place for place in np.argsort(-off, kind="stable") if off[place] >= max(least[place], LEAST_DEVIATION)]
        return [opened.sets[place] for place in found]


def plan_scan(
    grouping: Grouping,
    one_way: Mapping[str, NDArray[np.float64]],
    ordered: Sequence[str],
    total: float,
    variance: Callable[[int], float],
    noisier: Callable[[Domain], float | None] = lambda _: 1.0,
) -> Scan:
    """Return what to ask of about `total` rows, given the variance of the noise on one of a number of parities.

    `noisier` says of halves of columns how many times that variance their parity has, None if it cannot be counted.
    """
    domain = grouping.domain_of_groups
    counts: dict[str, NDArray[np.float64]] = {
        name: np.bincount(groups, np.maximum(one_way[name], 0.0)).astype(np.float64)
        for name, groups in grouping.by_column.items()
    }
    halves = split_levels(domain, counts, ordered)
    balance = {}
    for name, one in counts.items():
        mass = np.bincount(halves.by_column[name], one, minlength=2)
        balance[name] = 2 * float(mass.min() / max(mass.sum(), 1e-9))
    sets = sets_to_ask(
        balance,
        lambda number: _smallest(number, variance(number), total),
        lambda names: noisier(halves.domain_of_groups.project(names)),
    )
    return Scan(sets, grouping.then(halves), halves)


def _smallest(sets: int, variance: float, total: float) -> float:
    """Return the parity, as a share of rows, that noise and the choice of people exceed rarely in so many sets."""
    return _deviations(sets) * math.sqrt(variance + total) / total


def _deviations(sets: int) -> float:
    """Return how many standard deviations none of so many parities is off, but rarely."""
    return -NormalDist().inv_cdf(FALSE_ALARM / 2 / sets)
