"""Real numbers in fixed point, enclosed between two integers.

`(low, high)` at precision `bits` stands for a real number x with low <= x * 2^bits <= high. Every operation
rounds outwards, so an enclosure is a proof; only Python's unbounded integers take part.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

Enclosure = tuple[int, int]


def complement(value: Enclosure, bits: int) -> Enclosure:
    """Enclose 1 - value."""
    return (1 << bits) - value[1], (1 << bits) - value[0]


def multiply(left: Enclosure, right: Enclosure, bits: int) -> Enclosure:
    """Enclose the product of two numbers that are not negative."""
    return left[0] * right[0] >> bits, -(-left[1] * right[1] >> bits)


def divide(part: Enclosure, whole: Enclosure, bits: int) -> Enclosure:
    """Enclose part / whole, known to lie in [0, 1]."""
    one = 1 << bits
    low = max(0, (part[0] << bits) // whole[1]) if whole[1] > 0 else 0
    high = min(one, -((-part[1] << bits) // whole[0])) if whole[0] > 0 else one
    return min(low, one), high


def rescale(value: Enclosure, bits: int, to: int) -> Enclosure:
    """Round outwards to fewer bits."""
    return value[0] >> (bits - to), -(-value[1] >> (bits - to))


def power(base: Enclosure, exponent: int, bits: int) -> Enclosure:
    """Enclose base^exponent for a base in [0, 1]."""
    result = (1 << bits, 1 << bits)
    while exponent:
        if exponent & 1:
            result = multiply(result, base, bits)
        base = multiply(base, base, bits)
        exponent >>= 1
    return result


@lru_cache(maxsize=4096)
def exponential(exponent: Fraction, bits: int) -> Enclosure:
    """Enclose exp(-exponent) for an exponent that is not negative.

    The series of exp(-y), y = exponent / 2^halvings < 1/256, alternates with falling terms: two neighbouring
    partial sums enclose it. Squaring `halvings` times costs about as many bits, which the guard bits absorb.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent > bits:  # exp(-bits) < 2^-bits
        return 0, 1
    halvings = max(0, (exponent.numerator // exponent.denominator).bit_length() + 8)
    work = bits + 2 * halvings + 32
    top, bottom = exponent.numerator, exponent.denominator << halvings
    total: Enclosure = (1 << work, 1 << work)
    term: Enclosure = total
    step = 0
    while term[1] > 1 and step < work:
        step += 1
        term = term[0] * top // (bottom * step), -(-term[1] * top // (bottom * step))
        total = (total[0] - term[1], total[1] - term[0]) if step & 1 else (total[0] + term[0], total[1] + term[1])
    # the rest of the series is smaller than its last term
    value: Enclosure = (max(0, total[0] - term[1]), min(1 << work, total[1] + term[1]))
    for _ in range(halvings):
        value = multiply(value, value, work)
    return rescale(value, work, bits)


def bell(variance: Fraction, bits: int) -> Iterator[Enclosure]:
    """Enclose exp(-j^2 / (2 variance)) for j = 0, 1, 2, ..."""
    value: Enclosure = (1 << bits, 1 << bits)
    ratio = exponential(1 / (2 * variance), bits)
    shrink = exponential(1 / variance, bits)
    while True:
        yield value
        value = multiply(value, ratio, bits)
        ratio = multiply(ratio, shrink, bits)


@lru_cache(maxsize=256)
def bell_sum(variance: Fraction, start: int, bits: int) -> Enclosure:
    """Enclose the sum of exp(-j^2 / (2 variance)) over all j >= start (start >= 0)."""
    low = high = 0
    for step, value in enumerate(bell(variance, bits)):
        if value[0] == 0:
            ratio = exponential(Fraction(2 * step + 1) / (2 * variance), bits)[1]
            if ratio < 1 << bits:
                # ratios fall from here on, so a geometric series bounds this term and all later ones
                return low, high - (-value[1] << bits) // ((1 << bits) - ratio)
        if step >= start:
            low, high = low + value[0], high + value[1]
    raise AssertionError  # `bell` has no end


def logarithm(value: Enclosure, bits: int) -> Enclosure:
    """Enclose -log(value) for a value in (0, 1].

    value = m 2^-shift with m in [1, 2), and log m = 2 artanh(z) for z = (m - 1) / (m + 1) in [0, 1/3).
    """
    low, high = (_logarithm_of_whole(end, bits) for end in (value[1], value[0]))
    return max(0, low[0]), high[1]


def _logarithm_of_whole(whole: int, bits: int) -> Enclosure:
    """Enclose -log(whole / 2^bits) for 0 < whole <= 2^bits."""
    shift = bits - (whole.bit_length() - 1)
    work = bits + 32
    top = whole << shift  # m 2^bits
    rest = _artanh(top - (1 << bits), top + (1 << bits), work)
    two = _artanh(1, 3, work)
    return rescale((2 * (shift * two[0] - rest[1]), 2 * (shift * two[1] - rest[0])), work, bits)


@lru_cache(maxsize=64)
def _artanh(top: int, bottom: int, bits: int) -> Enclosure:
    """Enclose artanh(top / bottom) for 0 <= top / bottom <= 1/3 by its series, whose terms fall by 9 or more."""
    power: Enclosure = ((top << bits) // bottom, -((-top << bits) // bottom))
    square = multiply(power, power, bits)
    low = high = 0
    step = 1
    while power[1] > 1:
        low, high = low + power[0] // step, high - (-power[1] // step)
        power = multiply(power, square, bits)
        step += 2
    # the rest is at most 1 + 1/9 + 1/81 + ... < 2 units
    return low, high + 2
