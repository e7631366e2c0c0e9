"""Values of any Arrow type as numbers, days, truths or codes of texts. NaN stands for missing.

What becomes of a value depends on that value and the column's type only, never on the rows beside it:
otherwise one person could change how another is counted. Nothing here raises or warns because of a value.
"""

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

EPOCH = datetime.date(1970, 1, 1).toordinal()
_EASY_NUMBER = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity)", re.IGNORECASE)
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ].*)?", re.DOTALL)
_TRUTHS = dict.fromkeys(["true", "t", "yes", "y", "1", "1.0"], 1.0) | dict.fromkeys(
    ["false", "f", "no", "n", "0", "0.0"], 0.0
)
_DAYS_OF_UNIT = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def plain(array: pa.Array) -> pa.Array:
    """Return the array without run ends or extension types (dictionaries stay)."""
    while isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    return array


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values are texts or bytes."""
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary,
        pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def is_number(kind: pa.DataType) -> bool:
    """Tell whether values are truths, integers, floats or decimals."""
    types = pa.types
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def numbers(array: pa.Array) -> Numbers:
    """Return numbers as floats; truths are 0 and 1, text is parsed, every other type is missing."""
    if is_number(array.type):
        return _floats(array)
    if not is_text(array.type):
        return np.full(len(array), np.nan)
    text = texts(array)
    easy = pc.match_substring_regex(text, _EASY_NUMBER)
    values = _floats(pc.if_else(easy, text, None))
    if pc.any(pc.invert(easy)).as_py():
        hard = np.asarray(pc.fill_null(pc.invert(easy), fill_value=False))
        values = np.where(hard, by_distinct(pc.if_else(easy, None, text), _parse_number), values)
    return values


def days(array: pa.Array) -> Numbers:
    """Return days since 1970-01-01 of dates, times (their UTC date) and ISO text; other types are missing."""
    kind = array.type
    if pa.types.is_date32(kind):
        return _floats(array.cast(pa.int32()))
    if pa.types.is_date64(kind):
        return np.asarray(np.floor(_floats(array.cast(pa.int64())) / _DAYS_OF_UNIT["ms"]))
    if pa.types.is_timestamp(kind):
        ticks = np.asarray(array.cast(pa.int64()).fill_null(0))
        whole = (ticks // _DAYS_OF_UNIT[kind.unit]).astype(np.float64)
        return np.where(np.asarray(array.is_null()), np.nan, whole)
    if is_text(kind):
        return by_distinct(texts(array), _parse_day)
    return np.full(len(array), np.nan)


def truths(array: pa.Array) -> Numbers:
    """Return 1 for true and 0 for false; numbers other than 0 and 1 and unknown texts are missing."""
    if is_number(array.type):
        values = _floats(array)
        return np.where((values == 0) | (values == 1), values, np.nan)
    if is_text(array.type):
        text = texts(array)
        return by_distinct(text, lambda value: _TRUTHS.get(value.lower(), math.nan))
    return np.full(len(array), np.nan)


def places(array: pa.Array, codes: dict[str, int], outside: int) -> Numbers:
    """Return each value's code by its text, `outside` where not listed; empty text, odd types are missing."""

    def place(value: Any) -> float:
        names = _names(value)
        return next((codes[name] for name in names if name in codes), outside if names else math.nan)

    kind = array.type
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        array = array.cast(pa.large_string())
    if is_text(array.type):
        array = texts(array)
    if is_number(array.type) or is_text(array.type):
        return by_distinct(array, place)
    return np.full(len(array), np.nan)


def texts(array: pa.Array) -> pa.Array:
    """Return texts or bytes as trimmed text; bytes that are not UTF-8 get replacement marks."""
    try:
        found = array.cast(pa.large_string())
    except pa.ArrowInvalid:
        values = [None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist()]
        found = pa.array(values, pa.large_string())
    return pc.utf8_trim_whitespace(found)


def by_distinct(array: pa.Array, read: Callable[[Any], float]) -> Numbers:
    """Return `read` of every value, called once for each distinct value; null is missing."""
    encoded = array.dictionary_encode()
    table = [math.nan if value is None else read(value) for value in encoded.dictionary.to_pylist()]
    table.append(math.nan)
    indices: NDArray[np.int32] = np.asarray(encoded.indices.fill_null(len(table) - 1))
    return np.array(table, dtype=np.float64)[indices]


def text_of(value: Any) -> str | None:
    """Return a Python value as the text that would stand in a CSV file; missing and odd values are None."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC)
    if isinstance(value, datetime.date):
        return value.isoformat()
    names = _names(value)
    return names[-1] if names else None


def _names(value: Any) -> tuple[str, ...]:
    """Return the texts a value may be listed under, most exact first; none when it is missing."""
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, bool | np.bool_):
        return ("true", "True") if value else ("false", "False")
    if isinstance(value, int | np.integer):
        whole = int(value)
        # Python refuses to write out very long integers
        return (str(whole),) if abs(whole) < 10**300 else ("inf" if whole > 0 else "-inf",)
    if isinstance(value, float | np.floating):
        value = float(value)
    elif not isinstance(value, Decimal):
        return ()
    if math.isnan(value):
        return ()
    # a decimal's exponent may be huge: its integer is written out only where that is short
    short = math.isfinite(value) and abs(value) < 1e30 and value == int(value)
    return (str(value), str(int(value))) if short else (str(value),)


def _floats(array: pa.Array) -> Numbers:
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _parse_number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _parse_day(text: str) -> float:
    match = _DAY.fullmatch(text)
    if not match:
        return math.nan
    year, month, day = (int(match[group]) for group in (1, 2, 3))
    try:
        return float(datetime.date(year, month, day).toordinal() - EPOCH)
    except ValueError:
        return math.nan
