"""Looks at bytes: flat ones pass, others do not."""

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic_lab.audit.leaks import same_law_chance, uniform_chance

DRAWS = np.random.default_rng(1)


def bytes_of(count: int) -> NDArray[np.uint8]:
    return DRAWS.integers(0, 256, count, dtype=np.uint8)


@pytest.mark.parametrize("count", [0, 5, 100, 50_000])
def test_uniform_bytes_pass(count: int) -> None:
    assert uniform_chance(bytes_of(count)) > 1e-6
    assert same_law_chance(bytes_of(count), bytes_of(count)) > 1e-6


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(5000, dtype=np.uint8),
        np.tile(bytes_of(8), 600),
        np.concatenate([bytes_of(3000), np.full(1000, 255, dtype=np.uint8)]),
        bytes_of(5000) & np.uint8(0xFE),
        bytes_of(5000) >> np.uint8(1),
    ],
    ids=["zeros", "one mask for all runs", "some not masked", "lowest bit", "highest bit"],
)
def test_other_bytes_do_not(values: NDArray[np.uint8]) -> None:
    assert uniform_chance(values) < 1e-9


def test_two_laws_are_told_apart() -> None:
    assert same_law_chance(bytes_of(4000), bytes_of(4000) // 2) < 1e-9
