"""Chordal graphs and junction trees."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov import JunctionTree, plan_tree, triangulate
from syndic.model.markov.graph import Cost, bits, degree, eliminate, fill, graph_of, weight


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Domain, list[tuple[str, ...]]]:
    count = draw(st.integers(1, 8))
    domain = Domain(tuple("abcdefgh"[:count]), tuple(draw(st.integers(1, 5)) for _ in range(count)))
    sets = [draw(st.lists(st.sampled_from(domain.names), min_size=1, max_size=3, unique=True)) for _ in range(5)]
    return domain, [tuple(one) for one in sets]


def is_chordal(names: tuple[str, ...], cliques: list[tuple[str, ...]]) -> bool:
    """Eliminate columns whose neighbours are all joined until none is left."""
    near = {name: {other for clique in cliques if name in clique for other in clique} - {name} for name in names}
    while near:
        free = [
            name for name, around in near.items() if all(b in near[a] for a, b in itertools.permutations(around, 2))
        ]
        if not free:
            return False
        for other in near.pop(free[0]):
            near[other].discard(free[0])
    return True


def eliminated(domain: Domain, sets: Sequence[tuple[str, ...]], order: Cost) -> list[tuple[str, ...]]:
    """The cliques that one order of elimination leaves."""
    found = eliminate(graph_of(domain, sets), domain.sizes, order)
    return [tuple(domain.names[axis] for axis in bits(one)) for one in found]


@given(graphs(), st.sampled_from([fill, weight, degree, None]))
def test_cliques_are_maximal_chordal_and_cover_every_set(
    graph: tuple[Domain, list[tuple[str, ...]]], order: Cost | None
) -> None:
    domain, sets = graph
    cliques = triangulate(domain, sets) if order is None else eliminated(domain, sets, order)
    assert is_chordal(domain.names, cliques)
    assert {name for clique in cliques for name in clique} == set(domain.names)
    for names in sets:
        assert any(set(names) <= set(clique) for clique in cliques)
    for one, other in itertools.permutations(cliques, 2):
        assert not set(one) <= set(other)


@given(graphs())
def test_the_cliques_of_a_column_are_connected_and_the_root_is_largest(
    graph: tuple[Domain, list[tuple[str, ...]]],
) -> None:
    tree = plan_tree(*graph)
    assert tree.parents[0] == -1
    assert tree.sizes[0] == tree.largest == max(tree.domain.project(clique).size for clique in tree.cliques)
    assert tree.cells == sum(tree.domain.project(clique).size for clique in tree.cliques)
    for name in tree.domain.names:
        having = [place for place, clique in enumerate(tree.cliques) if name in clique]
        inside = [edge for edge in tree.edges if set(edge) <= set(having)]
        assert len(inside) == len(having) - 1  # a forest with so many edges is connected


def slow_order(domain: Domain, sets: Sequence[tuple[str, ...]], order: Cost) -> set[frozenset[str]]:
    """The maximal cliques where every price is worked out anew before each column goes."""
    graph, met = graph_of(domain, sets), []
    current, left = list(graph), set(range(len(domain)))

    def price(axis: int) -> tuple[tuple[int, int], int]:
        beside = math.prod(domain.sizes[one] for one in bits(current[axis]))
        return order(current, graph[axis], axis, beside, domain.sizes[axis]), axis

    while left:
        axis = min(left, key=price)
        left.remove(axis)
        met.append(frozenset(domain.names[one] for one in bits(current[axis] | 1 << axis)))
        for one in bits(current[axis]):
            current[one] = (current[one] | current[axis]) & ~(1 << one) & ~(1 << axis)
    return {one for one in met if not any(one < other for other in met)}


@given(graphs(), st.sampled_from([fill, weight, degree]))
def test_prices_that_are_kept_up_to_date_give_the_same_order(
    graph: tuple[Domain, list[tuple[str, ...]]], order: Cost
) -> None:
    assert set(map(frozenset, eliminated(*graph, order))) == slow_order(*graph, order)


def test_a_cycle_needs_the_known_number_of_fill_edges() -> None:
    domain = Domain(tuple("abcdef"), (2,) * 6)
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("a", "f")]
    cliques = eliminated(domain, cycle, fill)
    assert sorted(map(len, cliques)) == [3, 3, 3, 3]


def test_weights_decide_where_the_number_of_edges_does_not() -> None:
    # of the two diagonals of a square, the one between small columns
    domain = Domain(tuple("abcd"), (2, 100, 2, 100))
    cliques = eliminated(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], weight)
    assert sorted(cliques) == [("a", "b", "c"), ("a", "c", "d")]


def test_the_fixed_order_by_degree_is_that_of_the_given_graph() -> None:
    domain = Domain(tuple("abcde"), (2,) * 5)
    star = [("a", "b"), ("a", "c"), ("a", "d"), ("a", "e"), ("b", "c")]
    assert sorted(eliminated(domain, star, degree)) == [("a", "b", "c"), ("a", "d"), ("a", "e")]


@pytest.mark.parametrize(
    ("cliques", "parents"),
    [
        ((("a", "b"), ("c",), ("b", "c")), (-1, 0, 1)),  # b is at both ends
        ((("a", "b"),), (-1,)),  # c is in no clique
        ((("a", "b"), ("b", "c")), (-1, 1)),  # its own parent
    ],
)
def test_what_is_no_junction_tree_is_refused(cliques: tuple[tuple[str, ...], ...], parents: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        JunctionTree(Domain(tuple("abc"), (2, 2, 2)), cliques, parents)


def test_hundreds_of_candidates_are_planned_and_huge_ones_counted_exactly() -> None:
    generator = np.random.default_rng(0)
    domain = Domain(tuple(f"c{place}" for place in range(100)), tuple(int(x) for x in generator.integers(2, 30, 100)))
    chain = [(f"c{place}", f"c{place + 1}") for place in range(99)]
    tree = plan_tree(domain, chain)
    assert tree.cells == sum(math.prod(domain.project(pair).sizes) for pair in chain)
    for place in range(0, 80, 8):
        plan_tree(domain, [*tree.cliques, (f"c{place}", f"c{place + 4}")])
    everything = plan_tree(domain, [domain.names])
    assert everything.cells == domain.size > 10**60
    assert everything.memory_for([]) > everything.cells
