"""Any value in any cell: every reader returns as many rows as before and the same codes of all others."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_values import NASTY, columns
from syndic.data import Boolean, Categorical, Column, Date, Integer, Schema, Source, Table, open_source
from syndic_lab.bench.postgres_server import PostgresServer

SCHEMA = Schema(
    columns=(
        Categorical(name="a", values=("F", "M")),
        Integer(name="b", lower=0, upper=9),
        Boolean(name="c"),
    )
)


def coded(schema: Schema, source: Any) -> list[tuple[int, ...]]:
    """The codes of every row."""
    batches = Table(schema, open_source(source)).batches()
    return [row for batch in batches for row in zip(*(batch[name].tolist() for name in schema.names), strict=True)]


CELLS = st.sampled_from([b"F", b"M", b"3", b"", b"true", b'"F"', b"\xff", b'"a ""b"""'])
ANY = st.binary(max_size=9) | st.text('F",\r ', max_size=9).map(str.encode) | st.just(b"x" * ((1 << 20) + 9))


@given(
    width=st.integers(1, 3),
    cells=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5),
    odd=ANY.map(lambda line: line.replace(b"\n", b"")),
    data=st.data(),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_line_of_a_csv_file(
    width: int,
    cells: list[tuple[bytes, ...]],
    odd: bytes,
    data: st.DataObject,
    end: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    schema, file = SCHEMA.select("abc"[:width]), tmp_path_factory.mktemp("any") / "rows.csv"
    lines = [b",".join(row[:width]) for row in cells]
    place = data.draw(st.integers(0, len(lines) - 1))
    found = []
    for changed in (lines[place], odd):
        written = [",".join(schema.names).encode(), *lines[:place], changed, *lines[place + 1 :], b""]
        file.write_bytes(end.join(written))
        found.append(coded(schema, file))
        del found[-1][place]
    assert found[0] == found[1]
    assert len(found[0]) == len(lines) - 1


def arrow(array: pa.Array, folder: Path) -> Any:
    del folder
    return pa.table({"c": array})


def dictionary(array: pa.Array, folder: Path) -> Any:
    del folder
    return pa.table({"c": array.dictionary_encode()})


def parquet(array: pa.Array, folder: Path) -> Any:
    pq.write_table(pa.table({"c": array}), folder / "rows.parquet")
    return folder / "rows.parquet"


def ipc(array: pa.Array, folder: Path) -> Any:
    table = pa.table({"c": array})
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    return folder / "rows.arrow"


def pandas(array: pa.Array, folder: Path) -> Any:
    del folder
    return pytest.importorskip("pandas").DataFrame({"c": array.to_pylist()})


def polars(array: pa.Array, folder: Path) -> Any:
    del folder
    return pytest.importorskip("polars").DataFrame(pa.table({"c": array}))


def duckdb(array: pa.Array, folder: Path) -> Any:
    file, table = folder / "rows.duckdb", pa.table({"c": array})
    with pytest.importorskip("duckdb").connect(str(file)) as connection:
        connection.register("given", table)
        connection.execute("CREATE OR REPLACE TABLE rows AS SELECT * FROM given")
    return {"duckdb": str(file), "table": "rows"}


# bytes that are no text, in a column of texts
BROKEN = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe\x00"], pa.binary()).buffers())


@pytest.mark.parametrize(
    "carrier", [arrow, dictionary, parquet, ipc, pandas, polars, pytest.param(duckdb, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", NASTY, ids=str)
def test_any_cell_of_a_typed_column(
    kind: pa.DataType, carrier: Callable[[pa.Array, Path], Any], tmp_path: Path
) -> None:
    values = NASTY[kind]
    some = [value for value in values * 2 if value is not None][:3]
    # one file for all values: each stands between the same three others
    more = [pa.array([*some, value], kind) for value in values]
    if kind == pa.string() and carrier in (arrow, parquet, ipc):
        more.append(pa.concat_arrays([pa.array(some, kind), BROKEN]))
    source = carrier(pa.concat_arrays(more), tmp_path)
    (tmp_path / "alone").mkdir()
    three = carrier(pa.array(some, kind), tmp_path / "alone")
    for column in columns("c"):
        codes = coded(Schema(columns=(column,)), source)
        assert len(codes) == 4 * len(more)
        alone = coded(Schema(columns=(column,)), three)
        assert all(codes[4 * place : 4 * place + 3] == alone for place in range(len(more)))


DUCKDB = {
    "DATE": ("'infinity'", "'-infinity'", "'5881580-07-10'"),
    "TIMESTAMP": ("'infinity'", "'294247-01-10 04:00:54.775806'"),
    "TIMESTAMPTZ": ("'-infinity'",),
    "TIMESTAMP_NS": ("'infinity'", "'2262-04-11 23:47:16.854775806'"),
    "TIME": ("'24:00:00'",),
    "INTERVAL": ("INTERVAL 178956970 YEARS",),
    "HUGEINT": ("170141183460469231731687303715884105727",),
    "UHUGEINT": ("340282366920938463463374607431768211455",),
    "DECIMAL(38,0)": ("99999999999999999999999999999999999999",),
    "DOUBLE": ("'nan'", "'inf'"),
    "VARCHAR": ("chr(0)", "repeat('x', 2000000)"),
    "BLOB": ("'\\xFF\\x00'::BLOB",),
    "BIT": ("'101'",),
    "INTEGER[]": ("[1, NULL]",),
    "STRUCT(a INTEGER)": ("{'a': 1}",),
    "MAP(INTEGER, VARCHAR)": ("MAP {1: 'a'}",),
    "UNION(a INTEGER, b VARCHAR)": ("union_value(b := 'a')",),
}
POSTGRES = {
    "date": ("'infinity'", "'-infinity'", "'4714-11-24 BC'", "'5874897-12-31'"),
    "timestamp": ("'infinity'", "'-infinity'", "'4714-11-24 BC'", "'294276-12-31 23:59:59.999999'"),
    "timestamptz": ("'infinity'", "'294276-12-31 23:59:59.999999'"),
    "time": ("'24:00:00'",),
    "interval": ("'178000000 years'",),
    "numeric": ("'NaN'", "'Infinity'", "1e1000", "1e-1000"),
    "float8": ("'NaN'", "'-Infinity'"),
    "int8": ("9223372036854775807",),
    "text": ("E'\\x01'", "repeat('x', 2000000)"),
    "bytea": ("'\\x00ff'",),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",),
    "jsonb": ("'null'",),
    "int[]": ("'{{1,2},{3,4}}'", "'{}'", "'[5:6]={1,2}'"),
}
KINDS: tuple[Callable[[str], Column], ...] = (
    lambda name: Categorical(name=name, values=("a", "3")),
    lambda name: Integer(name=name, lower=0, upper=9),
    lambda name: Date(name=name, lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 9)),
)


def statements(cells: dict[str, tuple[str, ...]]) -> str:
    """A table `odd` of three rows; the second has these values, the others none."""
    every = [(kind, value) for kind, values in cells.items() for value in values]
    named = ", ".join(f"c{place} {kind}" for place, (kind, _) in enumerate(every))
    empty = f"({', '.join('NULL' for _ in every)})"
    return (
        f"CREATE TABLE odd ({named}); INSERT INTO odd VALUES {empty}; "
        f"INSERT INTO odd VALUES ({', '.join(value for _, value in every)}); INSERT INTO odd VALUES {empty};"
    )


def check_three_rows(source: Source) -> None:
    for kind in KINDS:
        schema = Schema(columns=tuple(map(kind, source.names())))
        first, _, last = coded(schema, source)
        assert first == last == tuple(column.missing_code for column in schema.columns)
        for size in (None, 3):
            table = Table(schema, source, size=size)
            assert {int(one.sum()) for one in table.marginals([(name,) for name in schema.names])} == {3}


@pytest.mark.parametrize("through", ["duckdb", "ibis"])
def test_any_cell_of_duckdb(through: str, tmp_path: Path) -> None:
    file = str(tmp_path / "odd.duckdb")
    with pytest.importorskip("duckdb").connect(file) as connection:
        connection.execute(statements(DUCKDB))
    pytest.importorskip(through)
    check_three_rows(open_source({through: f"duckdb://{file}" if through == "ibis" else file, "table": "odd"}))


@pytest.mark.parametrize("through", ["postgres", "ibis"])
def test_any_cell_of_postgres(through: str, server: PostgresServer) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    pytest.importorskip(through if through == "ibis" else "adbc_driver_postgresql")
    server.execute(f"DROP TABLE IF EXISTS odd; {statements(POSTGRES)}")
    check_three_rows(open_source({through: server.uri, "table": "odd"}))
