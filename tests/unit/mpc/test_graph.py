"""Who masks with whom: the stated conditions, checked on drawn graphs and against counting."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.mpc.graph import MOST_PARTIES, SumPlan, _at_least, _run, neighbours_of, plan_sum, plan_within
from syndic.privacy import ApproximateEvent


@pytest.mark.parametrize("parties", [2, 3, 4, 10, 32])
def test_few_parties_are_all_neighbours(parties: int) -> None:
    plan = plan_sum(parties)
    assert plan.neighbours == parties - 1
    assert plan.failure_bits == math.inf
    for party in range(parties):
        assert neighbours_of(plan, "s", party).tolist() == [other for other in range(parties) if other != party]


@pytest.mark.parametrize("parties", range(2, 33))
def test_no_coalition_and_no_silence_breaks_a_complete_plan(parties: int) -> None:
    for colluding in range(parties):
        for missing in range(parties):
            try:
                plan = plan_sum(parties, colluding=colluding, missing=missing)
            except InputError:
                continue
            honest = plan.neighbours - min(colluding, plan.neighbours)
            known = plan.neighbours - honest
            # the coalition has its own shares of both kinds, honest neighbours add one of one kind each
            either_way = [(known + gave, known + honest - gave) for gave in range(honest + 1)]
            both_open = any(min(pair) >= plan.threshold for pair in either_way)
            assert not both_open or honest == 0
            assert plan.neighbours - missing >= plan.threshold
            assert parties - colluding - missing >= 1


@pytest.mark.parametrize("parties", [100, 1000, 50_000])
def test_neighbours_are_mutual_and_grow_with_the_logarithm(parties: int) -> None:
    plan = plan_sum(parties, colluding=parties // 20, missing=parties // 20)
    assert plan.failure_bits >= 40
    assert plan.neighbours < 7 * math.log2(parties)
    for party in (0, 1, parties - 1):
        neighbours = neighbours_of(plan, "study", party)
        assert len(set(neighbours.tolist()) - {party}) == plan.neighbours
        assert all(party in neighbours_of(plan, "study", int(other)) for other in neighbours)
    assert neighbours_of(plan, "study", 0).tolist() != neighbours_of(plan, "another", 0).tolist()


def connected(plan: SumPlan, study: str, left: Iterable[int]) -> bool:
    waiting = set(left)
    reached = [waiting.pop()]
    while reached:
        for other in neighbours_of(plan, study, reached.pop()):
            if other in waiting:
                waiting.remove(other)
                reached.append(other)
    return not waiting


def test_random_coalitions_and_silence_never_break_a_sparse_plan() -> None:
    plan = plan_sum(60, colluding=6, missing=6)
    assert plan.neighbours < 59
    draws = np.random.default_rng(1)
    for study in map(str, range(60)):
        drawn = draws.permutation(60)
        colluding, missing, honest = set(drawn[:6]), set(drawn[6:12]), drawn[12:]
        assert connected(plan, study, honest.tolist())
        for party in honest:
            neighbours = set(neighbours_of(plan, study, int(party)).tolist())
            assert 2 * plan.threshold > plan.neighbours + len(neighbours & colluding)
            assert plan.neighbours - len(neighbours & missing) >= plan.threshold


@pytest.mark.parametrize(("parties", "colluding", "missing"), [(60, 6, 6), (100, 5, 5), (1000, 50, 50), (400, 1, 0)])
def test_a_certain_plan_holds_for_the_worst_seats(parties: int, colluding: int, missing: int) -> None:
    plan = plan_sum(parties, colluding=colluding, missing=missing, certain=True)
    assert plan.failure == 0
    assert plan.events == ()
    assert plan.not_protected == ()
    # all colluding and missing parties sit around one
    assert 2 * plan.threshold > plan.neighbours + colluding
    assert plan.neighbours - missing >= plan.threshold
    assert plan.neighbours == parties - 1 or colluding + missing < plan.neighbours // 2
    usual = plan_sum(parties, colluding=colluding, missing=missing)
    assert plan.neighbours >= usual.neighbours
    assert plan_within(Fraction(0), parties, colluding=colluding, missing=missing) == plan
    assert plan_within(Fraction(1, 10**9), parties, colluding=colluding, missing=missing) == usual


def test_the_chance_of_failure_is_charged_rounded_up() -> None:
    plan = plan_sum(1000, colluding=50, missing=50)
    assert 0 < 2.0**-plan.failure_bits <= plan.failure <= 2.0**-plan.failure_bits + 2e-18
    (event,) = plan.events
    assert isinstance(event, ApproximateEvent)
    assert (event.epsilon, event.delta) == (Fraction(1, 10**12), plan.failure)
    assert f"2^-{math.floor(plan.failure_bits)}" in plan.not_protected[0]


def at_least(count: int, others: int, marked: int, drawn: int) -> Fraction:
    """Return the chance of so many marked ones among those drawn, by counting."""
    ways = sum(math.comb(marked, each) * math.comb(others - marked, drawn - each) for each in range(count, drawn + 1))
    return Fraction(ways, math.comb(others, drawn))


def failing(parties: int, colluding: int, missing: int, neighbours: int, threshold: int) -> Fraction:
    """Return the sum of the chances, over all parties, that the graph is not private, not live, not connected."""
    exposed = at_least(2 * threshold - neighbours, parties - 1, colluding, neighbours)
    stuck = at_least(neighbours - threshold + 1, parties - 1, missing, neighbours)
    half = neighbours // 2
    filled = Fraction(math.perm(colluding + missing, half), math.perm(parties, half))
    return parties * (exposed + stuck + filled)


@pytest.mark.parametrize(
    ("parties", "colluding", "missing"), [(400, 60, 4), (400, 4, 60), (90, 0, 9), (150, 12, 0), (1000, 200, 10)]
)
def test_a_sparse_plan_is_the_smallest_that_fails_once_in_two_to_the_forty(
    parties: int, colluding: int, missing: int
) -> None:
    plan = plan_sum(parties, colluding=colluding, missing=missing)
    assert (plan.parties, plan.colluding, plan.missing) == (parties, colluding, missing)
    assert plan.neighbours < parties - 1
    chance = failing(parties, colluding, missing, plan.neighbours, plan.threshold)
    assert chance <= Fraction(1, 2**40)
    assert 2.0**-plan.failure_bits == pytest.approx(float(chance), rel=1e-6, abs=0)
    fewer = plan.neighbours - 2
    thresholds = range(fewer // 2 + 1, fewer + 1)
    assert all(failing(parties, colluding, missing, fewer, each) > Fraction(1, 2**40) for each in thresholds)


def test_only_what_cannot_happen_has_no_chance() -> None:
    chances = _at_least(np.array([300, 301]), 10_000, 300, 1000)
    assert chances.tolist() == [2.0**-1000, 0]
    assert _run(50_000, 500, 500) == 2.0**-1000


def test_chances_are_those_of_counting() -> None:
    chosen = list(combinations(range(10), 4))
    for least in range(5):
        counted = sum(len({0, 1, 2} & set(seats)) >= least for seats in chosen) / len(chosen)
        assert _at_least(np.array([least]), 10, 3, 4)[0] == pytest.approx(counted)
    for marked in (3, 4, 5, 9):
        seated = list(combinations(range(10), marked))
        counted = sum({0, 1, 2} <= set(seats) for seats in seated) / len(seated)
        assert _run(10, marked, 3) == pytest.approx(counted)
    assert _run(10, 2, 3) == 0
    assert _run(10, 10, 3) == 1


def test_what_is_refused() -> None:
    for parties in (1, MOST_PARTIES + 1):
        with pytest.raises(InputError, match="2 to 50,000"):
            plan_sum(parties)
    with pytest.raises(InputError, match="at most 0 may be missing"):
        plan_sum(3, missing=1)
    with pytest.raises(InputError, match="at most 1 may be missing"):
        plan_sum(5, colluding=1, missing=2)
    with pytest.raises(InputError, match="fewer than all"):
        plan_sum(5, colluding=5)
    for colluding, missing in ((-1, 0), (0, -1)):
        with pytest.raises(InputError, match="negative"):
            plan_sum(5, colluding=colluding, missing=missing)
    # where all others collude there is nothing left to hide, and a sum of two is such a sum too
    assert plan_sum(2, colluding=1).threshold == 1
    assert plan_sum(5, colluding=4).threshold == 4


@pytest.mark.parametrize("parties", [33, 40, 70])
def test_a_plan_has_no_more_neighbours_than_there_are_others_and_both_sides_alike(parties: int) -> None:
    """Where no sparse graph is safe enough all are neighbours, and then the plan cannot fail."""
    complete = 0
    for colluding in range(0, parties, 3):
        for missing in (0, 1, 5):
            try:
                plan = plan_sum(parties, colluding=colluding, missing=missing)
            except InputError:
                continue
            assert plan.neighbours <= parties - 1
            assert plan.neighbours == parties - 1 or plan.neighbours % 2 == 0
            assert plan.failure <= Fraction(1, 2**40)
            assert len(set(neighbours_of(plan, "s", 0).tolist())) == plan.neighbours
            if plan.neighbours == parties - 1:
                complete += 1
                assert plan.failure_bits == math.inf
    assert complete
