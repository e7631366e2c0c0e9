"""The memory layout of one clique, and the few larger tables between it and its many small tables.

A clique has many small tables (measured ones, separators). Going through its cells once for each would take most of
the time, so the small tables are covered by a few groups: one pass over the cells multiplies by the groups' tables and
sums onto them; for each small table only its group is read. The last columns of the clique, the block, are completely
in a group or not at all, so that the inner loop runs over adjacent numbers.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.graph import bits, cells, maximal
from syndic.model.markov.kernels import Floats, Integers, Shape

# nanoseconds, measured on one core: a cell in a pass, a cell for each group, a row for each group, a group's cell
# for each small table
CELL, CELL_GROUP, ROW_GROUP, GROUP_SMALL = 0.6, 0.35, 4.0, 0.65
WIDEST = 256
TRIES = 8


@final
@dataclass(frozen=True)
class Cover:
    """The layout chosen for one clique, as bits of its axes: the block, the groups, the group of each small table."""

    block: int
    groups: tuple[int, ...]
    group_of: tuple[int, ...]
    single: bool  # every group contains the parent's separator: one pass is enough


@lru_cache(maxsize=4096)
def cover(sizes: tuple[int, ...], smalls: tuple[int, ...], separator: int) -> Cover:
    """Choose block and groups for a clique of `sizes` with these small tables: the fastest of a few candidates."""
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
    """Return candidate blocks: of frequent columns, neither narrow nor wide."""
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
    """Cover the small tables by groups, merging two as long as that makes a pass faster."""
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
    """Return the approximate time of one step, in nanoseconds."""
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
    """Return for every cell over `axes` (the last fastest) its cell in the table over `target`, a subset of them."""
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


@final
class CliqueState:
    """One clique: its cells and the index maps of its small tables."""

    def __init__(self, sizes: tuple[int, ...], slots: Sequence[tuple[int, int]], sets: Sequence[int], own: int) -> None:
        """Lay out a clique; `slots` gives start and size of each small table, `sets` its axes as bits.

        `own` is the index of the parent's separator among them, -1 for the root.
        """
        choice = cover(sizes, tuple(sets), sets[own] if own >= 0 else 0)
        inner = axes_of(choice.block, range(len(sizes)))
        outer = tuple(axis for axis in range(len(sizes)) if axis not in inner)
        self.sizes = sizes
        self.order = (*outer, *inner)
        self.single = choice.single
        groups = [axes_of(group, self.order) for group in choice.groups]
        # a clique with one pass needs its separator in every group
        homes = list(enumerate(choice.group_of))
        copies = [(own, group) for group in range(len(groups)) if own >= 0 and group != choice.group_of[own]]
        lines = [*homes, *(copies if choice.single else ())]
        self.shape = self._shape(outer, inner, groups, [(sets[one], slots[one], group) for one, group in lines])
        self.cells: Floats = np.empty(math.prod(sizes))
        self.tables: Floats = np.empty(self.shape.starts[-1])
        self.sums: Floats = np.empty(self.shape.starts[-1])
        self.every_group = np.arange(len(groups))
        self.distinct = np.arange(len(sets))
        self.inner = np.delete(self.distinct, [own][: own >= 0])
        self.own: Integers = self.distinct[own : own + 1] if own >= 0 else self.distinct[:0]
        self.own_group = self.every_group[[choice.group_of[own]]] if own >= 0 else self.every_group[:0]
        self.copies = np.concatenate([self.own, np.arange(len(sets), len(lines))])

    def _shape(
        self,
        outer: tuple[int, ...],
        inner: tuple[int, ...],
        groups: Sequence[tuple[int, ...]],
        lines: Sequence[tuple[int, tuple[int, int], int]],
    ) -> Shape:
        counts = [math.prod(self.sizes[axis] for axis in group) for group in groups]
        starts = np.array([0, *itertools.accumulate(counts)], dtype=np.int64)
        axes = range(len(self.sizes))
        maps = [index_of(self.sizes, groups[group], axes_of(one, axes)) for one, _, group in lines]
        firsts = [0, *itertools.accumulate(len(one) for one in maps)]
        smalls = [
            (starts[group], counts[group], first, *slot) for (_, slot, group), first in zip(lines, firsts, strict=False)
        ]
        rows = [index_of(self.sizes, outer, [axis for axis in group if axis in outer]) for group in groups]
        return Shape(
            rows=math.prod(self.sizes[axis] for axis in outer),
            width=math.prod(self.sizes[axis] for axis in inner),
            starts=starts,
            blocks=np.array([bool(set(group) & set(inner)) for group in groups]),
            places=np.stack(rows),
            smalls=np.array(smalls, dtype=np.int64),
            maps=np.concatenate(maps),
        )

    @property
    def array(self) -> NDArray[np.float64]:
        """The cells with the clique's columns in order (a view)."""
        view = self.cells.reshape([self.sizes[axis] for axis in self.order])
        return view.transpose(np.argsort(self.order))
