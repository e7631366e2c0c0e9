"""Columns with many levels: those that noise hides are merged along a public structure, by their noisy counts.

A number is counted in fine bins. Each bin alone is mostly noise, so the counts are replaced by the piecewise
exponential curve that explains them best, and beyond the last bin that stands out of the noise the tail goes on as it
began. Neighbouring bins are then merged into groups of about equal counts.

A long list of values has branches, at least "other". A value that does not stand out is released as its branch. This is
private partition selection on a public list.

All of it reads noisy counts and public structure only. It is post-processing, so it costs no budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov.measurement import UNKNOWN, Measurement, sums_by_column

Floats = NDArray[np.float64]

MOST_SMOOTHED: Final = 128
"""More levels than this are smoothed in blocks: the work grows with their cube."""

TAIL_HALVINGS: Final = 3
"""How often the outermost groups of an ordered column are halved, at most, on either side."""

FALSE_VALUES: Final = 0.05
"""How many values that nobody has are released from a long list, in expectation, at most."""

# Penalties on bends that are tried; the one with the lowest sum of misfit and effective parameters is taken.
_PENALTIES: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_REWEIGHTINGS: Final = 6
_SMALL_BEND: Final = 0.02
_STEPS: Final = 30
# A tail begins after the last pair of levels whose sum is so many deviations above 0.
_STANDS_OUT: Final = 3.0
# Levels before the tail, of 64, that its curve is fitted to, how well it is believed to fit them, and how much it may
# bend.
_LOOK_BACK: Final = 7
_MISFIT: Final = 0.15
_BEND: Final = 0.25


def one_way_tables(domain: Domain, tables: Iterable[Measurement]) -> list[Measurement]:
    """Return one table for each column from tables over all levels: their sums, averaged by precision."""
    sums = sums_by_column(domain, tables)
    # what rounds that were lost say is nothing, however it is added up
    known = {name: 1 / weight if weight > 2 / UNKNOWN else UNKNOWN for name, (_, weight) in sums.items()}
    return [Measurement((name,), sums[name][0] / sums[name][1], known[name]) for name in domain.names]


def level_counts(
    tables: Sequence[Measurement], ordered: Mapping[str, int], branches: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Floats]:
    """Return the count of every level of every column; those of ordered columns are smooth.

    `ordered` says how many levels of a column are in order, from the first on; what follows, such as the level for
    missing values, is left as it is. `branches` has the branch of every level of a long list: a level that is released
    as its branch has exactly 0, and its branch more than 0.
    """
    counts = {}
    for one in tables:
        (name,) = one.names
        values = one.values.copy()
        if name in ordered and one.variance < UNKNOWN:
            levels = ordered[name]
            values[:levels] = smooth(values[:levels], float(np.sqrt(one.variance)))
        if branches and name in branches:
            released = released_levels(one, branches[name])
            sums = np.bincount(released, weights=values, minlength=values.size)
            values = np.where(released == np.arange(values.size), np.maximum(sums, 1e-9), 0.0)
        counts[name] = values
    return counts


def merge_neighbours(counts: Floats, groups: int, least: float = np.inf) -> NDArray[np.int64]:
    """Return the group of each level: neighbours with about equal counts together, `groups` of them at most.

    The first and the last group are halved up to `TAIL_HALVINGS` times while the outer half has at least `least`: few
    people in a tail make much of a mean.
    """
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    shares = positive / total if total > 0 else np.full(counts.size, 1 / counts.size)
    halvings = 0
    while halvings < TAIL_HALVINGS and total / groups / 2 ** (halvings + 1) >= least:
        halvings += 1
    tail = [1 / groups / 2**times for times in range(halvings, 0, -1)]
    edges = [*tail, *(place / groups for place in range(1, groups)), *(1 - share for share in reversed(tail))]
    return np.unique(np.searchsorted(edges, np.cumsum(shares) - shares / 2, side="right"), return_inverse=True)[1]


def group_ordered(counts: Floats, levels: int, groups: int, least: float = np.inf) -> NDArray[np.int64]:
    """Return the group of each level where the first ones are in order, and each of the others is a group by itself."""
    merged = merge_neighbours(counts[:levels], groups, least)
    return np.append(merged, merged.max() + 1 + np.arange(counts.size - levels))


def least_released(levels: int, variance: float) -> float:
    """Return the noisy count from which a value of a long list is released; `variance` is that of the noise."""
    return NormalDist().inv_cdf(1 - min(0.5, FALSE_VALUES / levels)) * float(np.sqrt(variance))


def released_levels(table: Measurement, branches: Sequence[int]) -> NDArray[np.int64]:
    """Return the level that each level of a long list is released as: itself if it stands out, else its branch.

    `branches` has the branch of each level; a level that is its own branch is never merged. The rule: a value stands
    out if its noisy count is above a threshold, which at most `FALSE_VALUES` values without any row reach in
    expectation. Other values are added to their branch. A branch stands out if its own count or the sum reaches the
    threshold; otherwise it is added to its own branch. A sum has more noise than a value, but later rounds count a
    branch as one group.
    """
    counts, up = table.values, np.asarray(branches, dtype=np.int64)
    least = least_released(counts.size, table.variance)
    depths, above = np.zeros(counts.size, dtype=np.int64), np.arange(counts.size)
    while (deeper := up[above] != above).any():
        depths, above = depths + deeper, up[above]
    order = np.argsort(depths, kind="stable")
    sums, released = counts.copy(), np.arange(counts.size)
    for level in order[::-1]:
        branch = up[level]
        if branch != level and max(counts[level], sums[level]) <= least:
            released[level] = branch
            sums[branch] += sums[level]
    for level in order:
        released[level] = released[released[level]]
    return released


def group_released(
    released: NDArray[np.int64], branches: Sequence[int], counts: Floats, most: int
) -> NDArray[np.int64]:
    """Return the group of each level of a long list: one for each level that is released, `most` of them at most.

    Beyond that, the released levels with the smallest counts are one group. "Other" and all else that collects rare
    levels and has no branch is a group by itself: the noise of so many levels would spoil the shares of a larger one.
    """
    labels, members = np.unique(released, return_counts=True)
    last = (np.asarray(branches)[labels] == labels) & (members > 1)
    order = np.lexsort((-counts[labels], ~last))
    groups = np.full(counts.size, most - 1)
    kept = np.sort(labels[order if labels.size <= most else order[: most - 1]])
    groups[kept] = np.arange(kept.size)
    return groups[released]


def smooth(counts: Floats, deviation: float) -> Floats:
    """Return the curve behind noisy counts of levels in order, none negative; `deviation` is that of their noise."""
    if counts.size > MOST_SMOOTHED:
        blocks = np.arange(counts.size) * MOST_SMOOTHED // counts.size
        sizes = np.bincount(blocks)
        sums = np.asarray(np.bincount(blocks, weights=counts), dtype=np.float64)
        return np.asarray((smooth(sums, deviation * float(np.sqrt(sizes.mean()))) / sizes)[blocks])
    if counts.size < 5:
        return np.maximum(counts, 0.0)
    curve = _piecewise_exponential(counts, deviation)
    curve = _with_tail(counts, curve, deviation)
    return _with_tail(counts[::-1], curve[::-1], deviation)[::-1].copy()


def _piecewise_exponential(counts: Floats, deviation: float) -> Floats:
    """Return the least bent logarithmic curve that fits: a sum of absolute bends is penalised, by reweighting."""
    bends = np.diff(np.eye(counts.size), 2, axis=0)
    best, found = np.inf, np.maximum(counts, 0.0)
    for penalty in _PENALTIES:
        near = np.convolve(np.pad(counts, 2, mode="edge"), np.full(5, 0.2), "valid")
        logs = np.log(np.maximum(near, deviation / 10))
        weights = np.ones(len(bends))
        for _ in range(_REWEIGHTINGS):
            rough = bends.T @ ((penalty * weights)[:, None] * bends)
            logs = _minimised(counts, deviation, rough, logs)
            weights = 1 / (np.abs(bends @ logs) + _SMALL_BEND)
        curve = _exp(logs)
        known = (curve / deviation) ** 2
        parameters = float(np.trace(np.linalg.solve(np.diag(known + 1e-9) + rough, np.diag(known))))
        score = float((((counts - curve) / deviation) ** 2).sum()) + 2 * parameters
        if score < best:
            best, found = score, curve
    return found


def _minimised(counts: Floats, deviation: float, rough: Floats, logs: Floats) -> Floats:
    """Return the logarithms with the least misfit and roughness, by damped Gauss-Newton steps."""

    def loss(logs: Floats) -> float:
        return 0.5 * float((((counts - _exp(logs)) / deviation) ** 2).sum() + logs @ rough @ logs)

    now = loss(logs)
    for _ in range(_STEPS):
        curve = _exp(logs)
        slope = -(counts - curve) * curve / deviation**2 + rough @ logs
        step = np.linalg.solve(np.diag((curve / deviation) ** 2 + 1e-6) + rough, slope)
        size, then = 1.0, loss(logs - step)
        while size > 1e-4 and then > now - 1e-4 * size * float(slope @ step):
            size /= 2
            then = loss(logs - size * step)
        logs = logs - size * step
        improved, now = now - then, then
        if improved < 1e-6 * max(1.0, abs(now)):
            break
    return logs


def _with_tail(counts: Floats, curve: Floats, deviation: float) -> Floats:
    """Return the curve whose right end, where noise hides the counts, goes on in the manner of the levels before it.

    The tail is a log-concave parabola, fitted to the last levels that stand out and to all beyond.
    """
    standing = np.flatnonzero(counts[:-1] + counts[1:] > _STANDS_OUT * np.sqrt(2) * deviation)
    if not standing.size or standing[-1] >= counts.size - 2:
        return curve
    last = int(standing[-1])
    unit = max(1.0, counts.size / 64)
    first = max(int(np.argmax(curve[: last + 1])), last - round(_LOOK_BACK * unit))
    seen = counts[first:]
    places = (np.arange(first, counts.size) - float(last)) / unit
    weights = 1 / (deviation**2 + (_MISFIT * np.maximum(seen, 0.0)) ** 2)
    slopes, bends = np.meshgrid(np.linspace(-0.5, 2.0, 51), (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4))
    shapes = np.exp(-slopes.ravel()[:, None] * places - 0.5 * bends.ravel()[:, None] * places**2)
    heights = np.maximum((shapes * (weights * seen)).sum(axis=1) / (shapes**2 * weights).sum(axis=1), 1.0)
    fits = heights[:, None] * shapes
    scores = (weights * (seen - fits) ** 2).sum(axis=1) + (bends.ravel() / _BEND) ** 2
    tailed = curve.copy()
    tailed[last + 1 :] = fits[int(np.argmin(scores)), last + 1 - first :]
    return tailed


def _exp(logs: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(logs, -30.0, 30.0)))
