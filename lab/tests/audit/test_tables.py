"""Noisy tables as an attacker reads them."""

import numpy as np
import pytest

from syndic_lab.audit.setting import rows_of
from syndic_lab.audit.tables import Noisy, counted, less, one_below_other, side_by_side, told_of

ONE = {"a": rows_of(x=[1, 0, 2]), "b": rows_of(y=[1, 0, 0])}
OTHER = {"a": rows_of(x=[0, 0, 2]), "b": rows_of(y=[0, 0, 0])}


def table(values: list[float], **more: bool) -> Noisy:
    return Noisy(names=("x",), values=np.array(values), deviation=2.0, groups={}, **more)


def test_columns_stand_side_by_side_and_rows_one_below_the_other() -> None:
    assert {name: codes.tolist() for name, codes in side_by_side(ONE).items()} == {"x": [1, 0, 2], "y": [1, 0, 0]}
    below = one_below_other({"a": rows_of(x=[1]), "b": rows_of(x=[0, 2])})
    assert below["x"].tolist() == [1, 0, 2]
    assert counted(side_by_side(ONE), ("x", "y"), (3, 2)).tolist() == [1, 0, 0, 1, 1, 0]


def test_what_is_told_is_exact_but_for_noise() -> None:
    told = told_of([table([1.0, 1.0, 1.0])], side_by_side(ONE), side_by_side(OTHER))
    assert (told.one.tolist(), told.other.tolist()) == ([1, 1, 1], [2, 0, 1])
    assert told.noise(0, 0).tolist() == [0, 0, 0]
    assert told.noise(1, 0).tolist() == [-0.5, 0.5, 0]
    assert told.away(0) == pytest.approx(2**0.5 / 2)
    # at one of both exact tables the ratio of likelihoods is half the square of the distance
    assert told.lean() == pytest.approx(0.25)


def test_groups_of_levels_are_counted_together() -> None:
    grouped = Noisy(names=("x",), values=np.zeros(2), deviation=1.0, groups={"x": (0, 0, 1)})
    told = told_of([grouped], side_by_side(ONE), side_by_side(OTHER))
    assert (told.one.tolist(), told.other.tolist()) == ([2, 1], [2, 1])
    assert told.lean() == 0


def test_known_noise_is_taken_off_and_kinds_are_kept_apart() -> None:
    left = less(table([4.0, 1.0, 1.0]), np.array([3, 0, 0]), 0.5)
    told = told_of([table([1.0, 1.0, 1.0]), left], side_by_side(ONE), side_by_side(OTHER))
    assert told.noise(0, 1).tolist() == [0, 0, 0]
    assert told.away(1) == pytest.approx(4 * told.away(0))
