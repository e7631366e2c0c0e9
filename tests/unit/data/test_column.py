import datetime
import math
import zoneinfo
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Boolean, Categorical, Column, Date, Instead, Integer, Ordinal, Real

AGE = Integer(name="age", lower=0, upper=9, bins=3)  # 0-2, 3-5, 6-9, missing
HEIGHT = Real(name="height", lower=0.0, upper=1.0, bins=4)
SEX = Categorical(name="sex", values=("F", "M"))
DAY = Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 10), bins=2)
SMOKER = Boolean(name="smoker")
EVERY = (AGE, HEIGHT, SEX, DAY, SMOKER, Integer(name="raw", lower=-3, upper=3, missing=Instead(value=0)))


def codes(column: Column, values: Any, kind: pa.DataType | None = None) -> list[int]:
    return [int(code) for code in column.encode(pa.array(values, kind))]


def test_integer_bins_have_near_equal_widths() -> None:
    assert codes(AGE, list(range(10))) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert AGE.bin_edges.tolist() == [0, 3, 6, 10]
    assert AGE.labels() == ("0-2", "3-5", "6-9", "(missing)")


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()]
)
def test_integers_of_any_type_clip_and_miss_alike(kind: pa.DataType) -> None:
    array = pa.array([-100, 0, 4, 9, 10, 100, None]).cast(kind)
    assert AGE.encode(array).tolist() == [0, 0, 1, 2, 2, 2, 3]
    strict = Integer(name="age", lower=0, upper=9, bins=3, outside="missing", missing=Instead(value=4))
    assert strict.encode(array).tolist() == [1, 0, 1, 2, 1, 1, 1]


def test_unsigned_and_wide_integers() -> None:
    assert codes(AGE, [0, 255], pa.uint8()) == [0, 2]
    assert codes(AGE, [0, 65535], pa.uint16()) == [0, 2]
    assert codes(AGE, [0, 2**64 - 1], pa.uint64()) == [0, 2]
    assert codes(AGE, [-(2**63), 2**63 - 1], pa.int64()) == [0, 2]
    edge = Integer(name="e", lower=2**53 - 3, upper=2**53 - 1, outside="missing")
    assert codes(edge, [2**53 - 1, 2**53, 2**53 + 1]) == [2, 3, 3]


def test_text_is_parsed_value_by_value() -> None:
    texts = [
        "4",
        " 4 ",
        "+4",
        "4.9",
        "4e0",
        "0x4",
        "1_0",
        "",
        "four",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "٤",
        "9" * 400,
        None,
    ]
    expected = [1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 2, 0, 2, 3, 2, 3]
    assert codes(AGE, texts) == expected
    # each alone is read as it is among the others: one row never changes another's code
    assert [codes(AGE, [text], pa.string())[0] for text in texts] == expected


def test_real_bins_include_lower_edges_and_the_last_upper() -> None:
    values = [0.0, 0.2499999, 0.25, 0.5, 0.75, 1.0, -5.0, 5.0, math.inf, -math.inf, math.nan, None]
    assert codes(HEIGHT, values) == [0, 0, 1, 2, 3, 3, 0, 3, 3, 0, 4, 4]
    assert HEIGHT.labels() == ("[0, 0.25)", "[0.25, 0.5)", "[0.5, 0.75)", "[0.75, 1]", "(missing)")
    strict = Real(name="h", lower=0.0, upper=1.0, bins=4, outside="missing")
    assert codes(strict, values) == [0, 0, 1, 2, 3, 3, 4, 4, 4, 4, 4, 4]


def test_numbers_of_other_types() -> None:
    assert codes(HEIGHT, [Decimal("0.30"), None]) == [1, 4]
    assert codes(HEIGHT, [True, False]) == [3, 0]
    assert codes(HEIGHT, [np.float16(0.5)], pa.float16()) == [2]
    assert codes(HEIGHT, [b"0.3", b"\xff", None]) == [1, 4, 4]
    assert codes(HEIGHT, [[0.3], None]) == [4, 4]
    assert codes(HEIGHT, [datetime.date(2020, 1, 1)]) == [4]
    # as the truths that a library may hold instead
    assert codes(HEIGHT, ["True", "f", "yes"]) == [3, 0, 4]


