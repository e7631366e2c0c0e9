"""Who masks with whom: the stated conditions, for every list of survivors and every coalition."""

from itertools import combinations

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.mpc.graph import MOST_PARTIES, Seats, SumGraph, neighbours_of, sum_graph


@pytest.mark.parametrize("parties", [2, 3, 4, 10, 32])
def test_few_parties_are_all_neighbours(parties: int) -> None:
    graph = sum_graph(parties, colluding=0, missing=0)
    assert graph.neighbours == parties - 1
    for party in range(parties):
        assert neighbours_of(graph, "s", party).tolist() == [other for other in range(parties) if other != party]


@pytest.mark.parametrize("parties", [100, 1000, 50_000])
def test_neighbours_are_mutual_and_their_order_is_the_studys(parties: int) -> None:
    graph = sum_graph(parties, colluding=10, missing=10)
    for party in (0, 1, parties - 1):
        neighbours = neighbours_of(graph, "study", party)
        assert len(set(neighbours.tolist()) - {party}) == graph.neighbours
        assert all(party in neighbours_of(graph, "study", int(other)) for other in neighbours)
    assert neighbours_of(graph, "study", 0).tolist() != neighbours_of(graph, "another", 0).tolist()


@pytest.mark.parametrize(
    ("parties", "colluding", "missing", "neighbours"),
    [
        # up to 32 parties everybody with everybody
        (2, 0, 0, 1),
        (32, 0, 0, 31),
        (32, 3, 3, 31),
        # beyond, one more than may be taken out on either side, or as many as a party's number has bits
        (33, 0, 0, 2 * 6),
        (33, 3, 4, 2 * 8),
        (33, 7, 7, 2 * 15),
        (200, 9, 9, 2 * 19),
        (200, 0, 12, 2 * 13),
        (50_000, 0, 0, 2 * 16),
        # until that is everybody again
        (33, 8, 7, 32),
        (33, 10, 10, 32),
        (34, 10, 6, 33),
    ],
)
def test_more_neighbours_on_either_side_than_may_be_taken_out(
    parties: int, colluding: int, missing: int, neighbours: int
) -> None:
    graph = sum_graph(parties, colluding=colluding, missing=missing)
    assert (graph.parties, graph.colluding, graph.missing) == (parties, colluding, missing)
    assert (graph.neighbours, graph.least) == (neighbours, parties - missing)
    assert len(neighbours_of(graph, "study", 0)) == neighbours


@pytest.mark.parametrize(
    ("parties", "colluding", "missing"), [(2, 1, 0), (4, 1, 1), (33, 3, 4), (60, 5, 5), (60, 11, 0), (200, 9, 9)]
)
def test_whoever_is_taken_out_the_others_stay_connected(parties: int, colluding: int, missing: int) -> None:
    graph = sum_graph(parties, colluding=colluding, missing=missing)
    near = [set(neighbours_of(graph, "study", place).tolist()) for place in range(parties)]
    draws = np.random.default_rng(0)
    seats = sorted(range(parties), key=lambda place: -len(near[place] & near[0]))
    for attempt in range(20):
        # some at random, some the nearest to one party, which would be the worst
        out = seats[1 : 1 + colluding + missing] if attempt == 0 else draws.permutation(parties)[: colluding + missing]
        left = set(range(parties)) - {int(place) for place in out}
        assert connected(near, left)


def connected(near: list[set[int]], left: set[int]) -> bool:
    """Return whether these parties are connected by their own edges."""
    reached, edge = set[int](), {min(left)}
    while edge:
        reached |= edge
        edge = {each for place in edge for each in near[place] & left} - reached
    return reached == left


def test_an_order_that_the_writer_of_the_study_searched_for_isolates_nobody() -> None:
    """The digest decides the order, and whoever writes a study can change it until the order suits."""
    parties, colluding, missing = 60, 5, 5
    graph = sum_graph(parties, colluding=colluding, missing=missing)
    out = set(range(1, 1 + colluding + missing))

    def near_one(study: str) -> int:
        return len(out & set(neighbours_of(graph, study, 0).tolist()))

    studies = sorted((f"study {number}" for number in range(2000)), key=near_one)
    assert near_one(studies[-1]) >= near_one(studies[1000]) + 3, "the search finds other orders"
    for study in studies[-20:]:
        near = [set(neighbours_of(graph, study, place).tolist()) for place in range(parties)]
        assert connected(near, set(range(parties)) - out)


@pytest.mark.parametrize("parties", range(2, 8))
def test_no_two_lists_are_both_answered_by_all_of_their_honest_members(parties: int) -> None:
    """Every coalition, every two lists: they share an honest member, which answers one of them."""
    for colluding in range(parties):
        for missing in range(parties):
            try:
                sum_graph(parties, colluding=colluding, missing=missing)
            except InputError:
                continue
            honest = set(range(colluding, parties))
            lists = [
                set(one) & honest
                for size in range(parties - missing, parties + 1)
                for one in combinations(range(parties), size)
            ]
            assert all(one & other for one, other in combinations(lists, 2))


@pytest.mark.parametrize(
    ("parties", "colluding", "missing", "said"),
    [
        (1, 0, 0, "2 to 50,000"),
        (MOST_PARTIES + 1, 0, 0, "2 to 50,000"),
        (4, 0, 2, "fewer than 2 may be missing"),
        (5, 1, 2, "fewer than 2 may be missing"),
        (50, 10, 20, "fewer than 20 may be missing"),
        (3, 3, 0, "one less than all"),
        (3, 0, -1, "negative"),
        (3, -1, 0, "from 0"),
    ],
)
def test_lists_that_could_both_be_answered_are_not_planned(
    parties: int, colluding: int, missing: int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        sum_graph(parties, colluding=colluding, missing=missing)


@pytest.mark.parametrize(
    ("missing", "neighbours", "said"),
    [
        (50, 99, "secure only if fewer than 50 may be missing"),
        (5, 12, "connected"),
        (5, 13, "connected"),
        (5, 15, "connected"),
        (5, 100, "connected"),
        (0, 0, "connected"),
    ],
)
def test_no_plan_holds_a_graph_that_is_not_safe(missing: int, neighbours: int, said: str) -> None:
    """Its author wrote it down without a look at what is safe."""
    with pytest.raises(InputError, match=said):
        SumGraph(parties=100, colluding=1, missing=missing, neighbours=neighbours)


def test_where_all_others_collude_there_is_nothing_to_hide() -> None:
    assert sum_graph(2, colluding=1, missing=0).neighbours == 1
    assert sum_graph(5, colluding=4, missing=0).neighbours == 4


def test_masks_belong_to_one_message_of_one_sum_of_one_study() -> None:
    graph = sum_graph(2, colluding=0, missing=0)
    one, label, study = (
        Seats(study=study, label=label, names=("a", "b"), graph=graph)
        for study, label in (("s", "x"), ("s", "y"), ("t", "x"))
    )
    bounds = [
        one.bound("values", 1),
        label.bound("values", 1),
        study.bound("values", 1),
        one.bound("answer", 1),
        one.bound("values", 2),
        one.bound("values", 1, b"question"),
    ]
    assert len(set(bounds)) == len(bounds)


def test_one_party_is_told_what_it_can_do() -> None:
    with pytest.raises(InputError, match="not 1: add a party, or choose a method that one party can run"):
        sum_graph(1, colluding=0, missing=0)
