"""A trusted curator's noisy tables and scores: exact counts behind them, sensitivities, the account."""

from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.selection import Curator, Grouping
from syndic.model.selection.curator import independence_gap
from syndic.random import SimulationRandomness
from unit.model.selection.curators import chain, curator

DOMAIN = Domain(("a", "b", "c"), (3, 4, 2))
PLAIN = Grouping.none(DOMAIN)
HUGE = Fraction(10**5)


def test_without_much_noise_the_tables_are_the_counts() -> None:
    codes = chain(DOMAIN, 500)
    tables = curator(codes, DOMAIN)[0].measure([("a", "c"), ("b",)], HUGE, PLAIN)
    expected = np.zeros((3, 2))
    np.add.at(expected, (codes["a"], codes["c"]), 1)
    np.testing.assert_allclose(tables[0].values, expected, atol=0.05)
    np.testing.assert_allclose(tables[1].values, np.bincount(codes["b"], minlength=4), atol=0.05)


def test_tables_are_counted_over_groups() -> None:
    codes = chain(DOMAIN, 500)
    grouping = Grouping(DOMAIN, ((0, 1, 2), (0, 1, 1, 1), (0, 1)))
    (table,) = curator(codes, DOMAIN)[0].measure([("b",)], HUGE, grouping)
    np.testing.assert_allclose(table.values, [(codes["b"] == 0).sum(), (codes["b"] > 0).sum()], atol=0.05)


@pytest.mark.parametrize(("neighbours", "each"), [("add_remove", 1), ("replace", 2)])
def test_a_round_costs_what_it_is_given_and_splits_it_evenly(neighbours: str, each: int) -> None:
    one, events = curator(chain(DOMAIN, 50), DOMAIN, neighbours=neighbours)
    tables = one.measure([("a",), ("b",), ("a", "b")], Fraction(3, 100), PLAIN)
    assert [event.mu_squared for event in events] == [Fraction(3, 100)]
    assert [table.variance for table in tables] == [pytest.approx(3 * each / 0.03, rel=1e-6)] * 3
    assert one.variance(Fraction(1, 100)) == pytest.approx(tables[0].variance)
    assert one.people == (None if each == 1 else 50)


def test_nothing_is_drawn_before_it_is_paid() -> None:
    def refuse(event: object) -> None:
        raise InputError("no room")

    class Silent:
        simulated: ClassVar[bool] = True

        def words(self, count: int) -> NDArray[np.uint64]:
            raise AssertionError("noise was drawn")

        def bytes(self, count: int) -> bytes:
            raise AssertionError("noise was drawn")

    one = Curator(chain(DOMAIN, 50), DOMAIN, Silent(), charge=refuse)
    expected = [np.zeros(3)]
    for ask in (
        lambda: one.measure([("a",)], Fraction(1), PLAIN),
        lambda: one.noisy_people(Fraction(1)),
        lambda: one.associations([("a", "b")], Fraction(1)),
        lambda: one.distances([("a",)], expected, Fraction(1)),
    ):
        with pytest.raises(InputError, match="no room"):
            ask()


@given(st.lists(st.integers(0, 9), min_size=9, max_size=9))
@settings(max_examples=150)
def test_one_row_moves_anindependence_gap_by_less_than_what_is_paid_for(counts: list[int]) -> None:
    table = np.array(counts).reshape(3, 3)
    before = independence_gap(table)
    for x, y in product(range(3), repeat=2):
        more = table.copy()
        more[x, y] += 1
        assert abs(independence_gap(more) - before) <= 2
        for u, v in product(range(3), repeat=2):
            if table[u, v]:
                other = more.copy()
                other[u, v] -= 1
                assert abs(independence_gap(other) - before) <= 3


def test_the_bounds_onindependence_gaps_are_nearly_reached() -> None:
    table = np.diag([1, 400])
    assert independence_gap(table + np.diag([1, 0])) - independence_gap(table) > 1.9
    table = np.array([[300, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert independence_gap(table) == pytest.approx(0.5 * 4 * 300 / 301)


def test_scores_are_right_and_paid() -> None:
    codes = chain(DOMAIN, 400)
    one, events = curator(codes, DOMAIN)
    table = np.zeros((3, 4))
    np.add.at(table, (codes["a"], codes["b"]), 1)
    expected = np.outer(table.sum(1), table.sum(0)) / 400
    (score,) = one.associations([("a", "b")], HUGE)
    assert score == pytest.approx(0.5 * np.abs(table - expected).sum(), abs=0.05)
    (distance,) = one.distances([("a", "b")], [expected], HUGE)
    assert distance == pytest.approx(np.abs(table - expected).sum(), abs=0.05)
    assert one.noisy_people(HUGE) == pytest.approx(400, abs=0.05)
    assert sum(event.mu_squared for event in events) == 3 * HUGE


def test_the_number_of_rows_is_free_where_it_is_public() -> None:
    one, events = curator(chain(DOMAIN, 77), DOMAIN, neighbours="replace")
    assert one.noisy_people(Fraction(0)) == 77
    assert events == []


def test_columns_must_have_the_same_rows() -> None:
    codes = chain(DOMAIN, 50) | {"c": np.zeros(49, dtype=np.int64)}
    with pytest.raises(InputError, match="same number of rows"):
        Curator(codes, DOMAIN, SimulationRandomness(1), charge=print)
