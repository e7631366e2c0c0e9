"""Top-down specialisation along taxonomy trees (DiffGen: Mohammed, Chen, Fung and Yu 2011), for a class attribute.

All values of a column start as one group, the root of its tree. A specialisation replaces a group by its children. The
score of a group v is Max(v) = sum over its children c of the largest number of rows in c of one class: the rows that
are classified correctly if each child gets its most frequent class. A cut is the final set of groups of all columns.

*Sensitivity*. Removing a row lowers one class of one child by 1 at every group on the path of the row's value, so Max
of those groups by 0 or 1; adding a row raises the groups on its own path by 0 or 1. Under replace both happen: a group
on both paths also changes by at most 1. The root is on both paths, so with at most d groups with children on a path, at
most 2 d - 1 scores of a column change, each by at most 1: 2 d - 1 in squared l2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

Nested = int | tuple["Nested", ...]
"""A tree of levels as nested tuples: a number is a level, a tuple is a group."""

Cut = dict[str, tuple[int, ...]]
"""For each column, the groups that partition its values, as indices into its tree."""


@final
@dataclass(frozen=True)
class Tree:
    """A column's groups of levels, the root first: the levels of each, and the indices of its children. Public."""

    levels: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The indices of the groups that can be specialised."""
        return tuple(place for place, below in enumerate(self.children) if below)

    @cached_property
    def depth(self) -> int:
        """The most groups with children on a path from the root."""
        deep = [0] * len(self.levels)
        for place in reversed(range(len(self.levels))):  # children come after their parents
            deep[place] = 1 + max(deep[child] for child in self.children[place]) if self.children[place] else 0
        return deep[0]

    @property
    def moved(self) -> int:
        """The most scores that one replaced row changes, each by at most 1."""
        return max(0, 2 * self.depth - 1)

    def group_of(self, cut: Sequence[int]) -> NDArray[np.int64]:
        """Return for each level the index of its group in the cut; raise `InputError` if the cut is invalid."""
        found = np.full(len(self.levels[0]), -1, dtype=np.int64)
        seen = 0
        for place, node in enumerate(cut):
            if not 0 <= node < len(self.levels):
                raise InputError("a cut names a group that its tree does not have")
            found[list(self.levels[node])] = place
            seen += len(self.levels[node])
        if seen != len(found) or int(found.min()) < 0:
            raise InputError("a cut must contain every level of a column in exactly one group")
        return found


def balanced(stop: int, start: int = 0) -> Nested:
    """Return a balanced binary tree over levels from `start` up to `stop`, in their order."""
    if stop - start == 1:
        return start
    middle = (start + stop + 1) // 2
    return (balanced(middle, start), balanced(stop, middle))


def tree_of(nested: Nested) -> Tree:
    """Return the tree of nested groups; raise `InputError` unless they contain levels 0, 1, ... once each."""
    levels: list[tuple[int, ...]] = []
    children: list[tuple[int, ...]] = []

    def add(group: Nested) -> int:
        place = len(levels)
        levels.append(())
        children.append(())
        if isinstance(group, int):
            levels[place] = (group,)
            return place
        children[place] = tuple(add(child) for child in group)
        levels[place] = tuple(level for child in children[place] for level in levels[child])
        return place

    add(nested)
    if not all(levels) or sorted(levels[0]) != list(range(len(levels[0]))):
        raise InputError("a taxonomy must name every value of its column once")
    if any(len(below) == 1 for below in children):
        raise InputError("a taxonomy's groups must have two or more members: replace a group of one by its member")
    return Tree(tuple(levels), tuple(children))


def max_scores(tree: Tree, table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Max of every group with children, from exact counts of the column's levels by class. Private."""
    counts = np.stack([table[list(levels)].sum(axis=0) for levels in tree.levels])
    best = counts.max(axis=1)
    found: NDArray[np.int64] = np.array(
        [best[list(tree.children[place])].sum() for place in tree.inner], dtype=np.int64
    )
    return found


def roots(trees: Mapping[str, Tree]) -> Cut:
    """Return the cut at which every column is one group."""
    return dict.fromkeys(trees, (0,))


def specialised(
    trees: Mapping[str, Tree],
    scores: Mapping[str, NDArray[np.float64]],
    times: int,
    fits: Callable[[Cut], bool],
    choose: Callable[[NDArray[np.float64]], int] = lambda scores: int(np.argmax(scores)),
) -> Cut:
    """Specialise this many times, each time the group that `choose` picks by score among those that `fits` allows."""
    cut = roots(trees)
    for _ in range(times):
        found: list[tuple[float, Cut]] = []
        for name, tree in trees.items():
            for node in (one for one in cut[name] if tree.children[one]):
                below = [child for one in cut[name] for child in (tree.children[one] if one == node else (one,))]
                option = {**cut, name: tuple(below)}
                if fits(option):
                    found.append((float(scores[name][tree.inner.index(node)]), option))
        if not found:
            break
        cut = found[choose(np.array([score for score, _ in found]))][1]
    return cut
