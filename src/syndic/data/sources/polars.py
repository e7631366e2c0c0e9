"""Rows of a polars frame, eager or lazy."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from syndic.data.reading import text_of
from syndic.data.source import BATCH_ROWS, check_columns


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
        for part in rows.iter_slices(BATCH_ROWS):
            yield pa.record_batch([_arrow(part[name]) for name in columns], names=columns)

    def describe(self) -> str:
        """Return "polars frame"."""
        return "polars frame"


def _arrow(series: Any) -> pa.Array:
    # Arrow lacks these types, and polars may choose them because of one large or unusual value
    if str(series.dtype) in {"Object", "Int128", "UInt128"}:
        return pa.array([text_of(value) for value in series.to_list()], pa.large_string())
    return series.to_arrow()
