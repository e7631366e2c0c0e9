from fractions import Fraction
from itertools import islice

import mpmath
import pytest

from syndic.noise.interval import (
    _artanh,
    bell,
    bell_sum,
    complement,
    divide,
    exponential,
    logarithm,
    multiply,
    power,
    rescale,
)

BITS = 256


@pytest.fixture(autouse=True)
def precise() -> object:
    with mpmath.workprec(1200):
        yield


def encloses(found: tuple[int, int], value: object, bits: int, slack: int) -> bool:
    scaled = mpmath.mpf(value) * mpmath.mpf(2) ** bits
    return found[0] <= scaled <= found[1] and found[1] - found[0] <= slack


@pytest.mark.parametrize("bits", [64, 191, 256, 700])
@pytest.mark.parametrize("text", ["1/1000000007", "1/3", "1", "255/256", "7/2", "60", "177", "400", "100000"])
def test_exponential_encloses_mpmath(text: str, bits: int) -> None:
    exponent = Fraction(text)
    value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
    assert encloses(exponential(exponent, bits), value, bits, 2)


@pytest.mark.parametrize("bits", [1, 5, 40])
def test_exponential_is_enclosed_a_hair_beside_a_whole_number(bits: int) -> None:
    """No guard bits tell the side: whoever takes the wrong end of a sum somewhere is wrong here."""
    for whole in range(1, min(1 << bits, 40)):
        exact = -mpmath.log(mpmath.mpf(whole) / mpmath.mpf(2) ** bits)
        above = Fraction(int(mpmath.floor(exact * mpmath.mpf(2) ** 900)), 2**900)
        for exponent, least, most in [(above, whole, whole + 1), (above + Fraction(1, 2**900), whole - 1, whole)]:
            low, high = exponential(exponent, bits)
            assert low <= least < most <= high
            assert high - low <= 2


@pytest.mark.parametrize("bits", [8, 64])
def test_exponential_of_next_to_nothing_is_next_to_one(bits: int) -> None:
    """One term or two without any rounding, which would hide what is missing."""
    for place in range(1, 2 * bits + 90):
        for top in (1, 3):
            exponent = Fraction(top, 2**place)
            value = mpmath.exp(-mpmath.mpf(top) / mpmath.mpf(2) ** place)
            assert encloses(exponential(exponent, bits), value, bits, 2)


def test_exponential_of_zero_is_one() -> None:
    assert exponential(Fraction(0), 64) == (2**64, 2**64)


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(2, 3), Fraction(100), Fraction(10**5, 7)])
def test_bell_encloses_mpmath(variance: Fraction) -> None:
    for place, found in enumerate(islice(bell(variance, BITS), 300)):
        value = mpmath.exp(-mpmath.mpf(place**2 * variance.denominator) / (2 * variance.numerator))
        assert encloses(found, value, BITS, 10**6)


@pytest.mark.parametrize("start", [0, 1, 17, 5000])
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(2, 3), Fraction(900, 7)])
def test_bell_sum_encloses_mpmath(variance: Fraction, start: int) -> None:
    terms = (
        mpmath.exp(-mpmath.mpf(place**2) * variance.denominator / (2 * variance.numerator))
        for place in range(start, start + 600)
    )
    assert encloses(bell_sum(variance, start, BITS), mpmath.fsum(terms), BITS, 10**6)


@pytest.mark.parametrize("bits", [4, 9, 14, 20])
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(2, 3), Fraction(900, 7), Fraction(10**4)])
def test_bell_sum_holds_where_its_tail_is_most_of_it(variance: Fraction, bits: int) -> None:
    for start in (0, 1, 1 + int(5 * mpmath.sqrt(mpmath.mpf(float(variance))))):
        ratio = mpmath.mpf(variance.denominator) / (2 * variance.numerator)
        terms = (mpmath.exp(-ratio * place**2) for place in range(start, start + 9 * int(variance**0.5) + 99))
        low, high = bell_sum(variance, start, bits)
        assert low <= mpmath.fsum(terms) * mpmath.mpf(2) ** bits <= high
    assert bell_sum(Fraction(1, 100), 0, bits)[0] == 1 << bits


def test_power_encloses_exact_fractions() -> None:
    base = (Fraction(999, 1000) * 2**BITS).__floor__()
    found = power((base, base + 1), 12345, BITS)
    assert encloses(found, mpmath.mpf(999) ** 12345 / mpmath.mpf(1000) ** 12345, BITS, 10**6)


def test_quotient_of_unknown_numbers_is_still_enclosed() -> None:
    assert divide((0, 1), (0, 1), 64) == (0, 2**64)
    assert divide((0, 0), (0, 0), 64) == (0, 2**64)
    # only the upper end of the whole is needed for a lower end of the quotient
    assert divide((3, 3), (0, 4), 64) == (3 * 2**62, 2**64)
    assert divide((1, 1), (3, 3), 64) == (2**64 // 3, 2**64 // 3 + 1)


@pytest.mark.parametrize("bits", [64, 200])
@pytest.mark.parametrize(
    ("top", "bottom"), [(0, 3), (1, 2**62), (1, 2**63), (1, 2**63 + 1), (1, 2**64), (1, 1000), (1, 7), (1, 3)]
)
def test_artanh_is_enclosed_where_little_is_rounded_and_where_much_is(top: int, bottom: int, bits: int) -> None:
    """With one term or none the rounding of the terms leaves no room: what is left of the series must be added."""
    found = _artanh(top, bottom, bits)
    assert encloses(found, mpmath.atanh(mpmath.mpf(top) / bottom), bits, 300)
    assert found[1] >= found[0] + 2


@pytest.mark.parametrize("bits", [8, 64])
def test_logarithm_of_a_number_known_within_bounds_is_between_those_of_both_ends(bits: int) -> None:
    for low, high in [(1, 2), (3, 7), (2**bits // 5, 2**bits // 3), (2**bits - 3, 2**bits), (2**bits, 2**bits)]:
        least, most = (-mpmath.log(mpmath.mpf(end) / 2**bits) * 2**bits for end in (high, low))
        found = logarithm((low, high), bits)
        assert 0 <= found[0] <= least <= most <= found[1]
        assert least - found[0] <= 2
        assert found[1] - most <= 2


def test_operations_round_outwards_at_every_remainder() -> None:
    bits = 4
    for left in range(17):
        for right in range(1, 17):
            low, high = multiply((left, left), (right, right), bits)
            assert low * 16 <= left * right <= high * 16
            assert high - low == (left * right % 16 > 0)
            if left <= right:
                low, high = divide((left, left), (right, right), bits)
                assert low * right <= left * 16 <= high * right
                assert high - low == (left * 16 % right > 0)
        assert complement((left, min(16, left + 1)), bits) == (16 - min(16, left + 1), 16 - left)
        low, high = rescale((left, left), bits, 2)
        assert low * 4 <= left <= high * 4
        assert high - low == (left % 4 > 0)


def test_operations_on_numbers_known_within_bounds_use_the_outer_ends() -> None:
    assert multiply((3, 5), (7, 9), 4) == (21 >> 4, -(-45 >> 4))
    assert divide((3, 5), (7, 9), 4) == (3 * 16 // 9, -(-5 * 16 // 7))
    assert divide((0, 5), (0, 9), 4) == (0, 16)
    assert rescale((5, 11), 4, 2) == (1, 3)
    assert rescale((4, 8), 4, 2) == (1, 2)
    assert complement((3, 5), 4) == (11, 13)
    assert power((7, 9), 3, 4) == (multiply(multiply((7, 9), (7, 9), 4), (7, 9), 4))
