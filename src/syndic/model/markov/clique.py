"""One clique in memory: its cells, and the index tables by which its small tables are reached."""

import itertools
import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.kernels import Floats, Integers, Shape
from syndic.model.markov.layout import axes_of, cover, index_of


@final
class CliqueState:
    """One clique: its cells and how its small tables are reached."""

    def __init__(self, sizes: tuple[int, ...], slots: Sequence[tuple[int, int]], sets: Sequence[int], own: int) -> None:
        """Lay out a clique; `slots` gives start and size of each small table, `sets` its axes as bits.

        `own` is the place of the parent's separator among them, -1 for the root.
        """
        choice = cover(sizes, tuple(sets), sets[own] if own >= 0 else 0)
        inner = axes_of(choice.block, range(len(sizes)))
        outer = tuple(axis for axis in range(len(sizes)) if axis not in inner)
        self.sizes = sizes
        self.order = (*outer, *inner)
        self.single = choice.single
        groups = [axes_of(group, self.order) for group in choice.groups]
        # a clique of one pass needs its separator in every group
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
