"""The law of the phantoms' largest rank, against arithmetic of many digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from syndic.methods.vertimrf.sketch.encode import SketchPlan, _table, largest_ranks
from syndic.random import SimulationRandomness


@pytest.mark.parametrize(("gamma", "elements"), [(Fraction(1), 5877), (Fraction(1, 10), 63_228_099), (Fraction(1), 1)])
def test_thresholds_are_the_exact_law(gamma: Fraction, elements: int) -> None:
    floor = 9
    thresholds = _table(gamma, elements, floor, 60).thresholds
    with mpmath.workdps(120):
        base = 1 + mpmath.mpf(gamma.numerator) / gamma.denominator
        for place, threshold in enumerate(thresholds.tolist()):
            chance = (1 - base ** -(floor + place)) ** elements
            assert threshold == int(mpmath.floor(chance * 2**63))


def test_floor_and_cap_hold_and_no_phantoms_are_the_floor() -> None:
    plan = SketchPlan(phantoms=1000, floor=9, repetitions=1, cap=11)
    ranks = largest_ranks(plan, plan.phantoms, 5000, SimulationRandomness(2))
    assert set(np.unique(ranks)) == {9, 10, 11}
    assert (largest_ranks(plan, 0, 7, SimulationRandomness(2)) == 9).all()
