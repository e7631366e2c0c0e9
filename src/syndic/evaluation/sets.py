"""Which sets of columns are compared. Public: they depend on the schema only."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import comb, prod

import numpy as np

from syndic.data import Domain

MOST_SETS = 300
# dense tables of one pass over the rows, 128 MB; a set of more cells than the second number is counted sparsely
PASS_CELLS = 2**24
DENSE_CELLS = 2**22

Clique = tuple[str, ...]


def column_sets(names: tuple[str, ...], size: int) -> list[Clique]:
    """Return all sets of `size` columns if there are at most 300, else 300 random ones, some perhaps twice.

    The random ones come from `numpy.random.default_rng([2024, size])`, as in published comparisons, so that
    figures compare.
    """
    if size > len(names):
        return []
    if comb(len(names), size) <= MOST_SETS:
        return list(combinations(names, size))
    draws = np.random.default_rng([2024, size])
    places = (sorted(draws.choice(len(names), size, replace=False)) for _ in range(MOST_SETS))
    return [tuple(names[place] for place in row) for row in places]


def is_dense(domain: Domain, clique: Clique) -> bool:
    """Say whether the table of a set of columns is small enough to be written out."""
    return prod(domain[name] for name in clique) <= DENSE_CELLS


def passes(domain: Domain, cliques: Iterable[Clique]) -> Iterator[list[Clique]]:
    """Yield the dense sets in groups that are counted together, so that memory stays bounded."""
    group: list[Clique] = []
    cells = 0
    for clique in cliques:
        size = domain.project(clique).size
        if group and cells + size > PASS_CELLS:
            yield group
            group, cells = [], 0
        group.append(clique)
        cells += size
    if group:
        yield group
