"""Break the distance of a release down by column and by group of people."""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Factor
from syndic.document import Document
from syndic.evaluation.distance import counted, tvd
from syndic.evaluation.rows import Clique, Rows

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
