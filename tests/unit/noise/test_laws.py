"""Distribution functions are enclosed at every precision: at a few bits one unit too little shows."""

from collections.abc import Callable
from fractions import Fraction
from itertools import islice

import mpmath
import pytest

from syndic.noise.gaussian import _half_bell
from syndic.noise.inverse_cdf import Law, LazyTable
from syndic.noise.laplace import _magnitudes
from syndic.noise.poisson import _block_law, _jump_rate, _poisson_table, poisson


def laplace(scale: Fraction) -> tuple[LazyTable, Callable[[int], mpmath.mpf]]:
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return _magnitudes(scale), lambda k: 1 - 2 * ratio ** (k + 1) / (1 + ratio)


def bell(square: Fraction, sides: int) -> tuple[LazyTable, Callable[[int], mpmath.mpf]]:
    def weight(k: int) -> mpmath.mpf:
        return mpmath.exp(-mpmath.mpf(k * k * square.denominator) / (2 * square.numerator)) * (sides if k else 1)

    whole = mpmath.fsum(weight(k) for k in range(400))
    return _half_bell(square, sides), lambda k: mpmath.fsum(weight(j) for j in range(k + 1)) / whole


@pytest.mark.parametrize("bits", [5, 8, 12, *range(66, 72)])
def test_laplace_and_gaussian_laws_are_enclosed(bits: int) -> None:
    with mpmath.workdps(60):
        laws = [laplace(Fraction(n, 7)) for n in (1, 2, 5, 9, 16, 40, 101)]
        laws += [bell(Fraction(n, 7), sides) for n in (1, 3, 10, 31, 90) for sides in (1, 2)]
        for table, exact in laws:
            for place, (low, high) in enumerate(islice(table._law(bits), 40)):
                assert low <= exact(place) * 2**bits <= high
                assert high - low <= 2**12


def counting(rate: Fraction) -> tuple[Law, Callable[[int], mpmath.mpf]]:
    return _poisson_table(rate)._law, _poisson_distribution(mpmath.mpf(rate.numerator) / rate.denominator)


def jumping(scale: Fraction, shares: int) -> tuple[Law, Callable[[int], mpmath.mpf]]:
    mean = -2 * mpmath.log(1 - mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)) / shares
    return poisson(lambda bits: _jump_rate(scale, shares, bits)), _poisson_distribution(mean)


def _poisson_distribution(mean: mpmath.mpf) -> Callable[[int], mpmath.mpf]:
    return lambda k: mpmath.exp(-mean) * mpmath.fsum(mean**j / mpmath.factorial(j) for j in range(k + 1))


def blocks(scale: Fraction) -> tuple[Law, Callable[[int], mpmath.mpf]]:
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    whole = mpmath.fsum(ratio ** (2**i) for i in range(30))
    return _block_law(scale), lambda k: mpmath.fsum(ratio ** (2**i) for i in range(min(k + 1, 30))) / whole


@pytest.mark.parametrize("bits", [4, 6, 7, 9, 12, 16, 70])
def test_laws_of_jumps_and_their_numbers_are_enclosed(bits: int) -> None:
    """Few bits: there, what is left out of a sum is as large as what is in it."""
    with mpmath.workdps(60):
        laws = [counting(Fraction(n, 7)) for n in (1, 7, 20, 21, 90, 700)]
        laws += [jumping(Fraction(n, 3), shares) for n in (1, 5, 60) for shares in (1, 3)]
        laws += [blocks(Fraction(n, 7)) for n in (2, 12, 27, 108, 140)]
        for law, exact in laws:
            for place, (low, high) in enumerate(islice(law(bits), 40)):
                assert low <= exact(place) * 2**bits <= high
