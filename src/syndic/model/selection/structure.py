"""The graph of a model: which columns share a clique, grown edge by edge within a limit on cells."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, islice
from operator import or_
from typing import final

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov.graph import Graph, bits, cells, fewest, fill, graph_of, weight
from syndic.model.markov.tree import plan_tree
from syndic.model.selection.counts import Names

# The penalty of cells on an edge: gain / cells^PRICE. 0 fills the model with the few largest columns, 1 with the
# smallest; between 0.35 and 0.55 distances were lowest on two codings of census data and on fire calls.
PRICE = 0.4
# triangulations tried for each edge that is added: TRIES / number of columns, and at least FEWEST
TRIES = 600
FEWEST = 8
# pairs that come in for others at most
EXCHANGES = 12
# two elimination orders and exchanges are tried up to this many columns: with more, one of the orders is slow, and
# cliques that share many columns, as exchanges leave them, make tables of pairs slow
FEW_COLUMNS = 40

Axes = tuple[int, ...]


@final
@dataclass(frozen=True)
class Structure:
    """Edges, and the maximal cliques of a chordal graph that contains them, as bits of column indices."""

    domain: Domain
    edges: tuple[Names, ...]
    cliques: tuple[int, ...]

    @cached_property
    def cells(self) -> int:
        """Number of cells of all cliques together."""
        return sum(cells(one, self.domain.sizes) for one in self.cliques)

    @property
    def sets(self) -> list[Names]:
        """The cliques as sets of column names."""
        return [tuple(self.domain.names[axis] for axis in bits(one)) for one in self.cliques]

    @cached_property
    def joined(self) -> tuple[int, ...]:
        """For each column the columns that share a clique with it, including itself."""
        found = [0] * len(self.domain)
        for one in self.cliques:
            for axis in bits(one):
                found[axis] |= one
        return tuple(found)

    @cached_property
    def pairs(self) -> frozenset[Axes]:
        """The pairs of columns that share a clique."""
        return frozenset(pair for one in self.cliques for pair in combinations(bits(one), 2))

    @cached_property
    def graph(self) -> Graph:
        """For each column its neighbours along edges."""
        return graph_of(self.domain, self.edges)

    def with_edge(self, pair: Sequence[int]) -> "Structure":
        """Return the structure with one more edge between two columns."""
        first, second = pair
        graph, names = list(self.graph), self.domain.names
        graph[first] |= 1 << second
        graph[second] |= 1 << first
        orders = (fill, weight) if len(self.domain) <= FEW_COLUMNS else (weight,)
        cliques = tuple(fewest(self.domain, graph, orders))
        return Structure(self.domain, (*self.edges, (names[first], names[second])), cliques)

    def separable(self) -> Iterator[tuple[Axes, int, int]]:
        """Yield the pairs of columns that share one clique only, with that clique and the cells that are freed."""
        sizes = self.domain.sizes
        shared = Counter(pair for one in self.cliques for pair in combinations(bits(one), 2))
        for clique in self.cliques:
            whole = cells(clique, sizes)
            left = {axis: whole // sizes[axis] * bool(self._parts(clique, (axis,))) for axis in bits(clique)}
            for first, second in combinations(bits(clique), 2):
                if shared[first, second] == 1:
                    yield (first, second), clique, whole - left[first] - left[second]

    def without(self, pair: Axes, clique: int) -> "Structure":
        """Return the structure in which two columns no longer share their only clique. It stays chordal."""
        apart = tuple(self.domain.names[axis] for axis in pair)
        rest = [one for one in self.cliques if one != clique]
        edges = tuple(one for one in self.edges if one != apart)
        return Structure(self.domain, edges, (*rest, *self._parts(clique, pair)))

    def _parts(self, clique: int, axes: Axes) -> list[int]:
        """Return the clique without each of these columns, unless another clique contains what is left."""
        parts = [clique & ~(1 << axis) for axis in axes]
        return [part for part in parts if not any(part & ~one == 0 for one in self.cliques if one != clique)]

    @property
    def components(self) -> list[int]:
        """Sets of columns that are connected with each other, and with no other column."""
        found: list[int] = []
        for one in self.cliques:
            apart = [other for other in found if not one & other]
            found = [*apart, reduce(or_, (other for other in found if one & other), one)]
        return found

    def holds(self, members: int) -> bool:
        """Return whether one clique contains all these columns."""
        first = (members & -members).bit_length() - 1
        return any(members & ~one == 0 for one in self._cliques_with[first])

    @cached_property
    def _cliques_with(self) -> list[list[int]]:
        """For each column the cliques that contain it."""
        found: list[list[int]] = [[] for _ in self.domain.names]
        for one in self.cliques:
            for axis in bits(one):
                found[axis].append(one)
        return found


def start_structure(domain: Domain, sets: Iterable[Names], most_cells: int) -> Structure:
    """Return the structure of only the given sets; refused if it has more than `most_cells` cells.

    Sets that are the cliques of a junction tree stay as they are: elimination by fill adds no edges to them.
    """
    edges = tuple(tuple(names) for names in sets)
    found = Structure(domain, edges, tuple(fewest(domain, graph_of(domain, edges), (fill, weight))))
    if found.cells > most_cells:
        raise InputError(
            f"the smallest model of {len(domain)} columns has {found.cells} cells, more than {most_cells}: "
            "allow more cells, or use columns with fewer levels"
        )
    return found


def fitting_sets(
    domain: Domain, held: Sequence[Names], sets: Iterable[Names], most_cells: int, most: int
) -> tuple[Names, ...]:
    """Return up to `most` of the sets, the first first, that fit with those that are held; none contains another."""
    found: tuple[Names, ...] = ()
    for names in sets:
        related = any(set(names) <= set(one) or set(one) <= set(names) for one in found)
        if len(found) < most and not related and plan_tree(domain, [*held, *found, names]).cells <= most_cells:
            found = (*found, names)
    return found


def grow_forest(structure: Structure, scores: Mapping[Names, float], *, least: float, most_cells: int) -> Structure:
    """Join columns that are not connected yet, the highest score first, while all cliques fit (Chow and Liu 1968).

    Pairs that depend on each other only through a third column are not joined; growing by scores alone would join them.
    """
    domain = structure.domain
    component = {axis: one for one in structure.components for axis in bits(one)}
    for names in sorted((one for one in scores if scores[one] >= least), key=lambda one: (-scores[one], one)):
        first, second = domain.axes(names)
        if component[first] >> second & 1:
            continue
        grown = structure.with_edge((first, second))
        if grown.cells <= most_cells:
            structure, together = grown, component[first] | component[second]
            component |= dict.fromkeys(bits(together), together)
    return structure


def grow(structure: Structure, scores: Mapping[Names, float], *, least: float, most_cells: int, most: int) -> Structure:
    """Add up to `most` edges with scores of at least `least`, while all cliques together fit in `most_cells`.

    The next edge has the greatest gain for the cells it needs; its gain is the score of all pairs that it brings into
    one clique. Pairs that already share a clique become edges at no cost.
    """
    domain = structure.domain
    left = {domain.axes(names): score for names, score in scores.items() if score >= least}
    order = sorted(left, key=lambda pair: (-left[pair], pair))
    before: Sequence[int] = [0] * len(domain)
    for _ in range(most):
        together = [pair for pair in _joined(structure, before) if left.pop(pair, None) is not None]
        before = structure.joined
        kept = {(domain.names[first], domain.names[second]) for first, second in together} - set(structure.edges)
        structure = Structure(domain, (*structure.edges, *sorted(kept)), structure.cliques)
        tries = islice((pair for pair in order if pair in left), max(FEWEST, TRIES // len(domain)))
        found = [one for pair in tries if (one := _added(structure, pair, left, most_cells))]
        if not found:
            break
        structure = max(found, key=lambda one: one[0])[1]
    return structure


def _added(
    structure: Structure, pair: tuple[int, ...], left: Mapping[tuple[int, ...], float], most_cells: int
) -> tuple[float, Structure] | None:
    """Return the value of one more edge and the structure with it, or None if it does not fit."""
    grown = structure.with_edge(pair)
    if grown.cells > most_cells:
        return None
    gain = sum(left.get(one, 0.0) for one in _joined(grown, structure.joined))
    return gain / max(1, grown.cells - structure.cells) ** PRICE, grown


def _joined(structure: Structure, before: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of columns, in order, that share a clique and did not before."""
    for first, (now, earlier) in enumerate(zip(structure.joined, before, strict=True)):
        for second in bits((now & ~earlier) >> (first + 1) << (first + 1)):
            yield first, second


