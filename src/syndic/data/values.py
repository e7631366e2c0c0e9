"""Convert Arrow arrays of any type to numbers, days, booleans or codes of listed values. NaN stands for missing.

The result for a value depends on that value only (`syndic.data.reading`), never on other rows: otherwise one person
could change how another is counted. No value causes an error or a warning.
"""

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from syndic.data.reading import (
    CLOCKS,
    DAY,
    FIRST_DAY,
    LAST_DAY,
    Key,
    Resolution,
    has_offset,
    key_of,
    key_text,
    moment_key,
    number_of,
    second_of,
    text_of,
    truth_of,
)

Numbers = NDArray[np.float64]

_EASY_NUMBER = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_TEXTS = {pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()}
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # in a second


def plain(array: pa.Array) -> pa.Array:
    """Return the array without run ends or extension types (dictionaries stay)."""
    while isinstance(array.type, pa.BaseExtensionType):
        uuids = array.type.extension_name == "arrow.uuid"
        array = _by_object(array.storage, lambda value: str(uuid.UUID(bytes=value))) if uuids else array.storage
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    return array


def decoded(array: pa.Array) -> pa.Array:
    """Return the array without run ends, extension types or dictionaries."""
    array = plain(array)
    return decoded(array.dictionary_decode()) if pa.types.is_dictionary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts or bytes."""
    return kind in _TEXTS or bool(pa.types.is_fixed_size_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are booleans, integers, floats or decimals."""
    types = pa.types
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_time(kind: pa.DataType) -> bool:
    """Return whether values are dates, or times with or without a date."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def numbers(array: pa.Array) -> Numbers:
    """Return numbers as floats; booleans are 0 and 1, text is parsed, every other type is missing."""
    if pa.types.is_decimal(array.type):
        # Arrow rounds long decimals to floats differently from how it parses them
        array = array.cast(pa.large_string())
    if is_number(array.type):
        return _floats(array)
    if not is_text(array.type):
        return np.full(len(array), np.nan)
    text = texts(array)
    easy = pc.match_substring_regex(text, _EASY_NUMBER)
    values = _floats(pc.if_else(easy, text, None))
    if pc.any(pc.invert(easy)).as_py():
        hard = np.asarray(pc.fill_null(pc.invert(easy), fill_value=False))
        values = np.where(hard, by_distinct(pc.if_else(easy, None, text), number_of), values)
    return values


def times(array: pa.Array, resolution: Resolution = "day", zone: str = "UTC") -> Numbers:
    """Return the whole years, months, ... or seconds since 1970 of dates, timestamps and ISO text; else missing.

    They are those of a clock in the zone. A value with a zone or an offset is converted; one without is what that clock
    showed. Years are 1 to 9999.
    """
    seconds = _seconds(array, zone)
    missing = np.isnan(seconds)
    moments = np.where(missing, 0, seconds).astype(np.int64).astype("datetime64[s]")
    whole = moments.astype(f"datetime64[{CLOCKS[resolution]}]").astype(np.int64)
    return np.where(missing, np.nan, whole.astype(np.float64))


def is_zone(zone: str) -> bool:
    """Return whether there is such a time zone: "UTC", "Europe/Zurich" or "+02:00"."""
    try:
        _shifted(np.zeros(1), zone)
    except pa.ArrowInvalid:
        return False
    return bool(zone)


def _seconds(array: pa.Array, zone: str) -> Numbers:
    kind = array.type
    if is_text(kind):
        text = texts(array)
        seconds = by_distinct(text, second_of)
        return (
            seconds if zone == "UTC" else np.where(by_distinct(text, has_offset) == 1, _shifted(seconds, zone), seconds)
        )
    if not is_time(kind) or pa.types.is_time(kind):
        return np.full(len(array), np.nan)
    ticks = np.asarray(_ticks(array).fill_null(0))
    whole = ticks * 86_400 if pa.types.is_date32(kind) else ticks // _ticks_a_second(kind)
    missing = np.asarray(array.is_null()) | (whole // 86_400 < FIRST_DAY) | (whole // 86_400 > LAST_DAY)
    seconds = np.where(missing, np.nan, whole.astype(np.float64))
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return _shifted(seconds, zone) if zoned and zone != "UTC" else seconds


def _shifted(seconds: Numbers, zone: str) -> Numbers:
    """Return what a clock in the zone shows at moments in UTC."""
    moments = pa.array(seconds, pa.float64(), from_pandas=True).cast(pa.int64()).cast(pa.timestamp("s", zone))
    return _floats(pc.local_timestamp(moments).cast(pa.int64()))


def truths(array: pa.Array) -> Numbers:
    """Return 1 for true and 0 for false; numbers other than 0 and 1 and unknown texts are missing."""
    if is_text(array.type):
        return by_distinct(texts(array), truth_of)
    values = numbers(array)
    return np.where((values == 0) | (values == 1), values, np.nan)


def places(array: pa.Array, codes: Mapping[Key, int], outside: int, prefix: int | None = None) -> Numbers:
    """Return each value's code by its key, or `outside` if not listed; empty text and other types are missing.

    With `prefix`, a text or number that is not listed is looked up by so many of its first characters.
    """

    def place(key: Key | None, text: str | None = None) -> float:
        if key is None:
            return math.nan
        if key not in codes and prefix is not None and text is not None:
            cut = key_of(text[:prefix].strip())
            return outside if cut is None else codes.get(cut, outside)
        return codes.get(key, outside)

    if prefix is not None and pa.types.is_decimal(array.type):
        # all digits, as databases write them
        array = _by_object(array, lambda number: format(number, "f"))
    kind = array.type
    if is_text(kind):
        return by_distinct(texts(array), lambda text: place(key_of(text), text))
    if is_number(kind):
        found = pa.array(numbers(array))
        return by_distinct(found, lambda number: place(None if math.isnan(number) else number, text_of(number)))
    if is_time(kind):
        read = _time_reader(kind)
        return by_distinct(_ticks(array), lambda ticks: place(read(ticks)))
    return np.full(len(array), np.nan)


def ids(array: pa.Array) -> pa.Array:
    """Return whole numbers, also in text, as their digits, and other values as text; null where missing."""
    kind = array.type
    if pa.types.is_floating(kind):
        array = _by_object(array, text_of)
    elif is_time(kind):
        read = _time_reader(kind)
        array = _by_object(_ticks(array), lambda ticks: key_text(read(ticks)))
    elif not is_text(kind):
        array = array.cast(pa.large_string())
    text = texts(array)
    text = pc.replace_substring_regex(text, r"^\+?(-?)0*([0-9]+)(\.0*)?$", r"\1\2")
    text = pc.replace_substring_regex(text, r"^-0$", "0")
    return pc.if_else(pc.match_substring_regex(text, r"^([+-]?[nN][aA][nN])?$"), None, text)


def texts(array: pa.Array) -> pa.Array:
    """Return texts or bytes as trimmed text; bytes that are not UTF-8 get replacement marks."""
    # as bytes first: Arrow assumes that a text column is UTF-8, whatever the file contains
    found = array.cast(pa.large_binary())
    try:
        found = found.cast(pa.large_string())
    except pa.ArrowInvalid:
        found = _by_object(found, text_of)
    return pc.utf8_trim_whitespace(found)


def by_distinct(array: pa.Array, read: Callable[[Any], float]) -> Numbers:
    """Return `read` of every value, called once for each distinct value; null is missing."""
    encoded = array.dictionary_encode()
    table = [math.nan if value is None else read(value) for value in encoded.dictionary.to_pylist()]
    table.append(math.nan)
    indices: NDArray[np.int32] = np.asarray(encoded.indices.fill_null(len(table) - 1))
    return np.array(table, dtype=np.float64)[indices]


def _time_reader(kind: pa.DataType) -> Callable[[int], Key | None]:
    """Return the function that makes a key from a count of the type's unit."""
    if pa.types.is_date32(kind):
        return lambda ticks: moment_key(ticks * DAY)
    second = _ticks_a_second(kind)
    if pa.types.is_time(kind):
        return lambda ticks: ("time", ticks * 1_000_000 // second)
    return lambda ticks: moment_key(ticks * 1_000_000 // second)


def _ticks(array: pa.Array) -> pa.Array:
    return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).cast(pa.int64())


def _ticks_a_second(kind: pa.DataType) -> int:
    return _TICKS["ms" if pa.types.is_date64(kind) else kind.unit]


def _by_object(array: pa.Array, read: Callable[[Any], str | None]) -> pa.Array:
    """Return the text of every value by its Python object, read once for each distinct value."""
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())  # older versions of Arrow have no dictionary of half floats
    encoded = array.dictionary_encode()
    texts = [None if value is None else read(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.large_string()).take(encoded.indices)


def _floats(array: pa.Array) -> Numbers:
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    missing = np.isnan(values)
    # numpy warns of signalling NaN
    return np.where(missing, np.nan, values) if missing.any() else values
