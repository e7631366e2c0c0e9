"""One suite that every source passes, and what each kind alone has to stand."""

import datetime
import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from syndic.data import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    Real,
    Schema,
    Source,
    SourceSpec,
    Table,
    open_source,
)
from syndic.document import from_toml
from syndic.errors import InputError, MissingExtraError

SCHEMA = Schema(
    columns=(
        Categorical(name="sex", values=("F", "M")),
        Integer(name="age in years", lower=0, upper=9),
        Real(name="height.m", lower=0.0, upper=2.0, bins=4),
        Boolean(name='"smoker"'),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 10)),
    )
)
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "sex": ["F", "M", "X", None],
        "age in years": [3, 100, None, 0],
        "height.m": [1.75, None, -1.0, 0.5],
        '"smoker"': [True, False, None, True],
        "day": [datetime.date(2020, 1, 2), None, datetime.date(2019, 1, 1), datetime.date(2020, 1, 10)],
    }
)
CODES = {
    "sex": [0, 1, 2, 3],
    "age in years": [3, 9, 10, 0],
    "height.m": [3, 4, 0, 1],
    '"smoker"': [1, 0, 2, 1],
    "day": [1, 10, 0, 9],
}


def csv(folder: Path) -> Any:
    pa.csv.write_csv(ROWS, folder / "rows.csv")
    return folder / "rows.csv"


def gzipped(folder: Path) -> Any:
    (folder / "rows.csv.gz").write_bytes(gzip.compress(csv(folder).read_bytes()))
    return str(folder / "rows.csv.gz")


def tsv(folder: Path) -> Any:
    pa.csv.write_csv(ROWS, folder / "rows.tsv", pa.csv.WriteOptions(delimiter="\t"))
    return folder / "rows.tsv"


def parquet(folder: Path) -> Any:
    pq.write_table(ROWS, folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_folder(folder: Path) -> Any:
    pq.write_table(ROWS.slice(0, 3), folder / "part-1.parquet")
    # another order of columns and another type of text
    rest = ROWS.slice(3).select(list(reversed(ROWS.column_names)))
    pq.write_table(rest.set_column(4, "sex", rest["sex"].cast(pa.large_string())), folder / "part-2.parquet")
    return folder


def arrow(folder: Path) -> Any:
    with pa.ipc.new_file(folder / "rows.arrow", ROWS.schema) as writer:
        writer.write_table(ROWS)
    return {"path": str(folder / "rows.arrow")}


def duckdb_file(folder: Path) -> str:
    file = str(folder / "rows.duckdb")
    with duckdb.connect(file) as connection:
        connection.register("rows", ROWS)
        connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
    return file


def objects(_: Path) -> Any:
    return pd.DataFrame({name: pd.Series(ROWS[name].to_pylist(), dtype=object) for name in ROWS.column_names})


MAKERS: dict[str, Callable[[Path], Any]] = {
    "csv": csv,
    "csv.gz": gzipped,
    "tsv": tsv,
    "parquet": parquet,
    "parquet folder": parquet_folder,
    "arrow file": arrow,
    "arrow table": lambda _: ROWS,
    "record batch": lambda _: ROWS.to_batches()[0],
    "pandas": lambda _: ROWS.to_pandas(),
    "pandas objects": objects,
    "pandas arrow": lambda _: ROWS.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda _: pl.DataFrame(ROWS),
    "polars lazy": lambda _: pl.DataFrame(ROWS).lazy(),
    "duckdb table": lambda folder: {"duckdb": duckdb_file(folder), "table": "visits"},
    "duckdb query": lambda folder: SourceSpec(duckdb=duckdb_file(folder), query="SELECT * FROM visits -- all"),
}


@pytest.fixture(params=MAKERS, name="source")
def every_source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    return open_source(MAKERS[request.param](tmp_path))


def test_rows_become_the_same_codes_from_everywhere(source: Source) -> None:
    table = Table(SCHEMA, source)
    found: dict[str, list[int]] = {name: [] for name in SCHEMA.names}
    for batch in table.batches():
        for name, codes in batch.items():
            found[name] += codes.tolist()
    assert found == CODES
    # a source can be read again
    assert table.rows() == 4


def test_only_the_columns_asked_for_in_the_order_asked(source: Source) -> None:
    assert set(source.names()) == set(ROWS.column_names)
    for batch in source.batches(["day", "sex"]):
        assert batch.schema.names == ["day", "sex"]


def test_missing_columns_are_named_and_no_others(source: Source) -> None:
    schema = Schema(columns=(*SCHEMA.columns, Boolean(name="weight"), Boolean(name="city")))
    with pytest.raises(InputError) as caught:
        Table(schema, source)
    assert "['weight', 'city']" in str(caught.value)
    assert source.describe() in str(caught.value)
    assert "height" not in str(caught.value)


def test_describe_has_no_folder(source: Source, tmp_path: Path) -> None:
    assert str(tmp_path) not in source.describe()


def test_csv_junk_never_refuses(tmp_path: Path) -> None:
    file = tmp_path / "junk.csv"
    lines = [
        b"sex,age",
        *[b"F,3"] * 700_000,
        b"M,x",
        b"\xff\xfe,4",
        b"F",
        b"F,1,2",
        b'"F\nM",5',
        b" M , 6 ",
        b",",
        b"F,1e3",
    ]
    file.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    schema = Schema(columns=(SCHEMA["sex"], Integer(name="age", lower=0, upper=9)))
    counts = Table(schema, open_source(file)).count(["sex", "age"]).values
    expected = {(0, 3): 700_000, (1, 10): 1, (2, 4): 1, (1, 6): 1, (3, 10): 5, (0, 9): 1}
    assert {(i, j): int(counts[i, j]) for i, j in zip(*counts.nonzero(), strict=True)} == expected


def test_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("sex,age\n")
    assert Table(SCHEMA.select(["sex"]), open_source(tmp_path / "empty.csv")).rows() == 0


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("sex;age", "only one field: separate fields by commas"),
        (" Sex ,age", r"\['sex'\] are there with other capitals or spaces"),
        ("gender,age", "are missing$"),
    ],
)
def test_missing_columns_are_explained_without_quoting_the_first_line(tmp_path: Path, header: str, said: str) -> None:
    (tmp_path / "x.csv").write_text(f"{header}\nF,1\n")
    with pytest.raises(InputError, match=said) as caught:
        Table(SCHEMA.select(["sex"]), open_source(tmp_path / "x.csv"))
    assert caught.value.elsewhere == "the required columns ['sex'] are missing"
    assert header.strip() not in str(caught.value)


