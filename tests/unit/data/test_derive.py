"""Columns computed from other columns of the same row."""

import datetime
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import ArrowSource, Categorical, Date, Integer, Real, Schema, Table, open_source
from syndic.data.derive import expression
from syndic.document import from_builtins
from syndic.errors import InputError
from syndic.study.fit import fit

ROWS = pa.table(
    {
        "admitted": ["2020-02-28 22:00", "2020-02-29T23:30:00+01:00", "x", None],
        "discharged": ["2020-03-01 01:30", "2020-03-01", "2020-03-01", "2020-03-01"],
        "body mass": [80, 0, None, 7],
        "height": ["2", "nan", "0", "-1"],
        "born": [datetime.date(1990, 3, 1), datetime.date(1991, 3, 2), None, datetime.date(1, 1, 1)],
    }
)


def computed(text: str, rows: pa.Table = ROWS) -> list[Any]:
    (batch,) = rows.combine_chunks().to_batches()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return list(expression(text).values(batch).to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("days(admitted, discharged)", [2, 1, None, None]),
        ("hours(admitted, discharged)", [27.5, 1.5, None, None]),
        ("minutes(admitted, discharged) / 60", [27.5, 1.5, None, None]),
        ("hour(admitted)", [22, 22, None, None]),
        ("hour(admitted, zone='Europe/Zurich')", [22, 23, None, None]),
        ("minute(admitted)", [0, 30, None, None]),
        ("weekday(discharged)", [7, 7, 7, 7]),
        ("day(admitted) + 100 * month(admitted)", [228, 229, None, None]),
        ("year(born)", [1990, 1991, None, 1]),
        ("years(born, discharged)", [30, 28, None, 2019]),
        ('"body mass" / (height * height)', [20, None, None, 7]),
        ("log(height)", [math.log(2), None, None, None]),
        ("max('body mass', 10) // 3 % 5", [1, 3, None, 3]),
        ("-min(height, 0) + round(0.6)", [1, None, 1, 2]),
        ("height > 0", [1, None, 0, 0]),
        ("sqrt(height) + abs(height) - exp(0) * floor(1.5) + log10(100)", [3 + math.sqrt(2), None, 1, None]),
        ("exp(1000 * height)", [None, None, 1, 0]),
        ("-" * 294 + "height", [2, None, 0, -1]),
    ],
)
def test_expressions(text: str, expected: list[Any]) -> None:
    assert computed(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("yeer(born)", ["at letter 1: unknown function 'yeer' (did you mean 'year'?)"]),
        ("1 + dayz(a) + log(b, c)", ["at letter 5", "'day'", "at letter 15: log takes 1 argument, not 2"]),
        ("days(a - 1, b)", ["at letter 6: days takes columns"]),
        ("days(7, b)", ["days takes columns"]),
        ("years(a)", ["takes 2 arguments, not 1"]),
        ("max()", ["takes 1 argument, not 0"]),
        ("hour(a, zone='Mars')", ["`zone`"]),
        ("log(a, base=2)", ["`zone`"]),
        ("a.b", ["at letter 1: use numbers, columns"]),
        ("a < b < c", ["one comparison"]),
        ("a ** 9", ["use numbers"]),
        ("a and b", ["use numbers"]),
        ("True * a", ["use numbers"]),
        ("1e999 * a", ["use numbers"]),
        ("f(a)(b)", ["use numbers"]),
        ("[a for a in b]", ["use numbers"]),
        ("__import__('os').system('x')", ["use numbers"]),
        ("a +", ["no expression"]),
        ("class + 1", ["no expression; quote a column name"]),
        ("a" * 301, ["1 to 300 letters"]),
        (" ", ["1 to 300 letters"]),
        ("1 + 2", ["uses no column"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, problems: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        from_builtins(
            {"columns": [{"kind": "real", "name": "c", "lower": 0, "upper": 1, "derive": text}]}, Schema, where="s"
        )
    assert "'c': derive: " in str(caught.value)
    assert all(problem in str(caught.value) for problem in problems), str(caught.value)


STAY = Integer(name="stay", lower=0, upper=5, derive="days(admitted, discharged)")
SCHEMA = Schema(
    columns=(
        STAY,
        Categorical(name="on", values=("6", "7"), derive="weekday(admitted)"),
        Real(name="height", lower=0, upper=2, bins=2, derive="height / 2"),
        Date(name="out", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 12, 1), derive="discharged",
             resolution="month"),
    )
)  # fmt: skip


def test_a_table_counts_what_is_computed() -> None:
    table = Table(SCHEMA, ArrowSource(ROWS))
    assert SCHEMA.inputs == ("admitted", "discharged", "height")
    assert table.count(["stay"]).values.tolist() == [0, 1, 1, 0, 0, 0, 2]
    assert table.count(["on"]).values.tolist() == [1, 0, 1, 2]
    assert table.count(["height"]).values.tolist() == [2, 1, 1]
    assert table.count(["out"]).values[2] == 4
    assert fit(SCHEMA, ArrowSource(ROWS)).columns[0].missing == 2


def test_columns_of_an_expression_must_be_in_the_source() -> None:
    with pytest.raises(InputError, match=r"required columns \['admitted'\] are missing"):
        Table(SCHEMA, ArrowSource(ROWS.drop(["admitted"])))
    with pytest.raises(InputError, match=r"required columns \['admitted'\] are missing"):
        fit(SCHEMA, ArrowSource(ROWS.drop(["admitted"])))


def test_released_rows_have_the_column_itself() -> None:
    rows = pa.table({"stay": [1, 2], "on": ["6", "7"], "height": [0.1, None], "out": ["2020-03-01", None]})
    assert Table(SCHEMA.as_released(), ArrowSource(rows)).count(["stay"]).values.tolist()[1:3] == [1, 1]


def test_every_reader_computes_the_same(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet", use_dictionary=True)
    (tmp_path / "rows.csv").write_text(
        "\n".join([",".join(ROWS.column_names), *(
            ",".join("" if value is None else str(value) for value in row.values()) for row in ROWS.to_pylist()
        )])
    )  # fmt: skip
    coded = ROWS.set_column(0, "admitted", ROWS["admitted"].combine_chunks().dictionary_encode())
    expected = Table(SCHEMA, ArrowSource(ROWS)).cells()
    for thing in (tmp_path / "rows.parquet", tmp_path / "rows.csv", coded):
        found = Table(SCHEMA, open_source(thing)).cells()
        assert found.cells.tolist() == expected.cells.tolist()
        assert found.counts.tolist() == expected.counts.tolist()


def test_an_engine_that_counts_sends_rows_instead() -> None:
    ibis = pytest.importorskip("ibis", reason="ibis is not installed: pip install 'syndic[ibis]'")
    backend = ibis.duckdb.connect()
    backend.con.register("stays", ROWS)
    try:
        found = Table(SCHEMA, open_source(backend.table("stays"))).count(["stay"])
    finally:
        backend.disconnect()
    assert found.values.tolist() == [0, 1, 1, 0, 0, 0, 2]


ODD = st.none() | st.floats() | st.text(max_size=9) | st.sampled_from(["1", "1e308", "-inf", "2020-01-01", "x"])


@given(rows=st.lists(st.tuples(ODD, ODD), min_size=1, max_size=6), others=st.lists(st.tuples(ODD, ODD), max_size=4))
@settings(max_examples=60, deadline=None)
def test_a_row_is_computed_from_itself_alone(rows: list[tuple[Any, Any]], others: list[tuple[Any, Any]]) -> None:
    texts = [[None if value is None else str(value) for value in pair] for pair in (*rows, *others)]
    table = pa.table({"a": pa.array([x for x, _ in texts], pa.string()), "b": pa.array([y for _, y in texts])})
    table = table.cast(pa.schema([("a", pa.string()), ("b", pa.string())]))
    for text in ("a / b", "log(a) - exp(b)", "days(a, b) % a", "max(a, b) // b", "years(a, b)", "a > b"):
        together = computed(text, table)
        assert together[: len(rows)] == computed(text, table.slice(0, len(rows)))
        assert all(value is None or np.isfinite(value) for value in together)
