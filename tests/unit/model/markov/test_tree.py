"""Chordal graphs and junction trees."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov import JunctionTree, grown, plan_tree, triangulate


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


@given(graphs(), st.sampled_from(["min_fill", "min_weight", "degree", "best"]))
def test_cliques_are_maximal_chordal_and_cover_every_set(
    graph: tuple[Domain, list[tuple[str, ...]]], heuristic: str
) -> None:
    domain, sets = graph
    cliques = triangulate(domain, sets, heuristic)  # type: ignore[arg-type]
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


def test_a_cycle_needs_the_known_number_of_fill_edges() -> None:
    domain = Domain(tuple("abcdef"), (2,) * 6)
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("a", "f")]
    cliques = triangulate(domain, cycle, "min_fill")
    assert sorted(map(len, cliques)) == [3, 3, 3, 3]


def test_weights_decide_where_the_number_of_edges_does_not() -> None:
    # of the two diagonals of a square, the one between small columns
    domain = Domain(tuple("abcd"), (2, 100, 2, 100))
    cliques = triangulate(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], "min_weight")
    assert sorted(cliques) == [("a", "b", "c"), ("a", "c", "d")]


def test_the_fixed_order_by_degree_is_that_of_the_given_graph() -> None:
    domain = Domain(tuple("abcde"), (2,) * 5)
    star = [("a", "b"), ("a", "c"), ("a", "d"), ("a", "e"), ("b", "c")]
    assert sorted(triangulate(domain, star, "degree")) == [("a", "b", "c"), ("a", "d"), ("a", "e")]


def test_a_tree_grows_only_where_it_must() -> None:
    domain = Domain(tuple("abcd"), (3, 3, 3, 3))
    tree = plan_tree(domain, [("a", "b", "c")])
    assert grown(tree, ("c", "a")) is tree
    larger = grown(tree, ("c", "d"))
    assert set(larger.cliques) == {("a", "b", "c"), ("c", "d")}


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


def test_an_unknown_heuristic_is_refused() -> None:
    with pytest.raises(InputError, match="min_fill"):
        triangulate(Domain(("a",), (2,)), [], "smallest")  # type: ignore[arg-type]


def test_hundreds_of_candidates_are_planned_quickly_and_huge_ones_counted_exactly() -> None:
    generator = np.random.default_rng(0)
    domain = Domain(tuple(f"c{place}" for place in range(100)), tuple(int(x) for x in generator.integers(2, 30, 100)))
    chain = [(f"c{place}", f"c{place + 1}") for place in range(99)]
    tree = plan_tree(domain, chain)
    assert tree.cells == sum(math.prod(domain.project(pair).sizes) for pair in chain)
    start = time.process_time()
    for place in range(0, 80, 8):
        grown(tree, (f"c{place}", f"c{place + 4}"))
    assert time.process_time() - start < 5
    everything = plan_tree(domain, [domain.names])
    assert everything.cells == domain.size > 10**60
    assert everything.memory_bytes > everything.cells
