"""The bounds against published numbers and claims."""

import math

import numpy as np
import pytest

from syndic_lab.bench.homm import bounds
from syndic_lab.bench.homm.bounds import Merged


def uniform(*, people: float, bins: int, epsilon: float, parties: int = 1, dimensions: int = 1) -> Merged:
    counts = [np.full(bins, people / parties / bins) for _ in range(parties)]
    return Merged(counts=counts, epsilons=[epsilon] * parties, dimensions=dimensions)


def test_the_printed_bound_of_a_mean_is_broken_by_its_own_noise() -> None:
    """n = 1e5, m = 1000, epsilon = 0.01, Y uniform on [-1, 1]."""
    people, bins, epsilon = 100_000, 1000, 0.01
    bound = bounds.mean_bound(uniform(people=people, bins=bins, epsilon=epsilon), bound=1.0, variance=1 / 3)
    assert bound.printed == pytest.approx(1.29e-4, rel=0.005)
    centres = (np.arange(bins) + 0.5) / bins * 2 - 1
    theory = 2 * float((centres**2).sum()) / (epsilon * people) ** 2
    assert theory == pytest.approx(6.67e-4, rel=0.001)
    generator = np.random.default_rng(1)
    noise = generator.laplace(0, 1 / epsilon, (4000, bins))
    actual = float((((noise @ centres) / (people + noise.sum(axis=1))) ** 2).mean())
    # the square of a normal: relative standard error sqrt(2 / 4000) = 2.2 %; the paper's own run gave 6.99e-4
    assert actual == pytest.approx(theory, rel=0.12)
    assert bound.printed < 0.25 * actual
    assert actual < bound.corrected
    assert bound.corrected == pytest.approx(24 * bins / (people * epsilon) ** 2 + 8 * (2 / bins) ** 2 + 2 / 3 / people)


def test_quantities_against_sums_over_pairs_of_bins() -> None:
    counts = [np.array([1.0, 4.0, 2.0]), np.array([3.0, 5.0])]
    merged = Merged(counts=counts, epsilons=[0.5, 2.0])
    flat = [(k, j, c[j], c.size) for k, c in enumerate(counts) for j in range(c.size)]
    within = sum(n**2 / m**2 for _, _, n, m in flat)
    across = sum(a[2] * b[2] / (a[3] * b[3]) for a in flat for b in flat if a[:2] != b[:2])
    assert merged.printed.within == pytest.approx(within)
    assert merged.printed.across == pytest.approx(across)
    assert merged.printed.noise == pytest.approx(3 / 0.5 + 2 / 2.0)
    assert merged.corrected.noise == pytest.approx(2 * 3 / 0.25 + 2 * 2 / 4.0)
    assert merged.printed_epsilon == pytest.approx(5 / (3 / 0.5 + 2 / 2.0))
    assert merged.corrected_epsilon == pytest.approx(math.sqrt(5 / (3 / 0.25 + 2 / 4.0)))


def test_noise_is_understated_by_two_over_epsilon() -> None:
    merged = uniform(people=1000, bins=10, epsilon=0.1)
    assert merged.corrected.noise / merged.printed.noise == pytest.approx(20)


def test_bins_of_a_full_histogram_are_wide() -> None:
    """U0.2: 10,000 bins are 100 a side in two dimensions and 10 a side in four."""
    assert uniform(people=1.0, bins=10_000, epsilon=1.0, dimensions=2).widths == [pytest.approx(2 / 100)]
    assert uniform(people=1.0, bins=10_000, epsilon=1.0, dimensions=4).widths == [pytest.approx(2 / 10)]


@pytest.mark.parametrize(("count", "scale"), [(0, 1.0), (1, 1.0), (3, 2.0), (5, 10.0)])
def test_the_surplus_of_clamping(count: int, scale: float) -> None:
    generator = np.random.default_rng(count)
    noise = generator.laplace(0, scale, 1_000_000)
    error = 6 * scale * 1.5 / 1000
    assert np.maximum(count + noise, 0).mean() - count == pytest.approx(
        bounds.clamping_surplus(count, scale), abs=error
    )
    assert np.rint(np.maximum(count + noise, 0)).mean() - count == pytest.approx(
        bounds.rounded_surplus(count, scale), abs=error
    )


