"""Junction trees: the memory of a model, known before anything is allocated."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov.graph import triangulate

# bytes per cell of a clique: probabilities, products and sums of its small tables, index tables
BYTES_EACH_CELL = 32
# bytes per cell of a fitted table: values, factors, and the optimiser's last ten steps
BYTES_MEASURED = 400
# bytes per cell of the largest clique only: work space of one pass in log space
BYTES_LARGEST = 24
BYTES_EACH_CLIQUE = 1 << 16


@final
@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques of a chordal graph, joined so that the cliques of every column are connected.

    Clique 0 is the root and has the most cells; `parents[i] < i` for every other clique i (the root's is -1), so that
    the order of the cliques is a walk from the root. `separators[i]` has the columns shared by clique i and its parent.
    """

    domain: Domain
    cliques: tuple[tuple[str, ...], ...]
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        covered = {name for clique in self.cliques for name in clique}
        if covered != set(self.domain.names):
            raise InputError(
                f"columns {sorted(set(self.domain.names) ^ covered)} must be in the domain and in a clique"
            )
        if len(self.parents) != len(self.cliques) or any(up >= place for place, up in enumerate(self.parents)):
            raise InputError("every clique but the first must follow its parent")
        # the cliques of a column are connected if and only if the column enters the walk once
        for name in self.domain.names:
            tops = sum(
                name in clique and (up < 0 or name not in self.cliques[up])
                for clique, up in zip(self.cliques, self.parents, strict=True)
            )
            if tops != 1:
                raise InputError(f"the cliques of column {name!r} must be connected in the tree")

    @cached_property
    def separators(self) -> tuple[tuple[str, ...], ...]:
        """For each clique the columns it shares with its parent; () for the root and between components."""
        return tuple(
            tuple(name for name in clique if up >= 0 and name in self.cliques[up])
            for clique, up in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def order(self) -> range:
        """Indices of the cliques from the root on."""
        return range(len(self.cliques))

    @cached_property
    def fresh(self) -> tuple[tuple[str, ...], ...]:
        """For each clique the columns that it does not share with its parent."""
        shared = zip(self.cliques, self.separators, strict=True)
        return tuple(tuple(name for name in clique if name not in separator) for clique, separator in shared)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of parent and child."""
        return tuple((up, place) for place, up in enumerate(self.parents) if up >= 0)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each clique."""
        size = dict(zip(self.domain.names, self.domain.sizes, strict=True))
        return tuple(math.prod(size[name] for name in clique) for clique in self.cliques)

    @property
    def cells(self) -> int:
        """Number of cells of all cliques together."""
        return sum(self.sizes)

    @property
    def largest(self) -> int:
        """Number of cells of the largest clique."""
        return max(self.sizes)

    def memory_for(self, sets: Iterable[Sequence[str]]) -> int:
        """Upper bound on the memory of a fit to tables over these sets, including marginals inside cliques."""
        size = dict(zip(self.domain.names, self.domain.sizes, strict=True))
        measured = sum(math.prod(size[name] for name in names) for names in sets)
        cliques = BYTES_EACH_CELL * self.cells + BYTES_LARGEST * self.largest + BYTES_EACH_CLIQUE * len(self.cliques)
        return cliques + BYTES_MEASURED * measured

    def home(self, names: Iterable[str]) -> int | None:
        """Return the smallest clique that contains all of `names`, None if there is none."""
        homes = set(self.order).intersection(*(self._cliques_with.get(name, frozenset()) for name in names))
        return min(sorted(homes), key=self.sizes.__getitem__, default=None)

    @cached_property
    def _cliques_with(self) -> dict[str, frozenset[int]]:
        """For each column the cliques that contain it."""
        places: dict[str, set[int]] = {}
        for place, clique in enumerate(self.cliques):
            for name in clique:
                places.setdefault(name, set()).add(place)
        return {name: frozenset(one) for name, one in places.items()}


def plan_tree(domain: Domain, cliques: Iterable[Sequence[str]]) -> JunctionTree:
    """Return a junction tree in which every given set of columns is inside one clique. Allocates nothing."""
    return join(domain, triangulate(domain, cliques))


def join(domain: Domain, cliques: Sequence[tuple[str, ...]]) -> JunctionTree:
    """Join the maximal cliques of a chordal graph by a spanning tree of largest separators, largest clique first."""
    members = [frozenset(clique) for clique in cliques]
    size = dict(zip(domain.names, domain.sizes, strict=True))
    cells = [math.prod(size[name] for name in clique) for clique in cliques]
    root = max(range(len(cliques)), key=cells.__getitem__)
    order, up = [root], {root: -1}
    # for each clique outside the tree: the size of its separator with the tree, and with which clique (Prim)
    best = {place: (len(members[place] & members[root]), root) for place in range(len(cliques)) if place != root}
    while best:
        place = max(best, key=lambda one: (best[one][0], -one))
        up[place] = order.index(best.pop(place)[1])
        order.append(place)
        for other, (shared, _) in best.items():
            common = len(members[other] & members[place])
            if common > shared:
                best[other] = (common, place)
    position = {name: axis for axis, name in enumerate(domain.names)}
    return JunctionTree(
        domain=domain,
        cliques=tuple(tuple(sorted(cliques[place], key=position.__getitem__)) for place in order),
        parents=tuple(up[place] for place in order),
    )
