"""Distribution functions are enclosed at every precision: at a few bits one unit too little shows."""

from collections.abc import Callable
from fractions import Fraction
from itertools import islice

import mpmath
import pytest

from syndic.mechanism.exact import LazyTable
from syndic.mechanism.gaussian import _half_bell
from syndic.mechanism.laplace import _magnitudes


def laplace(scale: Fraction) -> tuple[LazyTable, Callable[[int], mpmath.mpf]]:
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return _magnitudes(scale), lambda k: 1 - 2 * ratio ** (k + 1) / (1 + ratio)


def bell(square: Fraction, sides: int) -> tuple[LazyTable, Callable[[int], mpmath.mpf]]:
    def weight(k: int) -> mpmath.mpf:
        return mpmath.exp(-mpmath.mpf(k * k * square.denominator) / (2 * square.numerator)) * (sides if k else 1)

    whole = mpmath.fsum(weight(k) for k in range(400))
    return _half_bell(square, sides), lambda k: mpmath.fsum(weight(j) for j in range(k + 1)) / whole


@pytest.mark.parametrize("bits", range(66, 72))
def test_laplace_and_gaussian_laws_are_enclosed(bits: int) -> None:
    with mpmath.workdps(60):
        laws = [laplace(Fraction(n, 7)) for n in (1, 2, 5, 9, 16, 40, 101)]
        laws += [bell(Fraction(n, 7), sides) for n in (1, 3, 10, 31, 90) for sides in (1, 2)]
        for table, exact in laws:
            for place, (low, high) in enumerate(islice(table._law(bits), 40)):
                assert low <= exact(place) * 2**bits <= high
                assert high - low <= 2**12
