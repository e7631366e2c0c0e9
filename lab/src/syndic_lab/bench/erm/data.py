"""The data of the experiments on distributed learning, prepared as their authors did.

AS PRINTED: every column is divided by its maximum over all rows, which is a release of that maximum. A study
scales by public bounds instead (`syndic.data.design`); here the point is to meet published numbers.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from syndic.data.design import into_ball
from syndic.errors import InputError

Numbers = NDArray[np.float64]
DENIAL = ("back", "land", "neptune", "pod", "smurf", "teardrop")
PROBE = ("ipsweep", "nmap", "portsweep", "satan")
KINDS = ("normal", "denial of service", "probe", "other")
_PART = 70_000


@final
@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows to test on; labels are -1 and +1."""

    name: str
    rows: Any
    labels: Numbers
    test_rows: Any
    test_labels: Numbers


def adult() -> Split:
    """Return Adult: the 45,222 complete rows, 104 features, income above 50K or not; 30,000 to learn from."""
    table = pa.concat_tables([read("adult_train.parquet"), read("adult_test.parquet")])
    texts = [name for name in table.column_names if pa.types.is_large_string(table[name].type)]
    complete = np.ones(table.num_rows, dtype=bool)
    for name in texts:
        complete &= np.asarray(pc.not_equal(table[name], "?"))
    table = table.filter(pa.array(complete))
    labels = np.where(np.asarray(pc.starts_with(table["income"], ">50K")), 1.0, -1.0)
    return _split("Adult", table.drop_columns(["income"]), labels, 30_000)


def kddcup() -> Split:
    """Return KDDCup99, the 10 % file: 118 features, denial of service or not; 50,000 of 70,000 to learn from."""
    return _intrusions("KDDCup99", "kddcup99_10pct.parquet")


def nslkdd() -> Split:
    """Return NSL-KDD: the paper's 122 features on records without duplicates."""
    return _intrusions("NSL-KDD", "nslkdd_train.parquet")


def kinds() -> tuple[Split, Numbers, Numbers]:
    """Return NSL-KDD with the kind of each row to learn from and to test on, a place in `KINDS`."""
    table = read("nslkdd_train.parquet")
    label = pc.utf8_rtrim(table["label"], characters=".")
    codes = np.full(table.num_rows, 3.0)
    for code, names in ((0, ("normal",)), (1, DENIAL), (2, PROBE)):
        codes[np.asarray(pc.is_in(label, value_set=pa.array(names, pa.large_string())))] = code
    split = nslkdd()
    order = _order(table.num_rows, _PART)
    return split, codes[order][:50_000], codes[order][50_000:]


def _order(rows: int, part: int | None) -> NDArray[np.int64]:
    """Return the order, drawn once, that rows are learnt from and tested on in."""
    return np.random.default_rng(0).permutation(rows)[:part]


def _intrusions(name: str, file: str) -> Split:
    table = read(file)
    labels = pc.is_in(pc.utf8_rtrim(table["label"], characters="."), value_set=pa.array(DENIAL, pa.large_string()))
    extra = [column for column in ("label", "difficulty") if column in table.column_names]
    features = table.drop_columns(extra)
    return _split(name, features, np.where(np.asarray(labels), 1.0, -1.0), 50_000, part=_PART)


def _split(name: str, table: pa.Table, labels: Numbers, train: int, part: int | None = None) -> Split:
    """Return the rows in an order drawn once; one-hot levels and maxima are those of the whole file."""
    order = _order(table.num_rows, part)
    rows = csr_array(into_ball(_features(table, order), 1.0))
    labels = labels[order]
    return Split(name, rows[:train], labels[:train], rows[train:], labels[train:])


def _features(table: pa.Table, order: NDArray[np.int64]) -> Numbers:
    columns: list[Numbers] = []
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_large_string(column.type):
            coded = column.dictionary_encode()
            columns.append(np.eye(len(coded.dictionary))[np.asarray(coded.indices)[order]])
        else:
            values = np.asarray(column, dtype=np.float64)
            columns.append((values / max(values.max(), 1e-300))[order][:, None])
    return np.concatenate(columns, axis=1)


def read(file: str) -> pa.Table:
    """Return a file of the folder that `SYNDIC_DATA` names."""
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / file
    if folder is None or not path.exists():
        raise InputError(f"{file} was not found: set SYNDIC_DATA to a folder that contains it")
    return pq.read_table(path)
