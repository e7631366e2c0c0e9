"""Interpret a single value the same way in every representation: Arrow type, Python object or text.

Libraries infer a column's type from all its rows: one null turns integers into floats, one word turns booleans into
objects, one malformed line turns numbers into text. So True, 1, 1.0, "1", "1.0" and "true" are the same value here, and
so are a date, its midnight and their ISO text. Otherwise one person could change how others are counted.
"""

import datetime
import math
import re
import uuid
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np

Key = float | str | tuple[str, int]
Resolution = Literal["year", "month", "day", "hour", "minute", "second"]

CLOCKS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}  # in numpy

EPOCH = datetime.date(1970, 1, 1).toordinal()
DAY = 86_400_000_000  # microseconds
FIRST_DAY, LAST_DAY = (edge.toordinal() - EPOCH for edge in (datetime.date.min, datetime.date.max))

# ASCII: without it the pattern would accept letters that float() refuses
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE | re.ASCII)
_NOT_A_NUMBER = re.compile(r"[+-]?nan", re.IGNORECASE | re.ASCII)
_CLOCK = r"([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
_OFFSET = r"(?: ?(?:Z|UTC|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?))?"
_MOMENT = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[T ]{_CLOCK}{_OFFSET})?")
_TIME = re.compile(rf"(?=..:){_CLOCK}")
TRUTH_LETTERS = {"t": 1.0, "f": 0.0}
_TRUTHS = {"true": 1.0, "false": 0.0, **TRUTH_LETTERS}
_MORE_TRUTHS = {"yes": 1.0, "y": 1.0, "no": 0.0, "n": 0.0}
_LONG_INTEGER = 10**300
_LONG_DECIMAL = 30  # places before the point that are written out


def number_of(text: str) -> float:
    """Return the number a text says, "true" or "t" as 1, "false" or "f" as 0; NaN where it says none."""
    return float(text) if _NUMBER.fullmatch(text) else _TRUTHS.get(text.lower(), math.nan)


def truth_of(text: str) -> float:
    """Return 1 or 0 for a text that says true or false, as a word or a number; NaN otherwise."""
    number = number_of(text)
    return number if number in (0.0, 1.0) else _MORE_TRUTHS.get(text.lower(), math.nan)


def moment_of(text: str) -> int | None:
    """Return the microseconds since 1970 of ISO text, in UTC unless it has an offset; None where it is no time."""
    match = _MOMENT.fullmatch(text)
    if not match:
        return None
    year, month, day, *clock, sign, hours, minutes, seconds = match.groups()
    within = _microseconds(*clock)
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal() - EPOCH
    except ValueError:
        return None
    if within is None:
        return None
    offset = 3600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    return days * DAY + within - (-1 if sign == "-" else 1) * offset * 1_000_000


def second_of(text: str) -> float:
    """Return the seconds since 1970 of ISO text, in UTC unless it has an offset; NaN outside the years 1 to 9999."""
    moment = moment_of(text)
    return math.nan if moment is None or moment_key(moment) is None else float(moment // 1_000_000)


def has_offset(text: str) -> bool:
    """Return whether ISO text says its offset from UTC."""
    return any(mark in text[10:] for mark in "ZU+-")


def moment_key(moment: int) -> Key | None:
    """Return what a time is looked up by; None, for missing, outside the years 1 to 9999."""
    return ("moment", moment) if FIRST_DAY <= moment // DAY <= LAST_DAY else None


def key_of(text: str) -> Key | None:
    """Return what a trimmed text is looked up by: its number, time, or else itself; None where it is missing."""
    if text.lower() in TRUTH_LETTERS:
        return text
    if not text or _NOT_A_NUMBER.fullmatch(text):
        return None
    number = number_of(text)
    if not math.isnan(number):
        return number
    moment = moment_of(text)
    if moment is not None:
        return moment_key(moment)
    match = _TIME.fullmatch(text)
    within = _microseconds(*match.groups()) if match else None
    return text if within is None else ("time", within)


def key_text(key: Key | None) -> str | None:
    """Return a key as text, a day as its ISO date."""
    if isinstance(key, tuple) and key[0] == "moment" and key[1] % DAY == 0:
        return datetime.date.fromordinal(key[1] // DAY + EPOCH).isoformat()
    return None if key is None else str(key)


def text_of(value: Any) -> str | None:
    """Return a Python value as text with the same reading; None for missing and odd values."""
    try:
        return _text(value)
    except Exception:  # an object's methods may raise anything, and no value may stop a run
        return None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, datetime.date | datetime.time):
        return None if value != value else value.isoformat()  # noqa: PLR0124 - pandas's NaT is a date
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value.astype("datetime64[us]"))
    if isinstance(value, uuid.UUID | bool | np.bool_):
        return str(value).lower()
    return _text_of_number(value)


def _text_of_number(value: Any) -> str | None:
    if isinstance(value, np.timedelta64):  # numpy calls it an integer
        return None
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        return format(value, "f") if abs(value.adjusted()) < _LONG_DECIMAL else str(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return None
        return str(int(number)) if number.is_integer() and abs(number) < 10**_LONG_DECIMAL else repr(number)
    return _text_of_whole(int(value)) if isinstance(value, int | np.integer) else None


def _text_of_whole(whole: int) -> str:
    if abs(whole) < _LONG_INTEGER:
        return str(whole)
    # Python refuses to write out very long integers
    try:
        return repr(float(whole))
    except OverflowError:
        return "inf" if whole > 0 else "-inf"


def _microseconds(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    """Return a time of day in microseconds, digits beyond them cut; None where no clock shows it."""
    parts = (int(hour or 0), int(minute or 0), int(second or 0))
    if any(part >= limit for part, limit in zip(parts, (24, 60, 60), strict=True)):
        return None
    seconds = 3600 * parts[0] + 60 * parts[1] + parts[2]
    return seconds * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