def test_categories_other_and_missing() -> None:
    values = ["F", " M ", "X", "other", "", "  ", None, "f"]
    assert codes(SEX, values) == [0, 1, 2, 2, 3, 3, 3, 2]
    assert SEX.labels() == ("F", "M", "other", "(missing)")
    listed = Categorical(name="c", values=("other", "F"), missing=Instead(value="F"))
    assert codes(listed, values) == [1, 0, 0, 0, 1, 1, 1, 0]
    assert listed.labels() == ("other", "F")
    missing = Categorical(name="c", values=("F", "M"), outside="missing")
    assert codes(missing, values) == [0, 1, 2, 2, 2, 2, 2, 2]
    instead = Ordinal(name="c", values=("F", "M"), outside=Instead(value="M"))
    assert codes(instead, values) == [0, 1, 1, 1, 2, 2, 2, 1]


def test_categories_may_be_numbers_truths_dates_or_bytes() -> None:
    digits = Categorical(name="c", values=("false", "1", "1.5", "10:30", "2020-01-01"))
    assert codes(digits, [0, 1, 7], pa.int64()) == [0, 1, 5]
    assert codes(digits, [0, 1, 7], pa.uint8()) == [0, 1, 5]
    assert codes(digits, [0.0, 1.0, 1.5, math.nan, math.inf]) == [0, 1, 2, 6, 5]
    assert codes(digits, [Decimal("1"), Decimal("1.5"), None]) == [1, 2, 6]
    assert codes(digits, [True, False]) == [1, 0]
    assert codes(digits, ["TRUE", "False", "01.0", "15e-1", "t"]) == [1, 0, 1, 2, 5]
    assert codes(digits, [datetime.date(2020, 1, 1), None]) == [4, 6]
    assert codes(digits, [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 1)]) == [4, 5]
    assert codes(digits, ["2020-01-01T00:00:00Z", "2020-01-01 01:00+01:00", "2020-01-01 01:00"]) == [4, 4, 5]
    assert codes(digits, [datetime.time(10, 30), datetime.time(10, 31)]) == [3, 5]
    assert codes(digits, ["10:30:00.000", "10:30", "nan", "-NaN"]) == [3, 3, 6, 6]
    assert codes(digits, [b"1", b"\xff"]) == [1, 5]
    assert codes(digits, [[1]]) == [6]


def test_numbers_are_compared_as_floats_hold_them() -> None:
    # pandas makes floats of integers for one missing value, so what floats cannot tell apart is one category
    large = Categorical(name="c", values=(str(2**53),))
    assert codes(large, [2**53, 2**53 + 1, 2**53 + 2], pa.int64()) == [0, 0, 1]
    assert codes(large, [float(2**53), 2.0**53 + 2]) == [0, 1]


def test_truths_are_letters_where_only_those_are_listed() -> None:
    # DuckDB holds a CSV column of nothing but F as truths
    sex = Categorical(name="c", values=("F", "M"))
    assert codes(sex, [False, True, None]) == [0, 2, 3]
    assert codes(sex, ["F", "f", "T", "false"]) == [0, 2, 2, 0]
    assert codes(Categorical(name="c", values=("F", "0")), [False]) == [1]
    assert codes(Categorical(name="c", values=("F", "f", "T")), [False, True]) == [3, 2]


@pytest.mark.parametrize(
    "values", [("1", "true"), ("1", "01"), ("2020-01-01", "2020-01-01T00:00:00Z"), ("1e400", "inf")]
)
def test_values_that_are_read_alike_cannot_both_be_listed(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=f"'{values[0]}' and '{values[1]}' are the same"):
        Categorical(name="c", values=values)
    with pytest.raises(ValueError, match="'NaN' means a missing value"):
        Categorical(name="c", values=("NaN", "x"))


