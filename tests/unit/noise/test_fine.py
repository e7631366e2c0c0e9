"""Gaussian noise on a fine grid: the proof's inequalities and the guarantee itself, against exact sums."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import norm

from syndic.document import from_json, to_json
from syndic.errors import InputError
from syndic.noise import DiscreteGaussian, FineGaussian, FineGaussianShare, GaussianShare
from syndic.noise.gaussian_grid import ROUNDING
from syndic.noise.integer import NEVER
from syndic.privacy import Cost, mu_squared_for, rho_for
from syndic.random import SimulationRandomness

DELTA = Fraction(1, 10**6)
BUDGET = mu_squared_for(Fraction(1), DELTA, Fraction(1, 10**12))


def fine(mu_squared: Fraction = BUDGET, *, changed: int = 2, bits: int = 12) -> FineGaussian:
    return FineGaussian(sensitivity_squared=Fraction(2), mu_squared=mu_squared, changed=changed, fraction_bits=bits)


def share(parties: int = 5, *, colluding: int = 0, missing: int = 0, bits: int = 12) -> FineGaussianShare:
    return FineGaussianShare(
        sensitivity_squared=Fraction(2),
        mu_squared=BUDGET,
        changed=2,
        fraction_bits=bits,
        parties=parties,
        colluding=colluding,
        missing=missing,
        dimension=6,
    )


def laws(variance: Fraction) -> tuple[Any, Any, Any]:
    """At 0, 1, ...: the discrete Gaussian of parameter v, the rounded Gaussian of v - 1/12, the density of N(0, v)."""
    v = mpmath.mpf(variance.numerator) / variance.denominator
    s = v - mpmath.mpf(1) / 12
    places = range(int(mpmath.sqrt(v) * 24) + 2)
    bell = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * v)) for k in places]
    whole = bell[0] + 2 * mpmath.fsum(bell[1:])
    root = mpmath.sqrt(2 * s)
    half = mpmath.mpf(1) / 2
    rounded = [(mpmath.erfc((k - half) / root) - mpmath.erfc((k + half) / root)) / 2 for k in places]
    return [b / whole for b in bell], rounded, [b / mpmath.sqrt(2 * mpmath.pi * v) for b in bell]


@pytest.mark.parametrize("variance", ["4", "17/3", "9", "30", "400"])
def test_the_noise_is_as_near_to_rounded_gaussian_noise_as_the_proof_says(variance: str) -> None:
    v = Fraction(variance)
    s = v - ROUNDING
    with mpmath.workdps(60):
        drawn, rounded, density = laws(v)
        apart = [(p - q) * (1 if k == 0 else 2) for k, (p, q) in enumerate(zip(drawn, rounded, strict=True))]
        more, less = (mpmath.fsum(max(sign * a, 0) for a in apart) for sign in (1, -1))
        # both sides are the total variation distance
        assert more == pytest.approx(float(less), rel=1e-12)
        assert more <= 1 / (331 * mpmath.mpf(float(v)) ** 2)
        # of the right order, and so much smaller than for the discrete Gaussian of the same s, 1 / (50 s)
        assert more >= 1 / (2200 * mpmath.mpf(float(v)) ** 2)
        for k, (q, f) in enumerate(zip(rounded, density, strict=True)):
            bound = -1 / (576 * s**2) - k**2 / (3456 * s**3 * v) - k**4 / (2880 * s**4)
            assert mpmath.log(q / f) >= float(bound) - mpmath.mpf(10) ** -15
        squares, fourths = (mpmath.fsum(2 * k**n * p for k, p in enumerate(drawn)) for n in (2, 4))
        assert squares <= float(v) * (1 + 1e-15)
        assert fourths <= 3.0001 * float(v) ** 2


def profile(mu_squared: float, epsilon: float) -> float:
    mu = mu_squared**0.5
    return float(norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def law_of(noise: DiscreteGaussian, reach: int) -> NDArray[np.float64]:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * float(noise.sigma_squared)))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@pytest.mark.parametrize("bits", [0, 1, 3])
@pytest.mark.parametrize("mu_squared", ["1/2", "1/20"])
def test_exact_privacy_of_one_entry_is_within_the_event(mu_squared: str, bits: int) -> None:
    """delta at many epsilons, by going through every outcome."""
    noise = FineGaussian(
        sensitivity_squared=Fraction(1), mu_squared=Fraction(mu_squared), changed=1, fraction_bits=bits
    )
    event = noise.event
    law = law_of(noise._noise, 40 * noise.scale)
    there = np.pad(law, (0, noise.scale))
    here = np.pad(law, (noise.scale, 0))
    for epsilon in np.linspace(0, 4 * float(event.mu_squared) ** 0.5, 9):
        actual = float(np.maximum(here - np.exp(epsilon) * there, 0).sum())
        claimed = profile(float(event.mu_squared), epsilon)
        assert actual <= claimed + (1 + np.exp(epsilon)) * float(event.slack) + 1e-14
        assert actual >= 0.95 * claimed - 10 * float(event.slack)


@pytest.mark.parametrize("bits", [0, 2])
def test_exact_privacy_of_two_changed_entries_of_a_sum_of_shares_is_within_the_event(bits: int) -> None:
    some = FineGaussianShare(
        sensitivity_squared=Fraction(2),
        mu_squared=Fraction(1, 5),
        changed=2,
        fraction_bits=bits,
        parties=4,
        colluding=1,
        missing=1,
        dimension=9,
    )
    event = some.event
    one = law_of(some._noise, 30 * some.scale)
    law = np.convolve(one, one)
    here = np.outer(np.pad(law, (some.scale, 0)), np.pad(law, (0, some.scale)))
    there = np.outer(np.pad(law, (0, some.scale)), np.pad(law, (some.scale, 0)))
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
        actual = float(np.maximum(here - np.exp(epsilon) * there, 0).sum())
        claimed = profile(float(event.mu_squared), epsilon)
        assert actual <= claimed + (1 + np.exp(epsilon)) * float(event.slack) + 1e-14
        assert actual >= 0.95 * claimed - 10 * float(event.slack)


def test_a_budget_buys_less_noise_than_by_concentrated_accounting() -> None:
    noise = fine()
    assert Cost.of([noise.event]).epsilon(DELTA) <= 1
    concentrated = DiscreteGaussian(sensitivity_squared=Fraction(2), rho=rho_for(Fraction(1), DELTA))
    assert concentrated.variance / noise.variance == pytest.approx(1.150, abs=0.001)
    # 2 / mu^2, and rounding on the grid of 2^-12
    assert noise.sigma_squared == 2 / BUDGET + Fraction(1, 12 * 4**12)
    assert noise.event.mu_squared == BUDGET
    assert noise.event.what == "Gaussian, mu 0.237"


def test_slack_falls_by_sixteen_with_every_bit_and_grows_with_what_changes() -> None:
    slacks = [float(fine(bits=bits).event.slack) for bits in (2, 3, 4)]
    assert slacks[0] / slacks[1] == pytest.approx(16, rel=1e-3)
    assert slacks[1] / slacks[2] == pytest.approx(16, rel=1e-3)
    assert slacks[0] == pytest.approx(2 / 300 / (16 * fine(bits=2).variance) ** 2, rel=1e-6)
    assert float(fine(changed=200).event.slack) == pytest.approx(100 * float(fine().event.slack), rel=1e-3)
    with pytest.raises(ValueError, match="too far from Gaussian: use more fraction_bits"):
        _ = fine(Fraction(100), changed=10**6, bits=0).event


def test_noise_is_never_smaller_than_four_on_the_grid_and_then_costs_less() -> None:
    strong = fine(Fraction(100), bits=0)
    assert strong.sigma_squared == 4
    assert strong.event.mu_squared == 2 / (4 - ROUNDING) < 100
    assert fine(Fraction(100), bits=4).event.mu_squared == 100
    # shares of a sum that small are possible on the fine grid only
    many = share(1000)
    coarse = GaussianShare(sensitivity_squared=Fraction(2), rho=BUDGET / 2, parties=1000, dimension=6)
    assert many.sigma_squared < Fraction(4, 100)
    assert coarse.sigma_squared == 4


def test_shares_carry_the_noise_of_the_whole_whoever_is_missing() -> None:
    for some in (share(), share(colluding=2), share(9, colluding=2, missing=3), share(1)):
        assert some.total_variance(some.honest) == pytest.approx(fine().variance, rel=1e-9)
        assert some.event.mu_squared == BUDGET
        assert Cost.of([some.event]).epsilon(DELTA) <= 1
    assert (
        share(5, colluding=1).event.what == "Gaussian, mu 0.237, noise by 5 parties together, of which any 4 are enough"
    )


def test_more_colluders_than_planned_cost_more() -> None:
    some = share(10)
    assert some.event_if(5).mu_squared == pytest.approx(2 * some.event.mu_squared, rel=1e-6)
    assert some.event_if(1).slack > some.event_if(5).slack > some.event.slack
    assert some.event_if(5).what.endswith("noise by 10 parties together, of which any 5 are enough")
    with pytest.raises(ValueError, match=r"present \(11\) must be between 1"):
        some.event_if(11)


def test_the_distance_of_a_sum_of_shares_is_in_the_slack() -> None:
    """Shares of the least size on a grid of whole numbers: the sum against the discrete Gaussian of the sum."""
    some = FineGaussianShare(
        sensitivity_squared=Fraction(1), mu_squared=Fraction(1, 8), changed=1, fraction_bits=0, parties=3, dimension=1
    )
    assert some.sigma_squared == 4
    one = law_of(some._noise, 60)
    total = np.convolve(np.convolve(one, one), one)
    whole = law_of(DiscreteGaussian(sensitivity_squared=Fraction(12), rho=Fraction(1, 2)), 180)
    with mpmath.workdps(60):
        _, rounded, _ = laws(Fraction(12))
    exact = np.array([float(p) for p in [*rounded[:0:-1], *rounded]])
    inside = total[180 - len(rounded) + 1 : 180 + len(rounded)]
    assert np.abs(total - whole).sum() / 2 < 1e-14
    assert np.abs(inside - exact).sum() / 2 <= float(some.event.slack)


def test_results_are_in_fine_units() -> None:
    values = np.array([-3, 0, 7, 1000, 5, 1])
    whole, part = fine(bits=6), share(bits=6)
    noises: list[tuple[FineGaussian | FineGaussianShare, int]] = [
        (whole, whole.tail(1e-12)),
        (part, part.tail(1e-12, 1)),
    ]
    for noise, reach in noises:
        noisy = noise.apply(values, SimulationRandomness(1))
        drawn = noise.draw(values.shape, SimulationRandomness(1))
        assert noisy.dtype == np.int64
        np.testing.assert_array_equal(noisy, values * 64 + drawn)
        assert noise.scale == 64
        assert np.abs(drawn).max() <= reach
        assert reach < 60 * 64


def test_the_slack_counts_rounding_and_the_shares_for_each_changed_entry_and_is_rounded_up() -> None:
    """changed (1 / (300 v^2) + 5 exp(-pi^2 s)) for two shares of s = 4, v = 8: the second part is 3.6e-17."""
    two = FineGaussianShare(
        sensitivity_squared=Fraction(1), mu_squared=Fraction(1), changed=3, fraction_bits=0, parties=2, dimension=3
    )
    assert two.sigma_squared == 4
    with mpmath.workdps(60):
        exact = 3 * (1 / (300 * mpmath.mpf(64)) + 5 * mpmath.exp(-4 * mpmath.pi**2))
        slack = mpmath.mpf(two.event.slack.numerator) / two.event.slack.denominator
        assert exact <= slack <= exact + mpmath.mpf("1e-23")
        alone = fine(Fraction(100), changed=7, bits=0).event.slack
        assert 0 <= alone - Fraction(7, 300 * 16) <= Fraction(1, 10**24)


def test_noise_whose_slack_is_all_there_is_protects_nobody_and_is_refused() -> None:
    assert fine(Fraction(100), changed=4799, bits=0).event.slack < 1
    with pytest.raises(ValueError, match="too far from Gaussian"):
        _ = fine(Fraction(100), changed=4800, bits=0).event


def test_the_largest_value_is_the_largest_that_fits_with_the_noise() -> None:
    noise = fine()
    most = (2**63 - 1 - noise.tail(NEVER)) >> 12
    for value in (most, -most):
        assert noise.apply(np.array([value]), SimulationRandomness(1)).dtype == np.int64
    for value in (most + 1, -most - 1):
        with pytest.raises(InputError, match="clip them first"):
            noise.apply(np.array([value]), SimulationRandomness(1))


def test_shares_reach_to_the_widest_noise_and_one_alone_is_the_whole() -> None:
    mu_squared = Fraction(2**104) / (2**104 - ROUNDING)
    fields = {"sensitivity_squared": Fraction(2**80), "changed": 1, "parties": 1, "dimension": 1}
    widest = FineGaussianShare(mu_squared=mu_squared, **fields)  # type: ignore[arg-type]
    assert widest.sigma_squared * widest.scale**2 == 2**104
    with pytest.raises(ValueError, match=r"above 2\^104"):
        FineGaussianShare(mu_squared=Fraction(1), **fields)  # type: ignore[arg-type]
    assert share(1).sigma_squared == fine().sigma_squared


def test_a_unit_is_divided_by_4096_where_nobody_says_otherwise() -> None:
    whole = FineGaussian(sensitivity_squared=Fraction(2), mu_squared=BUDGET, changed=2)
    part = FineGaussianShare(sensitivity_squared=Fraction(2), mu_squared=BUDGET, changed=2, parties=2, dimension=2)
    assert whole.scale == part.scale == 4096


def test_values_that_would_not_fit_are_refused_before_any_draw() -> None:
    noises: list[FineGaussian | FineGaussianShare] = [fine(), share()]
    for noise in noises:
        edge = 2**63 // 2**12
        noise.apply(np.full(6, edge - 200), SimulationRandomness(1))
        with pytest.raises(InputError, match=r"must be within [0-9]+ of zero"):
            noise.apply(np.full(6, edge), SimulationRandomness(1))
        with pytest.raises(InputError, match="float64"):
            noise.apply(np.full(6, 0.5), SimulationRandomness(1))
    with pytest.raises(InputError, match="for 6 values; found 5"):
        share().apply(np.zeros(5, dtype=np.int64), SimulationRandomness(1))


@pytest.mark.parametrize("present", [1, 3, 5])
def test_tails_bound_the_normal_tail(present: int) -> None:
    some = share()
    sigma = some.total_variance(present) ** 0.5 * some.scale
    for chance in (1e-3, 1e-9):
        assert sigma * norm.isf(chance / 2) <= some.tail(chance, present) <= 1.4 * sigma * norm.isf(chance / 2)
    assert fine().tail(1e-6) == pytest.approx(fine().variance ** 0.5 * 4096 * norm.isf(5e-7), rel=1e-6)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=r"probability \(.*\) must be in \(0, 1\]"):
            some.tail(wrong, 1)


@pytest.mark.parametrize("probability", [1.0, 1e-9, NEVER])
def test_tails_are_those_of_a_sub_gaussian_sum(probability: float) -> None:
    """P(|x| > m) <= 2 exp(-m^2 / (2 present sigma^2)), on the fine grid."""
    some = share()
    for present in (1, 5):
        with mpmath.workdps(40):
            each = some.sigma_squared * some.scale**2
            square = (
                2 * present * mpmath.mpf(each.numerator) / each.denominator * mpmath.log(2 / mpmath.mpf(probability))
            )
            assert some.tail(probability, present) == int(mpmath.ceil(mpmath.sqrt(square)))
    for ask in (some.total_variance, lambda number: some.tail(0.1, number)):
        for wrong in (0, 6):
            with pytest.raises(ValueError, match="between 1 and the number of parties"):
                ask(wrong)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"changed": 0}, r"changed \(0\) must be at least 1"),
        ({"changed": 7}, r"changed \(7\) must be at most dimension \(6\)"),
        ({"fraction_bits": 41}, r"fraction_bits \(41\) must be between 0 and 40"),
        ({"fraction_bits": -1}, r"fraction_bits \(-1\)"),
        ({"mu_squared": Fraction(0)}, r"mu_squared \(0\) must be positive"),
        ({"sensitivity_squared": Fraction(0)}, r"sensitivity_squared \(0\) must be positive"),
        ({"sensitivity_squared": Fraction(2**60), "fraction_bits": 40}, "2\\^104"),
        ({"colluding": 5}, "none is left whose noise protects"),
    ],
)
def test_shares_that_cannot_be_are_refused(change: dict[str, Any], text: str) -> None:
    fields = {"sensitivity_squared": Fraction(2), "mu_squared": BUDGET, "changed": 2, "parties": 5, "dimension": 6}
    with pytest.raises(ValueError, match=text):
        FineGaussianShare(**{**fields, **change})
    if "changed (7)" not in text.replace("\\", "") and "colluding" not in change:
        own = {name: value for name, value in {**fields, **change}.items() if name not in {"parties", "dimension"}}
        with pytest.raises(ValueError, match=text):
            FineGaussian(**own)


@pytest.mark.parametrize("noise", [fine(), share()])
def test_they_are_documents(noise: FineGaussian | FineGaussianShare) -> None:
    assert from_json(to_json(noise), type(noise), where="here") == noise
