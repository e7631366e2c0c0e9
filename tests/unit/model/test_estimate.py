"""Blocks, weights, intervals and error formulas against direct computation."""

from dataclasses import replace

import numpy as np
import pytest

from syndic.model import Exponential, Normal, Poisson
from syndic.model.families.estimate import (
    Correction,
    Estimated,
    Model,
    Noisy,
    Setting,
    best_blocks,
    best_weights,
    block_estimates,
    blocks_condition,
    blocks_error,
    blocks_of,
    estimate_by_blocks,
    estimate_by_statistics,
    printed_blocks,
)
from syndic.model.families.family import Array
from syndic_lab.bench.estimate.accuracy import (
    blocks_condition_printed,
    blocks_error_printed,
    efficient_epsilon,
    masked_error,
    statistics_error,
    statistics_error_printed,
)

RATE = Model(family=Exponential(), least=np.array([0.01]), most=np.array([100.0]))


@pytest.mark.parametrize(("people", "blocks"), [(10, 3), (7, 7), (100, 1), (11, 4)])
def test_blocks_are_nearly_equal_and_all_used(people: int, blocks: int) -> None:
    sizes = np.bincount(blocks_of(people, blocks), minlength=blocks)
    assert sizes.sum() == people
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == blocks


@pytest.mark.parametrize("correction", ["analytic", "jackknife", "none"])
def test_block_estimates_are_those_of_each_block(correction: Correction) -> None:
    values = np.random.default_rng(3).exponential(0.5, 11)
    block = np.random.default_rng(4).permutation(blocks_of(11, 3))
    found = block_estimates(RATE, values[:, None], block, 3, correction)[:, 0]
    for number in range(3):
        own = values[block == number]
        size, plain = len(own), 1 / own.mean()
        left_out = np.mean([1 / np.delete(own, place).mean() for place in range(size)])
        wanted = {"none": plain, "analytic": plain * (1 - 1 / size), "jackknife": size * plain - (size - 1) * left_out}
        assert found[number] == pytest.approx(wanted[correction])


def test_jackknife_of_one_row_is_the_plain_estimate() -> None:
    found = block_estimates(RATE, np.array([[0.5], [0.25]]), np.array([0, 1]), 2, "jackknife")
    np.testing.assert_allclose(found[:, 0], [2.0, 4.0])


def test_both_corrections_take_the_bias_away() -> None:
    values = np.random.default_rng(5).exponential(1.0, 300_000)
    block = blocks_of(len(values), 20_000)
    plain, *corrected = (
        block_estimates(RATE, values[:, None], block, 20_000, how).mean() for how in ("none", "analytic", "jackknife")
    )
    assert plain == pytest.approx(15 / 14, abs=0.01)
    assert corrected == pytest.approx([1.0, 1.0], abs=0.01)


def noisy(people: list[float], noise: list[float]) -> Noisy:
    return Noisy(
        means=np.array([[2.0], [3.0]]),
        people=np.array(people),
        noise=np.array(noise)[:, None],
        peaked=np.array([3.0, 0.0]),
        unit=np.array([0.5]),
    )


def test_weights_are_the_best_ones() -> None:
    given = noisy([100.0, 900.0], [0.01, 0.0004])
    weights = best_weights(given, np.array([[2.0]]))

    def variance(share: Array) -> Array:
        return share**2 * (2 / 100 + 0.01) + (1 - share) ** 2 * (2 / 900 + 0.0004)

    shares = np.linspace(0, 1, 100_001)
    assert weights[0] == pytest.approx(shares[np.argmin(variance(shares))], abs=1e-4)
    assert weights.sum() == pytest.approx(1)


