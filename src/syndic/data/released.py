"""Released tables: the rows that are published."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data.schema import Schema
from syndic.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

SHOWN_ROWS = 10
DECODED_ROWS = 1 << 20


@final
@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """Published synthetic rows, made from noisy counts. They are public."""

    table: pa.Table

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return self.table

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame."""
        try:
            frame: pd.DataFrame = self.table.to_pandas()
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame."""
        try:
            import polars as pl  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        return pl.DataFrame(self.table)

    def write(self, path: str | Path) -> None:
        """Write a .parquet, .csv or .arrow file."""
        path = Path(path)
        if path.suffix == ".parquet":
            pq.write_table(self.table, path)
        elif path.suffix == ".csv":
            # timestamps as ISO text: Arrow writes a space instead of the T
            iso = [
                pc.strftime(one, "%Y-%m-%dT%H:%M:%S") if pa.types.is_timestamp(one.type) else one
                for one in self.table.columns
            ]
            pa.csv.write_csv(pa.table(iso, names=self.table.column_names), path)
        elif path.suffix == ".arrow":
            with pa.ipc.new_file(path, self.table.schema) as writer:
                writer.write_table(self.table)
        else:
            raise InputError(f"{path.name}: unknown file type; a table can be written as .parquet, .csv or .arrow")

    def _repr_html_(self) -> str:
        rows = self.table.slice(0, SHOWN_ROWS).to_pylist()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in self.names) + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(self)} rows</p>"


def decode_rows(
    schema: Schema, cells: NDArray[np.int64], counts: NDArray[np.int64], generator: np.random.Generator
) -> ReleasedTable:
    """Return `counts` rows for each linear cell of the schema's domain, uniform in bins, in cell order."""
    domain = schema.domain
    if len(cells) != len(counts):
        raise ValueError(f"there are {len(cells)} cells but {len(counts)} counts: give one count for each cell")
    if np.any(np.asarray(counts) < 0):
        raise ValueError("counts must not be negative")
    if len(cells) and (np.min(cells) < 0 or int(np.max(cells)) >= domain.size):
        raise ValueError(f"cells must be between 0 and {domain.size - 1}")
    cells, ends = np.asarray(cells, dtype=np.int64), np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    rows = (np.arange(start, min(start + DECODED_ROWS, total)) for start in range(0, total, DECODED_ROWS))
    places = (np.searchsorted(ends, part, side="right") for part in rows)
    return _decoded(schema, (domain.unravel(cells[part]) for part in places), generator)


def decode_codes(
    schema: Schema, codes: Mapping[str, NDArray[np.integer]], generator: np.random.Generator
) -> ReleasedTable:
    """Return a row for each position of the columns' codes, uniform in bins, in order; any number of columns."""
    missing = [name for name in schema.names if name not in codes]
    if missing:
        raise ValueError(f"codes of {missing} are missing: give an array for each column")
    rows = len(codes[schema.names[0]])
    for column in schema.columns:
        one = codes[column.name]
        if len(one) != rows:
            raise ValueError(f"column {column.name!r} has {len(one)} codes, the first {rows}: all need the same number")
        if rows and (int(np.min(one)) < 0 or int(np.max(one)) >= column.size):
            raise ValueError(f"codes of {column.name!r} must be between 0 and {column.size - 1}")
    starts = range(0, rows, DECODED_ROWS)
    parts = (tuple(codes[name][start : start + DECODED_ROWS] for name in schema.names) for start in starts)
    return _decoded(schema, parts, generator)


def _decoded(
    schema: Schema, parts: Iterator[tuple[NDArray[np.integer], ...]], generator: np.random.Generator
) -> ReleasedTable:
    """Return the rows of all parts, each a tuple of codes by column."""
    empty = [column.decode(np.empty(0, dtype=np.int64), generator) for column in schema.columns]
    types = pa.schema([(column.name, array.type) for column, array in zip(schema.columns, empty, strict=True)])
    batches = []
    for part in parts:
        arrays = [column.decode(code, generator) for column, code in zip(schema.columns, part, strict=True)]
        batches.append(pa.record_batch(arrays, schema=types))
    return ReleasedTable(pa.Table.from_batches(batches, schema=types))


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
