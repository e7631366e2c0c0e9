from fractions import Fraction
from math import sqrt

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from syndic.errors import InputError
from syndic.privacy.concentrated import rho_for, zcdp_epsilon

PAIRS = [
    (Fraction(rho), Fraction(delta))
    for rho in (
        "1/1000000000000",
        "1/1000000",
        "1/1000",
        "1/20",
        "1",
        "30",
        "1000",
        "1000000/7",
        "12345678/11",
        "31415926/3",
    )
    for delta in ("1/2", "1/100", "1/100000", "1/1000000000", "1/1000000000000000000000000000000")
]


def tight(rho: Fraction, delta: Fraction) -> mpmath.mpf:
    """The smallest value over all orders, by ternary search over log(a - 1) with fifty digits."""
    with mpmath.workdps(50):
        r, tail = (
            mpmath.mpf(rho.numerator) / rho.denominator,
            mpmath.log(delta.denominator) - mpmath.log(delta.numerator),
        )

        def value(t: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.exp(t)
            return a * r + mpmath.log(1 - 1 / a) + (tail - mpmath.log(a)) / (a - 1)

        low, high = mpmath.mpf(-20), mpmath.mpf(25)
        for _ in range(300):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if value(left) < value(right) else (left, high)
        return max(mpmath.mpf(0), value(low))


@pytest.mark.parametrize(("rho", "delta"), PAIRS)
def test_epsilon_is_the_tight_bound_rounded_up(rho: Fraction, delta: Fraction) -> None:
    bound, epsilon = tight(rho, delta), zcdp_epsilon(rho, delta)
    with mpmath.workdps(50):
        excess = mpmath.mpf(epsilon.numerator) / epsilon.denominator - bound
    assert 0 <= excess <= 2e-12 + 1e-12 * bound


@pytest.mark.parametrize("digits", range(40_000, 40_004))
def test_a_delta_of_very_long_fractions_costs_no_less(digits: int) -> None:
    """Its logarithm is the difference of two large ones, whose errors are larger than 1e-12 here."""
    delta = Fraction(10**digits + 1, 10 ** (digits + 6))
    bound, epsilon = tight(Fraction(1), delta), zcdp_epsilon(Fraction(1), delta)
    with mpmath.workdps(50):
        excess = mpmath.mpf(epsilon.numerator) / epsilon.denominator - bound
    assert 0 <= excess <= 1e-6


@pytest.mark.parametrize(("rho", "delta"), [(0.001, 1e-5), (0.05, 1e-6), (1.0, 1e-9), (7.0, 1e-4)])
def test_epsilon_agrees_with_the_accounting_library(rho: float, delta: float) -> None:
    orders = 1 + np.exp(np.linspace(np.log(0.02), np.log(1e4), 20_000))
    published, _ = compute_epsilon(list(orders), list(rho * orders), delta)
    assert float(zcdp_epsilon(Fraction(rho), Fraction(delta))) == pytest.approx(published, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [("0.4", "1e-5", 9.43), ("1", "1e-5", 4.05), ("1", "1e-6", 4.53), ("4", "1e-6", 1.27)],
)
def test_noise_is_that_of_the_published_table(epsilon: str, delta: str, sigma: float) -> None:
    rho = rho_for(Fraction(epsilon), Fraction(delta))
    assert sqrt(1 / (2 * rho)) == pytest.approx(sigma, abs=0.005)


@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "20"])
@pytest.mark.parametrize("delta", ["1/10", "1/1000000", "1/1000000000000"])
def test_rho_for_is_the_largest_that_fits(epsilon: str, delta: str) -> None:
    rho = rho_for(Fraction(epsilon), Fraction(delta))
    step = Fraction(1, 10**12)
    assert (rho / step).denominator == 1
    assert tight(rho, Fraction(delta)) <= mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
    # one part in a million more does not fit, by the independent formula
    more = rho + max(rho / 10**6, 2 * step)
    assert tight(more, Fraction(delta)) > float(Fraction(epsilon))
    assert zcdp_epsilon(rho + step, Fraction(delta)) > Fraction(epsilon)


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(InputError, match=r"delta \(0\) must be in \(0, 1\)"):
        zcdp_epsilon(Fraction(1), Fraction(0))
    with pytest.raises(InputError, match=r"delta \(2\) must be in \(0, 1\)"):
        rho_for(Fraction(1), Fraction(2))
    with pytest.raises(InputError, match=r"epsilon \(0\) must be positive"):
        rho_for(Fraction(0), Fraction(1, 10))
    with pytest.raises(InputError, match=r"rho \(-1\) must not be negative"):
        zcdp_epsilon(Fraction(-1), Fraction(1, 10))
    assert zcdp_epsilon(Fraction(0), Fraction(1, 10)) == 0


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(3, 2), Fraction(-1, 2)])
def test_a_delta_is_between_0_and_1(delta: Fraction) -> None:
    with pytest.raises(InputError, match="delta"):
        zcdp_epsilon(Fraction(1), delta)
    with pytest.raises(InputError, match="delta"):
        rho_for(Fraction(1), delta)


def test_a_budget_too_small_for_any_noise_that_is_counted_gets_none() -> None:
    """1e-12, the least rho that a ledger counts, costs an epsilon of some millionths."""
    delta = Fraction(1, 10**12)
    least = zcdp_epsilon(Fraction(1, 10**12), delta)
    assert 0 < least < Fraction(1, 10**5)
    assert rho_for(least, delta) >= Fraction(1, 10**12)
    assert rho_for(least - Fraction(1, 10**12), delta) == 0
