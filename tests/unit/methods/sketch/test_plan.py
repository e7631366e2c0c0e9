"""Printed parameters and ranks, against published test vectors and arithmetic of many digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import (
    SketchPlan,
    floor_for,
    printed_epsilon,
    printed_plan,
    rank_thresholds,
    ranks_of,
)

VECTORS = [
    (0.40, 1 / 21574, 16, 2000, 1.769604e-4, 5651, 13),
    (0.24, 1 / 45222, 15, 2000, 1.058051e-4, 9451, 14),
    (0.24, 1 / 38000, 14, 2000, 1.104185e-4, 9056, 14),
    (0.24, 1 / 305119, 15, 2000, 9.747999e-5, 10259, 14),
    (1.0, 1e-5, 1, 1024, 2.302487e-3, 434, 9),
]


@pytest.mark.parametrize(("epsilon", "delta", "columns", "repetitions", "one", "phantoms", "floor"), VECTORS)
def test_printed_parameters(
    epsilon: float, delta: float, columns: int, repetitions: int, one: float, phantoms: int, floor: int
) -> None:
    found = printed_epsilon(epsilon=epsilon, delta=delta, columns=columns, repetitions=repetitions)
    assert found == pytest.approx(one, rel=1e-6)
    plan = printed_plan(epsilon=epsilon, delta=delta, columns=columns, repetitions=repetitions)
    assert (plan.phantoms, plan.floor) == (phantoms, floor)


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(3, 10), Fraction(1, 10), Fraction(1, 100)])
def test_rank_is_the_logarithm_of_one_less_the_word(gamma: Fraction) -> None:
    words = np.random.default_rng(3).integers(0, 2**64, 300, dtype=np.uint64)
    words[:3] = 0, 2**64 - 1, 2**64 - 7
    with mpmath.workdps(60):
        base = mpmath.log(1 + mpmath.mpf(gamma.numerator) / gamma.denominator)
        # U = w / 2^64 has rank r where 1 - (1 + gamma)^-(r - 1) <= U < 1 - (1 + gamma)^-r
        ranks = [int(mpmath.floor(-mpmath.log(1 - mpmath.mpf(int(word)) / 2**64) / base)) + 1 for word in words]
    assert ranks_of(words, gamma).tolist() == ranks


def test_the_largest_word_has_the_largest_rank_and_there_is_no_infinite_one() -> None:
    words = np.sort(np.random.default_rng(5).integers(0, 2**64, 1000, dtype=np.uint64))
    assert (np.diff(ranks_of(words, Fraction(3, 10)).astype(int)) >= 0).all()
    assert len(rank_thresholds(Fraction(1))) == 65
    assert ranks_of(np.array([2**64 - 1], dtype=np.uint64), Fraction(1)).tolist() == [65]


def test_floor_makes_absence_cost_no_more_than_presence() -> None:
    for phantoms in (3, 100, 5877, 63_228_099):
        floor = floor_for(phantoms, Fraction(1))
        assert -np.log1p(-(2.0**-floor)) <= np.log1p(1 / phantoms) * (1 + 1e-12)
        assert -np.log1p(-(2.0 ** -(floor - 1))) > np.log1p(1 / phantoms) * (1 - 1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": Fraction(2)},
        {"gamma": Fraction(1, 1000)},
        {"phantoms": -1},
        {"repetitions": 0},
        {"floor": 65},
        {"cap": 3},
        {"cap": 80},
    ],
)
def test_a_plan_checks_itself(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if "cap" not in wrong else "cap|largest"):
        SketchPlan(**{"phantoms": 10, "floor": 4, "repetitions": 8, **wrong})  # type: ignore[arg-type]


def test_printed_parameters_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="delta"):
        printed_plan(epsilon=1.0, delta=0.0, columns=2)


def test_a_gamma_that_is_none_is_refused_before_it_is_divided_by() -> None:
    for make in (
        lambda: floor_for(40, Fraction(0)),
        lambda: printed_plan(epsilon=1.0, delta=1e-5, columns=2, gamma=Fraction(0)),
    ):
        with pytest.raises(ValueError, match=r"gamma \(0\) must be in \[0\.01, 1\]"):
            make()


def test_a_claim_of_nothing_has_one_phantom() -> None:
    assert printed_plan(epsilon=1e6, delta=0.5, columns=1, repetitions=1).phantoms == 1
