"""Rows from a model: right in law, close in number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from syndic.data import Domain, Factor
from syndic.model.markov import Impossible, MarkovField, plan_tree
from syndic.model.markov.sample import draw_column
from unit.model.markov.joint import fields, joint


def loop(sizes: tuple[int, ...] = (2, 3, 2, 2)) -> MarkovField:
    domain = Domain(tuple("abcd"), sizes)
    generator = np.random.default_rng(2)
    sets = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    potentials = tuple(
        Factor(domain.project(names), generator.normal(size=domain.project(names).sizes)) for names in sets
    )
    cells = np.zeros((sizes[0], sizes[3]), dtype=np.bool_)
    cells[0, 1] = True
    zero = Impossible(("a", "d"), cells)
    return MarkovField(domain, plan_tree(domain, sets), potentials, 10.0, (zero,))


@pytest.mark.slow
@pytest.mark.statistical
def test_single_rows_follow_the_joint() -> None:
    field = loop()
    generator = np.random.default_rng(11)
    counts = np.zeros(field.domain.sizes)
    draws = 3000
    for _ in range(draws):
        counts[tuple(code[0] for code in field.sample(1, generator).values())] += 1
    expected = joint(field).values / field.total * draws
    possible = expected > 0
    assert counts[~possible].sum() == 0
    distance = float(np.sum((counts - expected)[possible] ** 2 / expected[possible]))
    assert distance < chi2.isf(1e-6, possible.sum() - 1)


@pytest.mark.statistical
def test_each_row_of_many_follows_the_joint() -> None:
    field = loop()
    generator = np.random.default_rng(12)
    counts = np.zeros(field.domain.sizes)
    repeats = 2000
    for _ in range(repeats):  # the same row of tables of seven
        counts[tuple(code[3] for code in field.sample(7, generator).values())] += 1
    expected = joint(field).values / field.total * repeats
    possible = expected > 0
    distance = float(np.sum((counts - expected)[possible] ** 2 / expected[possible]))
    assert distance < chi2.isf(1e-6, possible.sum() - 1)


@given(fields(), st.integers(0, 300))
@settings(max_examples=40)
def test_codes_are_valid_and_possible_and_the_first_column_is_rounded_only(field: MarkovField, rows: int) -> None:
    codes = field.sample(rows, np.random.default_rng(rows))
    assert tuple(codes) == field.domain.names
    for name, column in codes.items():
        assert len(column) == rows
        assert rows == 0 or column.max() < field.domain[name]
    for zero in field.impossible:
        assert not zero.cells[tuple(codes[name] for name in zero.names)].any()
    first = field.tree.cliques[0][0]
    expected = field.marginal((first,)).values * rows / field.total
    counts = np.bincount(codes[first], minlength=field.domain[first])
    assert np.all(np.abs(counts - expected) < 1 + 1e-6)


def test_many_rows_are_closer_to_the_model_than_independent_ones() -> None:
    field = loop((4, 5, 4, 2))
    rows = 20000
    codes = field.sample(rows, np.random.default_rng(0))
    expected = joint(field).values / field.total
    counts = np.zeros(field.domain.sizes)
    np.add.at(counts, tuple(codes.values()), 1)
    independent = np.random.default_rng(0).multinomial(rows, expected.reshape(-1)).reshape(expected.shape)
    assert np.abs(counts / rows - expected).sum() < 0.7 * np.abs(independent / rows - expected).sum()


def test_given_codes_are_kept_and_the_rest_follows_them() -> None:
    field = loop()
    rows = field.sample(5000, np.random.default_rng(0), given={"b": 2, "d": 0})
    assert set(rows["b"]) == {2}
    assert set(rows["d"]) == {0}
    table = joint(field).project(("a", "b", "d")).values[:, 2, 0]
    shares = np.bincount(rows["a"], minlength=2) / 5000
    np.testing.assert_allclose(shares, table / table.sum(), atol=1e-3)


def test_levels_are_shared_out_within_a_cell() -> None:
    table = np.array([[0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]])
    cells = np.repeat([0, 1], [10, 1000])
    levels = draw_column(table, cells, np.random.default_rng(0))
    assert list(np.bincount(levels[:10], minlength=4)) == [0, 5, 5, 0]
    assert list(np.bincount(levels[10:], minlength=4)) == [100, 200, 300, 400]
