"""Any table of the user's for the vertical experiments. It is read as it is: what is measured here protects nobody."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from syndic.data import Schema
from syndic.errors import InputError
from syndic_lab.bench.model.synthesis_data import Coded

MOST_VALUES: Final = 64
"""A column with more different values is cut into bins if it has numbers, and left out if it has none."""

BINS: Final = 16


def coded_table(path: Path) -> Coded:
    """Read a .csv or .parquet file and code every column by its own values, or by bins of equal width."""
    if not path.exists() or path.suffix not in (".csv", ".parquet"):
        raise InputError(f"--table {path}: give an existing .csv or .parquet file")
    try:
        table = csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"--table {path}: cannot be read: {error}") from None
    columns = {name: _codes(table[name].combine_chunks()) for name in table.column_names}
    kept = {name: codes for name, codes in columns.items() if codes is not None}
    if len(kept) < 3 or table.num_rows == 0:
        raise InputError(f"--table {path}: the experiments need rows and three columns that can be coded")
    sizes = {name: int(codes.max()) + 1 for name, codes in kept.items()}
    return Coded(path.stem, Schema.from_domain(sizes), pa.table(kept))


def _codes(column: pa.Array) -> NDArray[np.int64] | None:
    coded = column.dictionary_encode(null_encoding="encode")
    if len(coded.dictionary) <= MOST_VALUES:
        return np.asarray(coded.indices, dtype=np.int64)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    values = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    known = values[np.isfinite(values)]
    edges = np.linspace(known.min(), known.max(), BINS + 1)[1:-1]
    codes: NDArray[np.int64] = np.searchsorted(edges, np.where(np.isfinite(values), values, known.min()), side="right")
    return codes
