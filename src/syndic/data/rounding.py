"""Round numbers for bounds of columns and of numbers of people: values just beyond those that rows have."""

import datetime
import math
from fractions import Fraction
from typing import Final

_STEPS: Final = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(10))
_GRIDS: Final = (Fraction(1), Fraction(2), Fraction(5), Fraction(10))
# a linear range has about so many steps, so that a bound moves by a few per cent
_STEPS_OF_A_RANGE: Final = 20


def round_up(number: float | Fraction, steps: tuple[Fraction, ...] = _STEPS) -> Fraction:
    """Return the smallest of 1, 1.5, 2, 3 and 5 times a power of ten that is not below a positive number."""
    exact = Fraction(number)
    power = _power_of_ten(exact)
    return next(step * power for step in steps if step * power >= exact)


def round_down(number: float) -> Fraction:
    """Return the largest of 1, 1.5, 2, 3 and 5 times a power of ten that is not above a positive number."""
    exact = Fraction(number)
    power = _power_of_ten(exact)
    return max(step * power for step in _STEPS if step * power <= exact)


def round_bounds(lower: float, upper: float, *, whole: bool) -> tuple[Fraction, Fraction]:
    """Return bounds around a range, on a grid of round steps; steps of whole numbers are at least 1."""
    step = round_up((Fraction(upper) - Fraction(lower)) / _STEPS_OF_A_RANGE, _GRIDS) if upper > lower else Fraction(1)
    if whole:
        step = Fraction(max(1, math.ceil(step)))
    first, last = math.floor(Fraction(lower) / step), math.ceil(Fraction(upper) / step)
    return first * step, max(last, first + (not whole)) * step


def round_days(lower: datetime.date, upper: datetime.date) -> tuple[datetime.date, datetime.date]:
    """Return the first and last day of whole years around a range of days, of whole months if it is short."""
    if (upper - lower).days > 366:
        return datetime.date(lower.year, 1, 1), datetime.date(upper.year, 12, 31)
    following = datetime.date(upper.year + upper.month // 12, upper.month % 12 + 1, 1) if upper.year < 9999 else None
    last = datetime.date(9999, 12, 31) if following is None else following - datetime.timedelta(days=1)
    return lower.replace(day=1), last


def _power_of_ten(number: Fraction) -> Fraction:
    """Return the largest power of ten that is not above a positive number."""
    power = Fraction(10) ** (len(str(number.numerator)) - len(str(number.denominator)))
    while power > number:
        power /= 10
    while power * 10 <= number:
        power *= 10
    return power