def exchange(structure: Structure, worth: Mapping[Axes, float], fixed: Set[Axes], *, most_cells: int) -> Structure:
    """Bring pairs of columns into cliques in place of others that are worth less together, but never of `fixed`.

    Growth adds one edge after another and takes none back, so that early ones can leave no room for better ones. Here
    one of the pairs that are worth most comes in, and pairs of one clique only go out, the cheapest for the cells they
    need first, until all cliques fit. The exchange that gains most is made, until none gains.
    """
    for _ in range(EXCHANGES if len(structure.domain) <= FEW_COLUMNS else 0):
        outside = sorted(worth.keys() - structure.pairs, key=lambda pair: (-worth[pair], pair))
        best, most = structure, 0.0
        for pair in outside[: max(FEWEST, TRIES // len(structure.domain))]:
            other, gained = _exchanged(structure, pair, worth, fixed, most_cells, most)
            if gained > most:
                best, most = other, gained
        if best is structure:
            break
        structure = best
    return structure


def _exchanged(
    structure: Structure, pair: Axes, worth: Mapping[Axes, float], fixed: Set[Axes], most_cells: int, least: float
) -> tuple[Structure, float]:
    """Return the structure with one more pair and without what must go for it, and what is gained.

    If that is no more than `least`, what is returned may be too large.
    """
    found = structure.with_edge(pair)
    gained = sum(worth.get(one, 0.0) for one in found.pairs - structure.pairs)
    gained -= sum(worth.get(one, 0.0) for one in structure.pairs - found.pairs)
    while found.cells > most_cells and gained > least:
        excess = found.cells - most_cells
        going = [
            (worth.get(one, 0.0) / min(freed, excess), one, clique)
            for one, clique, freed in found.separable()
            if freed > 0 and one != pair and one not in fixed
        ]
        if not going:
            return structure, 0.0
        _, one, clique = min(going)
        found = found.without(one, clique)
        gained -= worth.get(one, 0.0)
    return found, gained
