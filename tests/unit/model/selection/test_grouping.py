"""Rare levels counted together and told apart again."""

import numpy as np
import pytest

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov import Impossible, Measurement
from syndic.model.selection import Grouping
from syndic.model.selection.grouping import coarsened, group_rare

DOMAIN = Domain(("a", "b"), (5, 2))
GROUPING = Grouping(DOMAIN, ((0, 2, 1, 2, 2), (0, 1)))
WEIGHTS = {"a": np.array([9.0, 3.0, 4.0, 1.0, -2.0]), "b": np.array([1.0, 1.0])}


def one_way(*values: float, variance: float = 4.0) -> Measurement:
    return Measurement(("a",), np.array(values), variance)


def test_levels_below_the_threshold_share_a_group() -> None:
    found = group_rare(Domain(("a",), (5,)), [one_way(9, 1, 3, -1, 2)], least=1.0, most_levels=10)
    assert found.groups == ((0, 2, 1, 2, 2),)


def test_a_single_rare_level_is_left_alone() -> None:
    found = group_rare(Domain(("a",), (5,)), [one_way(9, 1, 3, 4, 5)], least=1.0, most_levels=10)
    assert found.groups == ((0, 1, 2, 3, 4),)


def test_a_column_without_common_levels_becomes_one_group() -> None:
    found = group_rare(Domain(("a",), (5,)), [one_way(0, 1, -3, 1, 1)], least=1.0, most_levels=10)
    assert found.domain_of_groups.sizes == (1,)


@pytest.mark.parametrize("most", [2, 3, 17, 64])
def test_a_thousand_levels_become_at_most_so_many_and_the_commonest_stay(most: int) -> None:
    values = np.asarray(np.random.default_rng(1).permutation(1000) + 100.0, dtype=np.float64)
    found = group_rare(Domain(("a",), (1000,)), [Measurement(("a",), values, 1.0)], least=1.0, most_levels=most)
    assert found.domain_of_groups.sizes == (most,)
    alone = [level for level, group in enumerate(found.groups[0]) if found.groups[0].count(group) == 1]
    assert set(alone) == set(np.argsort(-values)[: most - 1])


def test_columns_named_alone_keep_their_levels() -> None:
    found = group_rare(Domain(("a",), (5,)), [one_way(0, 0, 0, 0, 0)], least=1.0, most_levels=2, alone=["a"])
    assert found == Grouping.none(Domain(("a",), (5,)))


def test_rows_are_recoded_and_come_back_inside_their_group() -> None:
    draws = np.random.default_rng(2)
    codes = {"a": draws.integers(0, 5, 1000), "b": draws.integers(0, 2, 1000)}
    groups = GROUPING.recode(codes)
    np.testing.assert_array_equal(groups["a"], np.array([0, 2, 1, 2, 2])[codes["a"]])
    back = GROUPING.expand(groups, WEIGHTS, draws)
    np.testing.assert_array_equal(GROUPING.recode(back)["a"], groups["a"])
    np.testing.assert_array_equal(back["b"], codes["b"])
    # the weights of levels 1, 3 and 4 are 3, 1 and none, and counts are rounded expectations
    rows = int((groups["a"] == 2).sum())
    assert abs((back["a"] == 1).sum() - 0.75 * rows) < 1
    assert abs((back["a"] == 3).sum() - 0.25 * rows) < 1
    assert (back["a"] == 4).sum() == 0


def test_a_table_over_groups_is_spread_over_levels_in_proportion() -> None:
    table = Factor(Domain(("b", "a"), (2, 3)), np.arange(6.0).reshape(2, 3))
    found = GROUPING.spread(table, WEIGHTS)
    expected = [[0, 0.75 * 2, 1, 0.25 * 2, 0], [3, 0.75 * 5, 4, 0.25 * 5, 0]]
    np.testing.assert_allclose(found.values, expected)
    assert found.domain.names == ("b", "a")


def test_a_group_without_weight_is_split_evenly() -> None:
    weights = {"a": np.array([1.0, -1.0, 1.0, 0.0, -5.0])}
    np.testing.assert_allclose(GROUPING.shares("a", weights), [1, 1 / 3, 1, 1 / 3, 1 / 3])


def test_one_way_counts_are_gathered_by_group() -> None:
    found = GROUPING.gather(Measurement(("a",), np.arange(5.0), 3.0))
    np.testing.assert_allclose(found.values, [0, 2, 1 + 3 + 4])
    assert found.variance == pytest.approx(3.0 * 5 / 3)


def test_groups_must_cover_all_levels_without_gaps() -> None:
    with pytest.raises(InputError, match="all levels"):
        Grouping(DOMAIN, ((0, 1), (0, 1)))
    with pytest.raises(InputError, match="without gaps"):
        Grouping(DOMAIN, ((0, 1, 2, 3, 5), (0, 1)))
    with pytest.raises(InputError, match="without gaps"):
        Grouping(DOMAIN, ((0, 1, 2, 3, 10**15), (0, 1)))


def test_impossible_cells_need_all_levels() -> None:
    zero = Impossible(("a", "b"), np.zeros((5, 2), dtype=np.bool_))
    assert Grouping.none(DOMAIN).zeros([zero]) == [zero]
    with pytest.raises(InputError, match="cannot be grouped"):
        GROUPING.zeros([zero])


def test_of_ordered_levels_only_neighbours_are_grouped() -> None:
    counts = one_way(0, 9, 0, 1, 8, 0, 0)
    found = group_rare(Domain(("a",), (7,)), [counts], least=1.0, most_levels=10, adjacent={"a": 6})
    assert found.groups == ((0, 1, 2, 2, 3, 4, 5),), "both ends apart, and the last level, for missing values, alone"
    assert group_rare(Domain(("a",), (7,)), [counts], least=1.0, most_levels=10).groups == ((2, 0, 2, 2, 1, 2, 2),)


def test_neighbouring_groups_are_put_together_where_that_halves_the_cells() -> None:
    domain = Domain(("nominal", "ordered", "few"), (9, 9, 4))
    grouping = Grouping(domain, (tuple(range(9)), (0, 0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 2, 3)))
    one_way = {
        "nominal": np.ones(9),
        "ordered": np.array([5.0, 5, 10, 10, 10, 10, 10, 10, 3]),
        "few": np.ones(4),
    }
    # the last level of the ordered column is no number, but "missing"
    found = coarsened(grouping, one_way, 3, {"ordered": 8, "few": 4})
    assert found.domain == grouping.domain_of_groups
    assert found.groups == (tuple(range(9)), (0, 0, 1, 1, 1, 2, 2, 3), (0, 1, 2, 3))
    both = grouping.then(found)
    assert both.domain == domain
    assert both.groups[1] == (0, 0, 0, 1, 1, 1, 2, 2, 3)


def test_a_table_over_groups_knows_the_group_of_every_level() -> None:
    table = Measurement(("b", "a"), np.ones((2, 3)), 4.0)
    groups = GROUPING.grouped(table).groups
    assert groups is not None
    assert [one.tolist() for one in groups] == [[0, 1], [0, 2, 1, 2, 2]]
    assert Grouping.none(DOMAIN).grouped(table) is table
