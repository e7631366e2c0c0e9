"""Total variation distances between tables of counts: of sets of columns in bounded memory, by column, by group."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, prod
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor, SparseCounts
from syndic.document import Document
from syndic.evaluation.rows import Clique, Rows
from syndic.methods.synthesis.trust import POOR, Reliability

WAYS = (1, 2, 3)
MOST_SETS = 300
# dense tables of one pass over the rows, 128 MB; a set of more cells than the second number is counted sparsely
PASS_CELLS = 2**24
DENSE_CELLS = 2**22


def column_sets(names: tuple[str, ...], size: int, most: int = MOST_SETS) -> list[Clique]:
    """Return all sets of `size` columns if there are at most `most`, else as many random ones, possibly with repeats.

    The random ones come from `numpy.random.default_rng([2024, size])`, as in published comparisons, so that
    figures are comparable.
    """
    if size > len(names):
        return []
    if comb(len(names), size) <= most:
        return list(combinations(names, size))
    draws = np.random.default_rng([2024, size])
    places = (sorted(draws.choice(len(names), size, replace=False)) for _ in range(most))
    return [tuple(names[place] for place in row) for row in places]


def is_dense(domain: Domain, clique: Clique) -> bool:
    """Return whether the table of a set of columns is small enough for a dense array."""
    return prod(domain[name] for name in clique) <= DENSE_CELLS


def passes(domain: Domain, cliques: Iterable[Clique]) -> Iterator[list[Clique]]:
    """Yield groups of sets that are counted in one pass, so that memory stays bounded."""
    group: list[Clique] = []
    cells = 0
    for clique in cliques:
        size = domain.project(clique).size
        if group and cells + size > PASS_CELLS:
            yield group
            group, cells = [], 0
        group.append(clique)
        cells += size
    if group:
        yield group


class Distance(Document):
    """Total variation distance of one set of columns from the real rows: 0 identical, 1 nothing in common."""

    columns: tuple[str, ...]
    tvd: float


class WayDistance(Document):
    """Distances over all sets of `columns` columns, each from 0 to 1."""

    columns: int
    sets: int
    mean: float
    worst: float
    worst_set: tuple[str, ...]


def tvd(counts: NDArray[Any], other: NDArray[Any]) -> float:
    """Return half the l1 distance of two tables, each divided by its sum; negative cells count as empty.

    Two tables without rows are the same; one without rows has nothing in common with one that has some.
    """
    first, second = (np.maximum(table, 0) for table in (counts, other))
    totals = float(first.sum()), float(second.sum())
    if 0.0 in totals:
        return float(totals != (0.0, 0.0))
    # rounding may give slightly more than 1
    return min(1.0, float(np.abs(first / totals[0] - second / totals[1]).sum()) / 2)


def tvd_of_cells(counts: SparseCounts, other: SparseCounts) -> float:
    """Return the distance of two sparse tables over the same columns."""
    places = np.union1d(counts.cells, other.cells)
    tables = np.zeros((2, len(places)), dtype=np.int64)
    for row, table in enumerate((counts, other)):
        tables[row, np.searchsorted(places, table.cells)] = table.counts
    return tvd(tables[0], tables[1])


def all_sets(names: tuple[str, ...], most: Mapping[int, int]) -> dict[int, list[Clique]]:
    """Return the sets of one, two and three columns to compare; single columns always all."""
    return {way: sets for way in WAYS if (sets := column_sets(names, way, len(names) if way == 1 else most[way]))}


def distances(truth: Rows, others: Mapping[str, Rows], cliques: Sequence[Clique]) -> dict[str, dict[Clique, float]]:
    """Return the distance of each of the others from the truth, for every set of columns."""
    found: dict[str, dict[Clique, float]] = {name: {} for name in others}
    for group, counts in counted(truth, cliques):
        for name, rows in others.items():
            for clique, real, table in zip(group, counts, rows.marginals(group), strict=True):
                found[name][clique] = tvd(real.values, table.values)
    for clique in dict.fromkeys(cliques):
        if not is_dense(truth.schema.domain, clique):
            cells = truth.cells(clique)
            for name, rows in others.items():
                found[name][clique] = tvd_of_cells(cells, rows.cells(clique))
    return found


def counted(rows: Rows, cliques: Sequence[Clique]) -> Iterator[tuple[list[Clique], list[Factor]]]:
    """Yield groups of the sets with dense tables, and their counts."""
    domain = rows.schema.domain
    dense = [clique for clique in dict.fromkeys(cliques) if is_dense(domain, clique)]
    for group in passes(domain, dense):
        yield group, rows.marginals(group)


def way_distances(found: Mapping[Clique, float], sets: Mapping[int, Sequence[Clique]]) -> tuple[WayDistance, ...]:
    """Return the mean and the worst distance for one, two and three columns; a set drawn twice counts twice."""
    return tuple(
        WayDistance(
            columns=way,
            sets=len(cliques),
            mean=fmean(found[clique] for clique in cliques),
            worst=max(found[clique] for clique in cliques),
            worst_set=max(cliques, key=found.__getitem__),
        )
        for way, cliques in sets.items()
    )


def k_marginal(mean_pairwise: float) -> float:
    """Return SDNist's k-marginal score: 1000 identical, 0 nothing in common."""
    return 1000 * (1 - mean_pairwise)


