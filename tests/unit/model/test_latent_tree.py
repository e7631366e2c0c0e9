"""Groups, latent attributes and trees against brute force on small tables."""

import itertools

import numpy as np
import pytest

from syndic.data import Domain
from syndic.model.latent.groups import information, latent_of, packed, positive, regrouped
from syndic.model.latent.tree import latent_tree, spanning_forest, strength
from syndic.model.markov import Measurement
from syndic.model.selection.curator import independence_gap

FOUR = Domain(("a", "b", "c", "d"), (3, 2, 4, 2))


def counted(rows: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    table = np.zeros(sizes, dtype=np.int64)
    for row in rows:
        table[tuple(row)] += 1
    return table


def test_one_replaced_row_moves_the_gap_by_at_most_three_rows() -> None:
    draws = np.random.default_rng(3)
    largest = 0.0
    for _ in range(4000):
        count, sizes = int(draws.integers(2, 12)), (int(draws.integers(2, 4)), int(draws.integers(2, 4)))
        rows = np.stack([draws.integers(0, size, count) for size in sizes], axis=1)
        if draws.random() < 0.5:  # all but one alike: where one row matters most
            rows[1:] = rows[1]
        other = rows.copy()
        other[0] = [draws.integers(0, size) for size in sizes]
        largest = max(largest, abs(independence_gap(counted(rows, sizes)) - independence_gap(counted(other, sizes))))
    assert 1 < largest <= 3


def test_the_gap_is_that_of_its_definition() -> None:
    table = np.array([[4, 0], [1, 5]])
    expected = sum(abs(table[i, j] - table[i].sum() * table[:, j].sum() / 10) for i in range(2) for j in range(2))
    assert independence_gap(table) == pytest.approx(expected / 2)
    assert independence_gap(np.zeros((2, 2), dtype=np.int64)) == 0


def test_packing_keeps_both_limits_and_every_column() -> None:
    domain = Domain(tuple("abcdefg"), (16, 7, 16, 14, 6, 2, 300))
    groups = packed(domain, 3, 250)
    assert sorted(name for group in groups for name in group) == sorted(domain.names)
    assert ("g",) in groups
    assert all(len(group) <= 3 for group in groups)
    assert all(domain.project(group).size <= 250 for group in groups if len(group) > 1)


def test_regrouping_finds_the_best_of_all_pairings() -> None:
    draws = np.random.default_rng(1)
    for _ in range(20):
        scores = {frozenset(pair): float(draws.normal(5, 2)) for pair in itertools.combinations("abcd", 2)}
        found = regrouped(FOUR, (("a", "b"), ("c", "d")), scores, 2, 100)
        best = max(
            (scores[frozenset(("a", other))] + scores[frozenset(set("bcd") - {other})] for other in "bcd"),
        )
        assert sum(scores[frozenset(group)] for group in found if len(group) == 2) == pytest.approx(best)
        assert len(found) == 2


def test_regrouping_stays_within_the_limits() -> None:
    scores = {frozenset(pair): 1.0 for pair in itertools.combinations("abcd", 2)}
    found = regrouped(FOUR, (("a", "b"), ("c",), ("d",)), scores, 4, 8)
    assert len(found) == 3
    assert all(FOUR.project(group).size <= 8 for group in found)


def test_positive_is_the_closest_table_of_chances() -> None:
    draws = np.random.default_rng(2)
    counts = draws.normal(5, 20, (4, 5))
    counts[0, 0] += 300
    found, total = positive(counts), float(counts.sum())
    low, high = -1000.0, 1000.0
    for _ in range(100):  # the shift at which what is left sums to the total, by halving
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(counts - middle, 0).sum() > total else (low, middle)
    assert np.allclose(found, np.maximum(counts - low, 0) / total)
    assert found.sum() == pytest.approx(1)
    assert positive(np.full(3, -5.0)).sum() == pytest.approx(1)


def told(table: np.ndarray, level_of: np.ndarray, levels: int) -> float:
    """Total correlation explained, by its definition: what y tells of the columns apart less what it tells of all."""
    joint = np.zeros((levels, *table.shape))
    for cell, level in zip(np.ndindex(*table.shape), level_of, strict=True):
        joint[(level, *cell)] = table[cell]
    axes = range(1, joint.ndim)
    apart = sum(information(joint.sum(axis=tuple(other for other in axes if other != axis))) for axis in axes)
    return apart - information(joint.reshape(levels, -1))


def test_a_latent_attribute_explains_nearly_as_much_as_the_best_of_all() -> None:
    draws = np.random.default_rng(7)
    hidden = draws.integers(0, 2, 4000)
    rows = np.stack([np.where(draws.random(4000) < 0.9, hidden, 1 - hidden) for _ in range(3)], axis=1)
    table = counted(rows, (2, 2, 2)).astype(float)
    found = latent_of(Domain(tuple("xyz"), (2, 2, 2)), table, 2, np.random.default_rng(1))
    best = max(told(table, np.array(level_of), 2) for level_of in itertools.product((0, 1), repeat=8))
    assert told(table, found.level_of, 2) > 0.98 * best > 0.1
    majority = (rows.sum(axis=1) >= 2).astype(int)
    agree = np.mean(found.encode({name: rows[:, axis] for axis, name in enumerate("xyz")}) == majority)
    assert max(agree, 1 - agree) == 1


def test_a_column_alone_keeps_its_frequent_levels() -> None:
    found = latent_of(Domain(("x",), (5,)), np.array([1.0, 50, 2, 30, -4]), 3, np.random.default_rng(0))
    assert found.level_of.tolist() == [2, 0, 2, 1, 2]


def test_information_is_that_of_its_definition() -> None:
    table = np.array([[3.0, 1.0], [0.0, 4.0]])
    share = table / 8
    direct = sum(
        share[i, j] * np.log2(share[i, j] / (share[i].sum() * share[:, j].sum()))
        for i in range(2)
        for j in range(2)
        if share[i, j] > 0
    )
    assert information(table) == pytest.approx(direct)


def test_a_forest_has_the_greatest_weight_of_all_sets_without_cycles() -> None:
    draws = np.random.default_rng(4)
    names = tuple("abcde")
    links = list(itertools.combinations(names, 2))
    for _ in range(5):
        weights = {link: float(max(0.0, draws.normal(0.5, 1))) for link in links}
        best = 0.0
        for chosen in itertools.chain.from_iterable(itertools.combinations(links, k) for k in range(5)):
            parts = {name: {name} for name in names}
            for left, right in chosen:
                merged = parts[left] | parts[right]
                parts |= dict.fromkeys(merged, merged)
            trees = len({frozenset(part) for part in parts.values()})
            if len(names) - trees == len(chosen):
                best = max(best, sum(weights[link] for link in chosen))
        found = spanning_forest(names, weights)
        assert sum(weights[link] for link in found) == pytest.approx(best)
        assert all(weights[link] > 0 for link in found)


def test_what_noise_explains_has_no_strength() -> None:
    draws = np.random.default_rng(6)
    noise = Measurement(("u", "v"), 100 + draws.normal(0, 10, (4, 4)), 100.0)
    assert strength(noise) == pytest.approx(0, abs=1e-9)
    table = np.full((4, 4), 100.0)
    table[0, 0] += 200
    assert strength(Measurement(("u", "v"), table, 100.0)) > 0.01


def test_rows_of_a_latent_tree_follow_the_law_that_has_one() -> None:
    draws = np.random.default_rng(9)
    first = draws.integers(0, 2, 20_000)
    second = np.where(draws.random(20_000) < 0.85, first, 1 - first)
    noisy = [
        np.where(draws.random(20_000) < 0.9, one, 1 - one) for one in (first, first, first, second, second, second)
    ]
    codes = dict(zip("abcdef", noisy, strict=True))
    groups, latents = {}, {}
    for name, columns in {"p 1": "abc", "q 1": "def"}.items():
        domain = Domain(tuple(columns), (2, 2, 2))
        table = counted(np.stack([codes[one] for one in columns], axis=1), (2, 2, 2)).astype(float)
        latents[name] = latent_of(domain, table, 2, np.random.default_rng(0))
        groups[name] = latents[name], Measurement(tuple(columns), table, 1.0)
    pair = counted(np.stack([one.encode(codes) for one in latents.values()], axis=1), (2, 2)).astype(float)
    # one more level that no combination of values has
    wide = np.zeros((3, 3))
    wide[:2, :2] = pair
    model = latent_tree(groups, [Measurement(("p 1", "q 1"), wide, 1.0)], 20_000.0)
    assert model.links == (("p 1", "q 1"),)
    made = model.sample(20_000, np.random.default_rng(1))
    within = (
        counted(np.stack([made["a"], made["c"]], axis=1), (2, 2)),
        counted(np.stack([codes["a"], codes["c"]], axis=1), (2, 2)),
    )
    assert np.abs(within[0] - within[1]).sum() / 2 < 0.01 * 20_000
    across = (
        counted(np.stack([made["a"], made["d"]], axis=1), (2, 2)),
        counted(np.stack([codes["a"], codes["d"]], axis=1), (2, 2)),
    )
    # given both majorities a single column tells a little more of the other group: that is lost
    assert np.abs(across[0] - across[1]).sum() / 2 < 0.03 * 20_000
    apart = np.abs(across[1] - np.outer(across[1].sum(axis=1), across[1].sum(axis=0)) / 20_000).sum() / 2
    assert apart > 0.1 * 20_000
