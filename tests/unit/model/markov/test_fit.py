"""Fitting, against scipy over the full joint, and what a fit promises about memory, zeros and interruptions."""

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov import Impossible, JunctionTree, MarkovField, Measurement, estimate_total, fit, plan_tree
from syndic.model.markov.measurement import in_groups
from syndic.model.markov.optimise import Optimiser, dual
from syndic_lab.bench.model.mirror import mirror
from unit.model.markov.joint import column_sets, domains, expanded, joint, noisy

OPTIMISERS: list[Optimiser] = [dual, mirror]
DOMAIN = Domain(tuple("abcd"), (3, 2, 4, 2))
SETS = [("a", "b"), ("c", "b"), ("a", "c"), ("d",)]


def table(seed: int = 0, domain: Domain = DOMAIN) -> np.ndarray[Any, np.dtype[np.float64]]:
    generator = np.random.default_rng(seed)
    return 1000 * generator.dirichlet(np.full(domain.size, 0.5)).reshape(domain.sizes)


def least_loss(domain: Domain, tables: list[Measurement], total: float) -> float:
    """Return the least loss of any table of non-negative counts with this total, by scipy."""

    def loss(logs: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, np.ndarray[Any, np.dtype[np.float64]]]:
        shares = np.exp(logs - logs.max()).reshape(domain.sizes)
        counts = Factor(domain, total * shares / shares.sum())
        value, gradient = 0.0, np.zeros(domain.sizes)
        for one in tables:
            rest = (counts.project(one.names).values - one.values) / one.variance
            value += 0.5 * float(np.sum(rest**2) * one.variance)
            gradient += expanded(Factor(domain.project(one.names), rest), domain)
        inner = counts.values * (gradient - np.sum(counts.values * gradient) / total)
        return value, inner.reshape(-1)

    found = minimize(loss, np.zeros(domain.size), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15})
    return float(found.fun)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_fit_reaches_the_least_loss_over_all_tables(optimiser: Optimiser, seed: int) -> None:
    tables = noisy(DOMAIN, table(seed), SETS, np.random.default_rng(seed), 15.0)
    total = estimate_total(tables)
    fitted = fit(DOMAIN, tables, optimiser=optimiser, target=0, iterations=3000, tolerance=1e-6)
    assert fitted.loss == pytest.approx(least_loss(DOMAIN, tables, total), rel=2e-2)
    residuals = [fitted.field.marginal(one.names).values - one.values for one in tables]
    assert fitted.loss == pytest.approx(sum(0.5 * np.sum(rest**2) / 15.0**2 for rest in residuals), rel=1e-6)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_tables_without_noise_are_met_with_the_greatest_entropy(optimiser: Optimiser) -> None:
    # of all tables with these margins, a chain makes a and c independent given b
    full = Factor(DOMAIN, table(5))
    tables = [Measurement(names, full.project(names).values, 1e-4) for names in (("a", "b"), ("b", "c"), ("d",))]
    field = fit(DOMAIN, tables, optimiser=optimiser, target=0, iterations=3000, tolerance=1e-9).field
    first, second, middle = (full.project(names).values for names in (("a", "b"), ("b", "c"), ("b",)))
    expected = first[:, :, None] * second[None] / middle[None, :, None]
    np.testing.assert_allclose(field.marginal(("a", "b", "c")).values, expected, atol=0.3)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_tables_over_groups_of_levels_are_met_beside_tables_over_levels(optimiser: Optimiser) -> None:
    full = Factor(DOMAIN, table(7))
    groups = np.array([0, 1, 0]), np.array([0, 0, 1, 1])
    coarse = in_groups(full.project(("a", "c")).values, groups)
    assert coarse[0, 1] == pytest.approx(full.project(("a", "c")).values[[0, 2], 2:].sum())
    tables = [
        *(Measurement(names, full.project(names).values, 1e-4) for names in (("a",), ("c",), ("a", "b"))),
        Measurement(("a", "c"), coarse, 1e-4, groups),
    ]
    field = fit(DOMAIN, tables, optimiser=optimiser, target=0, iterations=3000, tolerance=1e-9).field
    found = field.marginal(("a", "c")).values
    np.testing.assert_allclose(in_groups(found, groups), coarse, atol=0.3)
    np.testing.assert_allclose(found.sum(axis=0), tables[1].values, atol=0.3)
    # within a cell of groups nothing is known of the pair: the margins decide
    inside = found[np.ix_([0, 2], [2, 3])]
    np.testing.assert_allclose(inside[0, 0] * inside[1, 1], inside[0, 1] * inside[1, 0], rtol=0.01)
    # a table over levels of the same columns is another one, and both are fitted
    both = [*tables, Measurement(("a", "c"), full.project(("a", "c")).values, 1e-2)]
    field = fit(DOMAIN, both, start=field, optimiser=optimiser, target=0, iterations=3000, tolerance=1e-9).field
    np.testing.assert_allclose(field.marginal(("a", "c")).values, full.project(("a", "c")).values, atol=2.0)