def test_a_file_of_an_unknown_type_may_be_a_party_file(tmp_path: Path) -> None:
    (tmp_path / "north.toml").touch()
    with pytest.raises(InputError, match=r"'\.toml'; expected .*name must end in party\.toml"):
        open_source(tmp_path / "north.toml")


def test_columns_there_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("sex,sex\nF,M\n")
    with pytest.raises(InputError, match=r"\['sex'\] appear more than once"):
        Table(SCHEMA.select(["sex"]), open_source(tmp_path / "twice.csv"))


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.arrow", "x.feather"])
def test_damaged_files_are_named_and_not_quoted(tmp_path: Path, name: str) -> None:
    content = b"" if name.endswith("csv") else b"secret,secret\nsecret"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as caught:
        Table(SCHEMA, open_source(tmp_path / name))
    assert "secret" not in str(caught.value)


def test_damage_in_the_middle_is_an_input_error(tmp_path: Path) -> None:
    file = parquet(tmp_path)
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"rows\.parquet"):
        Table(SCHEMA, open_source(file)).rows()


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ("nowhere.csv", r"nowhere\.csv: no such file"),
        ({"path": "nowhere.parquet"}, "no such file"),
        ({"duckdb": "nowhere.db", "table": "t"}, r"nowhere\.db: no such file"),
        ({}, "exactly one of"),
        ({"path": "a", "duckdb": "b"}, "exactly one of"),
        ({"duckdb": "b"}, "`query` or a `table`"),
        ({"path": "a.csv", "query": "select 1"}, "`path` takes neither"),
        ({"file": "a.csv"}, "file"),
        (3, "a int is not a source"),
    ],
)
def test_what_is_no_source_is_refused(thing: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        open_source(thing).names()


def test_unknown_endings_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.parquet"):
        open_source(tmp_path)
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(InputError, match=r"rows\.xlsx.*\.csv"):
        open_source(tmp_path / "rows.xlsx")


def test_party_toml_spells_a_source() -> None:
    text = 'duckdb = "visits.db"\nquery = "select * from visits"'
    assert from_toml(text, SourceSpec, where="party.toml").duckdb == "visits.db"


def test_duckdb_is_opened_for_reading_only(tmp_path: Path) -> None:
    spec = {"duckdb": duckdb_file(tmp_path), "query": "SELECT * FROM absent"}
    with pytest.raises(InputError, match=r"rows\.duckdb.*query"):
        open_source(spec).names()
    inserting = {"duckdb": duckdb_file_path(tmp_path), "query": "INSERT INTO visits SELECT * FROM visits RETURNING *"}
    with pytest.raises(InputError, match="query"):
        open_source(inserting).names()


def test_a_query_that_fails_amid_the_rows_quotes_none(tmp_path: Path) -> None:
    failing = "SELECT CASE WHEN range = 190000 THEN 'secret' ELSE '1' END::int AS age FROM range(200000)"
    source = open_source({"duckdb": duckdb_file(tmp_path), "query": failing})
    with pytest.raises(InputError, match="query") as caught:
        Table(Schema.from_domain({"age": 2}), source).rows()
    assert "secret" not in str(caught.value)


def duckdb_file_path(folder: Path) -> str:
    return str(folder / "rows.duckdb")


def test_a_missing_library_says_which_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source({"duckdb": duckdb_file(tmp_path), "table": "visits"})
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"syndic\[duckdb\]"):
        source.names()
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(MissingExtraError, match=r"syndic\[postgres\]"):
        open_source({"postgres": "postgresql://u:secret@h/d", "table": "t"}).names()


