"""One person's value never changes how another row is coded, whatever carries the rows."""

import datetime
import io
import math
import uuid
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import Boolean, Categorical, Column, Date, Integer, Ordinal, Real, Schema, Table, open_source
from syndic.data.reading import key_of

DATE_COLUMN = Date(name="c", lower=datetime.date(1990, 1, 1), upper=datetime.date(2030, 1, 1), bins=97)
RANGED: list[Column] = [
    Boolean(name="c"),
    Integer(name="c", lower=-3, upper=9),
    Integer(name="c", lower=2**53 - 9, upper=2**53 - 1, outside="missing"),
    Real(name="c", lower=-1.0, upper=2.0, bins=30, outside="missing"),
    DATE_COLUMN,
    Date(name="c", lower=datetime.date(1, 1, 1), upper=datetime.date(9999, 12, 31), resolution="second", bins=999,
         zone="America/New_York", outside="missing"),
    Date(name="c", lower=datetime.date(1880, 1, 1), upper=datetime.date(2030, 1, 1), resolution="month"),
]  # fmt: skip
KINDS: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "bool": (st.booleans(), pa.bool_()),
    "int": (st.integers(-4, 12) | st.integers(2**53 - 4, 2**53 + 4) | st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "float": (st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.0, 1e22, math.inf, 2.0**53]) | st.floats(), pa.float64()),
    "decimal": (st.decimals(-9, 9, places=3), pa.decimal128(38, 3)),
    "date": (st.dates(datetime.date(1989, 12, 1)), pa.date32()),
    "datetime": (st.datetimes(datetime.datetime(1989, 12, 1)), pa.timestamp("us")),
    "midnight": (st.dates(datetime.date(1989, 12, 1)).map(lambda day: datetime.datetime(day.year, day.month, day.day)),
                 pa.timestamp("s")),
    "zoned": (st.datetimes(datetime.datetime(1850, 1, 2), datetime.datetime(2040, 1, 1),
                           timezones=st.timezones()), pa.timestamp("us", "UTC")),
    "time": (st.times(), pa.time64("us")),
    "text": (st.sampled_from(["F", "M", "t", "f", "TRUE", "1.0", "07", "nan", "2020-01-01", "10:30", "x", " 1 "])
             | st.text("0123456789.-+eE:TnaZ ", max_size=7), pa.string()),
}  # fmt: skip
ODD: list[Any] = [None, "u", "", 0.5, math.nan, True, 7, 2**70, Decimal("NaN"), datetime.date(2020, 1, 1), object()]


