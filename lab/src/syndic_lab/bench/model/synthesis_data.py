"""Coded tables for the synthesis' measurements: how rows are spread over parties, and how far two tables are apart."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from syndic.data import Domain, Schema
from syndic.errors import InputError

SUBSETS: Final = 300
WAYS: Final = (3, 4, 5)


@final
@dataclass(frozen=True, eq=False)
class Coded:
    """A table of codes with its public sizes."""

    name: str
    schema: Schema
    table: pa.Table

    @property
    def domain(self) -> Domain:
        """The columns and their sizes."""
        return self.schema.domain

    def codes(self) -> dict[str, NDArray[np.int64]]:
        """Return the codes of every column."""
        return codes_of(self.table, self.schema)

    def select(self, names: tuple[str, ...]) -> "Coded":
        """Return some columns."""
        return Coded(f"{self.name}, {len(names)} columns", self.schema.select(names), self.table.select(names))

    def rows(self, places: NDArray[np.int64]) -> pa.Table:
        """Return some rows."""
        return self.table.take(pa.array(places))


def load(name: str, file: str) -> Coded:
    """Read `file`.parquet and its sizes, `file`-domain.json, from the folder that `SYNDIC_DATA` names."""
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / f"{file}.parquet"
    if folder is None or not path.exists():
        raise InputError(f"{file}.parquet was not found: set SYNDIC_DATA to a folder that contains it")
    return _read(name, path)


@lru_cache(maxsize=4)
def _read(name: str, path: Path) -> Coded:
    """Return the same object for the same file: runs on it are kept by it, so that experiments can share them."""
    schema = Schema.from_domain(path.with_name(f"{path.stem}-domain.json"))
    return Coded(name, schema, pq.read_table(path).select(schema.names))


@final
@dataclass(frozen=True)
class Asked:
    """A public table that may not be passed on: one header line, integer codes; `read_as` corrects codes by column."""

    file: str
    rows: int
    sizes: tuple[int, ...]
    where: str
    read_as: Mapping[int, Mapping[int, int]] = field(default_factory=dict)


ASKED: Final = {
    "nltcs": Asked(
        "nltcs.csv", 21_574, (2,) * 16,
        "Ask for the National Long-Term Care Survey at icpsr.umich.edu, or take the coded table from the authors of "
        "PrivMRF (github.com/caicre/PrivMRF).",
    ),
    "br2000": Asked(
        "br2000.csv", 38_000, (2, 7, 21, 10, 16, 2, 2, 2, 2, 4, 16, 2, 16, 2),
        "Ask for the census of Brazil, 2000, at international.ipums.org, or take the coded table from the authors of "
        "PrivMRF (github.com/caicre/PrivMRF).",
        {2: {21: 20}},
    ),
}  # fmt: skip


def load_asked(name: str) -> Coded:
    """Read a table of `ASKED` from the folder that `SYNDIC_DATA` names; refuse one of another shape."""
    asked, folder = ASKED[name], os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / asked.file
    if folder is None or not path.exists():
        raise InputError(f"{asked.file} was not found in the folder that SYNDIC_DATA names. {asked.where}")
    return _read_asked(name, path)


@lru_cache(maxsize=4)
def _read_asked(name: str, path: Path) -> Coded:
    asked = ASKED[name]
    try:
        table = csv.read_csv(path)
        codes = [np.asarray(column.cast(pa.int64())) for column in table.columns]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{path.name}: expected a header and integer codes separated by commas") from error
    if (table.num_rows, len(codes)) != (asked.rows, len(asked.sizes)):
        wanted = f"{asked.rows:,} rows of {len(asked.sizes)} columns"
        raise InputError(f"{path.name}: expected {wanted}, found {table.num_rows:,} of {len(codes)}")
    columns = {}
    for place, (size, given) in enumerate(zip(asked.sizes, codes, strict=True)):
        column = given.copy()
        for code, other in asked.read_as.get(place, {}).items():
            column[given == code] = other
        if column.min() < 0 or column.max() >= size:
            raise InputError(f"{path.name}: expected codes from 0 to {size - 1} in column {place + 1}")
        columns[f"c{place:02d}"] = column
    return Coded(name, Schema.from_domain(dict(zip(columns, asked.sizes, strict=True))), pa.table(columns))


def codes_of(table: pa.Table, schema: Schema) -> dict[str, NDArray[np.int64]]:
    """Return the codes of every column of a table, real or synthetic."""
    return {column.name: column.encode(table[column.name]).astype(np.int64) for column in schema.columns}


def alike(rows: int, parties: int, draws: np.random.Generator) -> list[NDArray[np.int64]]:
    """Cut the rows into parties of equal size, at random."""
    return [np.sort(part) for part in np.array_split(draws.permutation(rows), parties)]


def unequal(rows: int, parties: int, draws: np.random.Generator) -> list[NDArray[np.int64]]:
    """Cut the rows into parties each half as large as the one before, at random."""
    shares = 0.5 ** np.arange(parties)
    ends = np.round(np.cumsum(shares / shares.sum()) * rows).astype(int)[:-1]
    return [np.sort(part) for part in np.split(draws.permutation(rows), ends)]


def sorted_by(codes: NDArray[np.int64], parties: int, draws: np.random.Generator) -> list[NDArray[np.int64]]:
    """Cut the rows into parties of equal size by one column: every party has other people than the others."""
    shuffled = draws.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return [np.sort(part) for part in np.array_split(order, parties)]


def distances(real: Mapping[str, Any], made: Mapping[str, Any], domain: Domain) -> dict[int, float]:
    """Return the mean total variation distance over random sets of 3, 4 and 5 columns, the same sets every time."""
    found = {}
    for ways in [way for way in WAYS if way <= len(domain)]:
        draws = np.random.default_rng([2024, ways])
        apart = []
        for _ in range(SUBSETS):
            places = sorted(draws.choice(len(domain), ways, replace=False))
            part = domain.project([domain.names[place] for place in places])
            one, other = (_shares(codes, part) for codes in (real, made))
            apart.append(float(np.abs(one - other).sum()) / 2)
        found[ways] = float(np.mean(apart))
    return found


def _shares(codes: Mapping[str, Any], part: Domain) -> NDArray[np.float64]:
    cells = part.index([codes[name] for name in part.names])
    # no rows have nothing in common with any
    return np.bincount(cells, minlength=part.size) / max(1, len(cells))
