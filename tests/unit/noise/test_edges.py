"""Ends of what is allowed and bounds that must not be missed: where one step further protects nobody."""

import math
from fractions import Fraction
from itertools import islice, pairwise
from math import inf

import mpmath
import numpy as np
import pytest

from syndic.errors import InputError
from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FineGaussian,
    FineGaussianShare,
    GaussianShare,
    LaplaceShare,
    RandomisedResponse,
    SkellamShare,
)
from syndic.noise.geometric import exponential_geometric
from syndic.noise.integer import NEVER
from syndic.noise.inverse_cdf import Law
from syndic.noise.poisson import _block_law, _weights, poisson
from syndic.noise.shares import log_ratio
from syndic.noise.skellam import skellam_rho
from syndic.random import SimulationRandomness
from syndic_lab.exponential import ExponentialMechanism, ReportNoisyMax

LIMIT = 2**52


@pytest.mark.parametrize("scale", [Fraction(1, LIMIT), Fraction(LIMIT)])
def test_laplace_scales_reach_to_the_limits_and_no_further(scale: Fraction) -> None:
    assert DiscreteLaplace(sensitivity=1, epsilon=1 / scale).scale == scale
    beyond = scale * (2 if scale > 1 else Fraction(1, 2))
    with pytest.raises(ValueError, match=r"must be in \[2\^-52, 2\^52\]"):
        DiscreteLaplace(sensitivity=1, epsilon=1 / beyond)


@pytest.mark.parametrize("square", [Fraction(1, LIMIT), Fraction(LIMIT**2)])
def test_gaussian_scales_reach_to_the_limits_and_no_further(square: Fraction) -> None:
    assert DiscreteGaussian(sensitivity_squared=square, rho=Fraction(1, 2)).sigma_squared == square
    beyond = square * (2 if square > 1 else Fraction(1, 2))
    with pytest.raises(ValueError, match=r"must be in \[2\^-52, 2\^104\]"):
        DiscreteGaussian(sensitivity_squared=beyond, rho=Fraction(1, 2))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_no_mechanism_is_made_for_nothing_or_less(epsilon: Fraction) -> None:
    for make in (
        lambda: DiscreteLaplace(sensitivity=1, epsilon=epsilon),
        lambda: ExponentialMechanism(sensitivity=1, epsilon=epsilon),
        lambda: LaplaceShare(sensitivity=1, epsilon=epsilon, parties=2, dimension=1),
        lambda: RandomisedResponse(size=2, epsilon=epsilon),
        lambda: ReportNoisyMax(sensitivity=1, epsilon=epsilon),
    ):
        with pytest.raises(ValueError, match=r"epsilon .* must be positive"):
            make()


@pytest.mark.parametrize("field", ["parties", "dimension"])
def test_shares_are_of_somebody_and_of_something(field: str) -> None:
    fields = {"sensitivity": 1, "epsilon": Fraction(1), "parties": 1, "dimension": 1}
    assert LaplaceShare(**fields).honest == 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parties and dimension must be at least 1"):
        LaplaceShare(**{**fields, field: 0})  # type: ignore[arg-type]


def test_codes_are_those_of_the_size_and_sizes_have_ends() -> None:
    for size in (2, 2**31):
        assert RandomisedResponse(size=size, epsilon=Fraction(1)).size == size
    for size in (1, 2**31 + 1):
        with pytest.raises(ValueError, match=r"must be in \[2, 2\^31\]"):
            RandomisedResponse(size=size, epsilon=Fraction(1))


@pytest.mark.parametrize(
    "share",
    [
        GaussianShare(sensitivity_squared=Fraction(50), rho=Fraction(1, 10), parties=4, dimension=1),
        SkellamShare(sensitivity=10, sensitivity_squared=Fraction(50), rho=Fraction(1, 10), parties=4, dimension=1),
        LaplaceShare(sensitivity=3, epsilon=Fraction(1, 2), parties=4, dimension=1),
    ],
)
@pytest.mark.parametrize("honest", [0, 5])
def test_no_more_shares_protect_than_there_are_parties(
    share: GaussianShare | SkellamShare | LaplaceShare, honest: int
) -> None:
    for ask in (share.event_if, share.total_variance, lambda present: share.tail(0.1, present)):
        with pytest.raises(ValueError, match="between 1 and the number of parties"):
            ask(honest)
    assert share.event_if(4) == share.event


def test_skellam_has_no_bound_where_the_one_for_small_orders_ends_before_whole_orders_begin() -> None:
    """The change over all orders up to 2 must stay below 1: 4 * (1/4 + 1/32 + 1/64) is more."""
    assert skellam_rho(4.0, 4, 16.0) == inf
    assert skellam_rho(4.0, 3, 9.0) < inf