@pytest.mark.parametrize(("kind", "size"), [(pa.int8(), 128), (pa.uint8(), 256)])
def test_a_full_dictionary_has_a_code_for_null(kind: pa.DataType, size: int) -> None:
    column = Integer(name="c", lower=0, upper=size - 1)
    indices = pa.array([*range(size), None, 0], kind)
    assert column.encode(pa.DictionaryArray.from_arrays(indices, list(range(size)))).tolist() == [*range(size), size, 0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_that_is_not_utf8_is_outside_and_stops_nothing(kind: pa.DataType) -> None:
    content = pa.array([b"G", b"\xff", b"M", None], pa.binary() if kind == pa.string() else pa.large_binary())
    array = pa.Array.from_buffers(kind, 4, content.buffers())
    assert SEX.encode(array).tolist() == [2, 2, 1, 3]
    assert SEX.encode(array.dictionary_encode()).tolist() == [2, 2, 1, 3]
    assert AGE.encode(array).tolist() == [3, 3, 3, 3]


def test_dates_from_every_type_that_holds_them() -> None:
    first, last = datetime.date(2020, 1, 1), datetime.date(2020, 1, 10)
    assert codes(DAY, [first, last, datetime.date(1, 1, 1), datetime.date(9999, 1, 1), None]) == [0, 1, 0, 1, 2]
    assert codes(DAY, [first, last], pa.date64()) == [0, 1]
    for unit in ("s", "ms", "us", "ns"):
        stamps = pa.array([datetime.datetime(2020, 1, 5, 23, 59, 59), datetime.datetime(2020, 1, 6), None])
        assert DAY.encode(stamps.cast(pa.timestamp(unit))).tolist() == [0, 1, 2]
        assert DAY.encode(stamps.cast(pa.timestamp(unit, "UTC"))).tolist() == [0, 1, 2]
    texts = ["2020-01-05", "2020-01-06T10:00:00Z", "2020-02-30", "20200106", "2020-01-06x", "", None]
    assert codes(DAY, texts) == [0, 1, 2, 2, 2, 2, 2]
    zoned = ["2020-01-06 00:30:00+01:00", "2020-01-05T23:30:00.5-01", "2020-01-06 24:00", "0001-01-01 00:00+01:00"]
    assert codes(DAY, zoned) == [0, 1, 2, 2]
    # text can say the years 1 to 9999 only, so other types miss beyond them too
    assert codes(DAY, [-719_163, -719_162, 2_932_896, 2_932_897], pa.int32()) == [2, 2, 2, 2]
    ends = pa.array([-719_163, -719_162, 2_932_896, 2_932_897], pa.int32()).cast(pa.date32())
    assert DAY.encode(ends).tolist() == [2, 0, 1, 2]
    assert codes(DAY, [18262], pa.int64()) == [2]
    assert DAY.labels() == ("2020-01-01 to 2020-01-05", "2020-01-06 to 2020-01-10", "(missing)")
    assert [str(edge) for edge in DAY.bin_edges] == ["2020-01-01", "2020-01-06", "2020-01-11"]


ZURICH = Date(
    name="t", lower=datetime.date(2020, 3, 28), upper=datetime.date(2020, 3, 30), resolution="hour", bins=72,
    zone="Europe/Zurich",
)  # fmt: skip


def test_times_of_a_clock_in_the_declared_zone() -> None:
    # summer time begins on 29 March 2020 at 02:00, which is 01:00 in UTC
    texts = ["2020-03-29T00:59Z", "2020-03-29T01:00:00Z", "2020-03-29 03:00:00+02:00", "2020-03-29 02:30", "2020-03-29"]
    assert codes(ZURICH, [*texts, "x", None]) == [25, 27, 27, 26, 24, 72, 72]
    moments = [datetime.datetime(2020, 3, 29, 0, 59, 59), datetime.datetime(2020, 3, 29, 1), None]
    for unit in ("s", "ms", "us", "ns"):
        assert codes(ZURICH, moments, pa.timestamp(unit, "Asia/Tokyo")) == [25, 27, 72]
        assert codes(ZURICH, moments, pa.timestamp(unit)) == [24, 25, 72]
    assert codes(ZURICH, [datetime.date(2020, 3, 30)]) == [48]
    assert msgspec.structs.replace(ZURICH, bins=None).levels == 64
    assert ZURICH.labels()[27] == "2020-03-29T03"


@pytest.mark.parametrize("resolution", ["year", "month", "day", "hour", "minute", "second"])
def test_resolutions_agree_with_the_calendar_of_python(resolution: Any) -> None:
    lower, upper = datetime.date(1999, 12, 1), datetime.date(2003, 3, 31)
    column = Date(name="t", lower=lower, upper=upper, resolution=resolution, bins=4, zone="America/New_York")
    generator = np.random.default_rng(3)
    zone = zoneinfo.ZoneInfo("America/New_York")
    begin = datetime.datetime(1999, 11, 1, tzinfo=datetime.UTC)
    moments = [begin + datetime.timedelta(seconds=int(at)) for at in generator.integers(0, 120_000_000, 400)]
    edges = column.bin_edges.astype("datetime64[s]").astype(datetime.datetime)
    walls = [moment.astimezone(zone).replace(tzinfo=None) for moment in moments]
    expected = np.clip(np.searchsorted(edges, np.array(walls), side="right") - 1, 0, 3).tolist()
    assert codes(column, moments, pa.timestamp("us", "UTC")) == expected
    assert codes(column, [moment.isoformat() for moment in moments]) == expected
    decoded = column.decode(np.array([0, 1, 2, 3, 4]), generator)
    assert decoded.type == (pa.date32() if resolution in ("year", "month", "day") else pa.timestamp("s"))
    assert column.encode(decoded).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zone": "Mars/Olympus"}, "unknown zone 'Mars/Olympus'"),
        ({"zone": ""}, "unknown zone"),
        ({"resolution": "month", "upper": datetime.date(2020, 1, 31)}, "must be before upper"),
        ({"resolution": "month", "bins": 13}, "its number of months"),
        ({"resolution": "year", "upper": datetime.date(2021, 1, 1),
          "edges": (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))}, "the year after upper"),
        ({"resolution": "month", "edges": tuple(datetime.date(2020, 1, day) for day in (1, 2))}, "the month after"),
    ],
)  # fmt: skip
def test_a_date_column_is_checked(given: dict[str, Any], message: str) -> None:
    fields = {"name": "t", "lower": datetime.date(2020, 1, 1), "upper": datetime.date(2020, 12, 31), **given}
    with pytest.raises(ValueError, match=message):
        Date(**fields)


