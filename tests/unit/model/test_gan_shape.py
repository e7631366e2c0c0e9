"""Networks as flat vectors, and what one person may add to a gradient."""

import numpy as np
import pytest

from syndic.model.gan.shape import BITS, Chain, GanShape, clipped_sum, descend

SHAPE = GanShape(sizes=(3, 2), noise=4, trunk_widths=(5, 6), branch_widths=(7,), critic_width=8)


def test_weights_are_counted_and_drawn() -> None:
    assert SHAPE.trunk == Chain((4, 5, 6))
    assert SHAPE.branch.length == 6 * 7 + 7 + 7 * 5 + 5
    assert SHAPE.critic.length == 5 * 8 + 8 + 8 + 1
    weights = SHAPE.trunk.initial(np.random.default_rng(1))
    assert weights.dtype == np.float32
    first, second = weights[:25], weights[25:]
    assert 0.4 < np.abs(first).max() <= 4**-0.5
    assert 0.35 < np.abs(second).max() <= 5**-0.5


def test_rows_become_zeros_and_ones() -> None:
    rows = SHAPE.one_hot(np.array([[0, 1], [2, 0]], dtype=np.uint8))
    assert rows.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]]
    assert SHAPE.one_hot(np.zeros((0, 2), dtype=np.int32)).shape == (0, 5)


def test_the_same_normal_numbers_go_to_every_party() -> None:
    wider = GanShape(sizes=(9,), noise=4, trunk_widths=(5, 6), branch_widths=(7,), critic_width=8)
    one, other = (shape.inputs(3, np.random.default_rng(5))[0] for shape in (SHAPE, wider))
    assert (one == other).all()


@pytest.mark.parametrize("length", [1, 2, 1000, 12_801])
def test_no_vector_is_longer_than_one_after_rounding(length: int) -> None:
    draws = np.random.default_rng(length)
    for size in (1e-9, 1.0, 1.0 + 1e-7, 3.0, 1e20, 3e38):
        vector = draws.standard_normal((1, length))
        gradient = (vector / np.linalg.norm(vector) * size).astype(np.float32)
        whole = [int(value) for value in clipped_sum(gradient)]
        assert sum(value * value for value in whole) <= 4**BITS
        if 1 <= size < 1e18:
            # shortened to one and no more
            assert sum(value * value for value in whole) > 4**BITS * (1 - 2e-3)


def test_short_vectors_keep_their_length_and_signs() -> None:
    gradients = np.array([[0.25, -0.5], [0.125, 0.5]], dtype=np.float32)
    assert clipped_sum(gradients).tolist() == pytest.approx([0.375 * 2**BITS, 0], abs=4)


def test_what_is_no_number_counts_as_nothing() -> None:
    gradients = np.array([[np.nan, 1], [np.inf, 0], [0.5, 0]], dtype=np.float32)
    assert clipped_sum(gradients).tolist() == pytest.approx([2 ** (BITS - 1), 0], abs=2)
    assert clipped_sum(np.zeros((0, 3), dtype=np.float32)).tolist() == [0, 0, 0]


def test_weights_stay_numbers() -> None:
    weights = np.zeros(3, dtype=np.float32)
    moved, squares = descend(weights, weights, np.array([np.nan, np.inf, 1.0]), 1e30)
    assert np.isfinite(moved).all()
    assert np.isfinite(squares).all()
    assert moved[2] < 0