def test_mixed_objects_follow_the_missing_rule() -> None:
    odd = [3, "4", 5.0, "x", [1], {}, None, float("nan"), pd.NA, 10**5000, "\ud800", b"\xff", datetime.date(2020, 1, 1)]
    frame = pd.DataFrame({"age": pd.Series(odd, dtype=object), "sex": pd.Series(["F"] * len(odd), dtype="category")})
    schema = Schema(columns=(Integer(name="age", lower=0, upper=9), SCHEMA["sex"]))
    batch = next(Table(schema, open_source(frame)).batches())
    assert batch["age"].tolist() == [3, 4, 5, 10, 10, 10, 10, 10, 10, 9, 10, 10, 10]
    assert set(batch["sex"].tolist()) == {0}


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Categorical(name="c", values=("true", "false")), [True] * 9),
        (Integer(name="c", lower=0, upper=3), [True] * 9),
        (Categorical(name="c", values=("0.5", "1.0")), [1.0] * 9),
        (Categorical(name="c", values=("1", "2")), [1, 2] * 9),
        (Categorical(name="c", values=("1", str(2**60))), [2**60 + 1, 1]),
        (Categorical(name="c", values=("2020-01-01", "x")), [datetime.date(2020, 1, 1)] * 9),
        (Categorical(name="c", values=("2020-01-01", "x")), [datetime.datetime(2020, 1, 1)] * 9),
    ],
    ids=["truths", "counted truths", "fractions", "integers", "large integers", "dates", "times"],
)
@pytest.mark.parametrize("odd", [None, "u", 0.5, float("nan")])
def test_one_odd_value_changes_no_other_code_in_pandas(column: Column, values: list[Any], odd: Any) -> None:
    schema = Schema(columns=(column,))
    series = [pd.Series(values), pd.Series([*values, odd]), pd.Series([*values, odd], dtype=object)]
    series += [one.astype("category") for one in series]
    found = [next(Table(schema, open_source(one.to_frame("c"))).batches())["c"] for one in series]
    for codes in found:
        assert codes[: len(values)].tolist() == found[0][: len(values)].tolist()
        assert max(codes[: len(values)]) < 2  # listed, and so neither outside nor missing


def test_categories_code_alike_beside_categories_of_any_type() -> None:
    schema = Schema(columns=(Categorical(name="c", values=("1", "2")),))
    for categories in ([1.0, 2.0], [1.0, "zzz"], [True, 2]):
        frame = pd.DataFrame({"c": pd.Categorical([1.0, 1.0, None], categories=categories)})
        assert next(Table(schema, open_source(frame)).batches())["c"].tolist() == [0, 0, 3]


def test_lines_of_floats_beside_a_word_in_pandas() -> None:
    schema = Schema(columns=(Categorical(name="c", values=("1", "2")),))
    for lines in ("c\n1.0\n2.00\n", "c\n1.0\n2.00\nunknown\n"):
        frame = pd.read_csv(io.StringIO(lines))
        assert next(Table(schema, open_source(frame)).batches())["c"].tolist()[:2] == [0, 1]


def test_polars_types_that_arrow_lacks_are_read_by_value() -> None:
    schema = Schema(columns=(Integer(name="age", lower=0, upper=9),))
    for values, kind in (([3, object(), "4"], pl.Object), ([3, 2**100, 4], pl.Int128)):
        frame = pl.DataFrame({"age": pl.Series(values, dtype=kind)})
        codes = next(Table(schema, open_source(frame)).batches())["age"].tolist()
        assert codes == [3, 10 if kind == pl.Object else 9, 4]


def test_periods_and_intervals_are_of_a_wrong_type() -> None:
    schema = Schema(columns=(Integer(name="age", lower=0, upper=99),))
    for values in (pd.period_range("1975", periods=2, freq="Y"), pd.interval_range(0, 2)):
        assert next(Table(schema, open_source(pd.DataFrame({"age": values}))).batches())["age"].tolist() == [100, 100]


def test_a_source_passes_through() -> None:
    source = open_source(ROWS)
    assert open_source(source) is source


@pytest.mark.parametrize("rows", [100_000, 7_000])
def test_a_parquet_file_is_not_held_in_memory(rows: int, tmp_path: Path) -> None:
    """Arrow keeps all row groups that it is asked for at once: large ones are asked for one by one."""
    draws, path = np.random.default_rng(1), tmp_path / "many.parquet"
    table = pa.table({name: draws.integers(0, 1 << 30, 2_000_000) for name in "ab"})
    pq.write_table(table, path, row_group_size=rows)
    columns = {name: table[name].combine_chunks() for name in "ab"}
    pool, read, most = pa.default_memory_pool(), 0, 0
    start = pool.bytes_allocated()
    for batch in open_source(path).batches(["b", "a"]):
        assert batch.column("a").equals(columns["a"][read : read + batch.num_rows])
        read += batch.num_rows
        most = max(most, pool.bytes_allocated() - start)
    assert read == table.num_rows
    # of 32 MB
    assert most < 8_000_000