def test_one_day_of_hours_and_edges_by_day() -> None:
    day = datetime.date(2020, 1, 1)
    assert Date(name="t", lower=day, upper=day, resolution="hour").levels == 24
    edges = (day, datetime.date(2020, 1, 2), datetime.date(2020, 1, 4))
    column = Date(name="t", lower=day, upper=datetime.date(2020, 1, 3), resolution="minute", edges=edges)
    assert codes(column, ["2020-01-01T23:59", "2020-01-02 00:00"]) == [0, 1]


def test_truths() -> None:
    assert codes(SMOKER, [True, False, None]) == [1, 0, 2]
    assert codes(SMOKER, [0, 1, 2, -1], pa.int8()) == [0, 1, 2, 2]
    assert codes(SMOKER, [0.0, 1.0, 0.5, math.nan]) == [0, 1, 2, 2]
    assert codes(SMOKER, ["TRUE", " f ", "yes", "0", "maybe", ""]) == [1, 0, 1, 0, 2, 2]
    assert codes(Boolean(name="b", missing=Instead(value=True)), ["x", None]) == [1, 1]
    assert SMOKER.labels() == ("false", "true", "(missing)")


@pytest.mark.parametrize("column", EVERY, ids=lambda column: str(column.name))
def test_every_arrow_type_is_coded_within_the_size(column: Column) -> None:
    stamp = datetime.datetime(2020, 1, 5, 1, 2, 3)
    arrays = [
        pa.nulls(3),
        pa.array([], pa.string()),
        pa.array(["F", "4", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array([4, None])),
        pa.array([1, None], pa.int8()).dictionary_encode(),
        pa.chunked_array([["F"], ["4", None]]),
        pa.chunked_array([], pa.int64()),
        pa.chunked_array([pa.array(["F"]).dictionary_encode(), pa.array(["M", "4"]).dictionary_encode()]),
        pa.array(["F", None], pa.large_string()),
        pa.array(["F", None], pa.string_view()),
        pa.array([b"F", None], pa.binary_view()),
        pa.array([b"F4", None], pa.binary(2)),
        pa.array([np.float16(1.5), None], pa.float16()),
        pa.array([Decimal("4.0"), None], pa.decimal256(40, 1)),
        pa.array([stamp.time(), None]),
        pa.array([stamp, None], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([-(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp("s")),
        pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([datetime.timedelta(1), None]),
        pa.array([[1], None]),
        pa.array([{"a": 1}, None]),
        pa.array([None, None], pa.list_(pa.int8())),
        pa.RunEndEncodedArray.from_arrays([2, 3], ["F", None]),
        pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(["4", None])),
    ]
    for array in arrays:
        coded = column.encode(array)
        assert coded.dtype == np.uint8
        assert len(coded) == len(array)
        assert all(code < column.size for code in coded), array.type
        null = np.asarray(array.is_null(), dtype=bool) if array.type != pa.null() else np.ones(3, dtype=bool)
        assert all(code == column.missing_code for code in coded[null]), array.type


def test_dictionaries_larger_than_their_arrays_are_read_by_value() -> None:
    wide = pa.DictionaryArray.from_arrays(pa.array([700, 1], pa.int32()), pa.array([str(i) for i in range(1000)]))
    assert AGE.encode(wide).tolist() == [2, 0]


def test_codes_take_the_smallest_type() -> None:
    for upper, expected in ((255, np.uint8), (256, np.uint16), (65536, np.uint32)):
        column = Integer(name="i", lower=0, upper=upper, missing=Instead(value=0))
        assert column.encode(pa.array([upper])).dtype == expected
        assert column.encode(pa.array([upper])).tolist() == [upper]


def test_decode_is_uniform_over_whole_bins() -> None:
    drawn = AGE.decode(np.full(4000, 2), np.random.default_rng(1)).to_pylist()
    assert set(drawn) == {6, 7, 8, 9}
    days = DAY.decode(np.full(4000, 1), np.random.default_rng(1)).to_pylist()
    assert set(days) == {datetime.date(2020, 1, day) for day in range(6, 11)}


def test_decode_gives_types_of_the_kind_and_nulls_for_missing() -> None:
    generator = np.random.default_rng(2)
    assert SEX.decode(np.array([0, 2, 3]), generator).to_pylist() == ["F", "other", None]
    assert SMOKER.decode(np.array([0, 1, 2]), generator).to_pylist() == [False, True, None]
    kinds = {column.name: column.decode(np.array([0]), generator).type for column in EVERY}
    assert kinds == {
        "age": pa.int64(), "height": pa.float64(), "sex": pa.string(), "day": pa.date32(), "smoker": pa.bool_(),
        "raw": pa.int64(),
    }  # fmt: skip


class Largest:
    """Draws the largest number below one that a generator can."""

    def random(self, count: int) -> Any:
        return np.full(count, np.nextafter(1.0, 0.0))


def test_a_draw_that_rounds_to_the_next_edge_stays_in_its_bin() -> None:
    column = Real(name="r", lower=1e6, upper=1e6 + 1e-6, bins=500)
    low, high = column.bin_edges[:-1], column.bin_edges[1:]
    # the guard matters: without it some of these draws are the next bin's edge
    assert np.any(low + np.nextafter(1.0, 0.0) * (high - low) == high)
    largest: Any = Largest()
    assert column.encode(column.decode(np.arange(500), largest)).tolist() == list(range(500))


@pytest.mark.parametrize("value", [10**300, -(2**63), 10**18])
def test_a_missing_value_far_outside_is_refused_before_it_is_coded(value: int) -> None:
    with pytest.raises(ValueError, match="the value for missing must be within the bounds"):
        Integer(name="age", lower=0, upper=99, bins=5, missing=Instead(value=value))
