"""The tables of many pairs of columns at once: two passes over the tree instead of one path for each pair.

Given the columns that two neighbouring cliques share, what lies on one side is independent of the other. So each clique
hands its parent, as the columns of one matrix, the distribution of every column below given the shared ones; where two
branches meet, products of matrices have the tables of all pairs of columns between them.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.query import Names, Queries

Floats = NDArray[np.float64]

LEAST_ROOM = 1 << 20
"""Cells of all matrices kept at one time, however small the model: 8 MB."""

EACH_CELL = 6
"""Cells of all matrices kept at one time for each cell of the model."""

HALVINGS = 2
"""How often pairs that found no room are tried again, each time in six parts with half of the columns."""


@final
@dataclass(frozen=True)
class _Branch:
    """Columns on one side of `shared`, and their distribution: a line for each shared cell, a column for each level."""

    names: Names
    shared: Names
    given: Floats


def pair_tables(queries: Queries, pairs: Collection[Names], room: int | None = None) -> dict[Names, Floats]:
    """Return the probabilities over each pair that no clique contains.

    Matrices have at most `room` cells together, six times the model's by default. What needs more is tried again with
    some of the columns at a time; pairs that need more even so are left out.
    """
    room = max(LEAST_ROOM, EACH_CELL * queries.tree.cells) if room is None else room
    return _tables(queries, frozenset(pairs), room, HALVINGS)


def _tables(queries: Queries, pairs: frozenset[Names], room: int, halvings: int) -> dict[Names, Floats]:
    found = _Sweep(queries, pairs, room).found
    left = pairs - found.keys()
    if halvings == 0 or len(left) <= len(queries.tree.cliques):
        return found
    names = list(dict.fromkeys(name for pair in sorted(left) for name in pair))
    quarters = [set(names[place::4]) for place in range(4)]
    for one, other in combinations(quarters, 2):
        both = one | other
        part = frozenset(pair for pair in left if both.issuperset(pair))
        found |= _tables(queries, part, room, halvings - 1)
        left -= part
    return found


class _Sweep:
    def __init__(self, queries: Queries, pairs: frozenset[Names], room: int) -> None:
        self.queries, self.pairs, self.room = queries, pairs, room
        self.found: dict[Names, Floats] = {}
        tree, wanted = queries.tree, {name for pair in pairs for name in pair}
        below: dict[int, list[_Branch]] = {place: [] for place in tree.order}
        for place in reversed(tree.order):
            branches = below.pop(place)
            fresh = [name for name in tree.fresh[place] if name in wanted]
            own = [_Branch((name,), (name,), np.eye(queries.size[name])) for name in fresh]
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
        size, begin = self.queries.size, 0
        for one in left.names:
            given = left.given[:, begin : begin + size[one]]
            begin += size[one]
            lines = [carried.T @ right.given for _, carried in self._parts(place, given, left.shared, right.shared)]
            if not lines:
                return
            columns, part = 0, np.concatenate(lines)
            for other in right.names:
                table = part[:, columns : columns + size[other]]
                columns += size[other]
                if (one, other) in self.pairs:
                    self.found[one, other] = table.copy()
                elif (other, one) in self.pairs:
                    self.found[other, one] = table.T.copy()

    def _up(self, place: int, branches: list[_Branch], shared: Names) -> _Branch | None:
        """Return all columns of the branches given the columns that a clique shares with its parent."""
        margin = self.queries.inside(place, shared).reshape(-1, 1)
        fitting = [branch for branch in branches if branch.given.shape[1] * len(margin) <= self.room]
        # where nobody is expected it stays zero
        given = np.zeros((len(margin), sum(branch.given.shape[1] for branch in fitting)))
        names: list[str] = []
        end = 0
        for branch in fitting:
            width = branch.given.shape[1]
            if width * len(margin) > self.room:
                continue
            into, done = given[:, end : end + width], False
            for part, carried in self._parts(place, branch.given, branch.shared, shared):
                np.divide(carried, margin, out=into[:, part], where=margin > 0)
                done = True
            if done:
                end += width
                self.room -= width * len(margin)
                names.extend(branch.names)
        return _Branch(tuple(names), shared, given[:, :end]) if names else None

    def _parts(self, place: int, given: Floats, left: Names, right: Names) -> Iterator[tuple[slice, Floats]]:
        """Yield what a clique's table makes of some columns of a matrix at a time; nothing if it is too large."""
        cells = max(len(given), math.prod(self.queries.size[name] for name in right))
        step = max(1, LEAST_ROOM // cells)
        for start in range(0, given.shape[1], step):
            part = slice(start, start + step)
            carried = self._carried(place, given[:, part], left, right)
            if carried is None:
                return
            yield part, carried

    def _carried(self, place: int, given: Floats, left: Names, right: Names) -> Floats | None:
        """Return a clique's table times a matrix with a line for each cell of `left`: one for each cell of `right`.

        One product of matrices for each cell of the columns that both have. None if the table is too large.
        """
        size = self.queries.size
        both, mine, theirs = (
            [name for name in left if name in right],
            [name for name in left if name not in right],
            [name for name in right if name not in left],
        )
        counts = [math.prod(size[name] for name in part) for part in (both, theirs, mine)]
        if math.prod(counts) > self.room:
            return None
        inside = tuple(name for name in self.queries.tree.cliques[place] if name in left or name in right)
        table = self.queries.inside(place, inside).transpose([inside.index(name) for name in (*both, *theirs, *mine)])
        lines = given.reshape(*(size[name] for name in left), -1)
        lines = lines.transpose([*(left.index(name) for name in (*both, *mine)), len(left)])
        product = table.reshape(counts) @ lines.reshape(counts[0], counts[2], -1)
        product = product.reshape(*(size[name] for name in (*both, *theirs)), -1)
        order = [(*both, *theirs).index(name) for name in right]
        return product.transpose([*order, len(right)]).reshape(-1, product.shape[-1])
