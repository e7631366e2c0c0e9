"""The data of the experiments on multi-party linear regression, prepared as their authors did.

AS PRINTED: every column is scaled to [0, 1] by its least and largest value over all rows, which is a release of those
values. A study scales by public bounds instead; here the point is to meet published numbers.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.errors import InputError

Numbers = NDArray[np.float64]

_BIKE: Final = (
    *("instant", "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday"),
    *("weathersit", "temp", "atemp", "hum", "windspeed"),
)


@final
@dataclass(frozen=True, eq=False)
class Data:
    """Features and, as the last column, the label, all in [0, 1]; spread evenly over `parties`."""

    name: str
    table: Numbers
    parties: int

    @property
    def features(self) -> int:
        """How many there are, the label not counted."""
        return int(self.table.shape[1]) - 1

    @property
    def widest(self) -> int:
        """How many columns the authors' program takes the largest party to have: the label is not counted."""
        return -(-self.features // self.parties)


def insurance() -> Data:
    """Return Insurance: 1,338 people, age, bmi, children, sex, smoker and four regions; label charges."""
    table = pv.read_csv(_path("insurance.csv"))
    columns = [_numbers(table[name]) for name in ("age", "bmi", "children")]
    columns += [_numbers(pc.equal(table[name], value)) for name, value in (("sex", "male"), ("smoker", "yes"))]
    columns += [_numbers(pc.equal(table["region"], value)) for value in pc.unique(table["region"])]
    return _data("insurance", [*columns, _numbers(table["charges"])])


def bike() -> Data:
    """Return Bike sharing by the hour: 17,379 rows, 13 features; label the count."""
    table = pq.read_table(_path("bike_hour.parquet"))
    return _data("bike", [_numbers(table[name]) for name in (*_BIKE, "cnt")])


def gpu() -> Data:
    """Return the GPU kernels: 241,600 rows, 14 settings; label the mean of four run times."""
    table = pq.read_table(_path("sgemm_product.parquet"))
    columns = [_numbers(table[name]) for name in table.column_names]
    return _data("gpu", [*columns[:14], np.mean(columns[14:], axis=0)])


def superconductor() -> Data:
    """Return the superconductors: 21,263 rows, 76 of the 81 features; label the critical temperature."""
    return _labelled("superconductor", "superconductivity_76of81.parquet", "critical_temp")


def music() -> Data:
    """Return 7,000 of the 515,345 songs: 90 features; label the year."""
    return _labelled("music", "yearpredictionmsd_sample7000.parquet", "year")


LOADERS: Final[tuple[Callable[[], Data], ...]] = (insurance, bike, superconductor, gpu, music)


def _labelled(name: str, file: str, label: str) -> Data:
    table = pq.read_table(_path(file))
    names = [each for each in table.column_names if each != label]
    return _data(name, [_numbers(table[each]) for each in (*names, label)])


def _data(name: str, columns: list[Numbers]) -> Data:
    table = np.column_stack(columns)
    low, high = table.min(axis=0), table.max(axis=0)
    # five parties, or ten where there are 20 features or more
    return Data(name, (table - low) / (high - low), 5 if len(columns) <= 20 else 10)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(column, dtype=np.float64)


def _path(file: str) -> Path:
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / file
    if folder is None or not path.exists():
        raise InputError(f"{file} was not found: set SYNDIC_DATA to a folder that contains it")
    return path
