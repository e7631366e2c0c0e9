"""Errors of private estimates over many runs, against formulas; false alarms have a chance below 1e-6 each."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from syndic.data import Instead, Integer, Real, Schema
from syndic.methods.estimate.plan import FINE, Layout, layout_of
from syndic.model import (
    AnyFamily,
    Bernoulli,
    Binomial,
    Exponential,
    GammaRate,
    Geometric,
    Normal,
    NormalMean,
    NormalVariance,
    Poisson,
)
from syndic.model.families.estimate import Noisy, Setting, block_estimates, blocks_error, blocks_of, estimate_by_blocks
from syndic.noise import DiscreteGaussian, DiscreteLaplace, LaplaceShare
from syndic.random import SimulationRandomness
from syndic_lab.bench.estimate.accuracy import efficient_epsilon, masked_error, statistics_error
from syndic_lab.bench.estimate.runs import Runs, chances_of, squared_error

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

# half of the variance is Laplace noise of two parties: a squared error varies by sqrt(2.4) of its mean, so the mean of
# this many is within 3.1 % but for one in a million
REPEATS = 60_000


def whole(upper: int) -> Integer:
    return Integer(name="x", lower=0, upper=upper, missing=Instead(value=0))


def real(lower: float, upper: float) -> Real:
    return Real(name="x", lower=lower, upper=upper, bins=4, missing=Instead(value=lower))


# family, parameter, column wide enough that clipping is rare, law, slope of the estimate by the mean, 1 / information
FAMILIES: list[tuple[AnyFamily, float, Any, Any, float, float]] = [
    (Bernoulli(), 0.3, whole(1), stats.bernoulli(0.3), 1.0, 0.21),
    (Binomial(trials=6), 0.4, whole(6), stats.binom(6, 0.4), 1 / 6, 0.04),
    (Poisson(), 3.0, whole(20), stats.poisson(3.0), 1.0, 3.0),
    (Geometric(), 0.4, whole(40), stats.geom(0.4, loc=-1), 0.16, 0.16 * 0.6),
    (Exponential(), 2.0, real(0.0, 8.0), stats.expon(scale=0.5), 4.0, 4.0),
    (GammaRate(shape=3.0), 1.5, real(0.0, 14.0), stats.gamma(3, scale=1 / 1.5), 1.5**2 / 3, 1.5**2 / 3),
    (NormalMean(variance=4.0), 1.0, real(-10.0, 10.0), stats.norm(1, 2), 1.0, 4.0),
    (NormalVariance(centre=1.0), 4.0, real(-9.0, 11.0), stats.norm(1, 2), 1.0, 32.0),
]


def runs(layout: Layout, law: Any, *, parties: int, people: int, repeats: int = REPEATS) -> Runs:
    return Runs(
        layout=layout,
        chances=chances_of(layout.schema.columns[0], law),
        parties=parties,
        people=people,
        repeats=repeats,
        draws=np.random.default_rng(1),
        randomness=SimulationRandomness(1, "estimate"),
    )


@pytest.mark.parametrize(
    ("family", "theta", "column", "law", "slope", "spread"), FAMILIES, ids=[type(one[0]).__name__ for one in FAMILIES]
)
def test_error_of_dssa_is_the_corrected_formula(
    family: AnyFamily, theta: float, column: Any, law: Any, slope: float, spread: float
) -> None:
    layout = layout_of(Schema(columns=(column,)), "x", family, 7)
    people = 2000
    # noise as large as the sampling error: both terms of the formula count
    diameter = float(layout.l1 * layout.unit[0])
    epsilon = Fraction(slope * diameter * (2 / (spread * people)) ** 0.5).limit_denominator(10**6)
    noise = DiscreteLaplace(sensitivity=layout.l1, epsilon=epsilon)
    found = runs(layout, law, parties=2, people=people).by_statistics(noise)
    setting = Setting(parties=2, people=people, epsilon=float(epsilon), information=1 / spread)
    wanted = statistics_error(setting, slope=slope, diameter=diameter)
    ratio = squared_error(found, np.array([theta]))[0] / wanted
    assert abs(ratio - 1) < 0.05
    lower, upper = found.interval(0.95, layout.model)
    covered = ((lower <= theta) & (theta <= upper)).mean()
    # 4.9 standard deviations of a share of 60,000 runs, and 0.7 % for the normal approximation
    assert abs(covered - 0.95) < 4.9 * (0.95 * 0.05 / REPEATS) ** 0.5 + 0.007


def test_oracle_for_truths() -> None:
    """A11: the variance for a Bernoulli law is p (1 - p) / (M N) + 2 / (M N^2 epsilon^2), with nothing left out."""
    layout = layout_of(Schema(columns=(whole(1),)), "x", Bernoulli(), 4)
    noise = DiscreteLaplace(sensitivity=1, epsilon=Fraction(1, 20))
    found = runs(layout, stats.bernoulli(0.3), parties=5, people=1000, repeats=200_000).by_statistics(noise)
    exact = 0.21 / 5000 + 2 / (5 * 1000**2 * 0.05**2)
    assert noise.variance == pytest.approx(2 * 20**2, rel=1e-3)
    error = squared_error(found, np.array([0.3]))[0]
    assert abs(error / exact - 1) < 4.9 * (2.6 / 200_000) ** 0.5 + 1e-3


def test_efficient_where_the_corrected_condition_says_so_and_not_where_the_printed_one_does() -> None:
    layout = layout_of(Schema(columns=(whole(1),)), "x", Bernoulli(), 4)
    setting = Setting(parties=10, people=10_000, epsilon=1.0, information=1 / 0.21)
    ratios = {}
    start = efficient_epsilon(setting, slope=1.0, diameter=1.0, excess=0.05)
    for name, epsilon in {"corrected": start, "printed": 1 / 10_000, "ten times printed": 10 / 10_000}.items():
        noise = DiscreteLaplace(sensitivity=1, epsilon=Fraction(epsilon).limit_denominator(10**8))
        found = runs(layout, stats.bernoulli(0.3), parties=10, people=10_000, repeats=40_000).by_statistics(noise)
        ratios[name] = squared_error(found, np.array([0.3]))[0] / setting.bound
    assert 1.0 < ratios["corrected"] < 1.1
    # at the printed condition the noise is as wide as all chances there are
    assert ratios["printed"] > 1000
    assert ratios["ten times printed"] > 100


def test_error_of_dsaa_is_the_corrected_formula() -> None:
    """A12: N = 1e4, M = 10, the variance of a normal law from blocks of 100 rows, block statistics drawn directly."""
    layout = layout_of(Schema(columns=(real(-9.0, 11.0),)), "x", Normal(), 7, (-9.0, 0.5), (11.0, 2.5))
    people, parties, blocks, repeats, epsilon = 10_000, 10, 100, 10_000, 2
    draws = np.random.default_rng(2)
    rows = people // blocks
    means = draws.normal(1.0, rows**-0.5, (repeats, parties, blocks))
    squares = draws.chisquare(rows - 1, means.shape) / rows
    away = means - layout.model.family.centre  # type: ignore[attr-defined]
    moments = np.stack([away, squares + away**2], axis=-1)
    estimates = layout.model.corrected(moments, np.full(means.shape, rows))
    steps = layout.block_steps(estimates).sum(axis=2)
    noise = DiscreteLaplace(sensitivity=2 * FINE, epsilon=Fraction(2 * epsilon))
    noisy = steps + noise.draw(steps.shape, SimulationRandomness(2, "blocks"))
    unit = layout.block_unit
    given = Noisy(
        means=layout.model.least + unit * noisy / blocks,
        people=np.full(parties, float(people)),
        noise=np.tile(noise.variance * (unit / blocks) ** 2, (parties, 1)),
        peaked=np.full(parties, 3.0),
        unit=unit,
    )
    found = estimate_by_blocks(layout.model, given)
    error = squared_error(found, np.array([1.0, 1.0]))[1]
    setting = Setting(parties=parties, people=people, epsilon=float(epsilon), information=0.5)
    assert abs(error / blocks_error(setting, blocks=blocks, diameter=2.0) - 1) < 0.1
    # bias after correction: -variance / t^2, far below the bound (k/N)^(3/2)
    assert abs(error / blocks_error(setting, blocks=blocks, diameter=2.0, bias=1e-2) - 1) < 4.9 * (2.6 / repeats) ** 0.5


def test_one_noise_for_all_parties_is_m_times_less() -> None:
    layout = layout_of(Schema(columns=(whole(20),)), "x", Poisson(), 7)
    share = LaplaceShare(sensitivity=20, epsilon=Fraction(1, 10), parties=8, dimension=1)
    found = runs(layout, stats.poisson(3.0), parties=8, people=500).masked(share)
    setting = Setting(parties=8, people=500, epsilon=0.1, information=1 / 3)
    ratio = squared_error(found, np.array([3.0]))[0] / masked_error(setting, slope=1.0, diameter=20.0)
    assert abs(ratio - 1) < 4.9 * (5 / REPEATS) ** 0.5 + 5e-3
    lower, upper = found.interval(0.95, layout.model)
    assert abs(((lower <= 3.0) & (upper >= 3.0)).mean() - 0.95) < 0.01


def test_intervals_of_two_parameters_cover() -> None:
    layout = layout_of(Schema(columns=(real(-9.0, 11.0),)), "x", Normal(), 7)
    noise = DiscreteGaussian(sensitivity_squared=Fraction(layout.l2_squared), rho=Fraction(1, 20))
    found = runs(layout, stats.norm(1.5, 1.5), parties=3, people=1500, repeats=20_000).by_statistics(noise)
    lower, upper = found.interval(0.9, layout.model)
    covered = ((lower <= [1.5, 2.25]) & (upper >= [1.5, 2.25])).mean(axis=0)
    assert (np.abs(covered - 0.9) < 4.9 * (0.09 / 20_000) ** 0.5 + 0.01).all()


def test_more_parties_do_not_help_blocks_beyond_their_bias() -> None:
    """DSaA's bias does not average out: short blocks of a biased estimate stay off however many parties there are."""
    layout = layout_of(Schema(columns=(whole(40),)), "x", Geometric(), 7, (0.01,), (0.99,))
    ratios = []
    for parties in (4, 64):
        noise = DiscreteLaplace(sensitivity=FINE, epsilon=Fraction(4))
        found = runs(layout, stats.geom(0.4, loc=-1), parties=parties, people=400, repeats=500).by_blocks(noise, 100)
        bound = 0.16 * 0.6 / (parties * 400)
        ratios.append(squared_error(found, np.array([0.4]))[0] / bound)
    assert ratios[1] > 3 * ratios[0]


