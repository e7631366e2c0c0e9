"""Files of rows, through the sources that parties use: coded or refused, and nothing of a row in the reason."""

import datetime
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import CANARY, TEXTS, fuzz, outcome, spoiled
from syndic.data import Boolean, Categorical, Column, Date, Integer, Real, Schema, Table, open_source
from syndic.data.aligned import IdRule, distinct_ids
from syndic.errors import InputError, SyndicError

pytestmark = pytest.mark.fuzz

NAMES = ("colour", "age", "score", "born", "smoker")
SCHEMA = Schema(
    columns=(
        Categorical(name="colour", values=("red", "green", "7")),
        Integer(name="age", lower=0, upper=99, bins=5),
        Real(name="score", lower=-1.0, upper=1.0, bins=4),
        Date(name="born", lower=datetime.date(1950, 1, 1), upper=datetime.date(2020, 1, 1), bins=7),
        Boolean(name="smoker"),
    )
)
FIELDS = st.sampled_from(
    [CANARY, f'"{CANARY}', "red", "7", "99", "-1", "0.5", "nan", "inf", "1e400", "2020-02-30", "1990-01-01", "true", "",
     '"a,b"', '"', '""', "\x00", "\r", "\ufeff", "0" * 400, "9" * 5000, *TEXTS]
)  # fmt: skip
BREAKS = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", ",", "\x00"])
ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-16", "latin-1", "utf-8-sig", "utf-32"])


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """Return a text file: ragged, with stray quotes, in any encoding, its bytes spoiled now and then."""
    head = draw(
        st.sampled_from([",".join(NAMES)] * 4 + ["", "\n", f"{CANARY},age", '"colour","age', "age,age", "\x00"])
    )
    rows = draw(st.lists(st.lists(FIELDS, max_size=7), max_size=8))
    text = head + draw(BREAKS) + "".join(",".join(row) + draw(BREAKS) for row in rows)
    data = text.encode(draw(ENCODINGS), "replace")
    if draw(st.booleans()):
        # Python's generators are of no use for lines as long as a block
        data += b"red," + b"x" * draw(st.sampled_from([0, 10, 1 << 20, (1 << 20) + 1, 5 << 20])) + b"\nred,7,0,,\n"
    return draw(spoiled(data)) if draw(st.booleans()) else data


def read(path: Path, *, names: tuple[str, ...] = NAMES, person: str | None = None) -> list[int] | None:
    """Return how many rows had each colour; None where the file is refused."""
    schema = Schema(columns=tuple(SCHEMA[name] for name in names))

    def codes() -> list[int]:
        table = Table(schema, open_source(path), person=person)
        coded = list(table.batches())
        for batch in coded:
            assert len({len(column) for column in batch.values()}) == 1
            assert all(int(batch[column.name].max(initial=0)) < column.size for column in schema.columns)
        counted = table.count(names[:1]).values
        assert int(counted.sum()) == sum(len(batch[names[0]]) for batch in coded)
        return [int(count) for count in counted]

    found = outcome(codes, kinds=(InputError,))
    return None if isinstance(found, SyndicError) else found


@fuzz()
@given(data=csv_files())
def test_any_text_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    read(path)
    read(path, names=("colour",), person="age")
    outcome(lambda: distinct_ids(open_source(path), ("age", "colour"), IdRule()), kinds=(InputError,))


@fuzz(0.5)
@given(data=csv_files())
def test_a_line_more_leaves_all_others_as_they_are(tmp_path: Path, data: bytes) -> None:
    """What one person's line holds changes neither how many rows there are nor any other row."""
    whole = ",".join(NAMES).encode() + b"\nred,5,0,1990-01-01,true\n" * 3
    line = data.replace(b"\n", b" ")[:4000]
    for place, text in enumerate((whole, whole + line + b"\n" + b"green,5,0,1990-01-01,true\n")):
        (tmp_path / f"{place}.csv").write_bytes(text)
    one, other = (read(tmp_path / f"{place}.csv", names=("colour",)) for place in (0, 1))
    assert one is not None
    assert other is not None
    difference = np.array(other) - np.array(one)
    assert difference[1] >= 1
    assert difference.sum() == 2


KINDS: dict[str, Any] = {
    "int": (pa.int64(), [0, 5, -(2**63), None]),
    "small": (pa.uint8(), [0, 255, None]),
    "float": (pa.float64(), [0.5, math.nan, math.inf, -0.0, None]),
    "text": (pa.string(), ["red", CANARY, "7", "", None]),
    "bytes": (pa.binary(), [b"red", b"\xff\xfe", CANARY.encode(), None]),
    "date": (pa.date32(), [datetime.date(1990, 1, 1), None]),
    "moment": (pa.timestamp("us", "UTC"), [datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC), None]),
    "truth": (pa.bool_(), [True, False, None]),
    "list": (pa.list_(pa.string()), [[CANARY], [], None]),
    "record": (pa.struct([("a", pa.string())]), [{"a": CANARY}, None]),
    "map": (pa.map_(pa.string(), pa.int8()), [[(CANARY, 1)], None]),
    "decimal": (pa.decimal128(20, 3), [None]),
    "null": (pa.null(), [None]),
    "duration": (pa.duration("s"), [datetime.timedelta(1), None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["red", CANARY, None]),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Return a table whose columns have the schema's names and types of any kind."""
    count = draw(st.integers(0, 6))
    columns = {}
    for name in NAMES:
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        columns[name] = pa.array(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)), kind)
    return pa.table(columns)


def as_parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def as_arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return sink.getvalue()


@fuzz(0.5)
@given(table=tables(), ending=st.sampled_from(["parquet", "arrow"]))
def test_columns_of_any_type_are_read(tmp_path: Path, table: pa.Table, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(as_parquet(table) if ending == "parquet" else as_arrow(table))
    found = read(path)
    assert found is not None
    assert sum(found) == table.num_rows
    read(path, names=("colour",), person="age")


PLAIN: Column = SCHEMA["colour"]
WHOLE = pa.table(
    {
        "colour": ["red", "green", CANARY, None] * 30,
        "age": [1, 2, None, 99] * 30,
        "score": [0.1, math.nan, -0.5, None] * 30,
        "born": pa.array([datetime.date(1990, 1, 1), None] * 60, pa.date32()),
        "smoker": [True, False, None, True] * 30,
    }
)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"compression": "none", "use_dictionary": False},
    {"compression": "zstd", "row_group_size": 50},
    {"data_page_version": "2.0", "write_page_checksum": True},
]
PARQUET = [as_parquet(WHOLE, **options) for options in OPTIONS]
ARROW = as_arrow(WHOLE)


@fuzz()
@given(data=st.sampled_from(PARQUET).flatmap(spoiled))
def test_a_spoiled_parquet_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    read(path)
    read(path, names=("colour",), person="age")


@fuzz()
@given(data=spoiled(ARROW))
def test_a_spoiled_arrow_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rows.arrow"
    path.write_bytes(data)
    read(path)
    read(path, names=("colour",), person="age")


@fuzz(0.5)
@given(
    name=st.sampled_from(["rows.csv", "rows.csv.gz", "rows.tsv", "rows.parquet", "rows.feather", "rows.xlsx", "rows"]),
    data=st.sampled_from([b"", b"PAR1", b"ARROW1", *PARQUET, ARROW]).flatmap(spoiled) | st.binary(max_size=60),
)
def test_a_file_of_another_kind_than_its_name_says_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    read(path)
