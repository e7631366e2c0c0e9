"""Rows of a polars frame, eager or lazy."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from syndic.data.source import BATCH_ROWS, check_columns
from syndic.errors import InputError


@final
@dataclass(frozen=True, eq=False)
class PolarsSource:
    """A polars frame; a lazy one is collected for the columns asked for."""

    frame: Any = field(repr=False)  # rows are private, also in logs

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.frame.lazy().collect_schema().names())

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield slices of the frame."""
        columns = check_columns(self, columns)
        rows = self.frame.lazy().select(columns).collect()
        unknown = [name for name, kind in rows.schema.items() if str(kind) in {"Object", "Int128", "UInt128"}]
        if unknown:
            raise InputError(f"polars frame: cast the columns {unknown} to text first, Arrow lacks their type")
        for part in rows.iter_slices(BATCH_ROWS):
            yield from part.to_arrow().combine_chunks().to_batches()

    def describe(self) -> str:
        """Return "polars frame"."""
        return "polars frame"