@given(domains(5), st.data())
@settings(max_examples=40)
def test_any_noisy_tables_can_be_fitted(domain: Domain, data: st.DataObject) -> None:
    sets = data.draw(column_sets(domain))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    deviation = data.draw(st.sampled_from([0.1, 30.0, 1e4]))
    tables = noisy(domain, table(1, domain), sets, generator, deviation)
    zeros = []
    for names in sets[: data.draw(st.integers(0, 1))]:
        cells = generator.random(domain.project(names).sizes) < 0.3
        cells.reshape(-1)[0] = False
        zeros.append(Impossible(names, cells))
    fitted = fit(domain, tables, total=1000.0 if not tables else None, zeros=zeros, iterations=60)
    whole = joint(fitted.field)
    for place, clique in enumerate(fitted.field.tree.cliques):
        # probabilities kept by passes are those of the potentials
        expected = whole.project(clique).values / fitted.field.total
        np.testing.assert_allclose(fitted.field.beliefs[place], expected, rtol=1e-6, atol=1e-9)
    for zero in zeros:
        assert fitted.field.marginal(zero.names).values[zero.cells].sum() == 0


def test_the_target_stops_a_fit_where_the_noise_begins() -> None:
    domain = Domain(tuple("abcdef"), (6,) * 6)
    sets = list(itertools.combinations(domain.names, 2))
    truth = table(3, domain)
    tables = noisy(domain, truth, sets, np.random.default_rng(3), 5.0)
    cells = sum(one.values.size for one in tables)
    early, late = (fit(domain, tables, target=target, iterations=800) for target in (0.9, 0.0))
    assert 0.5 * 0.9 * cells >= early.loss > late.loss
    assert early.iterations < late.iterations

    def error(field: MarkovField) -> float:
        return sum(
            float(np.abs(field.marginal(s).values - Factor(domain, truth).project(s).values).sum()) for s in sets
        )

    assert error(early.field) < error(late.field)


def test_a_warm_start_goes_on_where_a_model_stands_even_in_another_tree() -> None:
    tables = noisy(DOMAIN, table(7), SETS, np.random.default_rng(7), 5.0)
    first = fit(DOMAIN, tables[:2])
    tree = plan_tree(DOMAIN, [*first.field.tree.cliques, ("a", "d"), ("a", "c")])
    still = fit(DOMAIN, tables[:2], start=first.field, tree=tree, total=first.field.total, iterations=0)
    assert still.iterations == 0
    for names in itertools.combinations(DOMAIN.names, 2):
        np.testing.assert_allclose(still.field.marginal(names).values, first.field.marginal(names).values, rtol=1e-6)
    cold = fit(DOMAIN, tables, target=0, iterations=2000, tolerance=1e-6)
    warm = fit(DOMAIN, tables, start=first.field, target=0, iterations=2000, tolerance=1e-6)
    assert warm.loss == pytest.approx(cold.loss, rel=1e-2)


def test_zeros_of_the_start_stay_and_are_not_doubled() -> None:
    tables = noisy(DOMAIN, table(7), SETS, np.random.default_rng(7), 5.0)
    cells = np.zeros((2, 3), dtype=np.bool_)
    cells[1, 2] = True
    field = fit(DOMAIN, tables, zeros=[Impossible(("b", "a"), cells)]).field
    again = fit(DOMAIN, tables, start=field, zeros=[Impossible(("b", "a"), cells)]).field
    assert len(again.impossible) == 1
    assert again.marginal(("a", "b")).values[2, 1] == 0
    assert np.count_nonzero(again.marginal(("a", "b")).values) == 5