SHOWN_PAIRS: Final = 10


class PairScore(Document):
    """Two columns: the distance from the real rows, and the one that the release expects. For the owner only.

    `expected` is computed from the release alone; None if the method does not publish what it takes.
    """

    columns: tuple[str, str]
    tvd: float
    expected: float | None


def _by_pair(sets: Iterable[Distance]) -> dict[tuple[str, str], float]:
    return {(one.columns[0], one.columns[1]): one.tvd for one in sets if len(one.columns) == 2}


def relied_on(sets: Iterable[Distance], reliability: Reliability | None) -> str:
    """Return in one sentence which pairs the release holds, and whether it says so itself. For the owner only."""
    found = _by_pair(sets)
    close = {frozenset(pair) for pair, tvd in found.items() if tvd <= POOR}
    words = f"{len(close)} of {len(found)} pairs of columns are at most {POOR:g} from the real rows"
    if reliability is None:
        return words
    poor = {frozenset(pair.columns) for pair in reliability.poor}
    trusted = {frozenset(pair) for pair in found} - poor
    return f"{words}; the release calls {len(trusted)} of them reliable, and {len(trusted & close)} of these are"


def worst_pairs(sets: Iterable[Distance], reliability: Reliability | None) -> tuple[PairScore, ...]:
    """Return the pairs with the largest distances, the worst first."""
    found = _by_pair(sets)
    worst = sorted(found, key=lambda pair: -found[pair])[:SHOWN_PAIRS]
    return tuple(
        PairScore(
            columns=pair,
            tvd=found[pair],
            expected=None if reliability is None else reliability.pair(*pair).error,
        )
        for pair in worst
    )


SHOWN_GROUPS = 10
# smaller groups are far from the other half of the real rows too, and carry no information about the release
SMALLEST_GROUP = 50


Group = tuple[str, int]


class ColumnScore(Document):
    """One column: its distance, the mean over the pairs it is in, and the distance of two `halves` of the real rows."""

    column: str
    tvd: float
    pairs: float | None
    halves: float


class GroupScore(Document):
    """The people at one level of one column: mean distance of their other columns. Exact: for the owner only.

    `share` is the group's share of the real rows, `released_share` its share of the release; `halves` is the same
    distance between two halves of the real rows.
    """

    column: str
    level: str
    rows: int
    share: float
    released_share: float
    tvd: float
    halves: float


def column_scores(
    names: Sequence[str], found: Mapping[Clique, float], halves: Mapping[Clique, float], pairs: Sequence[Clique]
) -> tuple[ColumnScore, ...]:
    """Return the scores of all columns, worst first."""
    scores = []
    for name in names:
        joined = [found[pair] for pair in pairs if name in pair]
        mean = fmean(joined) if joined else None
        scores.append(ColumnScore(column=name, tvd=found[name,], pairs=mean, halves=halves[name,]))
    return tuple(sorted(scores, key=lambda score: -score.tvd))


def group_scores(
    truth: Rows, release: Rows, halves: tuple[Rows, Rows], pairs: Sequence[Clique]
) -> tuple[GroupScore, ...]:
    """Return the worst groups of at least 50 real rows: largest distance above that of two halves."""
    found, sizes = _by_group(truth, release, pairs)
    same, _ = _by_group(*halves, pairs, wanted=sizes)
    total, released_total = truth.size(), max(release.size(), 1)
    scores = [
        GroupScore(
            column=column,
            level=truth.schema[column].labels()[code],
            rows=real,
            share=real / total,
            released_share=max(0, other) / released_total,
            tvd=fmean(found[column, code]),
            halves=fmean(same[column, code]),
        )
        for (column, code), (real, other) in sizes.items()
    ]
    return tuple(sorted(scores, key=lambda score: score.halves - score.tvd)[:SHOWN_GROUPS])


def _by_group(
    truth: Rows, other: Rows, pairs: Sequence[Clique], wanted: Container[Group] | None = None
) -> tuple[dict[Group, list[float]], dict[Group, tuple[int, int]]]:
    """Return the distances of other columns and both numbers of rows, for the wanted groups or else the large ones."""
    found: dict[Group, list[float]] = defaultdict(list)
    sizes: dict[Group, tuple[int, int]] = {}
    for cliques, counts in counted(truth, pairs):
        for real, table in zip(counts, other.marginals(cliques), strict=True):
            for group, row, of_other in _levels(real, table):
                number = int(row.sum())
                if number >= SMALLEST_GROUP if wanted is None else group in wanted:
                    found[group].append(tvd(row, of_other))
                    sizes[group] = number, int(of_other.sum())
    return found, sizes


def _levels(real: Factor, table: Factor) -> Iterator[tuple[Group, NDArray[Any], NDArray[Any]]]:
    """Yield, for both columns of a pair, each level with the counts of the other column at it."""
    for axis, name in enumerate(real.domain.names):
        rows, others = np.moveaxis(real.values, axis, 0), np.moveaxis(table.values, axis, 0)
        for code in range(len(rows)):
            yield (name, code), rows[code], others[code]
