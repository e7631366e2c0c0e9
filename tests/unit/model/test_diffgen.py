"""Taxonomy trees, Max scores and specialisation, against brute force on small tables."""

import itertools

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.model.latent.diffgen import Cut, Nested, Tree, balanced, max_scores, roots, specialised, tree_of

UNEVEN: Nested = ((0, (3, 1)), 2, (4, 5, 6))


def brute(tree: Tree, rows: list[tuple[int, int]], classes: int) -> list[int]:
    """Max of every group, counted row by row."""
    found = []
    for node in tree.inner:
        total = 0
        for child in tree.children[node]:
            inside = [label for level, label in rows if level in tree.levels[child]]
            total += max(inside.count(label) for label in range(classes))
        found.append(total)
    return found


def table(rows: list[tuple[int, int]], size: int, classes: int) -> np.ndarray:
    counts = np.zeros((size, classes), dtype=np.int64)
    for level, label in rows:
        counts[level, label] += 1
    return counts


def test_trees_have_every_level_once_and_know_their_depth() -> None:
    tree = tree_of(UNEVEN)
    assert sorted(tree.levels[0]) == list(range(7))
    assert tree.depth == 3
    assert len(tree.inner) == 4
    for size, depth in ((1, 0), (2, 1), (3, 2), (8, 3), (41, 6)):
        halved = tree_of(balanced(size))
        assert (halved.depth, len(halved.inner)) == (depth, size - 1)
        assert all(levels == tuple(range(levels[0], levels[-1] + 1)) for levels in halved.levels)
    assert tree_of(balanced(1)).moved == 0


@pytest.mark.parametrize("nested", [((0, 1), 1), (0, 2), ((0,), 1), ()])
def test_groups_that_make_no_tree_are_refused(nested: Nested) -> None:
    with pytest.raises(InputError, match="taxonomy"):
        tree_of(nested)


@pytest.mark.parametrize("nested", [UNEVEN, balanced(7)])
def test_scores_are_those_counted_row_by_row(nested: Nested) -> None:
    draws, tree = np.random.default_rng(1), tree_of(nested)
    for _ in range(20):
        rows = [(int(draws.integers(7)), int(draws.integers(3))) for _ in range(15)]
        assert max_scores(tree, table(rows, 7, 3)).tolist() == brute(tree, rows, 3)


@pytest.mark.parametrize("nested", [UNEVEN, balanced(7), balanced(4)])
def test_one_replaced_row_moves_few_scores_by_one_each(nested: Nested) -> None:
    draws, tree = np.random.default_rng(2), tree_of(nested)
    size, worst = len(tree.levels[0]), 0
    for _ in range(200):
        rows = [(int(draws.integers(size)), int(draws.integers(2))) for _ in range(int(draws.integers(1, 9)))]
        before = max_scores(tree, table(rows, size, 2))
        for level, label in itertools.product(range(size), range(2)):
            change = np.abs(max_scores(tree, table([(level, label), *rows[1:]], size, 2)) - before)
            assert change.max() <= 1
            worst = max(worst, int(change.sum()))
    # the bound is met up to the root, which moves only if the two rows differ in what they add there
    assert tree.moved - 1 <= worst <= tree.moved


def test_specialising_takes_the_best_group_of_all_columns_each_time() -> None:
    trees = {"a": tree_of(balanced(4)), "b": tree_of(((0, 1), 2))}
    scores = {"a": np.array([10.0, 9.0, 3.0]), "b": np.array([8.0, 7.0])}
    wanted: list[Cut] = [
        {"a": (0,), "b": (0,)},
        {"a": (1, 4), "b": (0,)},
        {"a": (2, 3, 4), "b": (0,)},
        {"a": (2, 3, 4), "b": (1, 4)},
    ]
    for times, cut in enumerate(wanted):
        assert specialised(trees, scores, times, lambda _: True) == cut
    every = specialised(trees, scores, 50, lambda _: True)
    assert {name: len(cut) for name, cut in every.items()} == {"a": 4, "b": 3}
    assert specialised(trees, scores, 50, lambda cut: len(cut["a"]) == 1)["b"] == every["b"]
    assert roots(trees) == wanted[0]
    # whoever chooses is asked once for each step, with the scores of all groups that may be specialised
    asked: list[list[float]] = []

    def last(found: np.ndarray) -> int:
        asked.append(found.tolist())
        return len(found) - 1

    specialised(trees, scores, 2, lambda _: True, last)
    assert asked == [[10.0, 8.0], [10.0, 7.0]]


def test_a_cut_has_every_level_in_one_group() -> None:
    tree = tree_of(balanced(4))
    assert tree.group_of((1, 5, 6)).tolist() == [0, 0, 1, 2]
    for cut in ((1,), (1, 1), (0, 1), (1, 4, 4), (9,), (-1, 1), ()):
        with pytest.raises(InputError, match="cut"):
            tree.group_of(cut)