def test_a_hundred_tables_in_one_clique_do_not_overflow() -> None:
    domain = Domain(tuple("abcdefghij"), (2,) * 10)
    sets = [names for count in (1, 2, 3) for names in itertools.combinations(domain.names, count)]
    tables = [Measurement(names, np.full((2,) * len(names), -1e6), 1.0) for names in sets]
    tables = [
        Measurement(one.names, one.values * np.arange(one.values.size).reshape(one.values.shape), 1.0) for one in tables
    ]
    for optimiser in OPTIMISERS:
        fitted = fit(domain, tables, total=1000.0, optimiser=optimiser, iterations=40)
        assert np.isfinite(fitted.loss)
        assert fitted.field.marginal(domain.names).values.sum() == pytest.approx(1000.0)


def test_repeated_tables_count_by_their_precision() -> None:
    values = np.array([400.0, 600.0])
    twice = [Measurement(("a",), values, 4.0), Measurement(("a",), values[::-1], 12.0)]
    fitted = fit(Domain(("a",), (2,)), twice, target=0)
    np.testing.assert_allclose(fitted.field.marginal(("a",)).values, [450, 550], atol=0.5)
    assert estimate_total([*twice, Measurement(("a",), values * 2, 1e12)]) == pytest.approx(1000, rel=1e-6)


def test_nothing_measured_is_the_uniform_model() -> None:
    field = fit(DOMAIN, [], total=48.0).field
    np.testing.assert_allclose(field.marginal(DOMAIN.names).values, 1.0)
    with pytest.raises(InputError, match="give the total"):
        fit(DOMAIN, [])


@pytest.mark.parametrize(
    ("names", "shape", "variance", "word"),
    [
        (("a", "b"), (3, 3), 1.0, "levels"),
        (("a",), (3, 2), 1.0, "names"),
        (("a", "a"), (3, 3), 1.0, "distinct"),
        (("a",), (3,), 0.0, "positive"),
        (("x",), (3,), 1.0, "unknown"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    names: tuple[str, ...], shape: tuple[int, ...], variance: float, word: str
) -> None:
    with pytest.raises(InputError, match=word):
        fit(DOMAIN, [Measurement(names, np.zeros(shape), variance)])


def test_a_tree_without_room_is_refused() -> None:
    tables = noisy(DOMAIN, table(), SETS, np.random.default_rng(0), 1.0)
    with pytest.raises(InputError, match="no clique"):
        fit(DOMAIN, tables, tree=plan_tree(DOMAIN, SETS[:2]))
    tree = plan_tree(DOMAIN, SETS)
    with pytest.raises(InputError, match=str(tree.memory_for(SETS))):
        fit(DOMAIN, tables, memory_bytes=tree.memory_for(SETS) - 1)


def peak(domain: Domain, sets: list[tuple[str, ...]], tree: JunctionTree) -> int:
    tables = [Measurement(names, np.full(domain.project(names).sizes, 7.0), 1.0) for names in sets]
    fit(domain, tables[:1], iterations=1)  # compiled, imported
    tracemalloc.start()
    try:
        field = fit(domain, tables, tree=tree, iterations=15, target=0).field
        field.marginals(sets)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["pairs", "triples", "whole", "chain"])
def test_memory_stays_below_what_the_tree_announces(kind: str) -> None:
    if kind == "chain":
        domain = Domain(tuple(f"c{place}" for place in range(60)), tuple(2 + place % 29 for place in range(60)))
        sets = [domain.names[place : place + 2] for place in range(59)]
    else:
        domain = Domain(tuple("abcde"), (12,) * 5)
        count = {"pairs": 2, "triples": 3, "whole": 5}[kind]
        sets = list(itertools.combinations(domain.names, count))
    tree = plan_tree(domain, [*sets, *([] if kind == "chain" else [domain.names])])
    assert peak(domain, sets, tree) <= tree.memory_for(sets)
