"""Ends of what is allowed and bounds that must not be missed: where one step further protects nobody."""

import math
from fractions import Fraction
from itertools import islice, pairwise
from math import inf

import mpmath
import pytest

from syndic.mechanism import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GaussianShare,
    LaplaceShare,
    RandomisedResponse,
    ReportNoisyMax,
    SkellamShare,
)
from syndic.mechanism.exact import Law
from syndic.mechanism.poisson import _block_law, _weights, poisson
from syndic.mechanism.shares import log_ratio
from syndic.mechanism.skellam import skellam_rho

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
    """What `syndic.mechanism.skellam` derives, once more: the least over orders at which two bounds meet."""
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


@pytest.mark.parametrize("variance", [12.0, 100.0, 3000.0])
@pytest.mark.parametrize(("sensitivity", "square"), [(1, 1.0), (5, 5.0), (60, 4.0), (5, 25.0)])
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


@pytest.mark.parametrize("bits", [64, 200])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(3), Fraction(57, 2)])
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


@pytest.mark.parametrize("law", [poisson(lambda bits: (3 << bits, 3 << bits)), _block_law(Fraction(20, 3))])
def test_a_law_goes_on_after_its_last_weight_with_all_that_may_be_left(law: Law) -> None:
    """Whoever asks for more gets enclosures that hold: from what is sure so far up to 1."""
    bits = 64
    found = list(islice(law(bits), 200))
    assert all(low <= high for low, high in found)
    assert all(one[0] <= other[0] for one, other in pairwise(found))
    assert found[-1] == found[-2]
    assert (1 << bits) - 2**20 < found[-1][0] <= found[-1][1] == 1 << bits
