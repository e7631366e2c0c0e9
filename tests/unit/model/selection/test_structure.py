"""Which columns are held together, and which tables are measured inside."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov import MarkovField, Measurement, fit, plan_tree, triangulate
from syndic.model.selection.counts import Countable, Room, Sent, endless
from syndic.model.selection.score import (
    BEYOND_PAIRS,
    MEAN_ABSOLUTE,
    association,
    choose_tables,
    noisy_distance,
    outside_scores,
    pairs_of,
    strengths,
)
from syndic.model.selection.structure import Axes, Structure, exchange, grow, grow_forest, start_structure
from unit.model.selection.curators import Names, chain

DOMAIN = Domain(tuple("abcdef"), (4, 3, 5, 2, 6, 3))
CHAIN: dict[Names, float] = {("a", "b"): 50.0, ("b", "c"): 40.0, ("c", "d"): 30.0, ("d", "e"): 20.0, ("e", "f"): 10.0}


def structure(sets: list[tuple[str, ...]] | None = None) -> Structure:
    return start_structure(DOMAIN, sets or [], 10**6)


def test_a_chain_of_pairs_is_held_with_no_more_cells_than_it_needs() -> None:
    found = grow(structure(), CHAIN, least=1.0, most_cells=10**6, most=10)
    assert sorted(found.sets) == sorted(CHAIN)
    assert found.cells == sum(DOMAIN.project(names).size for names in CHAIN)


def test_a_forest_is_the_best_spanning_one() -> None:
    scores = {names: float(7 + 31 * place % 23) for place, names in enumerate(pairs_of(DOMAIN.names))}
    found = grow_forest(structure(), scores, least=1.0, most_cells=10**6)
    trees = [
        edges for edges in combinations(scores, 5) if start_structure(DOMAIN, edges, 10**6).components == [0b111111]
    ]
    assert sum(scores[names] for names in found.edges) == max(sum(scores[names] for names in one) for one in trees)
    assert grow_forest(structure(), scores, least=1.0, most_cells=40).cells <= 40
    assert len(grow_forest(structure(), scores, least=25.0, most_cells=10**6).edges) < 5


def test_weak_pairs_and_more_than_are_asked_for_are_left_out() -> None:
    assert set(grow(structure(), CHAIN, least=25.0, most_cells=10**6, most=10).edges) == set(tuple(CHAIN)[:3])
    assert len(grow(structure(), CHAIN, least=1.0, most_cells=10**6, most=2).edges) == 2


@given(
    st.lists(st.floats(0, 100), min_size=15, max_size=15),
    st.integers(30, 3000),
    st.integers(1, 15),
)
@settings(max_examples=40)
def test_cells_stay_below_the_cap_and_cliques_are_those_of_a_chordal_graph(
    values: list[float], most_cells: int, most: int
) -> None:
    scores: dict[Names, float] = dict(zip(pairs_of(DOMAIN.names), values, strict=True))
    found = grow(structure(), scores, least=1.0, most_cells=most_cells, most=most)
    assert found.cells <= most_cells
    assert found.cells == sum(DOMAIN.project(names).size for names in found.sets)
    assert all(any(set(edge) <= set(names) for names in found.sets) for edge in found.edges)
    # triangulating chordal cliques adds nothing
    assert sorted(triangulate(DOMAIN, found.sets)) == sorted(found.sets)


def of_axes(scores: dict[Names, float]) -> dict[Axes, float]:
    return {DOMAIN.axes(names): score for names, score in scores.items()}


def total(found: Structure, worth: dict[Axes, float]) -> float:
    return sum(worth.get(pair, 0.0) for pair in found.pairs)


def is_chordal(found: Structure) -> bool:
    # triangulating the cliques of a chordal graph adds nothing
    return sorted(triangulate(DOMAIN, found.sets)) == sorted(found.sets)


@given(st.lists(st.integers(1, 63), min_size=1, max_size=6))
def test_two_columns_of_one_clique_can_part_and_the_cells_are_those_announced(members: list[int]) -> None:
    sets = [tuple(name for place, name in enumerate(DOMAIN.names) if one >> place & 1) for one in members]
    found = structure(sets)
    separable = list(found.separable())
    once = [pair for pair in found.pairs if sum(all(one >> axis & 1 for axis in pair) for one in found.cliques) == 1]
    assert sorted(pair for pair, _, _ in separable) == sorted(once)
    for pair, clique, freed in separable:
        apart = found.without(pair, clique)
        assert apart.pairs == found.pairs - {pair}
        assert apart.cells == found.cells - freed
        assert is_chordal(apart)


def test_a_pair_that_came_early_makes_room_for_better_ones() -> None:
    # e, the widest, was joined with c first; then nothing else fits
    early = grow(structure(), {("c", "e"): 20.0}, least=1.0, most_cells=46, most=1)
    worth = of_axes({("c", "e"): 20.0, ("a", "e"): 30.0, ("a", "b"): 10.0})
    assert grow(early, {("a", "e"): 30.0, ("a", "b"): 10.0}, least=1.0, most_cells=46, most=5) == early
    found = exchange(early, worth, set(), most_cells=46)
    assert total(found, worth) == 40.0
    assert {("a", "e"), ("a", "b")} <= set(found.sets)
    # what must stay stays
    assert exchange(early, worth, early.pairs, most_cells=46) is early


@given(
    st.lists(st.integers(0, 1000), min_size=15, max_size=15),  # sums of whole numbers are exact
    st.integers(60, 2000),
    st.integers(1, 8),
    st.lists(st.integers(0, 14), max_size=2),
)
@settings(max_examples=40)
def test_exchanges_fit_keep_what_is_fixed_and_never_lose(
    values: list[int], most_cells: int, most: int, kept: list[int]
) -> None:
    scores: dict[Names, float] = dict(zip(pairs_of(DOMAIN.names), values, strict=True))
    held = [pairs_of(DOMAIN.names)[place] for place in kept]
    try:
        start = start_structure(DOMAIN, held, most_cells)
    except InputError:
        return
    grown = grow(start, scores, least=1.0, most_cells=most_cells, most=most)
    worth = of_axes(scores)
    found = exchange(grown, worth, start.pairs, most_cells=most_cells)
    assert found.cells <= most_cells
    assert is_chordal(found)
    assert start.pairs <= found.pairs
    assert found == grown or total(found, worth) > total(grown, worth)
    assert all(any(set(edge) <= set(names) for names in found.sets) for edge in found.edges)


def test_growing_is_the_same_whatever_the_order_of_the_scores() -> None:
    scores = {names: float(17 * place % 11) for place, names in enumerate(pairs_of(DOMAIN.names))}
    turned = dict(reversed(scores.items()))
    found = [grow(structure(), one, least=1.0, most_cells=500, most=9) for one in (scores, turned)]
    assert found[0].cliques == found[1].cliques


def test_sets_that_must_be_held_are_held_or_refused_with_the_number() -> None:
    kept = structure([("a", "c", "e")])
    assert ("a", "c", "e") in grow(kept, CHAIN, least=1.0, most_cells=10**6, most=10).sets
    with pytest.raises(InputError, match="128 cells, more than 100"):
        start_structure(DOMAIN, [("a", "c", "e")], 100)


def fitted(sets: list[tuple[str, ...]], rows: int = 4000) -> tuple[MarkovField, dict[Names, NDArray[np.float64]]]:
    codes = chain(DOMAIN, rows)
    tables = {}
    for names in pairs_of(DOMAIN.names):
        tables[names] = np.zeros(DOMAIN.project(names).sizes)
        np.add.at(tables[names], tuple(codes[name] for name in names), 1)
    measured = [Measurement(names, tables[names], 1.0) for names in sets]
    field = fit(DOMAIN, measured, tree=plan_tree(DOMAIN, sets), total=float(rows)).field
    return field, tables


def test_strength_is_the_distance_from_independence() -> None:
    field, _ = fitted([("a", "b"), ("c", "d")])
    table = field.marginal(("a", "b")).values
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    found = strengths(field, [("a", "b"), ("a", "c")])
    assert found["a", "b"] == pytest.approx(np.abs(table - expected).sum())
    assert found["a", "c"] == pytest.approx(0, abs=1e-6)


def test_pairs_outside_the_model_are_scored_by_how_far_it_is_from_them() -> None:
    field, tables = fitted([("a", "b"), ("c", "d"), ("e", "f")])
    noisy = {names: Measurement(names, table, 1.0) for names, table in tables.items()}
    scores = outside_scores(field, noisy)
    assert set(scores) == set(tables) - {("a", "b"), ("c", "d"), ("e", "f")}
    true = {names: np.abs(tables[names] - field.marginal(names).values).sum() for names in scores}
    ranks = [np.argsort(np.argsort([found[names] for names in true])) for found in (scores, true)]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] > 0.8


def test_noise_alone_scores_nothing_on_average() -> None:
    draws = np.random.default_rng(3)
    expected = draws.gamma(1.0, 50.0, (12, 15))
    signs = [
        np.sign(noisy_distance(expected + draws.normal(0, 30, expected.shape), expected, 900.0)) for _ in range(400)
    ]
    # squares are skewed, so more than half are a little below zero
    assert -0.4 < np.mean(signs) < 0.1
    # the estimate is of the right size where cells deviate in proportion to the roots of their counts
    moved = expected + 3.0 * np.sqrt(expected) * draws.choice([-1, 1], expected.shape)
    found = np.mean([noisy_distance(moved + draws.normal(0, 30, moved.shape), expected, 900.0) for _ in range(50)])
    assert found == pytest.approx(np.abs(moved - expected).sum(), rel=0.35)


def test_the_margins_of_a_pair_are_not_its_association() -> None:
    draws = np.random.default_rng(4)
    expected = draws.gamma(2.0, 50.0, (6, 2))
    margins = draws.normal(0, 40, (6, 1)) + draws.normal(0, 40, (1, 2))
    assert noisy_distance(expected + margins, expected, 1.0) > 100
    assert association(expected + margins, expected, 1e-6) == pytest.approx(0, abs=0.1)
    assert association(np.full((6, 1), 9.0), np.ones((6, 1)), 1.0) == 0
    # what is no margin counts in full, with less noise: five of the twelve squares are left
    expected, cross = np.full((6, 2), 200.0), 20 * np.outer([1, 1, 1, -1, -1, -1], [1, -1])
    both: list[list[float]] = [[], []]
    for _ in range(300):
        noisy = expected + cross + draws.normal(0, 10, expected.shape)
        for found, score in zip(both, (association, noisy_distance), strict=True):
            found.append(score(noisy, expected, 100.0))
    # an l1 distance is taken from squares: of equal deviations it is sqrt(2/pi) of what it is
    assert np.mean(both[0]) == pytest.approx(MEAN_ABSOLUTE * np.abs(cross).sum(), rel=0.05)
    assert np.std(both[0]) < np.std(both[1])


@final
class Tables:
    """Which tables can be counted: by default all, with the same noise."""

    def __init__(
        self,
        noisier: Callable[[Domain], float | None] = lambda _: 1.0,
        room: Callable[[], Room] = lambda: endless,
        sends: Callable[[Domain], Sent] = lambda _: {},
    ) -> None:
        self.noisier, self.sends, self._room = noisier, sends, room

    def room(self, tables: int, domain: Domain) -> Room:
        del tables, domain
        return self._room()


plain = Tables()


def slow_error(field: MarkovField, tables: list[tuple[str, ...]], variance: float) -> float:
    """Return the expected error by its definition, part by part."""
    total = 0.0
    parts = {names for clique in field.tree.cliques for size in (2, 3) for names in combinations(clique, size)}
    strength = strengths(field, [names for names in parts if len(names) == 2])
    for names in parts:
        pairs = [max(strength[pair], 1.0) for pair in combinations(names, 2)]
        lost = strength[names] if len(names) == 2 else BEYOND_PAIRS * math.prod(pairs) ** (1 / 3)
        precision = sum(
            DOMAIN.project(names).size / (variance * DOMAIN.project(table).size)
            for table in tables
            if set(names) <= set(table)
        )
        cells = np.minimum(field.marginal(names).values / math.sqrt(variance), 1).sum()
        noise = math.sqrt(2 / math.pi) * cells / math.sqrt(max(precision, 1e-12))
        total += lost * noise / (lost + noise)
    return total


def test_the_first_table_chosen_is_the_one_that_lowers_the_error_most() -> None:
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    limits = {"usefulness": 1.0, "most_columns": 3, "most_cells": 1000}
    found = choose_tables(field, {}, {1: 400.0}, plain, **limits)  # type: ignore[arg-type]  # mixed types
    candidates = {names for one in field.tree.cliques for size in (2, 3) for names in combinations(one, size)}
    best = min(candidates, key=lambda names: slow_error(field, [names], 400.0))
    assert found == [best]


def test_a_pair_that_stands_out_is_measured_though_the_model_lacks_it() -> None:
    """A fit may stop before it has an association, whose table would then not be measured."""
    field, tables = fitted([("a", "b"), ("c", "d")])
    lacking = fit(DOMAIN, [], tree=plan_tree(DOMAIN, [("a", "b"), ("c", "d")]), start=field, total=field.total).field
    lacking = replace(lacking, potentials=tuple(one for one in field.potentials if one.domain.names != ("a", "b")))
    pair, limits = ("a", "b"), {"usefulness": 1.0, "most_columns": 2, "most_cells": 1000}
    assert strengths(lacking, [pair])[pair] == pytest.approx(0, abs=1e-6)
    noisy = {pair: Measurement(pair, tables[pair], 100.0)}
    assert choose_tables(lacking, {}, {1: 400.0}, plain, **limits) == [("c", "d")]  # type: ignore[arg-type]
    found = choose_tables(lacking, {("c", "d"): 1.0}, {1: 400.0}, plain, noisy, **limits)  # type: ignore[arg-type]
    assert found == [pair]
    hidden = {pair: Measurement(pair, tables[pair], 1e9)}
    found = choose_tables(lacking, {("c", "d"): 1.0}, {1: 400.0}, plain, hidden, **limits)  # type: ignore[arg-type]
    assert found == [("c", "d")]


def test_every_further_table_lowers_the_error_most_given_those_before() -> None:
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("c", "e")])
    found = choose_tables(field, {}, {5: 400.0}, plain, usefulness=1.0, most_columns=3, most_cells=1000)
    candidates = [names for one in field.tree.cliques for size in (2, 3) for names in combinations(one, size)]
    assert len(found) == 5
    for place, names in enumerate(found):
        left = dict.fromkeys(one for one in candidates if one not in found[:place])
        errors = {one: slow_error(field, [*found[:place], one], 400.0) for one in left}
        assert errors[names] == pytest.approx(min(errors.values()))


def test_tables_stay_useful_and_within_cells_and_columns() -> None:
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("c", "e")])
    for usefulness, most_cells, most_columns in [(1.0, 30, 3), (40.0, 1000, 3), (1.0, 1000, 2)]:
        found = choose_tables(
            field, {}, {4: 100.0}, plain, usefulness=usefulness, most_columns=most_columns, most_cells=most_cells
        )
        limit = min(most_cells, 4000 / (usefulness * 10 * math.sqrt(2 / math.pi)))
        assert found
        assert all(DOMAIN.project(names).size <= limit and 2 <= len(names) <= most_columns for names in found)
        assert len(set(found)) == len(found) <= 4


def test_no_table_is_chosen_where_none_is_useful() -> None:
    field, _ = fitted([("a", "b")])
    assert choose_tables(field, {}, {3: 1e9}, plain, usefulness=2.0, most_columns=3, most_cells=1000) == []


def test_what_is_known_precisely_is_not_measured_again() -> None:
    field, _ = fitted([("a", "b"), ("c", "d")])
    known: dict[Names, float] = {("a", "b"): 1e6}
    found = choose_tables(field, known, {1: 100.0}, plain, usefulness=1.0, most_columns=2, most_cells=1000)
    assert found == [("c", "d")]


@pytest.mark.parametrize("worse", [None, 1e4])
def test_tables_that_are_noisier_or_cannot_be_had_give_way(worse: float | None) -> None:
    field, _ = fitted([("a", "b"), ("c", "d")])

    def noisier(table: Domain) -> float | None:
        return worse if "a" in table else 1.0

    def chosen(counts: Countable) -> list[Names]:
        return choose_tables(field, {}, {1: 100.0}, counts, usefulness=1.0, most_columns=2, most_cells=1000)

    assert chosen(plain) == [("a", "b")]
    assert chosen(Tables(noisier)) == [("c", "d")]


def test_tables_without_room_are_passed_over_for_others() -> None:
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("c", "e")])
    limits: Any = {"usefulness": 1.0, "most_columns": 3, "most_cells": 1000}
    every = choose_tables(field, {}, {5: 400.0}, plain, **limits)
    narrow = Tables(room=lambda: lambda names: names not in every[:2])
    found = choose_tables(field, {}, {5: 400.0}, narrow, **limits)
    assert len(found) == len(every) == 5
    assert not set(every[:2]) & set(found)
    assert choose_tables(field, {}, {5: 400.0}, Tables(room=lambda: lambda _: False), **limits) == []


def within(most: int, sends: Callable[[Domain], Sent], *, told: bool = True) -> Tables:
    """Return tables for messages of so much: what two tables send is sent once. `told`: whether sizes are known."""

    def room() -> Room:
        sent: dict[tuple[str, Names], int] = {}

        def take(names: Names) -> bool:
            wider = sent | dict(sends(DOMAIN.project(names)))
            if sum(wider.values()) > most:
                return False
            sent.update(wider)
            return True

        return take

    return Tables(room=room, sends=sends) if told else Tables(room=room)


def test_little_traffic_goes_to_many_cheap_tables_and_not_to_one_dear_one() -> None:
    """The first table, which lowers the error most, would leave no traffic for the others."""
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("c", "e")])
    limits: Any = {"usefulness": 1.0, "most_columns": 2, "most_cells": 1000}
    (dear,) = choose_tables(field, {}, {1: 400.0}, plain, **limits)
    every = choose_tables(field, {}, {5: 400.0}, plain, **limits)

    def sends(table: Domain) -> Sent:
        return {("p", table.names): 10 if table.names == dear else 2}

    found = choose_tables(field, {}, {5: 400.0}, within(10, sends), **limits)
    assert dear not in found
    assert len(found) == 5
    assert slow_error(field, found, 400.0) < slow_error(field, [dear], 400.0)
    # what all tables share is paid for once, and where there is traffic for all nothing changes
    assert choose_tables(field, {}, {5: 400.0}, within(10, lambda _: {("p", ("a",)): 10}), **limits) == every
    assert choose_tables(field, {}, {5: 400.0}, within(100, sends), **limits) == every


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_traffic_is_kept_to_and_prices_never_make_the_choice_worse(seed: int) -> None:
    field, _ = fitted([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("c", "e")])
    limits: Any = {"usefulness": 1.0, "most_columns": 3, "most_cells": 1000}
    draws = np.random.default_rng(seed)
    size = {name: int(draws.integers(1, 20)) for name in DOMAIN.names}

    def sends(table: Domain) -> Sent:
        return {("p", (name,)): size[name] for name in table.names}

    most, number = int(draws.integers(1, 60)), int(draws.integers(1, 8))
    found = choose_tables(field, {}, {number: 400.0}, within(most, sends), **limits)
    assert sum(size[name] for name in {name for names in found for name in names}) <= most
    assert len(found) <= number
    bare = choose_tables(field, {}, {number: 400.0}, within(most, sends, told=False), **limits)
    assert slow_error(field, found, 400.0) <= slow_error(field, bare, 400.0) * (1 + 1e-9)


@pytest.mark.parametrize("columns", [10, 45])
def test_what_is_held_together_at_first_fits_the_plan_however_levels_are_grouped(columns: int) -> None:
    generator = np.random.default_rng(0)
    names = tuple(f"c{place}" for place in range(columns))
    for _ in range(30):
        sizes = tuple(int(size) for size in generator.integers(2, 12, columns))
        ring = [names[place] for place in generator.permutation(columns)[:6]]
        sets = [(one, ring[place - 1]) for place, one in enumerate(ring)] + [(ring[0], ring[3])]
        tree = plan_tree(Domain(names, sizes), sets)
        assert start_structure(Domain(names, sizes), tree.cliques, tree.cells).cells == tree.cells
        grouped = tuple(size if name in ring else 2 for name, size in zip(names, sizes, strict=True))
        assert start_structure(Domain(names, grouped), tree.cliques, tree.cells).cells <= tree.cells
