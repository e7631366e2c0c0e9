"""Chordal graphs: which sets of columns must share a clique so that sums over the rest are exact."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from syndic.data import Domain

Graph = list[int]  # for each column its neighbours, as bits of one integer


def triangulate(domain: Domain, cliques: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the maximal cliques of a chordal graph that contains every given set; columns in no set are alone.

    Three elimination orders are tried: columns that add fewest edges first, those whose clique has fewest cells, and by
    the degree in the given graph (the fixed order of PrivMRF). The one with the fewest cells in total is used.
    """
    found = fewest(domain, graph_of(domain, cliques), (fill, weight, degree))
    return [tuple(domain.names[axis] for axis in bits(one)) for one in found]


def fewest(domain: Domain, graph: Graph, orders: Sequence["Cost"]) -> list[int]:
    """Return the cliques of the elimination order with the fewest cells."""
    tries = [eliminate(graph, domain.sizes, order) for order in orders]
    return min(tries, key=lambda sets: sum(cells(one, domain.sizes) for one in sets))


def graph_of(domain: Domain, cliques: Iterable[Sequence[str]]) -> Graph:
    """Return the graph in which the columns of each set are pairwise connected."""
    graph = [0] * len(domain)
    position = {name: axis for axis, name in enumerate(domain.names)}
    for names in cliques:
        try:
            axes = [position[name] for name in names]
        except KeyError:
            axes = list(domain.axes(names))
        together = sum(1 << axis for axis in set(axes))
        for axis in axes:
            graph[axis] |= together & ~(1 << axis)
    return graph


def bits(members: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, lowest first."""
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def cells(members: int, sizes: Sequence[int]) -> int:
    """Return the number of cells of a set of columns."""
    product = 1
    for axis in bits(members):
        product *= sizes[axis]
    return product


def eliminate(graph: Graph, sizes: Sequence[int], cost: "Cost") -> list[int]:
    """Eliminate columns one by one, the cheapest first, and return the maximal cliques met on the way."""
    current = list(graph)
    beside = [cells(around, sizes) for around in graph]  # of every column the cells of its neighbours
    price = [cost(current, graph[axis], axis, beside[axis], sizes[axis]) for axis in range(len(graph))]
    queue = [(one, axis) for axis, one in enumerate(price)]
    heapify(queue)
    left = (1 << len(graph)) - 1
    met: list[int] = []
    while left:
        cheapest, axis = heappop(queue)
        if not left >> axis & 1 or price[axis] != cheapest:
            continue  # eliminated, or its price has changed since
        around, bit = current[axis], 1 << axis
        met.append(around | bit)
        left ^= bit
        changed = around
        for neighbour in bits(around):
            before = current[neighbour]
            added = around & ~before & ~(1 << neighbour)
            beside[neighbour] = beside[neighbour] // sizes[axis] * cells(added, sizes)
            current[neighbour] = (before | added) & ~bit
            if added and cost is fill:
                changed |= before  # fewer edges are missing around columns that see a new one
        for other in bits(changed & left):
            now = cost(current, graph[other], other, beside[other], sizes[other])
            if now != price[other]:
                price[other] = now
                heappush(queue, (now, other))
    return maximal(met)


def maximal(sets: Iterable[int]) -> list[int]:
    """Return the sets that are contained in no other."""
    kept: list[int] = []
    for one in sorted(set(sets), key=lambda members: -members.bit_count()):
        if not any(one & ~other == 0 for other in kept):
            kept.append(one)
    return kept


def fill(current: Graph, given: int, axis: int, beside: int, size: int) -> tuple[int, int]:
    """Return how many edges eliminating a column adds; ties go to fewer cells of its neighbours, `beside`."""
    del given, size
    around = current[axis]
    return sum((around & ~current[neighbour]).bit_count() - 1 for neighbour in bits(around)), beside


def weight(current: Graph, given: int, axis: int, beside: int, size: int) -> tuple[int, int]:
    """Return how many cells the clique of a column has."""
    del current, given, axis
    return beside * size, 0


def degree(current: Graph, given: int, axis: int, beside: int, size: int) -> tuple[int, int]:
    """Return how many neighbours a column has in the graph as it was given."""
    del current, axis, beside, size
    return given.bit_count(), 0


Cost = Callable[[Graph, int, int, int, int], tuple[int, int]]
