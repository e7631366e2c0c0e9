"""VertiMRF's pieces: bins, recovery, consistency, the joined graph, tables from encodings."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from syndic.data import Domain
from syndic.errors import InputError
from syndic.methods.vertimrf.model.build import joined_graph, r_score
from syndic.methods.vertimrf.model.tables import (
    OracleTables,
    SketchTables,
    consistent,
    equal_width,
    recovered,
    recovered_variance,
    shares_of_bins,
)
from syndic.methods.vertimrf.sketch.encode import People, SketchPlan, encode, person_digests
from syndic.model.markov import Measurement
from syndic.model.selection import Grouping
from syndic.noise.response import RandomisedResponse
from syndic.random import SimulationRandomness

DOMAIN = Domain(("small", "even", "odd"), (3, 8, 11))


def test_bins_have_equal_width_and_the_last_takes_the_rest() -> None:
    small, even, odd = equal_width(DOMAIN, 4).groups
    assert small == (0, 1, 2)
    assert even == (0, 0, 1, 1, 2, 2, 3, 3)
    assert odd == (0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 3)


def test_a_thousand_values_become_four_bins() -> None:
    (groups,) = equal_width(Domain(("wide",), (1000,)), 4).groups
    assert np.bincount(groups).tolist() == [250] * 4


def test_recovery_keeps_the_sum_of_every_bin() -> None:
    bins, draws = equal_width(DOMAIN, 4), np.random.default_rng(1)
    weights = {name: draws.normal(5, 10, DOMAIN[name]) for name in DOMAIN.names}
    names = ("even", "odd")
    table = draws.uniform(0, 100, (4, 4))
    shares = [shares_of_bins(name, bins, Grouping.none(DOMAIN), weights) for name in names]
    spread = recovered(table, shares)
    assert spread.shape == (8, 11)
    assert np.allclose(bins.gather(Measurement(names, spread, 1.0)).values, table)


def test_recovery_is_exact_where_values_hang_on_nothing_but_their_bin() -> None:
    bins, draws = equal_width(DOMAIN, 4), np.random.default_rng(2)
    # a joint law of bins, and a law of values within each bin: that is the whole truth
    low = draws.dirichlet(np.ones(16)).reshape(4, 4) * 1000
    inside = {name: draws.uniform(0.1, 1, DOMAIN[name]) for name in ("even", "odd")}
    truth = np.zeros((8, 11))
    for left, right in np.ndindex(8, 11):
        share = 1.0
        for name, value in (("even", left), ("odd", right)):
            groups = bins.groups[DOMAIN.names.index(name)]
            alike = [other for other, group in enumerate(groups) if group == groups[value]]
            share *= inside[name][value] / inside[name][alike].sum()
        truth[left, right] = share * low[bins.groups[1][left], bins.groups[2][right]]
    one_way = {"even": truth.sum(axis=1), "odd": truth.sum(axis=0), "small": np.ones(3)}
    shares = [shares_of_bins(name, bins, Grouping.none(DOMAIN), one_way) for name in ("even", "odd")]
    assert np.allclose(recovered(low, shares), truth)


def test_recovery_without_weights_is_even_and_groups_are_summed() -> None:
    bins = equal_width(DOMAIN, 4)
    nothing = {name: np.zeros(DOMAIN[name]) for name in DOMAIN.names}
    even = shares_of_bins("odd", bins, Grouping.none(DOMAIN), nothing)
    assert np.allclose(recovered(np.array([2.0, 4.0, 6.0, 10.0]), [even]), [1, 1, 2, 2, 3, 3, 2, 2, 2, 2, 2])
    # the values 1 to 10 of the last column are one group: a half of the first bin is the other one
    groups = Grouping(DOMAIN, (*(tuple(range(size)) for size in (3, 8)), (0, *[1] * 10)))
    assert np.allclose(shares_of_bins("odd", bins, groups, nothing), [[0.5, 0, 0, 0], [0.5, 1, 1, 1]])


def test_the_variance_of_a_recovered_table_keeps_its_weight() -> None:
    bins, draws = equal_width(DOMAIN, 4), np.random.default_rng(3)
    weights = {name: draws.uniform(0, 1, DOMAIN[name]) for name in DOMAIN.names}
    shares = [shares_of_bins(name, bins, Grouping.none(DOMAIN), weights) for name in ("even", "odd")]
    noise = draws.normal(0, 3, (4000, 4, 4))
    squares = [float(np.square(recovered(one, shares)).sum()) for one in noise]
    assert np.mean(squares) / recovered_variance(9.0, shares) == pytest.approx(16, rel=0.05)


@pytest.mark.parametrize("trust", [0.5, 1.0])
def test_consistency_makes_margins_agree(trust: float) -> None:
    draws = np.random.default_rng(4)
    rough = draws.normal(50, 40, (4, 3))
    margins = [draws.uniform(50, 200, 4), draws.uniform(50, 200, 3)]
    margins = [one * 600 / one.sum() for one in margins]
    made = consistent(rough, margins, trust=trust, sweeps=400)
    assert made.min() >= 0
    assert made.sum() == pytest.approx(600)
    if trust == 1.0:
        assert np.allclose(made.sum(axis=1), margins[0], atol=0.1)
        assert np.allclose(made.sum(axis=0), margins[1], atol=0.1)
    else:
        # both move: the table's margins end between what it said and what the columns said
        before = np.abs(np.maximum(rough, 0).sum(axis=1) / np.maximum(rough, 0).sum() * 600 - margins[0]).sum()
        assert 0 < np.abs(made.sum(axis=1) - margins[0]).sum() < before


def test_a_consistent_table_stays_and_nothing_positive_becomes_even() -> None:
    table = np.array([[10.0, 20.0], [30.0, 40.0]])
    assert np.allclose(consistent(table, [table.sum(axis=1), table.sum(axis=0)]), table)
    even = consistent(-np.ones((2, 2)), [np.array([50.0, 50.0]), np.array([50.0, 50.0])])
    assert np.allclose(even, 25)


def fewest_cells(domain: Domain, edges: Iterable[tuple[str, ...]]) -> int:
    """Return the fewest cells over ALL elimination orders."""
    found = []
    for order in permutations(domain.names):
        around = {name: {other for edge in edges for other in edge if name in edge} - {name} for name in domain.names}
        cliques: list[frozenset[str]] = []
        for name in order:
            cliques.append(frozenset({name, *around[name]}))
            for one, other in combinations(around[name], 2):
                around[one].add(other)
                around[other].add(one)
            for other in around[name]:
                around[other].discard(name)
        kept = {one for one in cliques if not any(one < other for other in cliques)}
        found.append(sum(domain.project(sorted(one)).size for one in kept))
    return min(found)


@pytest.mark.parametrize("seed", range(6))
def test_the_joined_graph_is_that_of_brute_force(seed: int) -> None:
    draws = np.random.default_rng(seed)
    domain = Domain(tuple("abcde"), tuple(int(size) for size in draws.integers(2, 6, 5)))
    local: list[tuple[str, ...]] = [("a", "b"), ("c", "d")]
    across = [names for names in combinations("abcde", 2) if names not in local]
    scores: dict[tuple[str, ...], float] = dict(zip(across, draws.uniform(-0.2, 1, len(across)).tolist(), strict=True))
    limit = int(draws.integers(40, 200))
    wanted: list[tuple[str, ...]] = [*local]
    for names in sorted(scores, key=lambda one: -scores[one]):
        if scores[names] > 0:
            wanted += [names] if fewest_cells(domain, [*wanted, names]) <= limit else []
    found = joined_graph(domain, local, scores, largest=limit, most_cells=limit)
    held = {pair for clique in found for pair in combinations(clique, 2)}
    assert set(wanted) <= held
    assert sum(domain.project(one).size for one in found) == fewest_cells(domain, wanted)


def test_the_joined_graph_takes_no_more_edges_than_it_may() -> None:
    domain = Domain(tuple("abcd"), (2, 2, 2, 2))
    scores: dict[tuple[str, ...], float] = {("a", "c"): 3.0, ("b", "d"): 2.0, ("a", "d"): -1.0}
    assert {frozenset(one) for one in joined_graph(domain, [], scores, largest=99, most_cells=99, edges=1)} == {
        frozenset("ac"),
        frozenset("b"),
        frozenset("d"),
    }


def test_no_clique_of_the_joined_graph_is_too_large() -> None:
    domain = Domain(tuple("abc"), (4, 4, 4))
    scores: dict[tuple[str, ...], float] = {("a", "b"): 3.0, ("b", "c"): 2.0, ("a", "c"): 1.0}
    found = joined_graph(domain, [], scores, largest=16, most_cells=999)
    assert {frozenset(one) for one in found} == {frozenset("ab"), frozenset("bc")}


def test_r_scores_tell_noise_from_dependence() -> None:
    margins = [np.array([300.0, 700.0]), np.array([600.0, 400.0])]
    product = np.outer(*margins) / 1000
    moved = product + np.array([[100.0, -100.0], [-100.0, 100.0]])
    assert r_score(moved, margins) == pytest.approx(200)
    draws = np.random.default_rng(5)
    noisy = [product + draws.normal(0, 50, (2, 2)) for _ in range(400)]
    assert min(r_score(one, margins) for one in noisy) > 0
    assert abs(np.mean([r_score(one, margins, 2500.0) for one in noisy])) < 20
    assert r_score(moved, margins, 100.0) > 100


def test_tables_from_responses_are_unbiased_with_the_variance_that_is_said() -> None:
    draws = np.random.default_rng(6)
    left = draws.integers(0, 3, 3000)
    right = (left + draws.integers(0, 2, 3000)) % 4
    responses = {name: RandomisedResponse(size=size, epsilon=Fraction(1)) for name, size in (("l", 3), ("r", 4))}
    truth = np.zeros((3, 4))
    np.add.at(truth, (left, right), 1)
    found = []
    for seed in range(60):
        codes = {
            name: responses[name].apply(column, SimulationRandomness(seed, name))
            for name, column in (("l", left), ("r", right))
        }
        tables = OracleTables(responses=responses, codes=codes)
        found.append(tables.table(("l", "r")))
    spread = np.array(found) - truth
    assert np.abs(spread.mean(axis=0)).max() < 6 * (tables.variance(("l", "r")) / 60) ** 0.5
    assert float(np.square(spread).mean()) == pytest.approx(tables.variance(("l", "r")), rel=0.2)


def test_tables_from_sketches_need_one_key() -> None:
    plan, key = SketchPlan(phantoms=20, floor=3, repetitions=400), bytes(range(16))
    people = person_digests(key, (bytes([row % 256, row // 256]) for row in range(2000)))
    draws = np.random.default_rng(7)
    left = draws.integers(0, 2, 2000)
    right = np.where(draws.random(2000) < 0.9, left, 1 - left)
    ranks = {
        name: encode(plan, key, [People(people, column[:, None])], [2], SimulationRandomness(1, name))
        for name, column in (("l", left), ("r", right))
    }
    truth = np.zeros((2, 2))
    np.add.at(truth, (left, right), 1)
    pair = SketchTables(plan=plan, people=2000, ranks={(("l", "r"), name): one for name, one in ranks.items()})
    printed = SketchTables(plan=plan, people=2000, ranks={((), name): one for name, one in ranks.items()})
    for tables in (pair, printed):
        apart = np.abs(tables.table(("l", "r")) - truth).max()
        assert apart < 5 * tables.variance(("l", "r")) ** 0.5
    with pytest.raises(InputError, match="under one key"):
        pair.table(("r", "l"))
