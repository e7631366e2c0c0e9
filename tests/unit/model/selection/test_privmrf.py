"""PrivMRF: its choices against their definitions, and its account."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov import Impossible
from syndic.model.selection import PrivMRF
from syndic.model.selection.privmrf_tables import Scores, attribute_graph, candidate_weights, initial_tables
from syndic.model.selection.score import pairs_of
from unit.model.selection.curators import chain, curator

DOMAIN = Domain(tuple("abcdef"), (4, 3, 5, 2, 6, 3))
BUDGET = Fraction(1, 4)


def scores() -> Scores:
    draws = np.random.default_rng(0)
    return Scores(DOMAIN, {frozenset(names): float(draws.random()) for names in pairs_of(DOMAIN.names)})


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("refined", [Fraction(0), Fraction(4, 5), Fraction(50)])
def test_the_account_adds_up_to_the_budget(neighbours: str, refined: Fraction) -> None:
    counts, events = curator(chain(DOMAIN, 3000), DOMAIN, neighbours=neighbours)
    found = PrivMRF(refined=refined).run(counts, BUDGET, np.random.default_rng(1))
    assert sum(event.mu_squared for event in events) == BUDGET
    variances = {round(one.variance, 6) for tables in found.rounds for one in tables}
    assert len(variances) == 1


def test_the_same_rows_and_draws_repeat_the_model() -> None:
    found = [PrivMRF().run(curator(chain(DOMAIN, 3000), DOMAIN)[0], BUDGET, np.random.default_rng(1)) for _ in range(2)]
    first, second = (one.field.marginal(("a", "c")).values for one in found)
    np.testing.assert_array_equal(first, second)


def test_it_comes_closer_to_the_rows_than_independent_columns() -> None:
    codes = chain(DOMAIN, 20000)
    found = PrivMRF().run(curator(codes, DOMAIN)[0], Fraction(1), np.random.default_rng(1))
    for names in [("a", "b"), ("c", "d"), ("d", "e", "f")]:
        real = np.zeros(DOMAIN.project(names).sizes)
        np.add.at(real, tuple(codes[name] for name in names), 1)
        alone = np.ones(())
        for name in names:
            alone = np.multiply.outer(alone, np.bincount(codes[name], minlength=DOMAIN[name]) / 20000)
        model = found.marginal(names).values
        assert np.abs(model - real).sum() < 0.25 * np.abs(20000 * alone - real).sum()


@pytest.mark.parametrize("sizes", [(5,), (1, 1), (3, 2)])
def test_tiny_domains(sizes: tuple[int, ...]) -> None:
    domain = Domain(tuple("abc"[: len(sizes)]), sizes)
    counts, events = curator(chain(domain, 500), domain)
    found = PrivMRF().run(counts, BUDGET, np.random.default_rng(1))
    assert sum(event.mu_squared for event in events) == BUDGET
    assert {name: len(column) for name, column in found.sample(9, np.random.default_rng(1)).items()} == dict.fromkeys(
        domain.names, 9
    )


def test_impossible_cells_stay_empty() -> None:
    cells = np.zeros((4, 3), dtype=np.bool_)
    cells[0, 2] = True
    counts = curator(chain(DOMAIN, 3000), DOMAIN)[0]
    found = PrivMRF().run(counts, BUDGET, np.random.default_rng(1), zeros=[Impossible(("a", "b"), cells)])
    assert found.marginal(("a", "b")).values[0, 2] == 0


def test_the_graph_takes_the_best_edges_that_fit() -> None:
    one = scores()
    cliques = attribute_graph(one, [], largest=100, most_cells=200)
    sizes = [DOMAIN.project(names).size for names in cliques]
    assert max(sizes) <= 100
    assert sum(sizes) <= 200
    # the first edge is the best of those that fit, and is never given up
    best = max(pairs_of(DOMAIN.names), key=lambda names: one.of(*names))
    assert any(set(best) <= set(names) for names in cliques)
    # nothing fits any more
    assert attribute_graph(one, cliques, largest=100, most_cells=200) is not None
    with pytest.raises(InputError, match="allow more"):
        attribute_graph(one, [("a", "c", "e")], largest=100, most_cells=200)


def test_parents_are_scored_by_their_own_columns() -> None:
    one = scores()
    parents = ("b", "e")
    expected = (one.of("a", "b") + one.of("a", "e")) / math.sqrt(2 + one.of("b", "e"))
    assert one.parents("a", parents) == pytest.approx(expected)
    assert one.parents("a", ("c",)) == pytest.approx(one.of("a", "c"))


@pytest.mark.parametrize("limit", [1.0, 13.0, 40.0])
def test_first_tables_cover_every_column_within_the_limit(limit: float) -> None:
    cliques = [("a", "b", "c", "d"), ("c", "d", "e"), ("f",)]
    tables = initial_tables(scores(), cliques, limit, np.random.default_rng(1))
    assert set().union(*tables) == set(DOMAIN.names)
    assert all(len(names) == 1 or DOMAIN.project(names).size <= limit for names in tables)
    assert not any(set(one) < set(other) for one, other in combinations(tables, 2))
    assert len(tables) <= len(DOMAIN)


def test_candidates_and_their_weights_are_those_of_the_paper() -> None:
    cliques = [("a", "b", "d"), ("b", "d", "e")]
    weights = candidate_weights(DOMAIN, cliques, 13.0, 6)
    # below 13 cells: (a, b) has 12, (a, d) 8, (b, d) 6; (b, e) has 18, (d, e) 12; whole cliques never
    assert set(weights) == {("a",), ("b",), ("d",), ("e",), ("a", "b"), ("a", "d"), ("b", "d"), ("d", "e")}
    assert weights["a",] == pytest.approx(9 / 6)
    assert weights["b", "d"] == pytest.approx(9 / 6 + 9 / 5)