def test_estimate_standard_error_and_kurtosis_of_two_parties() -> None:
    given = noisy([100.0, 900.0], [0.01, 0.0004])
    model = Model(family=Poisson(), least=np.array([0.1]), most=np.array([10.0]))
    found = estimate_by_statistics(model, given)
    first = (2 * 100 + 3 * 900) / 1000
    own = np.array([first / 100 + 0.01, first / 900 + 0.0004])
    share = (1 / own) / (1 / own).sum()
    theta = share @ [2.0, 3.0]
    assert found.theta[0] == pytest.approx(theta)
    variance = (share**2) @ [theta / 100 + 0.01, theta / 900 + 0.0004]
    assert found.standard_error[0] == pytest.approx(variance**0.5)
    assert found.kurtosis[0] == pytest.approx(share[0] ** 4 * 3 * 0.01**2 / variance**2)
    # the mean is the parameter here, so averages of estimates come to the same
    assert estimate_by_blocks(model, given).standard_error[0] == pytest.approx(variance**0.5)


@pytest.mark.slow
def test_vector_errors_are_those_of_simulated_moments() -> None:
    model = Model(family=Normal(centre=5.0), least=np.array([0.0, 0.1]), most=np.array([10.0, 25.0]))
    given = Noisy(
        means=np.array([[-1.0, 3.0]]),
        people=np.array([400.0]),
        noise=np.array([[0.004, 0.02]]),
        peaked=np.array([0.0]),
        unit=np.ones(2),
    )
    found = estimate_by_statistics(model, given)
    np.testing.assert_allclose(found.theta, [4.0, 2.0])
    draws = np.random.default_rng(6)
    rows = draws.normal(4.0, 2**0.5, size=(40_000, 400)) - 5
    means = np.stack([rows.mean(axis=1), (rows**2).mean(axis=1)], axis=-1)
    means = means + draws.normal(0, [0.004**0.5, 0.02**0.5], size=means.shape)
    simulated = np.cov(model.estimate(means).T)
    np.testing.assert_allclose(found.covariance, simulated, rtol=0.05, atol=2e-4)


def test_interval_of_pure_laplace_noise_is_wider_than_the_normal_one() -> None:
    model = Model(family=Poisson(), least=np.array([-100.0]), most=np.array([100.0]))
    one = Estimated(theta=np.zeros(1), covariance=np.ones((1, 1)), kurtosis=np.array([3.0]))
    _, upper = one.interval(0.95, model)
    # P(|Laplace of variance 1| > x) = exp(-sqrt(2) x)
    assert 0.945 < 1 - np.exp(-(2**0.5) * upper[0]) < 0.955
    _, plain = replace(one, kurtosis=np.zeros(1)).interval(0.95, model)
    assert plain[0] == pytest.approx(1.959964, abs=1e-6)


# Six parties of three regions: another size, other noise and another distribution each.
SIZES = np.array([4000.0, 900.0, 2500.0, 300.0, 6000.0, 1200.0])
LEVELS = {"party": [0], "region": [0, 1], "two regions": [0, 1, 2, 3], "country": [0, 1, 2, 3, 4, 5]}


def _noisy(kind: str, repeats: int, generator: np.random.Generator) -> tuple[Model, Array, Noisy]:
    """Return the model, the parties' true mean statistics, and many tables of their noisy mean statistics."""
    if kind == "poisson":
        model = Model(family=Poisson(), least=np.array([0.01]), most=np.array([100.0]))
        true = np.array([[3.0], [5.0], [2.0], [9.0], [4.0], [6.5]])
        means = generator.poisson(true[:, 0] * SIZES, (repeats, 6))[..., None] / SIZES[:, None]
        noise = np.array([[0.001], [0.02], [0.0005], [0.2], [0.003], [0.01]])
    else:
        model = Model(family=Normal(), least=np.array([-9.0, 0.01]), most=np.array([9.0, 50.0]))
        theta = np.array([[0.0, 1.0], [1.0, 2.0], [0.5, 1.0], [2.0, 3.0], [-1.0, 1.5], [0.0, 2.0]])
        true = model.family.mean(theta)
        average = theta[:, 0] + generator.standard_normal((repeats, 6)) * np.sqrt(theta[:, 1] / SIZES)
        spread = theta[:, 1] * generator.chisquare(SIZES - 1, (repeats, 6)) / SIZES
        means = np.stack([average, spread + average**2], axis=-1)
        noise = np.array([[0.001, 0.002], [0.01, 0.02], [0.0, 0.001], [0.05, 0.1], [0.002, 0.01], [0.001, 0.001]])
    means = means + generator.laplace(0.0, 1.0, means.shape) * np.sqrt(noise / 2)
    given = Noisy(means=means, people=SIZES, noise=noise, peaked=np.full(6, 3.0), unit=np.ones(means.shape[-1]))
    return model, true, given