def skellam_bound(variance: float, sensitivity: int, square: float) -> float:
    """What `syndic.noise.skellam` derives, once more: the least over orders at which two bounds meet."""
    step = 1 / variance + 1 / (2 * variance**2) + 1 / variance**3
    slope = square / (2 * variance) * (1 + 1 / variance)
    rest = max(0.0, (6 * sensitivity - square) / (4 * variance**2))
    found = []
    for power in range(80):
        above = 2 ** (power / 2)
        change = above * min(sensitivity, math.sqrt(square)) * step
        if change <= 1:
            near = variance * step**2 / 2 * square * 2 * (math.cosh(change) - 1) / change**2
            found.append(max(near, slope + (rest + slope / (4 * above)) / (1 + above)))
    return min(found)


def test_the_cost_of_skellam_noise_is_known_from_a_variance_of_4_on() -> None:
    share = SkellamShare(sensitivity=1, sensitivity_squared=Fraction(1), rho=Fraction(1, 2), parties=8, dimension=1)
    assert 8 * share.variance == pytest.approx(4.0)
    assert share.event_if(8).rho <= Fraction(1, 2)
    for honest in (7, 5):
        with pytest.raises(ValueError, match="too small for a bound"):
            share.event_if(honest)


@pytest.mark.parametrize("variance", [12.0, 100.0, 3000.0])
@pytest.mark.parametrize(("sensitivity", "square"), [(1, 1.0), (5, 5.0), (60, 4.0), (5, 25.0), (10, 100.0)])
def test_the_cost_of_skellam_noise_is_the_derived_bound(variance: float, sensitivity: int, square: float) -> None:
    found, derived = skellam_rho(variance, sensitivity, square), skellam_bound(variance, sensitivity, square)
    assert derived <= found <= derived * (1 + 1e-5)


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("parties", [1, 2, 11, 40])
def test_shares_are_wide_enough_by_themselves(rho: Fraction, parties: int) -> None:
    """`event` is never above what was asked for: that the noise earns it shows in `event_if` alone."""
    skellam = SkellamShare(
        sensitivity=10, sensitivity_squared=Fraction(50), rho=rho, parties=parties, colluding=parties // 3, dimension=6
    )
    gaussian = GaussianShare(
        sensitivity_squared=Fraction(50), rho=rho, parties=parties, colluding=parties // 3, dimension=6
    )
    step = Fraction(1, 10**11)
    assert skellam.event_if(skellam.honest).rho <= rho + step
    assert gaussian.event_if(gaussian.honest).rho <= rho + step
    # and hardly wider
    assert skellam.event_if(skellam.honest).rho >= rho * Fraction("0.999")


@pytest.mark.parametrize("honest", [1, 2, 9, 10, 11, 50])
@pytest.mark.parametrize("share", [0.3, 1.0, 4.0])
def test_the_gap_to_the_discrete_gaussian_counts_every_share(share: float, honest: int) -> None:
    terms = [math.exp(-2 * math.pi**2 * share * k / (k + 1)) for k in range(1, honest)]
    found = log_ratio(share, honest)
    assert found >= 5 * math.fsum(terms)
    # from the tenth on each counts as much as the ninth, which is more
    counted = [*terms[:9], *terms[8:9] * (honest - 10)]
    assert found == pytest.approx(5 * math.fsum(counted), rel=1e-9)


@pytest.mark.parametrize("bits", [3, 8, 64, 200])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(28, 13), Fraction(3), Fraction(61, 13), Fraction(57, 2)])
def test_poisson_weights_and_what_is_left_out_are_enclosed(rate: Fraction, bits: int) -> None:
    scaled = rate * 2**bits
    weights, rest = _weights((int(scaled), int(scaled) + 1), bits)
    mode = int(rate)
    with mpmath.workdps(120):
        mean, unit = mpmath.mpf(rate.numerator) / rate.denominator, mpmath.mpf(2) ** bits

        def exact(place: int) -> mpmath.mpf:
            return mean ** (place - mode) * mpmath.factorial(mode) / mpmath.factorial(place) * unit

        for place, (low, high) in enumerate(weights):
            assert low <= exact(place) <= high
        left = mpmath.fsum(exact(place) for place in range(len(weights), len(weights) + 200))
    assert 0 < left <= rest


def test_poisson_weights_hold_for_every_rate_within_the_bounds() -> None:
    bits, mode = 64, 28
    low, high = (28 << bits) + (1 << bits) // 4, (28 << bits) + (1 << bits) // 2
    weights, _ = _weights((low, high), bits)
    for mean in (Fraction(low, 2**bits), Fraction(high, 2**bits)):
        value = Fraction(2**bits)
        for place in range(mode, 0, -1):
            value = value * place / mean
            assert weights[place - 1][0] <= value <= weights[place - 1][1]
        value = Fraction(2**bits)
        for place in range(mode + 1, len(weights)):
            value = value * mean / place
            assert weights[place][0] <= value <= weights[place][1]


