"""The tables of many pairs of columns at once: two passes over the tree instead of one path for each pair.

Given the columns that two neighbouring cliques share, what lies on one side is independent of the other. So each clique
hands its parent, as the lines of one matrix, the distribution of every column below given the shared ones; where two
branches meet, one product of matrices has the tables of all pairs of columns between them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.query import Names, Queries

Floats = NDArray[np.float64]

LEAST_ROOM = 1 << 20
"""Cells of all matrices kept at one time, however small the model: 8 MB."""


@final
@dataclass(frozen=True)
class _Branch:
    """Columns on one side of `shared`, and their distribution: a line for each level, a column for each shared cell."""

    names: Names
    shared: Names
    given: Floats


def pair_tables(queries: Queries, pairs: Collection[Names], room: int | None = None) -> dict[Names, Floats]:
    """Return the probabilities over each pair that no clique contains.

    Matrices have at most `room` cells together, four times the model's by default. Pairs that need more are left out.
    """
    room = max(LEAST_ROOM, 4 * queries.tree.cells) if room is None else room
    return _Sweep(queries, frozenset(pairs), room).found


class _Sweep:
    def __init__(self, queries: Queries, pairs: frozenset[Names], room: int) -> None:
        self.queries, self.pairs, self.room = queries, pairs, room
        self.found: dict[Names, Floats] = {}
        tree = queries.tree
        below: dict[int, list[_Branch]] = {place: [] for place in tree.order}
        for place in reversed(tree.order):
            branches = below.pop(place)
            own = [_Branch((name,), (name,), np.eye(queries.size[name])) for name in tree.fresh[place]]
            for count, branch in enumerate(branches):
                for other in (*own, *branches[:count]):
                    self._meet(place, other, branch)
            if tree.parents[place] >= 0:
                up = self._up(place, [*own, *branches], tree.separators[place])
                if up is not None:
                    below[tree.parents[place]].append(up)
            self.room += sum(branch.given.size for branch in branches)

    def _meet(self, place: int, left: _Branch, right: _Branch) -> None:
        """Keep the tables of all pairs between two branches that meet in a clique."""
        between = self._between(place, left.shared, right.shared)
        if between is None:
            return
        size, rows = self.queries.size, 0
        for one in left.names:
            columns, part = 0, left.given[rows : rows + size[one]] @ between @ right.given.T
            rows += size[one]
            for other in right.names:
                table = part[:, columns : columns + size[other]]
                columns += size[other]
                if (one, other) in self.pairs:
                    self.found[one, other] = table.copy()
                elif (other, one) in self.pairs:
                    self.found[other, one] = table.T.copy()

    def _up(self, place: int, branches: list[_Branch], shared: Names) -> _Branch | None:
        """Return all columns of the branches given the columns that a clique shares with its parent."""
        margin = self.queries.inside(place, shared).ravel()
        lines: list[Floats] = []
        names: list[str] = []
        for branch in branches:
            between = self._between(place, branch.shared, shared)
            if between is None or len(branch.given) * len(margin) > self.room:
                continue
            lines.append(branch.given @ np.divide(between, margin, out=np.zeros_like(between), where=margin > 0))
            self.room -= lines[-1].size
            names.extend(branch.names)
        return _Branch(tuple(names), shared, np.concatenate(lines)) if lines else None

    def _between(self, place: int, left: Names, right: Names) -> Floats | None:
        """Return the probabilities over two sets of a clique's columns as a matrix; None if it is too large."""
        size = self.queries.size
        lengths = [int(np.prod([size[name] for name in names])) for names in (left, right)]
        if lengths[0] * lengths[1] > self.room:
            return None
        names = tuple(name for name in self.queries.tree.cliques[place] if name in left or name in right)
        table = self.queries.inside(place, names)
        codes: dict[str, NDArray[np.int64]] = dict(zip(names, np.indices(table.shape, sparse=True), strict=True))
        lines, columns = (_cells(codes, side, size) for side in (left, right))
        matrix = np.zeros((lengths[0], lengths[1]))
        matrix[lines, columns] = table
        return matrix


def _cells(codes: dict[str, NDArray[np.int64]], names: Names, size: dict[str, int]) -> NDArray[np.int64]:
    """Return each cell's number among the cells of some columns, in their order."""
    cells: NDArray[np.int64] = np.zeros((), dtype=np.int64)
    for name in names:
        cells = cells * size[name] + codes[name]
    return cells
