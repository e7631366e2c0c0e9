"""Marginals of any columns: inside a clique, or by variable elimination along the tree."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.model.markov.tree import JunctionTree

Floats = NDArray[np.float64]
Names = tuple[str, ...]
KEPT_CELLS = 1 << 22
USUAL_CELLS = 1 << 21
"""Cells of an intermediate table, at most, where some levels of a column at a time would do: 16 MB."""


@final
class _TooLargeError(InputError):
    """An intermediate table has too many cells; with fewer levels of the column `apart` it has fewer."""

    def __init__(self, cells: int, names: Names, most: int, apart: str | None) -> None:
        """Name the table, its cells and the limit."""
        text = f"the table over {list(names)} needs {cells} cells in between (at most {most}): ask for fewer columns"
        super().__init__(text)
        self.cells = cells
        self.apart = apart


@final
class Queries:
    """Computes marginals of calibrated cliques; caches partial sums for later queries."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Floats], most_cells: int) -> None:
        """Start with the cliques' probabilities; no intermediate table may have more than `most_cells` cells."""
        self.tree = tree
        self.beliefs = beliefs
        self.most_cells = most_cells
        self.size = dict(zip(tree.domain.names, tree.domain.sizes, strict=True))
        self.position = {name: axis for axis, name in enumerate(tree.domain.names)}
        self.kept: dict[int, dict[Names, Floats]] = {place: {} for place in tree.order}
        self.kept_cells = 0

    def table(self, names: Names) -> Floats:
        """Return the probabilities over `names`, in their order."""
        axes = self.tree.domain.axes(names)
        if len(set(names)) != len(names):
            raise InputError(f"columns {list(names)} must be distinct")
        wanted = self._sorted(names)
        self._check(wanted, (), self.size, self.most_cells)
        home = self.tree.home(names)
        found = self.inside(home, wanted) if home is not None else self._across(wanted)
        return np.ascontiguousarray(found.transpose(np.argsort(np.argsort(axes)))) if names != wanted else found.copy()

    def inside(self, place: int, names: Names) -> Floats:
        """Return the probabilities over columns of one clique, in the domain's order."""
        if names == self.tree.cliques[place]:
            return self.beliefs[place]
        known = self.kept[place]
        if names in known:
            return known[names]
        source, values = self.tree.cliques[place], self.beliefs[place]
        wanted = set(names)
        for kept, table in known.items():
            if table.size < values.size and wanted.issubset(kept):
                source, values = kept, table
        found = values.sum(axis=tuple(axis for axis, name in enumerate(source) if name not in wanted))
        if self.kept_cells + found.size <= KEPT_CELLS:
            known[names] = np.asarray(found)
            self.kept_cells += found.size
        return np.asarray(found)

    def _across(self, names: Names) -> Floats:
        """Sum along the smallest subtree that contains the columns."""
        used, usual = self._subtree(names), min(self.most_cells, max(USUAL_CELLS, self.tree.cells))
        return self._parts(names, used, {name: slice(0, self.size[name]) for name in names}, usual)

    def _parts(self, names: Names, used: set[int], taken: Mapping[str, slice], usual: int) -> Floats:
        """Sum for some levels of the columns; where a table in between is large, for fewer of them at a time."""
        try:
            return self._carry(names, used, taken, usual)
        except _TooLargeError as error:
            if error.apart is None:
                raise
            apart, cells = error.apart, error.cells
        levels = taken[apart]
        step = max(1, (levels.stop - levels.start) * usual // cells)
        parts = [slice(start, min(start + step, levels.stop)) for start in range(levels.start, levels.stop, step)]
        found = [self._parts(names, used, {**taken, apart: part}, usual) for part in parts]
        return np.concatenate(found, axis=names.index(apart))

    def _carry(self, names: Names, used: set[int], taken: Mapping[str, slice], usual: int) -> Floats:
        sizes = self.size | {name: levels.stop - levels.start for name, levels in taken.items()}
        tables: dict[int, tuple[Names, Floats]] = {}
        for place in sorted(used, reverse=True):
            below = [child for up, child in self.tree.edges if up == place and child in used]
            # small separators first: their columns are summed out early
            below.sort(key=lambda child: tables[child][1].size)
            separator = () if place == min(used) else self.tree.separators[place]
            needed = {name for child in below for name in self.tree.separators[child]} | set(separator)
            current = self._sorted(name for name in self.tree.cliques[place] if name in needed or name in names)
            values = _cut(current, self.inside(place, current), taken)
            for count, child in enumerate(below, start=1):
                later = {name for other in below[count:] for name in self.tree.separators[other]}
                shared, (carried, table) = self.tree.separators[child], tables.pop(child)
                keep = self._sorted(
                    name for name in {*current, *carried} if name in names or name in separator or name in later
                )
                self._check(keep, names, sizes, usual)
                above = _cut(shared, self.inside(child, shared), taken)
                above = above.reshape([sizes[name] if name in shared else 1 for name in carried])
                given = np.divide(table, above, out=np.zeros_like(table), where=above > 0)
                current, values = keep, contract(current, values, carried, given, keep)
            tables[place] = current, values
        ((current, values),) = tables.values()
        return np.asarray(values.sum(axis=tuple(axis for axis, name in enumerate(current) if name not in names)))

    def _subtree(self, names: Names) -> set[int]:
        """Return the cliques of the smallest subtree that covers the columns."""
        tops = {name: next(i for i, clique in enumerate(self.tree.cliques) if name in clique) for name in names}
        paths = []
        for top in tops.values():
            path, place = [], top
            while place >= 0:
                path.append(place)
                place = self.tree.parents[place]
            paths.append(path[::-1])
        shared = 0
        while all(len(path) > shared and path[shared] == paths[0][shared] for path in paths):
            shared += 1
        return {place for path in paths for place in path[shared - 1 :]}

    def _sorted(self, names: Iterable[str]) -> Names:
        return tuple(sorted(names, key=self.position.__getitem__))

    def _check(self, table: Names, names: Names, sizes: Mapping[str, int], usual: int) -> None:
        """Raise if a table has more cells than allowed, or than usual while it could be made for fewer levels."""
        cells = math.prod(sizes[name] for name in table)
        apart = max((name for name in names if name in table), key=sizes.__getitem__, default=None)
        if apart is not None and sizes[apart] == 1:
            apart = None
        if cells > (self.most_cells if apart is None else usual):
            raise _TooLargeError(cells, names or table, self.most_cells, apart)


def contract(left_names: Names, left: Floats, right_names: Names, right: Floats, keep: Names) -> Floats:
    """Multiply two tables and sum out columns not in `keep`, by one matrix product for each kept shared cell."""
    both = [name for name in left_names if name in right_names and name in keep]
    summed = [name for name in left_names if name in right_names and name not in keep]
    mine = [name for name in left_names if name in keep and name not in right_names]
    theirs = [name for name in right_names if name in keep and name not in left_names]
    left = left.sum(axis=_lonely(left_names, (*both, *summed, *mine)))
    right = right.sum(axis=_lonely(right_names, (*both, *summed, *theirs)))
    size = {
        **dict(zip([name for name in left_names if name in (*both, *summed, *mine)], left.shape, strict=True)),
        **dict(zip([name for name in right_names if name in (*both, *summed, *theirs)], right.shape, strict=True)),
    }
    counts = [math.prod(size[name] for name in part) for part in (both, mine, summed, theirs)]
    first = _arranged(left, left_names, (*both, *mine, *summed)).reshape(counts[0], counts[1], counts[2])
    second = _arranged(right, right_names, (*both, *summed, *theirs)).reshape(counts[0], counts[2], counts[3])
    product = np.matmul(first, second).reshape([size[name] for name in (*both, *mine, *theirs)])
    return _arranged(product, (*both, *mine, *theirs), keep)


def _lonely(names: Names, used: Sequence[str]) -> tuple[int, ...]:
    return tuple(axis for axis, name in enumerate(names) if name not in used)


def _arranged(values: Floats, names: Sequence[str], order: Sequence[str]) -> Floats:
    names = [name for name in names if name in order]
    return values.transpose([names.index(name) for name in order])


def _cut(names: Names, values: Floats, taken: Mapping[str, slice]) -> Floats:
    """Return a table with some levels of some columns."""
    return values[tuple(taken.get(name, slice(None)) for name in names)]
