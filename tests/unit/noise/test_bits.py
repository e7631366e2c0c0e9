from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.noise.circuit_bits import WIDTH, BitNoise, gaussian_bits, laplace_bits

SCALES = [Fraction(1, 5), Fraction(1), Fraction(20, 3), Fraction(1000)]


@pytest.mark.parametrize("scale", [*SCALES, Fraction(10**9)])
def test_chances_of_the_bits_of_a_geometric_variable(scale: Fraction) -> None:
    noise = laplace_bits(scale)
    half = len(noise.thresholds) // 2
    assert noise.thresholds[:half] == noise.thresholds[half:]
    assert noise.sources == tuple(range(2 * half))
    assert noise.weights == (*(2**i for i in range(half)), *(-(2**i) for i in range(half)))
    with mpmath.workdps(80):
        for place, threshold in enumerate(noise.thresholds[:half]):
            power = mpmath.exp(-mpmath.mpf(2**place * scale.denominator) / scale.numerator)
            assert abs(power / (1 + power) - mpmath.mpf(threshold) / mpmath.mpf(2) ** WIDTH) <= mpmath.mpf(2) ** -WIDTH
        # all bits that are left out are together 1 with less than the distance allows for
        left = mpmath.nsum(lambda i: mpmath.exp(-mpmath.mpf(2**half) / scale.numerator * scale.denominator * i), [1, 9])
        assert 2 * left <= mpmath.mpf(noise.distance.numerator) / noise.distance.denominator


def law_of(noise: BitNoise) -> tuple[int, list[Fraction]]:
    """The exact law that the coins make, and its least value: sums of independent sources, by convolution."""
    law, start = [Fraction(1)], noise.offset
    one = Fraction(1, 2**WIDTH)
    for source in sorted(set(noise.sources)):
        places = [i for i, each in enumerate(noise.sources) if each == source]
        cuts = [Fraction(0), *(noise.thresholds[i] * one for i in places), Fraction(1)]
        masses = [high - low for low, high in pairwise(cuts)]
        weights = [noise.weights[i] for i in places]
        # u in [cut_j, cut_(j+1)) is below the thresholds j, j + 1, ...: their weights count
        values = [sum(weights[j:]) for j in range(len(places) + 1)]
        least = min(values)
        grown = [Fraction(0)] * (len(law) + max(values) - least)
        for value, mass in zip(values, masses, strict=True):
            for place, part in enumerate(law):
                grown[place + value - least] += part * mass
        law, start = grown, start + least
    return start, law


@pytest.mark.parametrize("scale", SCALES[:3])
def test_laplace_coins_are_within_their_distance_of_the_law(scale: Fraction) -> None:
    noise = laplace_bits(scale)
    # the upper bits make the support wide: enough to look at those below, the rest is in the test above
    start, law = law_of(noise) if len(noise.thresholds) <= 18 else law_of(lower_bits(noise, 7))
    with mpmath.workdps(80):
        ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        apart = mpmath.mpf(0)
        for place, mass in enumerate(law):
            exact = (1 - ratio) / (1 + ratio) * ratio ** abs(start + place)
            apart += abs(mpmath.mpf(mass.numerator) / mass.denominator - exact)
        dropped = 4 * ratio**128 if len(noise.thresholds) > 18 else 0
        assert apart / 2 <= mpmath.mpf(noise.distance.numerator) / noise.distance.denominator + dropped


def lower_bits(noise: BitNoise, count: int) -> BitNoise:
    half = len(noise.thresholds) // 2
    kept = [*range(count), *range(half, half + count)]
    return BitNoise(
        thresholds=tuple(noise.thresholds[i] for i in kept),
        sources=tuple(range(2 * count)),
        weights=tuple(noise.weights[i] for i in kept),
        offset=0,
        distance=noise.distance,
    )


