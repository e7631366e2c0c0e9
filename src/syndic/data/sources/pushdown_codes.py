"""Codes of a schema as ibis expressions, for values that an engine compares as this package does.

Numbers are compared as 64-bit floats and dates by their day, with the very edges of the schema. A border is written as
text and cast by the engine to the column's own type, because a number in a statement may be a decimal first. Texts and
other values that need interpretation are fetched once for each combination that occurs, and are coded in Python.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import ibis
import numpy as np

from syndic.data.column import Boolean, Categorical, Listed
from syndic.data.ranged import Date, Integer, Real
from syndic.data.reading import FIRST_DAY, LAST_DAY
from syndic.data.schema import Column

# a search of eight steps; with more borders a statement takes longer to write than to run
MOST_BORDERS = 255
MANY_BORDERS = 127
MOST_STEPS = 2**20
MOST_LISTED = 32

_FIRST, _AFTER = (np.datetime64(day, "D") for day in (FIRST_DAY, LAST_DAY + 1))

Bounded = Integer | Real | Date
Reaches = Callable[[float], Any]


@final
@dataclass(frozen=True, eq=False)
class Grouped:
    """What the engine groups a column by: its codes, or where `raw` its values, which are coded at home."""

    expression: Any
    raw: bool


def grouped(column: Column, value: Any, engine: str, *, tidy: bool = False) -> Grouped | None:
    """Return what to group by; None where the engine's values can only be read by streaming them.

    `tidy` supposes that whole numbers are those of the schema: then the values themselves make as few groups as codes
    would, and an engine need not compute anything for each row.
    """
    kind = value.type()
    code = None if tidy and _is_whole(column, kind) else _code(column, value, engine)
    if code is not None:
        return Grouped(code.cast("int64"), raw=False)
    if kind.is_string():
        return Grouped(_bytes(value, engine), raw=True)
    if kind.is_decimal():
        return Grouped(value.cast("string"), raw=True)
    if kind.is_numeric() or kind.is_boolean() or kind.is_date() or kind.is_timestamp():
        return Grouped(value, raw=True)
    return None


def _is_whole(column: Column, kind: Any) -> bool:
    if isinstance(column, Integer) and column.levels < column.upper - column.lower + 1:
        return False
    return bool(kind.is_boolean() or kind.is_integer()) and not isinstance(column, Real | Date)


def _code(column: Column, value: Any, engine: str) -> Any | None:
    kind = value.type()
    if kind.is_decimal():
        return _of_decimal(column, value, engine) if isinstance(column, Integer | Real) else None
    if kind.is_boolean():
        # PostgreSQL does not cast booleans to numbers implicitly
        return _of_number(column, ibis.cases((value, 1), (~value, 0)))
    if kind.is_integer() or kind.is_floating():
        return _of_number(column, value)
    if kind.is_date() or kind.is_timestamp():
        return _of_time(column, value)
    return None


def _of_number(column: Column, value: Any) -> Any | None:
    number = value.cast("float64")
    missing = number.isnull() | number.isnan() if value.type().is_floating() else value.isnull()
    if isinstance(column, Date):
        return ibis.literal(column.missing_code)
    if isinstance(column, Boolean):
        return _chosen(number, {0.0: 0, 1.0: 1}, missing, column.missing_code, column.missing_code)
    if isinstance(column, Listed):
        keys = {key: code for key, code in column.lookup().items() if isinstance(key, float)}
        # numbers are cut as texts, at home
        few = len(keys) <= MOST_LISTED and not (isinstance(column, Categorical) and column.prefix)
        return _chosen(number, keys, missing, column.missing_code, column.outside_code) if few else None
    if isinstance(column, Integer) and column.levels == column.upper - column.lower + 1:
        return _each_integer(column, number, missing)
    if isinstance(column, Real) and MANY_BORDERS < column.levels <= MOST_STEPS:
        return _each_step(column, number, missing)
    return _searched(column, lambda border: number >= _float(border), missing)


def _of_decimal(column: Integer | Real, value: Any, engine: str) -> Any | None:
    """Compare decimals among themselves: engines differ in how they round one to a float."""
    kind = value.type()
    if kind.precision is None or kind.scale is None:
        return None
    missing = value.isnull()
    if engine == "postgres":
        missing |= value.cast("string") == "NaN"

    def reaches(border: float) -> Any:
        least = _least_decimal(border, kind.scale)
        if abs(least) >= 10**kind.precision:
            return ibis.literal(least < 0)
        digits = f"{abs(least):0{kind.scale + 1}d}"
        point = len(digits) - kind.scale
        return value >= ibis.literal(f"{'-' if least < 0 else ''}{digits[:point]}.{digits[point:]}").cast(kind)

    return _searched(column, reaches, missing)


def _least_decimal(border: float, scale: int) -> int:
    """Return the least k for which k / 10^scale, rounded to a float, is not below the border."""
    below = math.nextafter(border, -math.inf)
    least: int = math.ceil((Fraction(below) + Fraction(border)) / 2 * 10**scale)
    # halfway between two floats it is the even one
    return least + int(float(Fraction(least, 10**scale)) < border)


def _of_time(column: Column, value: Any) -> Any | None:
    kind = value.type()
    if isinstance(column, Boolean | Integer | Real):
        return ibis.literal(column.missing_code)
    # finer clocks end in the year 2262, before some borders
    if not isinstance(column, Date) or (kind.is_timestamp() and (kind.scale or 0) > 6):
        return None
    zoned = kind.is_timestamp() and kind.timezone is not None
    if zoned and column.zone != "UTC":
        return None  # a clock that is put back shows an hour twice

    def at(moment: Any, fraction: str = "") -> Any:
        # a date is its midnight: it reaches a later time on the next day
        text = str(moment.astype("datetime64[s]") + (86_399 if kind.is_date() and not fraction else 0))
        clock = f" {text[11:]}{fraction}{'+00:00' if zoned else ''}"
        return ibis.literal(text[:10] + ("" if kind.is_date() else clock)).cast(kind)

    def reaches(border: float) -> Any:
        moment = np.int64(border).astype(column.clock)
        return value >= at(moment) if moment < _AFTER else ibis.literal(value=False)

    missing = value.isnull() | (value < at(_FIRST)) | (value > at(_AFTER - np.timedelta64(1, "s"), ".999999"))
    return _searched(column, reaches, missing)


def _searched(column: Bounded, reaches: Reaches, missing: Any) -> Any | None:
    """Return how many inner borders a value reaches."""
    if column.levels - 1 > MOST_BORDERS:
        return None
    return _bounded(column, reaches, missing, _halved(column.borders(), 0, reaches))


def _halved(borders: Sequence[float], first: int, reaches: Reaches) -> Any:
    if not borders:
        return ibis.literal(first)
    middle = len(borders) // 2
    above = _halved(borders[middle + 1 :], first + middle + 1, reaches)
    return ibis.ifelse(reaches(borders[middle]), above, _halved(borders[:middle], first, reaches))


def _bounded(column: Bounded, reaches: Reaches, missing: Any, code: Any) -> Any:
    if column.outside == "missing":
        missing = missing | ~reaches(column.lowest()) | reaches(column.beyond())
    return ibis.ifelse(missing, column.missing_code, code)


def _each_integer(column: Integer, number: Any, missing: Any) -> Any:
    lower, upper = _float(column.lower), _float(column.upper)
    # NaN cannot be cast to an integer, and an engine may try before it filters missing values
    inside = ibis.ifelse(missing | (number < lower), lower, ibis.ifelse(number > upper, upper, number))
    code = inside.floor().cast("int64") - column.lower
    return _bounded(column, lambda border: number >= _float(border), missing, code)


def _each_step(column: Real, number: Any, missing: Any) -> Any | None:
    """Return the bin by division, put right by its own borders; None where those are no multiples of a step."""
    step, lower, upper = (column.upper - column.lower) / column.levels, _float(column.lower), _float(column.upper)
    if column.borders() != (np.arange(1, column.levels) * step + column.lower).tolist():
        return None
    inside = ibis.ifelse(missing | (number < lower), lower, ibis.ifelse(number > upper, upper, number))
    guess = ((inside - lower) / _float(step)).floor()
    guess = ibis.ifelse(guess > _float(column.levels - 1), _float(column.levels - 1), guess)
    low, high = guess * _float(step) + lower, (guess + _float(1)) * _float(step) + lower
    # the last bin includes the upper bound
    right = (high <= inside) & (guess < _float(column.levels - 1))
    code = guess.cast("int64") - ibis.ifelse(inside < low, 1, 0) + ibis.ifelse(right, 1, 0)
    return _bounded(column, lambda border: number >= _float(border), missing, code)


def _chosen(number: Any, codes: Mapping[float, int], missing: Any, missing_code: int, outside: int) -> Any:
    branches = [(number == _float(key), ibis.literal(code)) for key, code in codes.items()]
    return ibis.cases((missing, ibis.literal(missing_code)), *branches, else_=outside)


def _float(border: float) -> Any:
    return ibis.literal(repr(float(border))).cast("float64")


def _bytes(value: Any, engine: str) -> Any:
    """Return a text's bytes: texts that differ may be equal in the engine's language."""
    if engine == "pyspark":
        return value.cast("binary")
    if engine == "postgres":
        convert = ibis.udf.scalar.builtin(_of_two, name="convert_to", signature=(("string", "string"), "binary"))
        return convert(value, "UTF8")
    return ibis.udf.scalar.builtin(_of_one, name="encode", signature=(("string",), "binary"))(value)


def _of_one(text: Any) -> None:
    """Give a function of the engine its number of arguments; it is not called here."""


def _of_two(text: Any, encoding: Any) -> None:
    """Give a function of the engine its number of arguments; it is not called here."""