@pytest.mark.parametrize("kind", [ExponentialMechanism, ReportNoisyMax])
def test_selections_reach_to_the_limits_and_no_further(kind: type[ExponentialMechanism | ReportNoisyMax]) -> None:
    for epsilon in (Fraction(2 * LIMIT), Fraction(2, LIMIT)):
        assert kind(sensitivity=1, epsilon=epsilon).event.epsilon == epsilon
        beyond = epsilon * (2 if epsilon > 1 else Fraction(1, 2))
        with pytest.raises(ValueError, match=r"must be in \[2\^-52, 2\^52\]"):
            kind(sensitivity=1, epsilon=beyond)


def test_what_is_beyond_the_limit_of_a_geometric_variable_has_its_chance() -> None:
    """At a scale of 2^63 the chance to pass 2^63 is 1 / e: whoever skips that many cells must not skip fewer."""
    beyond = exponential_geometric(Fraction(2**63))._rest.thresholds
    with mpmath.workdps(60):
        assert beyond.tolist() == [int(mpmath.floor((1 - mpmath.exp(-1)) * 2**63))]


def test_fine_noise_reaches_to_the_limit_and_values_keep_clear_of_the_end() -> None:
    mu_squared = Fraction(2**104) / (2**104 - Fraction(1, 12))
    widest = FineGaussian(sensitivity_squared=Fraction(2**80), mu_squared=mu_squared, changed=1, fraction_bits=12)
    assert widest.sigma_squared * widest.scale**2 == LIMIT**2
    with pytest.raises(ValueError, match=r"must be at most 2\^104"):
        FineGaussian(sensitivity_squared=Fraction(2**80), mu_squared=Fraction(1), changed=1, fraction_bits=12)
    plain = FineGaussian(sensitivity_squared=Fraction(1), mu_squared=Fraction(1), changed=1, fraction_bits=0)
    room = plain.tail(NEVER)
    most = np.array([2**63 - 1 - room], dtype=np.int64)
    assert plain.apply(most, SimulationRandomness(1)).dtype == np.int64
    with pytest.raises(InputError, match="clip them first"):
        plain.apply(most + 1, SimulationRandomness(1))


@pytest.mark.parametrize(
    ("law", "weights"),
    [
        (poisson(lambda bits: (3 << bits, 3 << bits)), len(_weights((3 << 64, 3 << 64), 64)[0])),
        (_block_law(Fraction(20, 3)), 7 + 62),
    ],
)
def test_a_law_goes_on_after_its_last_weight_with_all_that_may_be_left(law: Law, weights: int) -> None:
    """Whoever asks for more gets enclosures that hold: from what is sure so far up to 1."""
    bits = 64
    found = list(islice(law(bits), 200))
    assert len(found) == 200
    assert all(low <= high for low, high in found)
    assert all(one[0] <= other[0] for one, other in pairwise(found))
    assert found[-1] == found[-2]
    assert found[-1][0] == found[weights - 1][0]
    # never quite 1: something may be left
    assert (1 << bits) - 2**20 < found[-1][0] < found[-1][1] == 1 << bits


@pytest.mark.parametrize("reach", [3, 20, 75])
def test_a_tail_that_is_a_hair_too_long_for_a_number_is_that_of_the_next(reach: int) -> None:
    """Chances for which the bound is `reach` and 2^-43 of it more: rounding must not cut that off."""
    with mpmath.workdps(40):
        longer = reach * (1 + mpmath.mpf(2) ** -43)
        ratio = mpmath.exp(-mpmath.mpf(1) / 7)
        laplace = float(2 * ratio**longer / (1 + ratio))
        normal = float(mpmath.erfc(longer / (7 * mpmath.sqrt(2))))
        both = float(2 * mpmath.exp(-(longer**2) / (2 * 2 * 49)))
    assert DiscreteLaplace(sensitivity=7, epsilon=Fraction(1)).tail(laplace) == reach
    assert DiscreteGaussian(sensitivity_squared=Fraction(49), rho=Fraction(1, 2)).tail(normal) == reach + 1
    whole = {"sensitivity_squared": Fraction(49), "parties": 2, "colluding": 1, "dimension": 1}
    share = GaussianShare(rho=Fraction(1, 2), **whole)  # type: ignore[arg-type]
    assert share.sigma_squared == 49
    if both <= 1:
        assert share.tail(both, 2) == reach + 1
        mu_squared = Fraction(49) / (49 - Fraction(1, 12))
        fine = FineGaussianShare(mu_squared=mu_squared, changed=1, fraction_bits=0, **whole)  # type: ignore[arg-type]
        assert fine.sigma_squared == 49
        assert fine.tail(both, 2) == reach + 1
