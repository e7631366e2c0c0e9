"""Rows of a pandas or polars frame."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from syndic.data.reading import text_of
from syndic.data.source import BATCH_ROWS, check_columns


@final
@dataclass(frozen=True, eq=False)
class PandasSource:
    """A pandas frame. Columns of Python objects are read value by value, each as text with the same reading."""

    frame: Any = field(repr=False)  # rows are private, also in logs

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns, as text."""
        return tuple(str(name) for name in self.frame.columns)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield slices of the frame."""
        columns = check_columns(self, columns)
        axes = [self.names().index(name) for name in columns]
        for start in range(0, len(self.frame), BATCH_ROWS):
            rows = self.frame.iloc[start : start + BATCH_ROWS]
            yield pa.record_batch([_of_pandas(rows.iloc[:, axis]) for axis in axes], names=columns)

    def describe(self) -> str:
        """Return "pandas frame"."""
        return "pandas frame"


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
            yield pa.record_batch([_of_polars(part[name]) for name in columns], names=columns)

    def describe(self) -> str:
        """Return "polars frame"."""
        return "polars frame"


def _of_pandas(series: Any) -> pa.Array:
    """Return a column as Arrow types it only where pandas did: Arrow too would choose by looking at all values."""
    if str(series.dtype) == "category":
        codes = series.cat.codes.to_numpy()
        categories = _of_pandas(series.cat.categories.to_series())
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)
    if series.dtype != object:
        try:
            array = pa.array(series, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that Arrow does not have
        else:
            # periods and intervals: their internal numbers are not their values
            if not str(getattr(array.type, "extension_name", "")).startswith("pandas."):
                return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return pa.array([text_of(value) for value in series.tolist()], pa.large_string())


def _of_polars(series: Any) -> pa.Array:
    # Arrow lacks these types, and polars may choose them because of one large or unusual value
    if str(series.dtype) in {"Object", "Int128", "UInt128"}:
        return pa.array([text_of(value) for value in series.to_list()], pa.large_string())
    return series.to_arrow()