def test_rows_of_nobody_in_the_large_grid() -> None:
    """U0.3: 7 columns of 4 bins, 13 parties, 900 people, epsilon 1: about 102,300 (one run; its sd is about 430)."""
    cells = 13 * 4**7
    fake = (cells - 900) * bounds.rounded_surplus(0, 1.0) + 900 * bounds.rounded_surplus(1, 1.0)
    assert abs(fake - 102_300) < 3 * 430
    assert (cells - 900) * bounds.clamping_surplus(0, 1.0) == pytest.approx(106_046)


def every_bound(merged: Merged) -> dict[str, bounds.Bound]:
    two = np.array([1.0, 0.5])
    return {
        "mean": bounds.mean_bound(merged, bound=1.0, variance=0.1),
        "linear": bounds.linear_bound(merged, coefficients=two, bounds=two, variance=0.1),
        "bounded": bounds.bounded_linear_bound(merged, bounds=two, outcome_bound=1.0, variance=0.1),
        "prediction": bounds.prediction_bound(merged, point=two, bounds=two, outcome_bound=1.0, variance=0.1),
        "kernel": bounds.kernel_bound(
            merged, bandwidth=0.25, upper=1.0, weight_bound=1.0, outcome_bound=1.0, variance=0.1
        ),
        "glm": bounds.generalised_linear_bound(merged, coefficients=two, bounds=two, outcome_bound=1.0),
    }


def test_claim_a_bounds_tend_to_the_sampling_error() -> None:
    """As epsilon, bins and people a bin grow, only sigma^2 / n is left (times the constants of each theorem)."""
    people, bins = 1e12, 10**5
    found = every_bound(uniform(people=people, bins=bins, epsilon=1e3))
    # bins of width 2/m leave (2/m)^2 times each theorem's constant: below 1e-7 for all of them
    left = {"mean": 2 * 0.1 / people, "linear": 0.1 / people, "bounded": 0.1 / people, "kernel": 0.2 / people}
    for name, bound in found.items():
        for value in bound:
            assert 0 <= value - left.get(name, 0.0) < 1e-6, name
    coarse = every_bound(uniform(people=people, bins=10, epsilon=1e3))
    assert all(coarse[name].corrected > 1e3 * found[name].corrected for name in found)


def test_claim_b_more_parties_fall_below_one() -> None:
    """The joint bound of a mean falls below the own error of a party, 2 sigma^2 / n_k, with enough parties."""
    own = 2 * 0.1 / 200

    def joint(parties: int) -> float:
        merged = uniform(people=200 * parties, bins=200, epsilon=8.0, parties=parties)
        return bounds.mean_bound(merged, bound=1.0, variance=0.1).corrected

    errors = [joint(parties) for parties in (1, 2, 5, 20, 100)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > own > errors[-1]


@pytest.mark.parametrize("name", ["mean", "linear", "bounded", "prediction", "kernel", "glm"])
def test_claim_c_utility_follows_the_smallest_epsilon(name: str) -> None:
    """One stingy party of five does nearly all the harm; generosity of the others cannot repair it."""
    counts = [np.full(50, 2.0) for _ in range(5)]

    def error(epsilons: list[float]) -> float:
        return every_bound(Merged(counts=counts, epsilons=epsilons))[name].corrected

    stingy, even, generous = error([0.1, 1, 1, 1, 1]), error([1.0] * 5), error([0.1, 64, 64, 64, 64])
    assert stingy > 5 * even
    assert generous > 0.9 * stingy
    merged = Merged(counts=counts, epsilons=[0.1, 1, 1, 1, 1])
    assert 0.1 < merged.corrected_epsilon < merged.printed_epsilon < 1


def test_corollary_1_takes_the_largest_of_n_normal_values() -> None:
    merged = uniform(people=1000, bins=10, epsilon=1.0)
    largest = 2 + 3 * math.sqrt(2 * math.log(1000))
    found = bounds.gaussian_mean_bound(merged, mean=-2.0, variance=9.0)
    assert found == pytest.approx(bounds.mean_bound(merged, bound=largest, variance=9.0))


def test_parties_and_epsilons_must_match() -> None:
    with pytest.raises(ValueError, match="give one for each"):
        Merged(counts=[np.ones(2)], epsilons=[1.0, 2.0])
    with pytest.raises(ValueError, match="every epsilon above 0"):
        Merged(counts=[np.ones(2)], epsilons=[0.0])
    with pytest.raises(ValueError, match="bandwidth"):
        bounds.kernel_bound(
            uniform(people=10, bins=2, epsilon=1.0),
            bandwidth=0.0,
            upper=1.0,
            weight_bound=1.0,
            outcome_bound=1.0,
            variance=1.0,
        )
