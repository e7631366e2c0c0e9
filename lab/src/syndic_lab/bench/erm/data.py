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
from pyarrow import csv
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
    """Rows to learn from and rows to test on; labels are -1 and +1, or numbers in a `regression`."""

    name: str
    rows: Any
    labels: Numbers
    test_rows: Any
    test_labels: Numbers
    regression: bool = False


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


DONATIONS = "cup98LRN.txt"
WHERE = "Ask for KDD Cup 1998 at archive.ics.uci.edu (the file cup98LRN.txt of its learning set)."
# rows and columns of the file, levels up to which a text is one-hot, principal components that are kept
_DONATED, _LEVELS, _COMPONENTS = (95_412, 481), 60, 95


def kddcup98() -> Split:
    """Return KDDCup98: the donated amount, in dollars, by 95 principal components; 50,000 of 70,000 to learn from.

    How the authors coded columns and scaled the label is not printed: here numbers are divided by their maximum,
    texts of few levels are one-hot, others and what identifies a person are left out, a missing number is 0.
    """
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / DONATIONS
    if folder is None or not path.exists():
        raise InputError(f"{DONATIONS} was not found in the folder that SYNDIC_DATA names. {WHERE}")
    try:
        table = csv.read_csv(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{DONATIONS}: expected a header and values separated by commas") from error
    if table.shape != _DONATED or "TARGET_D" not in table.column_names:
        found = f"found {table.num_rows:,} rows of {table.num_columns}"
        raise InputError(f"{DONATIONS}: expected {_DONATED[0]:,} rows of {_DONATED[1]} columns, {found}")
    order = _order(table.num_rows, _PART)
    labels = np.asarray(table["TARGET_D"], dtype=np.float64)[order]
    features = _numbers_and_levels(table.drop_columns(["TARGET_B", "TARGET_D", "CONTROLN"]), order)
    centred = into_ball(features, 1.0)
    centred -= centred.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    rows = csr_array(into_ball(centred @ directions[:, -_COMPONENTS:], 1.0))
    train = 5 * len(labels) // 7
    return Split("KDDCup98", rows[:train], labels[:train], rows[train:], labels[train:], regression=True)


def _numbers_and_levels(table: pa.Table, order: NDArray[np.int64]) -> Numbers:
    columns: list[Numbers] = []
    for column in (table[name].combine_chunks() for name in table.column_names):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.nan_to_num(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
            columns.append((values / max(np.abs(values).max(), 1e-300))[order][:, None])
        elif pa.types.is_string(column.type):
            coded = column.dictionary_encode(null_encoding="encode")
            if len(coded.dictionary) <= _LEVELS:
                columns.append(np.eye(len(coded.dictionary))[np.asarray(coded.indices)[order]])
    return np.concatenate(columns, axis=1)


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