@pytest.mark.parametrize("square", [Fraction(1, 4), Fraction(1), Fraction(17, 3)])
def test_narrow_gaussian_coins_are_within_their_distance_of_the_law(square: Fraction) -> None:
    noise = gaussian_bits(square)
    start, law = law_of(noise)
    assert start == -noise.offset
    with mpmath.workdps(80):
        width = 2 * mpmath.mpf(square.numerator) / square.denominator
        weights = [mpmath.exp(-mpmath.mpf((start + place) ** 2) / width) for place in range(len(law))]
        whole = mpmath.jtheta(3, 0, mpmath.exp(-1 / width))
        apart = mpmath.fsum(
            abs(mpmath.mpf(mass.numerator) / mass.denominator - weight / whole)
            for mass, weight in zip(law, weights, strict=True)
        )
        assert apart / 2 <= mpmath.mpf(noise.distance.numerator) / noise.distance.denominator


@pytest.mark.parametrize("square", [Fraction(499), Fraction(501), Fraction(12_345), Fraction(10**6)])
def test_wide_gaussian_is_a_sum_of_digits_with_the_law_of_the_whole(square: Fraction) -> None:
    noise = gaussian_bits(square)
    chances = np.array([float(Fraction(each, 2**WIDTH)) for each in noise.thresholds])
    sources, weights = np.array(noise.sources), np.array(noise.weights)
    law: NDArray[np.float64] = np.ones(1)
    for source in range(sources.max() + 1):
        own = sources == source
        step = -int(weights[own][0])
        digit = np.diff(np.concatenate([[0.0], chances[own], [1.0]]))
        spread = np.zeros((digit.size - 1) * step + 1)
        spread[::step] = digit
        law = np.convolve(law, spread)
    places = np.arange(law.size) - noise.offset
    exact = np.exp(-(places.astype(np.float64) ** 2) / (2 * float(square)))
    assert np.abs(law - exact / exact.sum()).max() < 1e-15
    assert noise.sources[-1] == (0 if square < 500 else 1 if square < 5000 else sources.max())


def test_coins_a_value_grow_with_the_logarithm_of_the_width() -> None:
    assert len(laplace_bits(Fraction(10**6)).thresholds) == len(laplace_bits(Fraction(10**3)).thresholds) + 20
    assert len(gaussian_bits(Fraction(10**12)).thresholds) < 2500


@pytest.mark.parametrize("scale", [*SCALES, Fraction(10**9)])
def test_the_distance_of_laplace_coins_counts_every_rounding_and_what_is_left_out(scale: Fraction) -> None:
    """It is paid with delta. A unit for each coin, two for the bits above, in each of two variables."""
    noise = laplace_bits(scale)
    assert noise.distance == Fraction(len(noise.thresholds) + 4, 2**WIDTH)


@pytest.mark.parametrize("square", [Fraction(1, 4), Fraction(499), Fraction(501), Fraction(12_345), Fraction(10**6)])
def test_the_distance_of_gaussian_coins_counts_every_rounding_digit_and_tail(square: Fraction) -> None:
    """Two units for each threshold, and six for each digit: its two tails, and the ratio of below 2^-138."""
    noise = gaussian_bits(square)
    digits = len(set(noise.sources))
    assert noise.distance == Fraction(2 * len(noise.thresholds) + 6 * digits, 2**WIDTH)


@pytest.mark.parametrize("square", [Fraction(1, 4), Fraction(17, 3), Fraction(50), Fraction(499)])
def test_thresholds_of_gaussian_coins_are_the_chances_to_one_unit(square: Fraction) -> None:
    """And no threshold is 2^128: where it is compared with 128 bits that would be nothing at all."""
    noise = gaussian_bits(square)
    reach = noise.offset
    with mpmath.workdps(80):
        half = mpmath.mpf(square.denominator) / (2 * square.numerator)
        weights = [mpmath.exp(-half * place**2) for place in range(-3 * reach, 3 * reach + 1)]
        whole, below = mpmath.fsum(weights), mpmath.fsum(weights[: 2 * reach])
        for place, threshold in enumerate(noise.thresholds):
            # F(place - reach)
            below += weights[2 * reach + place]
            assert 0 <= threshold < 2**128
            assert abs(below / whole * 2**128 - threshold) <= mpmath.mpf("1.001")