def encoded(column: Column, rows: Any) -> list[int]:
    """The codes of the only column of a source."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = Table(Schema(columns=(column,)), open_source(rows))
        return [int(code) for batch in table.batches() for code in batch["c"]]


def written(value: Any) -> str:
    """A value as it would stand in a CSV file."""
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Column, list[Any], pa.DataType]:
    values, kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    rows = draw(st.lists(values, min_size=1, max_size=6))
    listed = {key_of(text): text for text in (*map(str.strip, map(written, rows[:3])), "F", "2")}
    listed.pop(None, None)
    names = tuple(listed.values())
    lists: list[Column] = [Categorical(name="c", values=names), Ordinal(name="c", values=names, outside="missing")]
    return draw(st.sampled_from(RANGED + lists)), rows, kind


@given(case=cases())
@settings(max_examples=120, deadline=None)
def test_every_carrier_of_the_same_values_gives_the_same_codes(case: tuple[Column, list[Any], pa.DataType]) -> None:
    column, rows, kind = case
    typed = pa.array(rows, kind, from_pandas=False)
    expected = encoded(column, pa.table({"c": typed}))
    texts = [written(row) for row in rows]
    carriers = {
        "dictionary": pa.table({"c": typed.dictionary_encode()}),
        "runs": pa.table({"c": pa.RunEndEncodedArray.from_arrays(list(range(1, len(rows) + 1)), typed)}),
        "text": pa.table({"c": texts}),
        "bytes": pa.table({"c": [text.encode() for text in texts]}),
        "pandas": pd.DataFrame({"c": rows}),
        "pandas objects": pd.DataFrame({"c": pd.Series(rows, dtype=object)}),
        "pandas arrow": pd.DataFrame({"c": pd.Series(typed, dtype=pd.ArrowDtype(kind))}),
        "pandas category": pd.DataFrame({"c": pd.Series(rows, dtype=object).astype("category")}),
        "polars": pl.DataFrame(pa.table({"c": typed})),
        "polars objects": pl.DataFrame({"c": pl.Series(rows, dtype=pl.Object)}),
    }
    assert {name: encoded(column, rows) for name, rows in carriers.items()} == dict.fromkeys(carriers, expected)


@given(case=cases(), odd=st.sampled_from(ODD))
@settings(max_examples=120, deadline=None)
def test_an_odd_value_leaves_the_codes_of_all_others(case: tuple[Column, list[Any], pa.DataType], odd: Any) -> None:
    column, rows, _ = case
    more = [*rows, odd]
    pairs = {
        "pandas": [pd.Series(values) for values in (rows, more)],
        "category": [pd.Series(values, dtype=object).astype("category") for values in (rows, more)],
    }
    frames: dict[str, list[Any]] = {name: [pd.DataFrame({"c": one}) for one in pair] for name, pair in pairs.items()}
    # as objects: how polars itself reads a list of Python values is outside our hands, and it panics on some
    frames["polars"] = [pl.DataFrame({"c": pl.Series(values, dtype=pl.Object)}) for values in (rows, more)]
    for name, (without, with_odd) in frames.items():
        assert encoded(column, with_odd)[:-1] == encoded(column, without), name


SHORT = st.sampled_from(
    ["1", "0", "1.0", "01", "2", "0.5", "true", "True", "false", "2020-01-01", "10:30:00", "F", "x"]
)


@given(lines=st.lists(SHORT, min_size=1, max_size=3), odd=SHORT | st.just("unknown"), data=st.data())
@settings(max_examples=60, deadline=None)
def test_libraries_that_guess_types_from_all_lines(lines: list[str], odd: str, data: st.DataObject) -> None:
    names = tuple({key_of(text): text for text in data.draw(st.lists(SHORT, min_size=1, max_size=4))}.values())
    column = data.draw(st.sampled_from([*RANGED, Categorical(name="c", values=names)]))
    expected = encoded(column, pa.table({"c": lines}))
    content = "\n".join(["c", *lines, odd]).encode() + b"\n"
    frames = [
        pd.read_csv(io.BytesIO(content)),
        pd.read_csv(io.BytesIO(content), engine="pyarrow"),
        pl.read_csv(content),
        pl.read_csv(content, try_parse_dates=True),
        pyarrow.csv.read_csv(io.BytesIO(content)),
    ]
    for frame in frames:
        assert encoded(column, frame)[:-1] == expected


class Hostile:
    """An object that answers nothing."""

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        raise RuntimeError

    def __eq__(self, _: object) -> bool:
        raise RuntimeError


class NoZone(datetime.tzinfo):
    """A time zone that cannot say its offset."""

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        raise RuntimeError

    dst = utcoffset

    def tzname(self, _: datetime.datetime | None) -> str:
        raise RuntimeError


EAST = datetime.timezone(datetime.timedelta(hours=1))
WEST = datetime.timezone(datetime.timedelta(hours=-1))
STRANGE: list[Any] = [
    datetime.datetime(1, 1, 1, tzinfo=EAST), datetime.datetime(9999, 12, 31, 23, tzinfo=WEST),
    datetime.datetime(2020, 1, 1, tzinfo=NoZone()), datetime.time(1, tzinfo=EAST),
    Decimal("sNaN"), Decimal("NaN"), Decimal("1e9999999"), Decimal("-Infinity"), Decimal("1e-9999999"),
    Hostile(), Hostile, object(), [1], {}, (1,), 1j, Fraction(1, 2), 10**5000, -(10**305),
    "\ud800", "\u0131nf", "\0", "9" * 5000, b"\xff", bytearray(b"1"), memoryview(b"1"), uuid.UUID(int=1),
    np.datetime64("NaT"), np.datetime64("2020"), np.timedelta64(1, "s"), np.float16(1), np.array([1]), np.array(1),
    pd.NA, pd.NaT, pd.Timedelta(1), pd.Period("2020"), pd.Interval(0, 1), pd.Timestamp(1, tz="Asia/Tokyo"),
]  # fmt: skip


@given(places=st.lists(st.integers(0, len(STRANGE) - 1), max_size=4), text=st.text(max_size=9))
@settings(max_examples=60, deadline=None)
def test_no_object_stops_a_run_or_warns(places: list[int], text: str) -> None:
    values = [1, *(STRANGE[place] for place in places), text, 1]
    rows = pd.Series([None] * len(values), dtype=object)
    for place, value in enumerate(values):
        rows.iat[place] = value
    for column in (*RANGED, Categorical(name="c", values=("1", "x"))):
        codes = encoded(column, pd.DataFrame({"c": rows}))
        assert len(codes) == len(rows)
        assert codes[0] == codes[-1] == encoded(column, pa.table({"c": [1]}))[0]
        assert max(codes) < column.size


INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]
ARROW_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view(), pa.binary(3), pa.int8(),
    pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
    pa.duration("s"), pa.month_day_nano_interval(), pa.decimal32(5, 2), pa.decimal64(9, -2), pa.decimal128(38, 3),
    pa.decimal256(70, 40),
]  # fmt: skip


@given(
    kind=st.sampled_from(ARROW_TYPES), content=st.binary(min_size=96, max_size=96), index=st.sampled_from(INDEX_TYPES)
)
@settings(max_examples=120, deadline=None)
def test_no_bits_of_any_arrow_type_stop_a_run(kind: pa.DataType, content: bytes, index: pa.DataType) -> None:
    array = of_bits(kind, content)
    indices = pa.array([2, None, 0, 1], index)
    for column in (*RANGED, Categorical(name="c", values=("1", "x"))):
        codes = encoded(column, pa.table({"c": array}))
        assert max(codes) < column.size
        assert [encoded(column, pa.table({"c": array.slice(place, 1)}))[0] for place in range(3)] == codes
        dictionary = pa.DictionaryArray.from_arrays(indices, array)
        assert encoded(column, pa.table({"c": dictionary})) == [codes[2], column.missing_code, codes[0], codes[1]]
    table = Table(Schema(columns=(Boolean(name="c"),)), open_source(pa.table({"c": array})), person="c")
    if not (pa.types.is_duration(kind) or pa.types.is_interval(kind)):
        assert table.rows() <= len(codes)


def of_bits(kind: pa.DataType, content: bytes) -> pa.Array:
    """Three values of arbitrary bits: text that is not UTF-8, years far away, decimals beyond their precision."""
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.binary_view()):
        storage = pa.array([content[:5], content[5:6], content[6:40]], pa.binary())
        if kind in (pa.string(), pa.large_string()):
            narrow = pa.Array.from_buffers(pa.string(), 3, storage.buffers())
            return narrow if kind == pa.string() else narrow.cast(pa.large_binary()).view(pa.large_string())
        return storage.cast(pa.binary_view()).view(kind) if kind == pa.string_view() else storage.cast(kind)
    return pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(content)])
