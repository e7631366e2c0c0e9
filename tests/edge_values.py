"""Values that engines and this package might interpret differently, schemas for them, and the comparison."""

import datetime
import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from syndic.data import Boolean, Categorical, Column, Date, Instead, Integer, Ordinal, Real, Schema, Source, Table

UTC = datetime.UTC
MIDNIGHT = datetime.datetime(2020, 1, 2)
ALMOST = datetime.datetime(2020, 1, 1, 23, 59, 59, 999_999)

INTEGERS = [0, 1, -1, 3, 5, 99, 100, -(2**63), 2**63 - 1, 2**53, 2**53 + 1, None]
FLOATS = [
    *(0.0, -0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 0.9, 1.0, 5e-324, -5e-324, 1e308, 2.5, 3.0, 99.999, 4.0),
    *(math.nextafter(edge, way) for edge in (0.1, 0.5, 0.9, 1.0, 3.0) for way in (-math.inf, math.inf)),
    *(math.nan, math.inf, -math.inf, None),
]
TEXTS = [
    *("a", " a ", "A", "", " ", "3", "3.0", "03", "3e0", "\u0663", "é", "e\u0301", "É", "ß", "ss", "nan", "NaN", "inf"),
    *(
        "true",
        "T",
        "f",
        "yes",
        "2020-01-02",
        "2020-01-02T00:00:00Z",
        "2020-01-01 23:00-01:00",
        "10:30",
        "o'h",
        '"',
        "%s",
    ),
    *("\\x41", "$1", "{}", "\u3000a\u3000", "\U0001f600", "1_000", "0x10", ".5", "1e400", "-0", None),
]
DECIMALS = [None if text is None else Decimal(text) for text in (
    "0.00", "0.10", "0.30", "0.29", "-0.10", "1.00", "3.00", "0.50", "999.99", "-999.99", "0.90", "0.91", None,
)]  # fmt: skip
LONG = [None if text is None else Decimal(text) for text in (
    "0.30000000000000004441", "0.30000000000000001665", "0.30000000000000001666", "0.09999999999999999167",
    "0.09999999999999999166", "0.10000000000000000000", "123456789012345678.00000000000000000001", "3", "-1", None,
)]  # fmt: skip
DAYS = [
    *(datetime.date(2020, 1, day) for day in (1, 2, 3, 4)),
    *(datetime.date(*ymd) for ymd in ((1, 1, 1), (9999, 12, 31), (1969, 12, 31), (2019, 12, 31), (2024, 2, 29))),
    None,
]
MOMENTS = [MIDNIGHT, ALMOST, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), None]
MOMENTS += [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2020, 1, 3, 12)]

# by Arrow type
NASTY: dict[pa.DataType, list[Any]] = {
    pa.int64(): INTEGERS,
    pa.int16(): [0, 1, 3, -1, 99, 32767, -32768, None],
    pa.float64(): FLOATS,
    pa.float32(): [0.0, -0.0, 0.1, 0.5, 3.0, math.nan, math.inf, -math.inf, None],
    pa.string(): TEXTS,
    pa.bool_(): [True, False, None],
    pa.decimal128(5, 2): DECIMALS,
    pa.decimal128(38, 20): LONG,
    pa.date32(): DAYS,
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): [None if at is None else at.replace(tzinfo=UTC) for at in MOMENTS],
}


def columns(name: str) -> list[Column]:
    """Every kind of column, with every rule for what is outside or missing."""
    day = datetime.date
    return [
        Integer(name=name, lower=0, upper=5),
        Integer(name=name, lower=-3, upper=96, bins=7, outside="missing", missing=Instead(value=3)),
        Integer(name=name, lower=-1, upper=2**53 - 2, bins=3),
        Integer(name=name, lower=0, upper=4_999, outside="missing"),
        Real(name=name, lower=0.1, upper=0.9, bins=8),
        Real(name=name, lower=0.0, upper=1.0, bins=10, outside="missing", missing=Instead(value=0.35)),
        Real(name=name, lower=0.1, upper=3.0, bins=250),
        Real(name=name, lower=-2.0, upper=3.3, bins=400, outside="missing"),
        Boolean(name=name),
        Boolean(name=name, missing=Instead(value=True)),
        Categorical(name=name, values=("3", "a", "é", "0", "T"), outside=Instead(value="a")),
        Categorical(name=name, values=("t", "2020-01-02", "e\u0301", "0.3", "inf"), outside="missing"),
        Categorical(name=name, values=("2", "1.", "ab", "0.", "1e", "-1"), prefix=2, tree=(("ab", "a"), ("2", "1.5"))),
        Ordinal(name=name, values=("F", "10:30", "true", "0.1"), missing=Instead(value="F")),
        Date(name=name, lower=day(2020, 1, 1), upper=day(2020, 1, 4)),
        Date(name=name, lower=day(1, 1, 1), upper=day(9999, 12, 31), bins=11, outside="missing"),
        Date(name=name, lower=day(2015, 1, 1), upper=day(2024, 2, 28)),
        Date(name=name, lower=day(2020, 1, 1), upper=day(2020, 1, 3), resolution="hour", bins=72, outside="missing"),
        Date(name=name, lower=day(1, 1, 1), upper=day(9999, 12, 31), resolution="year", bins=101),
        Date(name=name, lower=day(2019, 12, 1), upper=day(2020, 1, 3), resolution="minute", zone="Asia/Tokyo"),
    ]


def nasty_table() -> pa.Table:
    """All nasty values of all types, in columns c0, c1, ... of the same length, with a person and a place."""
    rows = max(len(values) for values in NASTY.values())
    arrays = [pa.array((values * rows)[:rows], kind) for kind, values in NASTY.items()]
    people = pa.array([None if row % 11 == 5 else row % 7 - 1 for row in range(rows)], pa.int64())
    names = [f"c{place}" for place in range(len(arrays))]
    return pa.table([*arrays, people, pa.array(range(rows), pa.int64())], names=[*names, "person", "place"])


def every_schema(table: pa.Table) -> list[Schema]:
    """Schemas over all its c-columns, so that each is read by each kind of column once."""
    names = [name for name in table.column_names if name.startswith("c")]
    kinds = len(columns("any"))
    return [
        Schema(columns=tuple(columns(name)[(turn + place) % kinds] for place, name in enumerate(names)))
        for turn in range(kinds)
    ]


def check_same(schema: Schema, embedded: Source, pushed: Source, *, few: bool = False, **options: Any) -> None:
    """Both sources give the same counts, and those of `pushed` were made by its engine. `few`: neighbours only."""
    here, there = Table(schema, embedded, **options), Table(schema, pushed, **options)
    two = itertools.pairwise(schema.names) if few else itertools.combinations(schema.names, 2)
    pairs = [(), (schema.names[0],), *two]
    way = there._pushdown()
    assert way is not None
    counted = way.marginals(pairs, None)
    assert counted is not None
    for names, one, other in zip(pairs, here.marginals(pairs), counted, strict=True):
        assert np.array_equal(one.values, other.values), (names, [schema[name] for name in names])
    assert there.rows() == here.rows()
    assert there.sums() == here.sums()
    # these are coded by the engine wherever it can be told how
    for start in range(0, len(schema.names), 4):
        some = schema.names[start : start + 4]
        found, expected = there.cells(some), here.cells(some)
        assert np.array_equal(found.cells, expected.cells), [schema[name] for name in some]
        assert np.array_equal(found.counts, expected.counts)
