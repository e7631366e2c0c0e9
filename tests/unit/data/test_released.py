import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from syndic.data import (
    Boolean,
    Categorical,
    Date,
    Integer,
    Real,
    ReleasedTable,
    Schema,
    Table,
    decode_codes,
    decode_rows,
    open_source,
    released,
)  # fmt: skip
from syndic.errors import InputError

SCHEMA = Schema(
    columns=(
        Categorical(name="<b>sex</b>", values=("F", "M")),
        Integer(name="age", lower=0, upper=99, bins=7),
        Real(name="height", lower=-1.0, upper=2.0, bins=3),
        Boolean(name="smoker"),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 12, 31), bins=5),
    )
)
RANDOM = np.random.default_rng(8)
CELLS = np.sort(RANDOM.choice(SCHEMA.domain.size, 200, replace=False))
COUNTS = RANDOM.integers(0, 9, 200)
TABLE = decode_rows(SCHEMA, CELLS, COUNTS, np.random.default_rng(1))


def counts_of(thing: object) -> dict[int, int]:
    found = Table(SCHEMA, open_source(thing)).cells()
    return dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


EXPECTED = {int(cell): int(count) for cell, count in zip(CELLS, COUNTS, strict=True) if count}


def test_rows_fall_in_the_cells_they_were_made_for() -> None:
    assert len(TABLE) == COUNTS.sum()
    assert TABLE.names == SCHEMA.names
    assert counts_of(TABLE.to_arrow()) == EXPECTED


def test_timestamps_are_written_in_iso_format(tmp_path: Path) -> None:
    day = datetime.date(2020, 1, 1)
    schema = Schema(columns=(Date(name="at", lower=day, upper=day, resolution="hour"),))
    decode_rows(schema, np.array([8, 24]), np.array([1, 1]), np.random.default_rng(1)).write(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().split() == ['"at"', '"2020-01-01T08:00:00"']
    assert Table(schema, open_source(tmp_path / "rows.csv")).count(["at"]).values[8] == 1


def test_parts_do_not_change_what_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(released, "DECODED_ROWS", 7)
    parted = decode_rows(SCHEMA, CELLS, COUNTS, np.random.default_rng(1))
    assert len(parted) == len(TABLE)
    assert counts_of(parted.to_arrow()) == EXPECTED


def test_frames_hold_the_same_rows() -> None:
    assert isinstance(TABLE.to_pandas(), pd.DataFrame)
    assert isinstance(TABLE.to_polars(), pl.DataFrame)
    assert counts_of(TABLE.to_pandas()) == counts_of(TABLE.to_polars()) == EXPECTED


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.arrow"])
def test_files_hold_the_same_rows(tmp_path: Path, name: str) -> None:
    TABLE.write(tmp_path / name)
    assert counts_of(tmp_path / name) == EXPECTED


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows\.xlsx.*\.parquet"):
        TABLE.write(tmp_path / "rows.xlsx")


def test_no_rows_still_have_columns() -> None:
    nothing = decode_rows(SCHEMA, CELLS, COUNTS * 0, np.random.default_rng(1))
    assert len(nothing) == 0
    assert nothing.to_arrow().schema == TABLE.to_arrow().schema
    assert decode_rows(SCHEMA, CELLS[:0], COUNTS[:0], np.random.default_rng(1)).names == SCHEMA.names


@pytest.mark.parametrize(
    ("cells", "counts", "text"),
    [([0], [-1], "negative"), ([0, 1], [1], "one count"), ([-1], [1], "between"), ([10**9], [1], "between")],
)
def test_cells_and_counts_are_checked(cells: list[int], counts: list[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        decode_rows(SCHEMA, np.array(cells), np.array(counts), np.random.default_rng(1))


def test_codes_of_columns_are_decoded_in_order_also_where_cells_cannot_be_numbered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = Schema(columns=tuple(Integer(name=f"c{place}", lower=0, upper=99, bins=50) for place in range(20)))
    assert wide.domain.size > 2**63
    codes = {name: RANDOM.integers(0, wide.domain[name], 50) for name in wide.names}
    monkeypatch.setattr(released, "DECODED_ROWS", 7)
    made = decode_codes(wide, codes, np.random.default_rng(1)).to_arrow()
    for column in wide.columns:
        assert (column.encode(made[column.name]) == codes[column.name]).all()
    none = decode_codes(wide, {name: codes[name][:0] for name in wide.names}, np.random.default_rng(1))
    assert none.to_arrow().schema == made.schema


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"age": [0]}, "need the same number"),
        ({"age": [0, 99]}, "between 0 and 7"),
        ({"age": [-1, 0]}, "between"),
        ({}, "missing"),
    ],
)
def test_codes_are_checked(changed: dict[str, list[int]], text: str) -> None:
    codes = {name: np.zeros(2, dtype=np.int64) for name in SCHEMA.names if changed or name != "age"}
    codes |= {name: np.array(values) for name, values in changed.items()}
    with pytest.raises(ValueError, match=text):
        decode_codes(SCHEMA, codes, np.random.default_rng(1))


def test_html_shows_first_rows_and_escapes() -> None:
    table = ReleasedTable(pa.table({"<b>": ["<script>", None] * 50, "x": [0.123456789] * 100}))
    text = table._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;" in text
    assert "0.123457" in text
    assert text.count("<tr>") == 11
    assert "100 rows" in text
