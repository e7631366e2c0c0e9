"""Many levels: smoothed, merged with neighbours or released as their branch, and gathered into groups."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov.measurement import UNKNOWN, Measurement
from syndic.model.selection import Adaptive, synthesise
from syndic.model.selection.grouping import Grouping
from syndic.model.selection.levels import (
    TAIL_HALVINGS,
    group_released,
    least_released,
    level_counts,
    merge_neighbours,
    one_way_tables,
    released_levels,
    smooth,
)
from unit.model.selection.curators import Recorder, Replay, curator


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


LIST = (3, 3, 4, 5, 5, 5, 6)  # a, b, c; branch x of a and b; branch y of c; "other"; missing


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # values that stand out are released, x for the others of its branch
        ([90, 20, 90, 10, 0, 0, 0], [0, 3, 2, 3, 5, 5, 6]),
        # x does not stand out, nor does y: both become "other", whatever their sum is
        ([7, 7, 7, 7, 7, 7, 0], [5, 5, 5, 5, 5, 5, 6]),
        # a branch stands out by its own rows although the sum does not
        ([-80, 0, 0, 60, 0, 0, 0], [3, 3, 5, 3, 5, 5, 6]),
        # "other" and missing values are never merged
        ([0, 0, 0, 0, 0, -50, -50], [5, 5, 5, 5, 5, 5, 6]),
    ],
)
def test_levels_that_noise_hides_are_released_as_their_branch(counts: list[float], expected: list[int]) -> None:
    table = Measurement(("c",), np.array(counts, dtype=np.float64), 100.0)
    assert 24 < least_released(7, 100.0) < 25
    released = released_levels(table, LIST)
    assert released.tolist() == expected
    found = level_counts([table], {}, {"c": LIST})["c"]
    assert (found > 0).tolist() == [place in expected for place in range(7)]
    assert set(found[[place not in expected for place in range(7)]]) <= {0.0}
    groups = group_released(released, LIST, found, 9)
    assert [groups[place] for place in expected] == groups.tolist()
    assert len(set(groups.tolist())) == len(set(expected))


def test_a_lost_round_releases_no_value_of_a_long_list() -> None:
    table = Measurement(("c",), np.zeros(7), UNKNOWN)
    assert released_levels(table, LIST).tolist() == [5] * 6 + [6]


def test_a_long_list_has_few_groups_and_other_is_one_of_them() -> None:
    draws = np.random.default_rng(1)
    counts = np.append(draws.exponential(200.0, 1000), [0.0, 40.0])
    branches = (*([1000] * 1001), 1001)
    table = Measurement(("c",), counts, 100.0)
    released = released_levels(table, branches)
    found = level_counts([table], {}, {"c": branches})["c"]
    groups = group_released(released, branches, found, 64)
    assert groups.max() == 63
    rest = {place for place in range(1002) if groups[place] == 63}
    assert groups[1000] < 63
    assert {place for place in range(1000) if groups[place] == groups[1000]} == set(
        np.flatnonzero(released[:1000] == 1000)
    )
    kept = [found[place] for place in range(1000) if groups[place] not in {63, groups[1000]}]
    assert min(kept) >= max(found[place] for place in rest)
    # expected values without rows that are released: 0.05 of the whole list
    false = sum(
        int((released_levels(Measurement(("c",), draws.normal(0, 10, 1002), 100.0), branches)[:1000] < 1000).sum())
        for _ in range(200)
    )
    assert false < 40


@pytest.mark.parametrize("seed", range(8))
def test_who_has_a_unique_code_does_not_show(seed: int) -> None:
    """An attacker knows all rows but which of two people has code 700, which nobody else has."""
    domain = Domain.of({"code": 902, "sex": 2})
    draws = np.random.default_rng(seed)
    rows = {"code": draws.integers(0, 20, 5000), "sex": draws.integers(0, 2, 5000)}
    rows["code"][0] = 700
    settings = Adaptive(rounds=1, branches=(("code", (*([900] * 901), 901)),), iterations=20)
    inner, _ = curator(rows, domain, seed)
    record = Recorder(inner)
    found = synthesise(settings, record, Fraction(1, 10))
    # all that is chosen and released follows from noisy counts: the same without any row
    replay = Replay(record)
    again = synthesise(settings, replay, Fraction(1, 10))
    assert replay.asked == record.asked
    assert again.grouping == found.grouping
    assert all(np.array_equal(again.one_way[name], found.one_way[name]) for name in domain.names)
    one, other = (each.sample(5000, np.random.default_rng(1)) for each in (found, again))
    assert all(np.array_equal(one[name], other[name]) for name in domain.names)
    # and the code is counted and released as one of all rare ones
    assert found.grouping.groups[0][700] == found.grouping.groups[0][900]
    assert found.marginal(("code",)).values[700] == 0
    assert 700 not in one["code"]


def spike_and_thin_body(draws: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exact counts of 5,620 people, 1,300 at 0 and the others thin; and with noise that hides every other level."""
    truth = np.append(1300.0, np.append(np.full(48, 90.0), np.zeros(15)))
    return truth, truth + draws.normal(0, 120, 64)


def test_a_thin_body_behind_a_spike_is_not_lost() -> None:
    draws, table = np.random.default_rng(3), 120.0**2
    lost = {"alone": 0, "with others": 0}
    for _ in range(20):
        truth, noisy = spike_and_thin_body(draws)
        one = Measurement(("a",), noisy, table)
        # another column with two values knows the number of rows well
        other = Measurement(("b",), np.array([2000.0, truth.sum() - 2000]) + draws.normal(0, 120, 2), table)
        for name, tables in (("alone", [one]), ("with others", [one, other])):
            curve = level_counts(tables, {"a": 64})["a"]
            lost[name] += bool(curve[1:].sum() < truth[1:].sum() / 3)
    # of 40 draws, 15 lost three quarters of the body before sums of wide stretches had to agree
    assert lost["alone"] <= 4
    assert lost["with others"] == 0


@pytest.mark.parametrize("turned", [False, True])
def test_sums_over_wide_stretches_agree_with_the_noisy_ones(turned: bool) -> None:
    draws = np.random.default_rng(4)
    for _ in range(10):
        _, noisy = spike_and_thin_body(draws)
        curve = smooth(noisy[::-1], 120)[::-1] if turned else smooth(noisy, 120)
        off = np.abs(np.add.reduceat(noisy - curve, [1, 17, 33, 49])) / (120 * np.sqrt([16, 16, 16, 15]))
        assert off.max() < 5
        assert abs((noisy - curve)[1:].sum()) < 4.5 * 120 * np.sqrt(63)


def test_a_tail_that_agrees_stays_as_it_was() -> None:
    """An exponential tail is continued: what noise says far beyond it is not believed."""
    truth = 6000 * np.exp(-np.arange(64) / 4)
    draws = np.random.default_rng(5)
    for _ in range(10):
        assert smooth(truth + draws.normal(0, 60, 64), 60)[40:].sum() < 60
