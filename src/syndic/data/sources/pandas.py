"""Rows of a pandas frame."""

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
            yield pa.record_batch([_arrow(rows.iloc[:, axis]) for axis in axes], names=columns)

    def describe(self) -> str:
        """Return "pandas frame"."""
        return "pandas frame"


def _arrow(series: Any) -> pa.Array:
    """Return a column as Arrow types it only where pandas did: Arrow too would choose by looking at all values."""
    if str(series.dtype) == "category":
        codes = series.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=codes < 0), _arrow(series.cat.categories.to_series())
        )
    if series.dtype != object:
        try:
            array = _whole(pa.array(series, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that Arrow does not have
        else:
            # periods and intervals: their internal numbers are not their values
            if not str(getattr(array.type, "extension_name", "")).startswith("pandas."):
                return array
    return pa.array([text_of(value) for value in series.tolist()], pa.large_string())


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
