"""Parities: their sums, their sensitivity, the sets that are asked for, and what is found by them."""

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from syndic.data import Domain
from syndic.model.selection import Adaptive, Grouping, GrowingModel, Synthesis, synthesise
from syndic.model.selection.parity import (
    MOST_SETS,
    SIZES,
    most_flipped,
    most_sets,
    parity_sums,
    plan_scan,
    sets_to_ask,
    share_to_find,
    split_levels,
)
from syndic.model.selection.structure import fitting_sets
from unit.model.selection.curators import Codes, Recorder, Replay, chain, curator

DOMAIN = Domain(tuple("abcdef"), (4, 2, 3, 1, 2, 5))
HALVES = Grouping(DOMAIN, ((0, 1, 1, 0), (1, 0), (0, 0, 1), (0,), (0, 0), (1, 0, 1, 0, 0)))
SETS = [names for size in SIZES for names in combinations(DOMAIN.names, size)]
COINS = Domain(tuple(f"c{place}" for place in range(9)), (2,) * 9)
LOOKING = Adaptive(rounds=1, cells=5000, growth=2, parity_share=Fraction(1, 100))


def sums_of(codes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    return parity_sums(HALVES, SETS, lambda tables: HALVES.count(codes, tables))


def planted(number: int, rows: int = 12_000) -> Codes:
    """Return fair coins of which the last is the exclusive or of the first ones, but for one row in 20."""
    draws = np.random.default_rng(number)
    values = draws.integers(0, 2, (rows, len(COINS)))
    values[:, -1] = (values[:, :number].sum(axis=1) + (draws.random(rows) < 0.05)) % 2
    return dict(zip(COINS.names, values.T, strict=True))


def agreement(found: Synthesis, number: int) -> float:
    made = list(found.sample(10_000, np.random.default_rng(1)).values())
    return float(np.mean(sum(one.astype(int) for one in made[:number]) % 2 == made[-1]))


def test_sums_are_those_of_the_products_of_signs() -> None:
    codes = chain(DOMAIN, 300)
    signs = {name: 1 - 2 * one.astype(int) for name, one in HALVES.recode(codes).items()}
    expected = [int(np.prod([signs[name] for name in names], axis=0).sum()) for names in SETS]
    assert sums_of(codes).tolist() == expected


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_noise_covers_what_any_row_can_change(neighbours: str) -> None:
    """All rows are tried: no change is larger than the sensitivity that the curator's noise is calibrated to."""
    rows = [dict(zip(DOMAIN.names, map(np.array, ([one] for one in row)), strict=True)) for row in all_rows()]
    sums = np.array([sums_of(row) for row in rows])
    moved = sums if neighbours == "add_remove" else (sums[:, None] - sums[None]).reshape(-1, len(SETS))
    largest = int(np.square(moved).sum(axis=1).max())
    assert largest == len(SETS) if neighbours == "add_remove" else largest <= 4 * len(SETS)
    counts, events = curator(chain(DOMAIN, 50), DOMAIN, neighbours=neighbours)
    opened = counts.parities(SETS, Fraction(1, 100), HALVES)
    assert [event.mu_squared for event in events] == [Fraction(1, 100)]
    assert opened.variances.min() >= 0.9999 * largest / 0.01
    assert opened.variances == pytest.approx(len(SETS) * (1 if neighbours == "add_remove" else 4) / 0.01, rel=1e-6)
    assert len(opened.values) == len(SETS)


def all_rows() -> list[tuple[int, ...]]:
    return list(product(*(range(size) for size in DOMAIN.sizes)))


def test_one_replaced_row_can_change_the_parity_of_a_set_by_two() -> None:
    one, other = ({name: np.array([code]) for name, code in zip(DOMAIN.names, row, strict=True)} for row in ENDS)
    assert set(np.abs(sums_of(one) - sums_of(other))) == {0, 2}


ENDS = ((0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0))


@pytest.mark.parametrize("number", [1, 3, 10, 35])
def test_no_change_of_signs_flips_more_parities_than_is_said(number: int) -> None:
    draws, every = np.random.default_rng(number), [one for size in range(1, 6) for one in combinations("abcdefg", size)]
    sets = tuple(every[place] for place in draws.choice(len(every), number, replace=False))
    changes = [set(one) for size in range(8) for one in combinations("abcdefg", size)]
    flipped = [sum(len(change.intersection(one)) % 2 for one in sets) for change in changes]
    assert most_flipped(sets) == max(flipped)


def test_about_half_of_all_parities_flip_at_once_and_of_many_columns_all_may() -> None:
    coins = [f"c{place}" for place in range(17)]
    assert most_flipped(tuple(combinations(coins[:13], 3))) == math.comb(13, 3)
    assert most_flipped(tuple(combinations(coins[:13], 4))) < 0.57 * math.comb(13, 4)
    assert most_flipped(tuple(combinations(coins, 4))) == math.comb(17, 4)


def test_a_set_that_cannot_be_counted_is_not_asked_and_one_with_more_noise_only_if_it_could_stand_out() -> None:
    balance = dict.fromkeys("abcd", 1.0)
    times: dict[tuple[str, ...], float | None] = {("a", "b", "c"): None, ("a", "b", "d"): 100.0}
    found = sets_to_ask(balance, lambda _: 0.2, lambda names: times.get(names, 1.0))
    assert found == [("a", "c", "d"), ("b", "c", "d"), ("a", "b", "c", "d")]


def always(variance: float) -> Callable[[int], float]:
    return lambda _: variance


def test_at_the_share_that_is_needed_a_strong_parity_stands_out() -> None:
    share = share_to_find(100, 1e6, 10_000.0)
    variance = 1e6 / share
    one_way = {name: np.array([5000.0, 5000.0]) for name in COINS.names}
    less, enough = (plan_scan(Grouping.none(COINS), one_way, (), 1e4, always(variance * times)) for times in (50, 0.5))
    assert len(less.sets) == 1 < len(enough.sets)
    assert share_to_find(100, 1e6, 5.0) == 1.0


def test_halves_have_similar_counts_and_no_column_of_two_levels_is_constant() -> None:
    domain = Domain(("coin", "rare", "list", "age", "one", "none"), (2, 2, 5, 6, 1, 3))
    counts = {
        "coin": np.array([40.0, 60.0]),
        "rare": np.array([99.0, 1.0]),
        "list": np.array([50.0, -3.0, 20.0, 20.0, 10.0]),
        "age": np.array([10.0, 10.0, 30.0, 30.0, 10.0, 10.0]),
        "one": np.array([100.0]),
        "none": np.array([0.0, -1.0, 0.0]),
    }
    halves = dict(zip(domain.names, split_levels(domain, counts, ["age"]).groups, strict=True))
    assert set(halves["coin"]) == set(halves["rare"]) == {0, 1}
    assert abs(sum(count if half else -count for half, count in zip(halves["list"], counts["list"], strict=True))) <= 3
    assert halves["age"] == (0, 0, 0, 1, 1, 1)
    assert halves["one"] == (0,)


def test_numbers_that_count_together_only_where_they_are_high_or_low_are_found() -> None:
    """Halves that take every other level would not show it."""
    draws = np.random.default_rng(8)
    domain = Domain(tuple("abcdefgh"), (8,) * 7 + (2,))
    codes = {name: draws.integers(0, 8, 20_000) for name in "abcdefg"}
    high = sum((codes[name] >= 4).astype(int) for name in "abc") + (draws.random(20_000) < 0.1)
    looking = Adaptive(rounds=1, cells=20_000, growth=2, parity_share=Fraction(1, 100))
    ordered = replace(looking, adjacent=tuple((name, 8) for name in "abcdefg"))
    wanted, counts = ("a", "b", "c", "h"), {**codes, "h": high % 2}
    assert synthesise(ordered, curator(counts, domain)[0], Fraction(1, 10)).found == (wanted,)
    assert synthesise(looking, curator(counts, domain)[0], Fraction(1, 10)).found == ()


@pytest.mark.parametrize("columns", [3, 13, 40, 100])
def test_the_number_of_sets_is_bounded_by_the_columns_alone(columns: int) -> None:
    balance = {f"c{place}": 1 - place / 1000 for place in range(columns)}
    found = sets_to_ask(balance, lambda _: 0.0)
    assert len(found) <= most_sets(columns) <= MOST_SETS
    assert len(set(found)) == len(found)
    # the most balanced columns come first
    assert tuple(balance)[:3] in found


def test_only_sets_that_could_stand_out_are_asked_for() -> None:
    balance = {"a": 1.0, "b": 0.9, "c": 0.9, "d": 0.8, "rare": 0.05, "none": 0.0}
    found = sets_to_ask(balance, lambda sets: 0.2 * math.sqrt(sets))
    assert {name for names in found for name in names} == set("abcd")
    assert [len(names) for names in found] == sorted(len(names) for names in found)
    # where nothing could, one set is asked for: rounds are as many as were planned
    assert sets_to_ask(balance, lambda _: 2.0) == [("a", "b", "c")]


def test_more_noise_asks_for_fewer_sets() -> None:
    one_way = {name: np.array([500.0, 500.0]) for name in COINS.names}
    few, many = (
        plan_scan(Grouping.none(COINS), one_way, (), 1000.0, partial(operator.mul, each)).sets for each in (300.0, 3.0)
    )
    assert 1 <= len(few) < len(many) == most_sets(len(COINS))


@pytest.mark.parametrize("number", [2, 3, 4])
def test_what_no_pair_shows_is_found_and_kept(number: int) -> None:
    codes, budget = planted(number), Fraction(1, 10)
    found = synthesise(LOOKING, curator(codes, COINS)[0], budget)
    assert found.found == ((*COINS.names[:number], COINS.names[-1]),)
    assert agreement(found, number) > 0.93
    assert found.field.tree.home(found.found[0]) is not None
    if number == 4:
        blind = synthesise(Adaptive(rounds=1, cells=5000, growth=2), curator(codes, COINS)[0], budget)
        assert blind.found == ()
        assert agreement(blind, number) < 0.6


def test_nothing_is_found_where_pairs_show_all() -> None:
    domain = Domain(tuple("abcdefgh"), (3,) * 8)  # of equal sizes: each column depends on the one before alone
    found = synthesise(LOOKING, curator(chain(domain, 20_000), domain)[0], Fraction(1))
    assert found.found == ()


def test_a_pair_that_the_model_has_no_room_for_holds_no_set() -> None:
    """Signs of three columns that nearly equal each other stand out, but what takes their place was held for more."""
    draws = np.random.default_rng(3)
    domain = Domain(tuple("abcdef"), (8,) * 6)
    hidden = draws.choice(8, 20_000, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
    codes = {name: np.where(draws.random(20_000) < 0.1, draws.integers(0, 8, 20_000), hidden) for name in "abcdef"}
    counts = curator(codes, domain)[0]
    tight = Adaptive(rounds=1, cells=1100, growth=2, parity_share=Fraction(1, 100))
    model = GrowingModel(tight, counts, Fraction(1))
    for budget in model.budgets[:2]:
        model.fit(counts.measure(model.choose(), budget, model.asked))
    scan = model.choose_sets(model.budgets[2])
    found = scan.standing_out(model.field, counts.parities(scan.sets, model.budgets[2], scan.levels))
    assert found
    model.hold(found)
    assert model.found == ()


def test_where_nothing_is_found_the_model_is_that_of_a_run_without() -> None:
    domain = Domain(tuple("abcdef"), (3,) * 6)
    record = Recorder(curator(chain(domain, 5000), domain)[0])
    small = Adaptive(rounds=1, cells=2000, growth=3, parity_share=Fraction(1, 10**12))
    first = synthesise(small, record, Fraction(1, 20))
    assert len(record.opened) == 1
    record.opened.clear()
    second = synthesise(Adaptive(rounds=1, cells=2000, growth=3), Replay(record), Fraction(1, 20))
    assert [[one.names for one in tables] for tables in first.rounds] == [
        [one.names for one in tables] for tables in second.rounds
    ]
    for one, other in zip(first.field.potentials, second.field.potentials, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_sets_are_held_while_they_fit() -> None:
    domain = Domain(tuple("abcdef"), (2, 2, 2, 2, 10, 10))
    sets = [("a", "b", "c"), ("a", "b"), ("a", "b", "c", "d"), ("a", "e", "f"), ("b", "c", "d"), ("c", "d", "e")]
    assert fitting_sets(domain, (), sets, 60, 9) == (("a", "b", "c"), ("b", "c", "d"))
    assert fitting_sets(domain, (), sets, 60, 1) == (("a", "b", "c"),)
    assert ("c", "d", "e") in fitting_sets(domain, (), sets, 80, 9)
