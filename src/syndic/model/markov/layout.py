"""How one clique's cells lie in memory, and which few larger tables stand between it and its many small ones.

A clique has many small tables (measured ones, separators). Going through its cells once for each would cost most of
the time, so the small tables are covered by a few groups: a pass over the cells multiplies by the groups' tables and
sums onto them, and only groups and small tables are walked for each small one. The last columns of the clique, the
block, are whole in a group or not in it at all, so that the inner loop runs over adjacent numbers.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.graph import bits, cells, maximal

# nanoseconds, measured on one core: a cell in a pass, a cell for each group, a row for each group, a group's cell
# for each small table
CELL, CELL_GROUP, ROW_GROUP, GROUP_SMALL = 0.6, 0.35, 4.0, 0.65
WIDEST = 256
TRIES = 8


@final
@dataclass(frozen=True)
class Cover:
    """The choice for one clique, as bits of its axes: the block, the groups, and the group of each small table."""

    block: int
    groups: tuple[int, ...]
    group_of: tuple[int, ...]
    single: bool  # every group contains the parent's separator: one pass is enough


@lru_cache(maxsize=4096)
def cover(sizes: tuple[int, ...], smalls: tuple[int, ...], separator: int) -> Cover:
    """Choose block and groups for a clique of `sizes` with these small tables; the cheapest of a few tries."""
    best: tuple[float, Cover] | None = None
    for block in blocks(sizes, smalls):
        for single in {True, separator == 0}:
            groups = merge(sizes, smalls, block, separator if single else 0)
            cost = price(sizes, smalls, groups, block, single)
            if best is None or cost < best[0]:
                group_of = tuple(_smallest(one, groups, sizes) for one in smalls)
                best = cost, Cover(block, tuple(groups), group_of, single)
    if best is None:
        raise AssertionError("there is always a block")
    return best[1]


def blocks(sizes: Sequence[int], smalls: Sequence[int]) -> list[int]:
    """Return blocks worth trying: of frequent columns, neither narrow nor wide."""
    everything = (1 << len(sizes)) - 1
    if cells(everything, sizes) <= 16:
        return [everything]
    often = sorted(range(len(sizes)), key=lambda axis: (-sum(one >> axis & 1 for one in smalls), -sizes[axis]))
    found: list[int] = []
    for count in range(1, len(sizes) + 1):
        for axes in itertools.combinations(often[:6] if count < 4 else often[: count + 1], count):
            block = sum(1 << axis for axis in axes)
            if 8 <= cells(block, sizes) <= WIDEST:
                found.append(block)
        if len(found) >= TRIES:
            break
    return found[:TRIES] or [1 << often[0]]


def merge(sizes: Sequence[int], smalls: Sequence[int], block: int, base: int) -> list[int]:
    """Cover the small tables by groups, joining two while that makes a pass cheaper."""
    whole = cells((1 << len(sizes)) - 1, sizes)

    def completed(members: int) -> int:
        members |= base
        return members | block if members & block else members

    groups = maximal(completed(one) for one in smalls)
    while len(groups) > 1:
        saved, left, right = max(
            (
                whole * CELL_GROUP
                + GROUP_SMALL
                * 2
                * (cells(left, sizes) + cells(right, sizes) - 2 * cells(completed(left | right), sizes)),
                left,
                right,
            )
            for left, right in itertools.combinations(groups, 2)
        )
        if saved <= 0:
            break
        groups = maximal([completed(left | right), *groups])
    return groups


def price(sizes: Sequence[int], smalls: Sequence[int], groups: Sequence[int], block: int, single: bool) -> float:
    """Return about how many nanoseconds one step takes."""
    whole = cells((1 << len(sizes)) - 1, sizes)
    rows = whole // cells(block, sizes)
    wide = sum(1 for group in groups if group & block)
    passes = 1 if single else 2
    small = sum(cells(groups[_smallest(one, groups, sizes)], sizes) for one in smalls)
    sweep = passes * CELL * whole + 2 * wide * CELL_GROUP * whole + 2 * len(groups) * ROW_GROUP * rows
    return sweep + 2 * GROUP_SMALL * small


def _smallest(one: int, groups: Sequence[int], sizes: Sequence[int]) -> int:
    homes = [place for place, group in enumerate(groups) if one & ~group == 0]
    return min(homes, key=lambda place: cells(groups[place], sizes))


def index_of(sizes: Sequence[int], axes: Sequence[int], target: Sequence[int]) -> NDArray[np.int32]:
    """Return for every cell over `axes` (the last fastest) its cell in the table over `target`, a part of them."""
    strides, stride = dict.fromkeys(axes, 0), 1
    for axis in reversed(target):
        strides[axis] = stride
        stride *= sizes[axis]
    index = np.zeros(1, dtype=np.int32)
    for axis in axes:
        index = (index[:, None] + strides[axis] * np.arange(sizes[axis], dtype=np.int32)).reshape(-1)
    return index


def axes_of(members: int, order: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a set in a given order."""
    wanted = set(bits(members))
    return tuple(axis for axis in order if axis in wanted)
