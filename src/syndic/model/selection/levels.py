"""Columns with many levels: those that noise hides are merged along a public structure, by their noisy counts.

A number is counted in fine bins. Each bin alone is mostly noise, so the counts are replaced by the piecewise
exponential curve that explains them best, and beyond the last bin that stands out of the noise the tail goes on as it
began, as long as its sums over wide stretches agree with the noisy ones. Neighbouring bins are then merged into groups
of about equal counts.

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
from syndic.model.markov.measurement import UNKNOWN, Measurement, estimate_total, sums_by_column

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
# A tail's sums over stretches of so many levels, twice as many and so on may be so many deviations off the noisy sums.
_SHORTEST: Final = 8
_AGREES: Final = 3.3
# Levels before the tail, of 64, that its curve is fitted to, how well it is believed to fit them, and how much it may
# bend.
_LOOK_BACK: Final = 7
_MISFIT: Final = 0.15
_BEND: Final = 0.25
# How many squared deviations of misfit a tail without such levels may have more, if that keeps it near its begin.
_REACH: Final = 4.0


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

    All tables together know the number of rows better than one table does. So each level gets its part of what the
    table's sum is off.
    """
    counts, total = {}, estimate_total(tables)
    precisions = {one.names[0]: 1 / (one.variance * one.values.size) for one in tables}
    whole = sum(precisions.values())
    for one in tables:
        (name,) = one.names
        values = one.values.copy()
        if name in ordered and one.variance < UNKNOWN:
            levels = ordered[name]
            fitted = values[:levels] + (total - values.sum()) / values.size
            values[:levels] = smooth(fitted, float(np.sqrt(one.variance)), 1 - precisions[name] / whole)
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


def smooth(counts: Floats, deviation: float, known: float = 0.0) -> Floats:
    """Return the curve behind noisy counts of levels in order, none negative; `deviation` is that of their noise.

    `known`: the part of the variance of their sum that other tables took away.
    """
    if counts.size > MOST_SMOOTHED:
        blocks = np.arange(counts.size) * MOST_SMOOTHED // counts.size
        sizes = np.bincount(blocks)
        sums = np.asarray(np.bincount(blocks, weights=counts), dtype=np.float64)
        return np.asarray((smooth(sums, deviation * float(np.sqrt(sizes.mean())), known) / sizes)[blocks])
    if counts.size < 5:
        return np.maximum(counts, 0.0)
    curve = _piecewise_exponential(counts, deviation)
    curve = _with_tail(counts, curve, deviation, known)
    return _with_tail(counts[::-1], curve[::-1], deviation, known)[::-1].copy()


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


def _with_tail(counts: Floats, curve: Floats, deviation: float, known: float) -> Floats:
    """Return the curve whose right end, where noise hides the counts, goes on in the manner of the levels before it.

    A spike says nothing of what follows: a tail whose sums disagree with the noisy ones is fitted without the highest
    level, then to the levels beyond alone; else it begins after the stretch that disagrees.
    """
    standing = np.flatnonzero(counts[:-1] + counts[1:] > _STANDS_OUT * np.sqrt(2) * deviation)
    last = int(standing[-1]) if standing.size else counts.size
    while last < counts.size - 2:
        look_back = round(_LOOK_BACK * max(1.0, counts.size / 64))
        before, ends = max(int(np.argmax(curve[: last + 1])), last - look_back), []
        for first in (before, before + 1, last + 1):
            tail = _tail(counts, first, last, deviation)
            ends.append(_disagreement((counts[last + 1 :] - tail) / deviation, known / counts.size))
            if not ends[-1]:
                return np.append(curve[: last + 1], tail)
        last += max(ends)
    return curve


def _tail(counts: Floats, first: int, last: int, deviation: float) -> Floats:
    """Return a log-concave parabola for all levels beyond `last`, fitted to those from `first` on."""
    seen = counts[first:]
    places = (np.arange(first, counts.size) - float(last)) / max(1.0, counts.size / 64)
    weights = 1 / (deviation**2 + (_MISFIT * np.maximum(seen, 0.0)) ** 2)
    slopes, bends = np.meshgrid(np.linspace(-0.5, 2.0, 51), (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4))
    shapes = np.exp(-slopes.ravel()[:, None] * places - 0.5 * bends.ravel()[:, None] * places**2)
    heights = np.maximum((shapes * (weights * seen)).sum(axis=1) / (shapes**2 * weights).sum(axis=1), 1.0)
    fits = heights[:, None] * shapes
    scores = (weights * (seen - fits) ** 2).sum(axis=1) + (bends.ravel() / _BEND) ** 2
    tails = fits[:, last + 1 - first :]
    if first > last:
        scores += _REACH * (tails @ np.linspace(0.0, 1.0, tails.shape[1])) / tails.sum(axis=1)
    return np.asarray(tails[int(np.argmin(scores))])


def _disagreement(off: Floats, known: float) -> int:
    """Return where the first stretch ends whose sum noise does not explain, and 0 without any.

    `off` is what counts are off, in deviations; `known` is the part of the variance of all levels that is known, for
    each of them.
    """
    sums, size, found = np.append(0.0, np.cumsum(off)), _SHORTEST, off.size + 1
    while size < 2 * off.size:
        starts = np.arange(0, off.size, size)
        ends = np.minimum(starts + size, off.size)
        noise = np.sqrt((ends - starts) * (1 - known * (ends - starts)))
        bad = np.abs(sums[ends] - sums[starts]) > _AGREES * noise
        found, size = min([found, *ends[bad].tolist()]), 2 * size
    return found % (off.size + 1)


def _exp(logs: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(logs, -30.0, 30.0)))