def smallest_epsilon(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return an epsilon that two samples of a release show to be needed, wrong with a chance below 1e-7.

    Half of each sample chooses the threshold; the other half is counted, between exact bounds on the two chances.
    """
    half = len(first) // 2
    thresholds = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.01, 0.99, 99))
    above = [(np.mean(first[:half] > each), np.mean(second[:half] > each)) for each in thresholds]
    best = thresholds[int(np.argmax([np.log((p + 1e-3) / (q + 1e-3)) for p, q in above]))]
    ones, others = int((first[half:] > best).sum()), int((second[half:] > best).sum())
    low = stats.beta.ppf(5e-8, ones, half - ones + 1)
    high = stats.beta.ppf(1 - 5e-8, others + 1, half - others)
    return float(np.log(low / high))


@pytest.mark.parametrize("scheme", ["dssa", "dsaa"])
def test_audit_shows_no_more_than_epsilon(scheme: str) -> None:
    """The worst neighbours, released many times, never show more than epsilon; with half the noise they do."""
    layout = layout_of(Schema(columns=(whole(40),)), "x", Geometric(), 7, (0.02,), (0.6,))
    rows = np.zeros(9, dtype=np.int64)
    tables = [np.append(rows, 40), np.append(rows, 0)]
    if scheme == "dssa":
        values, reach = [layout.sums(codes) for codes in tables], layout.l1
    else:
        # blocks of one row: one row moves its block from one end of the set to the other
        model, own = layout.model, blocks_of(10, 10)
        estimates = [block_estimates(model, layout.statistics(codes), own, 10, "none") for codes in tables]
        values, reach = [layout.block_steps(each).sum(axis=0) for each in estimates], FINE
    assert abs(int(values[0][0] - values[1][0])) > 0.95 * reach
    shown = []
    for noise in (
        DiscreteLaplace(sensitivity=reach, epsilon=Fraction(1)),
        DiscreteLaplace(sensitivity=reach, epsilon=Fraction(2)),
    ):
        draws = [noise.apply(np.repeat(each, 400_000), SimulationRandomness(place, "audit")) for place, each in
                 enumerate(sorted(values, key=lambda one: -int(one[0])))]  # fmt: skip
        shown.append(smallest_epsilon(*draws))
    assert 0.9 < shown[0] < 1.0
    assert shown[1] > 1.5
