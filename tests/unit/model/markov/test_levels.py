"""Fine levels of ordered columns: smoothed, merged with neighbours, and gathered into groups."""

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov.grouping import Grouping
from syndic.model.markov.levels import (
    TAIL_HALVINGS,
    level_counts,
    merge_neighbours,
    one_way_tables,
    smooth,
)
from syndic.model.markov.measurement import UNKNOWN, Measurement


def lognormal_counts(levels: int) -> NDArray[np.float64]:
    places = (np.arange(levels) + 0.5) / levels * 8 - 4
    density = np.exp(-(places**2) / 2)
    return np.asarray(40_000 * density / density.sum())


@pytest.mark.parametrize("seed", range(3))
def test_smoothed_counts_are_nearer_to_the_truth(seed: int) -> None:
    truth = lognormal_counts(64)
    noisy = truth + np.random.default_rng(seed).normal(0, 80, 64)
    curve = smooth(noisy, 80)
    assert (curve >= 0).all()
    assert np.abs(curve - truth).sum() < 0.75 * np.abs(np.maximum(noisy, 0) - truth).sum()


def test_an_empty_tail_is_not_filled_with_noise() -> None:
    # cut at zero, noise would put 40 levels x 32 rows into a tail that is empty
    truth = np.zeros(64)
    truth[:24] = 4000 * np.exp(-np.arange(24) / 3)
    sums = []
    for seed in range(8):
        noisy = truth + np.random.default_rng(seed).normal(0, 80, 64)
        sums.append((smooth(noisy, 80)[24:].sum(), np.maximum(noisy, 0)[24:].sum()))
    ours, cut = np.mean(sums, axis=0)
    assert ours < cut / 10


def test_a_spike_stays() -> None:
    truth = np.full(64, 200.0)
    truth[20] = 9000
    curve = smooth(truth + np.random.default_rng(1).normal(0, 60, 64), 60)
    assert 7500 < curve[20] < 10_500
    assert curve[22] < 900


@pytest.mark.parametrize("levels", [1, 4, 64, 129, 5000])
def test_any_number_of_levels_and_no_counts_at_all(levels: int) -> None:
    assert smooth(np.zeros(levels), 1.0).shape == (levels,)
    assert merge_neighbours(np.zeros(levels), 16).max() < min(levels, 16)


def test_neighbours_are_merged_to_near_equal_counts() -> None:
    counts = lognormal_counts(256)
    groups = merge_neighbours(counts, 8)
    assert (np.diff(groups) >= 0).all()
    sums = np.bincount(groups, weights=counts)
    assert len(sums) == 8
    assert sums.max() < 1.5 * sums.min()


def test_outermost_groups_are_halved_while_they_hold_enough() -> None:
    counts = lognormal_counts(256)
    halved = merge_neighbours(counts, 8, least=counts.sum() / 8 / 4)
    sums = np.bincount(halved, weights=counts)
    assert len(sums) == 8 + 2 * 2
    assert sums[0] < sums[3] / 2
    assert merge_neighbours(counts, 8, least=1.0).max() == 7 + 2 * TAIL_HALVINGS


def test_missing_values_keep_their_level_and_lost_rounds_say_nothing() -> None:
    domain = Domain.of({"age": 65, "sex": 2})
    counts = np.append(lognormal_counts(64), 500.0)
    tables = [Measurement(("age",), counts, 100.0), Measurement(("sex",), np.array([3.0, -2.0]), UNKNOWN)]
    found = level_counts(one_way_tables(domain, tables), {"age": 64, "sex": 2})
    assert found["age"][64] == pytest.approx(500)
    assert found["sex"].tolist() == pytest.approx([3, -2])
    assert one_way_tables(domain, tables)[1].variance == UNKNOWN


def test_tables_with_the_target_give_every_column() -> None:
    domain = Domain.of({"a": 3, "y": 2, "b": 4})
    generator = np.random.default_rng(0)
    first, second = generator.random((3, 2)), generator.random((2, 4))
    a, y, b = one_way_tables(domain, [Measurement(("a", "y"), first, 1.0), Measurement(("y", "b"), second, 1.0)])
    assert a.values == pytest.approx(first.sum(axis=1))
    assert a.variance == pytest.approx(2.0)
    assert b.values == pytest.approx(second.sum(axis=0))
    # the better of the two counts more: 1/3 and 1/4 of a cell's precision
    assert y.values == pytest.approx((first.sum(axis=0) / 3 + second.sum(axis=1) / 4) / (1 / 3 + 1 / 4))


def test_a_table_of_two_columns_is_gathered_on_both() -> None:
    grouping = Grouping(Domain.of({"a": 3, "b": 4}), ((0, 0, 1), (0, 1, 1, 1)))
    values = np.arange(12.0).reshape(3, 4)
    gathered = grouping.gather(Measurement(("a", "b"), values, 2.0))
    assert gathered.values.tolist() == [[4, 5 + 6 + 7 + 1 + 2 + 3], [8, 9 + 10 + 11]]
    assert gathered.variance == pytest.approx(2.0 * 12 / 4)
