"""Noise of the learning methods: published magnitudes, sound laws, exact accounting."""

from fractions import Fraction
from math import log, sqrt
from typing import get_args

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.privacy import gaussian_epsilon
from syndic_lab.bench.erm.noise_law import (
    CoordinateLaplace,
    Gaussian,
    Law,
    LawName,
    Spherical,
    gaussian_sigma,
    gradient_sigma,
    law,
    objective_noise,
)
from syndic_lab.bench.erm.private import (
    GradientMethod,
    ModelMethod,
    Setting,
    Variant,
    gradient_noise,
    local_objective,
    model_noise,
    two_noises,
)

HALF, MILLI, E5 = Fraction(1, 2), Fraction(1, 1000), Fraction(1, 10**5)


def setting(
    parties: int = 1000,
    records: int = 50,
    *,
    regularisation: float = 0.001,
    iterations: int = 1500,
    tolerance: float = 0.0,
    dimension: int = 118,
) -> Setting:
    return Setting(
        parties=parties,
        records=records,
        dimension=dimension,
        epsilon=HALF,
        delta=MILLI,
        regularisation=regularisation,
        iterations=iterations,
        tolerance=tolerance,
    )


TABLE_1 = setting(100, 500, regularisation=0.01, iterations=100)


@pytest.mark.parametrize(
    ("method", "parameter", "sampled"),
    [("Pathak", 0.8, 1.15), ("Local Out P", 0.08, 0.112), ("MPC Out P", 0.008, 0.0122)],
)
def test_table_1_of_the_paper_for_models(method: ModelMethod, parameter: float, sampled: float) -> None:
    noise = model_noise(method, TABLE_1, "as_published")
    assert noise.law.scale / sqrt(noise.copies) == pytest.approx(parameter, rel=1e-9)
    assert noise.deviation(1) == pytest.approx(sampled, rel=0.1)  # theirs is of 1000 samples
    drawn = noise.simulate(4000 // noise.copies * 10, 50, np.random.default_rng(0))
    assert drawn.std() == pytest.approx(noise.deviation(50), rel=0.05)


@pytest.mark.parametrize(("method", "parameter"), [("Local Grad P", 5.66e-3), ("MPC Grad P", 0.57e-3)])
def test_table_1_of_the_paper_for_gradients_lacks_a_factor(method: GradientMethod, parameter: float) -> None:
    sensitivity = gradient_noise(method, TABLE_1).sensitivity
    sigma = gradient_sigma(sensitivity, 100, HALF, MILLI, "as_published") / sqrt(gradient_noise(method, TABLE_1).copies)
    assert sigma / (2 * sqrt(log(1000))) == pytest.approx(parameter, rel=0.01)


def test_table_1_of_the_paper_for_objectives() -> None:
    # the table has epsilon where the program has what is left of it
    printed = local_objective(TABLE_1, 0.25, "as_published")
    assert printed.law.scale / 500 * printed.left / 0.5 == pytest.approx(8e-3)
    assert printed.left > 0.5  # more than there was: the missing "1 +"


@pytest.mark.parametrize(
    ("records", "accounting", "sigma"),
    [
        (50, "simple", 0.0117212),
        (50, "as_published", 0.0115165),
        (30, "simple", 0.0195354),
        (30, "as_published", 0.0191941),
    ],
)
def test_sigma_of_mpc_grad_p(records: int, accounting: str, sigma: float) -> None:
    assert accounting in {"simple", "as_published"}
    found = gradient_sigma(
        2 / (1000 * records), 1500, HALF, MILLI, "simple" if accounting == "simple" else "as_published"
    )
    assert found == pytest.approx(sigma, abs=6e-8)
    if accounting == "simple":
        assert gradient_noise("MPC Grad P", setting(records=records), "as_published").sigma == pytest.approx(found)


def test_simple_conversion_ends_at_epsilon_exactly() -> None:
    sigma = gradient_sigma(2 / 50_000, 1500, HALF, MILLI, "simple")
    rho = 1500 * (2 / 50_000) ** 2 / (2 * sigma**2)
    assert rho + 2 * sqrt(rho * log(1000)) == pytest.approx(0.5, abs=1e-12)
    printed = gradient_sigma(2 / 50_000, 1500, HALF, MILLI, "as_published")
    rho = 1500 * (2 / 50_000) ** 2 / (2 * printed**2)
    assert rho + 2 * sqrt(rho * log(1000)) > 0.5


def test_exact_accounting_saves_noise_and_printed_promise_breaks_at_large_epsilon() -> None:
    for epsilon, share in ((HALF, 0.733), (Fraction(1), 0.777)):
        saved = gradient_sigma(1, 7, epsilon, E5) / gradient_sigma(1, 7, epsilon, E5, "as_published")
        assert saved == pytest.approx(share, abs=5e-4)
    assert gradient_sigma(1, 7, HALF, E5) < gradient_sigma(1, 7, HALF, E5, "zcdp")
    assert gradient_sigma(1, 7, HALF, E5, "zcdp") < gradient_sigma(1, 7, HALF, E5, "simple")

    def true(epsilon: float) -> float:
        return float(
            gaussian_epsilon(Fraction(1 / gradient_sigma(1, 1, Fraction(epsilon), E5, "as_published")) ** 2, E5)
        )

    assert true(0.5) == pytest.approx(0.356, abs=5e-4)
    assert true(7.9) < 7.9
    assert true(8.05) > 8.05
    assert true(16) == pytest.approx(19.1, abs=0.05)


def test_early_iterates_cost_less_than_the_square_root_says() -> None:
    for variant in get_args(Variant):
        noise = gradient_noise("MPC Grad P", setting(), variant)
        spent = [noise.epsilon_after(t) for t in (1, 15, 150, 375, 750, 1500)]
        assert spent == sorted(spent)
        assert all(e <= sqrt(t / 1500) * 0.5 for e, t in zip(spent, (1, 15, 150, 375, 750, 1500), strict=True))
    assert gradient_noise("MPC Grad P", setting()).epsilon_after(1500) == pytest.approx(0.5, abs=1e-8)
    with pytest.raises(InputError, match="iteration"):
        noise.epsilon_after(1501)


def test_noise_norms_of_the_four_laws_on_adult() -> None:
    def of(name: LawName) -> Law:
        return law(name, 1.0, 104, HALF, E5)

    assert of("as_published").norm(104) == pytest.approx(28.8, abs=0.05)
    assert of("spherical").scale * 104 == pytest.approx(208)
    assert of("laplace").norm(104) == pytest.approx(294, abs=0.5)
    assert of("gaussian").norm(104) == pytest.approx(71.7, abs=0.05)


@pytest.mark.parametrize(("dimension", "epsilon"), [(104, 5.10), (122, 5.52), (95, 4.87)])
def test_printed_laplace_costs_the_root_of_the_dimension(dimension: int, epsilon: float) -> None:
    printed = law("as_published", 0.08, dimension, HALF, E5)
    assert isinstance(printed, CoordinateLaplace)
    assert printed.epsilon(0.08, dimension) == pytest.approx(epsilon, abs=5e-3)
    sound = law("laplace", 0.08, dimension, HALF, E5)
    assert isinstance(sound, CoordinateLaplace)
    assert sound.epsilon(0.08, dimension) == pytest.approx(0.5)
    # the loss at the worst pair of neighbours, from the densities
    shift = np.full(dimension, 0.08 / sqrt(dimension))
    at = -np.ones(dimension)
    loss = (np.abs(at - shift) - np.abs(at)).sum() / printed.scale
    assert loss == pytest.approx(epsilon, abs=5e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("one", [Spherical(0.3), Gaussian(0.3), CoordinateLaplace(0.3)], ids=repr)
def test_simulated_vectors_have_the_variance_and_no_preferred_direction(one: Law) -> None:
    drawn = one.simulate((40_000, 6), np.random.default_rng(3))
    assert (drawn**2).mean() == pytest.approx(one.deviation(6) ** 2, rel=0.06)
    # six standard errors of a correlation
    assert np.abs(np.corrcoef(drawn.T) - np.eye(6)).max() < 6 / sqrt(40_000) * 1.5
    if isinstance(one, Spherical):
        lengths = np.sqrt((drawn**2).sum(axis=1))
        assert lengths.mean() == pytest.approx(6 * 0.3, rel=0.02)


def test_solver_tolerance_enters_the_sensitivity() -> None:
    exact, loose = setting(10, 30_000), setting(10, 30_000, tolerance=1e-4)
    assert exact.model_sensitivity == pytest.approx(2 / (10 * 30_000 * 0.001))
    added = 2 * 1e-4 / (10 * 0.001)
    assert loose.model_sensitivity - exact.model_sensitivity == pytest.approx(added)
    assert added / exact.model_sensitivity == pytest.approx(3.0)  # n tau
    assert model_noise("MPC Out P", loose).law.scale / model_noise("MPC Out P", exact).law.scale == pytest.approx(4.0)
    # the printed noise does not know of it
    printed = [model_noise("MPC Out P", each, "as_published").law.scale for each in (exact, loose)]
    assert printed[0] == printed[1]


@pytest.mark.parametrize(("parties", "records", "pathak"), [(100, 500, 8.0), (1000, 50, 80.0), (50_000, 1, 4000.0)])
def test_scales_of_the_appendix(parties: int, records: int, pathak: float) -> None:
    these = setting(parties, records)
    assert model_noise("MPC Out P", these, "as_published").law.scale == pytest.approx(0.08)
    assert model_noise("Pathak", these, "as_published").law.scale == pytest.approx(pathak)
    local = model_noise("Local Out P", these, "as_published")
    assert local.law.scale / sqrt(local.copies) == pytest.approx(pathak / sqrt(parties))
    assert model_noise("MPC Out P", setting(1000, 30), "as_published").law.scale == pytest.approx(0.13333, abs=1e-4)


def test_central_curator_has_the_noise_of_the_secure_sum() -> None:
    assert model_noise("Central Out P", setting()).law == model_noise("MPC Out P", setting()).law
    assert gradient_noise("Central Grad P", setting()).sigma == gradient_noise("MPC Grad P", setting()).sigma
    local = gradient_noise("Local Grad P", setting()).sigma
    assert local / gradient_noise("MPC Grad P", setting()).sigma == pytest.approx(sqrt(1000))


def test_objective_perturbation_of_chaudhuri_and_as_published() -> None:
    few = local_objective(setting(), 0.25)  # 2 log(1 + 5) is above 0.5
    assert few.left == 0.25
    assert few.extra == pytest.approx(0.25 / (50 * (np.exp(0.125) - 1)) - 0.001)
    many = objective_noise(records=10**6, regularisation=0.001, lipschitz=1.0, smoothness=0.25, epsilon=0.5)
    assert many.left == pytest.approx(0.5 - 2 * log(1 + 0.25 / 1000))
    assert many.extra == 0.0
    assert isinstance(many.law, Spherical)
    printed = local_objective(setting(100, 500), 0.25, "as_published")
    assert printed.left == pytest.approx(1.886, abs=5e-4)
    assert printed.shared
    assert local_objective(setting(100, 500), 0.25).left <= 0.5


def test_two_noises_say_what_they_cost() -> None:
    printed = two_noises(setting(), 0.25, "as_published")
    assert printed.fresh.scale == pytest.approx(2 / (50_000 * 0.5))
    assert printed.start.scale == pytest.approx(2 * sqrt(2 * log(1250)) / 0.25)
    assert printed.epsilon == pytest.approx(1500 * sqrt(118) * 0.5)
    sound = two_noises(setting(), 0.25)
    assert sound.fresh == gradient_noise("MPC Grad P", setting()).law
    assert (sound.epsilon, sound.delta) == (0.5, 0.001)
    # the objective of all 50,000 records leaves 0.49 of epsilon to the vector, and needs no further penalty
    for joint in (sound, two_noises(setting(), 0.25, "as_published", joint=True)):
        assert joint.start.scale == pytest.approx(2 * sqrt(2 * log(1250)) / 0.490025, rel=1e-6)
        assert joint.extra == 0.0
    assert printed.extra > 0


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        setting(0)
    with pytest.raises(InputError, match="regularisation"):
        setting(regularisation=0.0)
    with pytest.raises(InputError, match="sensitivity"):
        law("gaussian", 0.0, 3, HALF, E5)
    with pytest.raises(InputError, match="iterations"):
        gradient_sigma(1.0, 0, HALF, E5)


def test_every_method_has_noise() -> None:
    for method in get_args(ModelMethod):
        assert model_noise(method, setting()).deviation(118) > 0
    for each in get_args(GradientMethod):
        assert gradient_noise(each, setting()).sigma > 0


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [("0.1", 30.749566), ("0.4", 8.629574), ("1", 3.730632), ("1.6", 2.436477), ("3.2", 1.313832)]
)
def test_continuous_gaussian_noise_has_the_published_size(epsilon: str, sigma: float) -> None:
    assert gaussian_sigma(Fraction(epsilon), Fraction(1, 10**5)) == pytest.approx(sigma, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [("1/100", "1/1000000000"), ("1", "1e-12"), ("8", "1/1000")])
def test_continuous_gaussian_noise_is_the_least_that_is_enough(epsilon: str, delta: str) -> None:
    sigma = gaussian_sigma(Fraction(epsilon), Fraction(delta))
    enough, less = (Fraction(1 / each) ** 2 for each in (sigma, sigma * (1 - 1e-6)))
    assert gaussian_epsilon(enough, Fraction(delta)) <= Fraction(epsilon) < gaussian_epsilon(less, Fraction(delta))


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0"), ("1", "1"), ("1", "1.5"), ("0", "0.1"), ("-0.5", "0.1")])
def test_continuous_gaussian_noise_needs_a_budget(epsilon: str, delta: str) -> None:
    with pytest.raises(InputError, match=r"must be positive and delta .* in \(0, 1\)"):
        gaussian_sigma(Fraction(epsilon), Fraction(delta))