def _some(noisy: Noisy, places: list[int]) -> Noisy:
    return replace(
        noisy,
        means=noisy.means[:, places],
        people=noisy.people[places],
        noise=noisy.noise[places],
        peaked=noisy.peaked[places],
    )


@pytest.mark.parametrize("kind", ["poisson", "normal"])
@pytest.mark.parametrize("level", LEVELS)
def test_intervals_cover_at_every_level_where_parties_differ(kind: str, level: str) -> None:
    repeats, places = 20_000, LEVELS[level]
    model, true, noisy = _noisy(kind, repeats, np.random.default_rng(5))
    wanted = model.family.fit(np.average(true[places], axis=0, weights=SIZES[places]))
    covers = {}
    for differ in (True, False):
        low, high = estimate_by_statistics(model, _some(noisy, places), differ=differ).interval(0.95, model)
        covers[differ] = ((low <= wanted) & (wanted <= high)).mean(axis=0)
    # the standard deviation of 20,000 intervals is .0015; Cornish and Fisher's term is an approximation
    assert (np.abs(covers[True] - 0.95) < 0.012).all()
    if level != "party":
        assert covers[False].min() < 0.8, "the best weights are those of one distribution"


AT = Setting(parties=10, people=10_000, epsilon=0.5, information=4.0)


def test_best_blocks_have_the_least_error() -> None:
    best = best_blocks(AT, diameter=2.0, bias=0.3)
    errors = {k: blocks_error(AT, blocks=k, diameter=2.0, bias=0.3) for k in range(1, 5001)}
    assert best == min(errors, key=errors.__getitem__)
    # in closed form: (4 diameter^2 N^3 / (3 bias M epsilon^2))^(1/5)
    assert best == pytest.approx((4 * 4 * 1e12 / (3 * 0.3 * 10 * 0.25)) ** 0.2, abs=1)


def test_known_points_of_the_formulas() -> None:
    # N = 1e4, M = 10; Bernoulli 1/2 has I = 4 and slope 1: the factor 1 + 2 I / (N eps^2)
    for epsilon, ratio in [(1e-4, 8e4), (0.01, 9.0), (0.1, 1.08)]:
        at = replace(AT, epsilon=epsilon)
        assert statistics_error(at, slope=1.0, diameter=1.0) / at.bound == pytest.approx(ratio, rel=1e-3)
    printed = statistics_error_printed(replace(AT, epsilon=1e-4), diameter=1.0) / AT.bound
    assert 5 < printed < 20
    assert masked_error(AT, slope=1.0, diameter=1.0) - AT.bound == pytest.approx(
        (statistics_error(AT, slope=1.0, diameter=1.0) - AT.bound) / 10
    )
    assert blocks_error_printed(AT, blocks=100, diameter=1.0) == pytest.approx(
        (1 / 4 + 1e4 / (1e4 * 0.25) + 1e4 * 10 / 1e8) / 1e5
    )
    assert blocks_error(AT, blocks=100, diameter=1.0) == pytest.approx(
        (1 / 4 + 2 * 1e4 / (1e4 * 0.25) + 1e6 * 10 / 1e8) / 1e5
    )


def test_conditions_of_the_corollaries() -> None:
    # N = 1e4, M = 1000
    assert blocks_condition(10_000, 1000) == pytest.approx(2.15, abs=0.01)
    assert blocks_condition_printed(10_000, 1000) == pytest.approx(0.46, abs=0.01)
    epsilon = efficient_epsilon(AT, slope=1.0, diameter=1.0, excess=0.1)
    assert statistics_error(replace(AT, epsilon=epsilon), slope=1.0, diameter=1.0) / AT.bound == pytest.approx(1.1)
    masked = efficient_epsilon(AT, slope=1.0, diameter=1.0, excess=0.1, masked=True)
    assert masked == pytest.approx(epsilon / 10**0.5)
    assert printed_blocks(1000, 1.0) == 63
