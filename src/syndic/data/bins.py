"""Bins of columns with bounds: their edges on a linear or logarithmic scale, draws from them, and round bounds."""

import calendar
import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 2**24
MOST_SCALED_BINS = 2**16
FINE_BINS = 64
"""Number of bins of a real column, or of one on a logarithmic scale, if the study does not set it."""

T = TypeVar("T", np.int64, np.float64)
Scale = Literal["linear", "log", "symlog"]
# "symlog" is linear up to this share of the larger bound, and logarithmic beyond
_LINEAR_SHARE = 1e-4


def _onto_scale(
    numbers: NDArray[Any] | tuple[float, float], bounds: tuple[float, float], scale: Scale
) -> NDArray[np.float64]:
    """Return numbers on a scale on which bins have equal width."""
    places = np.asarray(numbers, dtype=np.float64)
    if scale == "linear":
        return places
    return np.asarray(np.log(places) if scale == "log" else np.arcsinh(places / _linear_part(bounds)), np.float64)


def _off_scale(places: NDArray[np.float64], bounds: tuple[float, float], scale: Scale) -> NDArray[np.float64]:
    if scale == "linear":
        return places
    return np.asarray(np.exp(places) if scale == "log" else np.sinh(places) * _linear_part(bounds), np.float64)


def _linear_part(bounds: tuple[float, float]) -> float:
    return _LINEAR_SHARE * max(abs(bounds[0]), abs(bounds[1]))


def draw_between(
    low: NDArray[Any], high: NDArray[Any], bounds: tuple[float, float], scale: Scale, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a number from each bin, uniform on the scale."""
    begin, end = (_onto_scale(one, bounds, scale) for one in (low, high))
    return _off_scale(begin + generator.random(len(begin)) * (end - begin), bounds, scale)


@lru_cache(maxsize=256)
def whole_edges(lower: int, count: int, bins: int, scale: Scale) -> NDArray[np.int64]:
    """Return the first whole number of every bin, then the one after the last."""
    # i * count // bins without overflow: bins and count are below 2^32 and 2^54
    places = np.arange(bins + 1, dtype=np.int64)
    edges = lower + places * (count // bins) + places * (count % bins) // bins
    if scale != "linear":
        bounds = (float(lower), float(lower + count))
        begin, end = _onto_scale(bounds, bounds, scale)
        near = np.rint(_off_scale(np.linspace(begin, end, bins + 1), bounds, scale)).astype(np.int64)
        edges = np.unique(np.clip(np.append(near, (lower, lower + count)), lower, lower + count))
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=256)
def given_edges(given: tuple[float, ...], kind: type[T]) -> NDArray[T]:
    """Return the declared edges."""
    edges = np.array(given, dtype=kind)
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=256)
def real_edges(lower: float, upper: float, bins: int, scale: Scale) -> NDArray[np.float64]:
    """Return the edges of bins of equal width on a scale."""
    bounds = (lower, upper)
    begin, end = _onto_scale(bounds, bounds, scale)
    edges = _off_scale(np.linspace(begin, end, bins + 1), bounds, scale)
    edges[0], edges[-1] = bounds
    edges.flags.writeable = False
    return edges


def apart(numbers: Sequence[float], digits: int) -> list[str]:
    """Return increasing numbers to so many digits, or to as many more as make all texts different."""
    for more in range(digits, 17):
        texts = [f"{one:.{more}g}" for one in numbers]
        if len(set(texts)) == len(texts):
            return texts
    return [f"{one:.17g}" for one in numbers]


_STEPS: Final = tuple(map(Fraction, ("1", "1.5", "2", "3", "5", "10")))
_GRIDS: Final = tuple(map(Fraction, (1, 2, 5, 10)))
# a range has about so many steps, so that a bound moves by a few per cent; days of a month stay as they are
_STEPS_OF_A_RANGE: Final = 32


def round_up(number: float | Fraction, steps: tuple[Fraction, ...] = _STEPS) -> Fraction:
    """Return the smallest of 1, 1.5, 2, 3 and 5 times a power of ten that is not below a positive number."""
    return next(found for step in steps if (found := step * _power_of_ten(number)) >= number)


def round_down(number: float) -> Fraction:
    """Return the largest of 1, 1.5, 2, 3 and 5 times a power of ten that is not above a positive number."""
    return max(found for step in _STEPS if (found := step * _power_of_ten(number)) <= number)


def _power_of_ten(number: float | Fraction) -> Fraction:
    numerator, denominator = number.as_integer_ratio()
    return Fraction(10) ** (Decimal(numerator) / denominator).adjusted()


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
    return lower.replace(day=1), upper.replace(day=calendar.monthrange(upper.year, upper.month)[1])
