"""Estimators against published constants, a general optimiser and the law itself."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy import optimize

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan, largest_ranks
from syndic.methods.vertimrf.sketch.estimate import likeliest, relative_sd
from syndic.random import SimulationRandomness
from syndic_lab.encodings import debias, harmonic, printed

GAMMAS = [Fraction(1), Fraction(3, 10), Fraction(1, 10)]


@pytest.mark.parametrize(
    ("repetitions", "published"),
    [(16, 0.673), (32, 0.697), (64, 0.709), (128, 0.7213 / (1 + 1.079 / 128)), (2000, 0.7213 / (1 + 1.079 / 2000))],
)
def test_debias_is_that_of_hyperloglog(repetitions: int, published: float) -> None:
    assert debias(repetitions, Fraction(1)) == pytest.approx(published, abs=6e-4)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_debias_of_many_repetitions(gamma: Fraction) -> None:
    step = float(gamma)
    assert debias(10**7, gamma) == pytest.approx(step / ((1 + step) * log(1 + step)), rel=3e-4)


@pytest.mark.parametrize(("floor", "cap"), [(0, None), (9, None), (9, 13)])
def test_likeliest_is_where_a_general_optimiser_ends(floor: int, cap: int | None) -> None:
    plan = SketchPlan(phantoms=0, floor=floor, repetitions=200, cap=cap)
    ranks = largest_ranks(plan, 3000, 200 * 3, SimulationRandomness(3)).reshape(200, 3)

    def unlikely(logarithm: float, column: np.ndarray) -> float:
        number = np.exp(logarithm)
        upto = np.where(column == plan.top, 1.0, (1 - 2.0**-column) ** number)
        below = np.where(column == floor, 0.0, (1 - 2.0 ** (1 - column)) ** number)
        return -float(np.sum(np.log(upto - below)))

    for place, found in enumerate(likeliest(ranks, plan)):
        column = ranks[:, place].astype(float)
        best = optimize.minimize_scalar(unlikely, bounds=(5, 12), args=(column,), options={"xatol": 1e-9})
        assert np.log(found) == pytest.approx(best.x, abs=1e-5)


def test_likeliest_at_the_ends() -> None:
    plan = SketchPlan(phantoms=0, floor=5, repetitions=4, cap=9)
    assert likeliest(np.full((4, 2), 5), plan).tolist() == [0, 0]
    many = float(likeliest(np.full((4, 1), 9), plan)[0])
    assert (1 - (1 - 2.0**-8) ** many) ** 4 == pytest.approx(0.5)
    assert likeliest(np.zeros((3, 1), dtype=np.int64), SketchPlan(phantoms=0, floor=0, repetitions=3)).tolist() == [0]
    with pytest.raises(InputError, match="floor"):
        likeliest(np.array([[4]]), plan)


@pytest.mark.parametrize(("gamma", "constant"), list(zip(GAMMAS, (1.037, 1.006, 1.0008), strict=True)))
def test_relative_sd_is_the_published_constant(gamma: Fraction, constant: float) -> None:
    plan = SketchPlan(phantoms=0, floor=0, repetitions=2000, gamma=gamma)
    assert relative_sd(plan, 1e5) * 2000**0.5 == pytest.approx(constant, abs=6e-4)


def test_a_cap_that_hides_everything_tells_nothing() -> None:
    plan = SketchPlan(phantoms=0, floor=5, repetitions=2000, cap=9)
    assert relative_sd(plan, 1e6) > 1e6
    assert relative_sd(plan, 1e9) == float("inf")


@pytest.mark.parametrize(("gamma", "factor"), list(zip(GAMMAS, (2.22, 1.79, 1.65), strict=True)))
def test_the_printed_decoder_is_wrong_by_a_factor(gamma: Fraction, factor: float) -> None:
    plan = SketchPlan(phantoms=0, floor=0, repetitions=20_000, gamma=gamma)
    ranks = largest_ranks(plan, 77_000, 20_000, SimulationRandomness(4))
    assert float(printed(ranks, gamma)) / 77_000 == pytest.approx(factor, rel=0.04)
    assert float(harmonic(ranks, gamma)) / 77_000 == pytest.approx(1, abs=6 * 1.04 / 20_000**0.5)


def test_one_repetition_has_no_harmonic_estimate() -> None:
    with pytest.raises(InputError, match="two"):
        harmonic(np.ones((1, 1), dtype=np.uint16), Fraction(1))
