"""What a study of marginal tables publishes, and tables of counts read back from a release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Domain, Factor, Schema
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result, read_table
from syndic.model.interval import Measured, NoisyTable
from syndic.model.markov.measurement import Measurement, estimate_total, onto_simplex


class MarginalsNote(Document):
    """What was opened: the parties whose rows are counted, and the largest standard deviation of the noise on a count.

    `deviations` has that of every table where they differ, `covers` the share of the people that each table counts
    where some are not counted; else they are empty.
    """

    present: tuple[str, ...]
    standard_deviation: float
    tables: tuple[tuple[str, ...], ...]
    deviations: tuple[float, ...] = ()
    covers: tuple[float, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class MarginalTables(Result):
    """Noisy counts, one table for each set of columns. They are released: anyone may see them."""

    note: MarginalsNote
    tables: tuple[Factor, ...]

    def __getitem__(self, names: tuple[str, ...]) -> Factor:
        """Return the table of some columns, in the order given."""
        for table in self.tables:
            if set(table.domain.names) == set(names):
                return table.project(names)
        raise InputError(f"there is no table of {' and '.join(names)}")

    def files(self) -> Mapping[str, Any]:
        """Return `marginals.parquet`, a row for each cell, and `marginals.json`."""
        cells = cells_of((table.domain.names, table.values) for table in self.tables)
        return {"marginals.parquet": cells.drop_columns(["number"]), "marginals.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return the number of tables and the standard deviation of a count."""
        return {
            "tables": len(self.tables),
            "cells": sum(table.domain.size for table in self.tables),
            "parties in the sum": len(self.note.present),
            "standard deviation of a count": round(self.note.standard_deviation, 3),
        }


def cells_of(tables: Iterable[tuple[tuple[str, ...], NDArray[Any]]]) -> pa.Table:
    """Return the counts of tables of some columns as one table, a row for each cell."""
    names, values = zip(*tables, strict=True)
    sizes = [one.size for one in values]
    # one table may have been opened in two rounds, so a name alone does not tell them apart
    return pa.table(
        {
            "number": np.repeat(np.arange(1, len(sizes) + 1, dtype=np.int32), sizes),
            "table": pa.array(np.repeat([" x ".join(one) for one in names], sizes)).dictionary_encode(),
            "cell": np.concatenate([np.arange(size) for size in sizes]),
            "count": np.concatenate([one.ravel() for one in values]),
        }
    )


def read_marginals(domains: Sequence[Domain], folder: Path) -> MarginalTables:
    """Read back `marginals.parquet` and `marginals.json`."""
    note = from_file(folder / "marginals.json", MarginalsNote)
    return MarginalTables(note=note, tables=read_counts(domains, folder / "marginals.parquet"))


def read_counts(domains: Sequence[Domain], path: Path) -> tuple[Factor, ...]:
    """Read back the counts of several tables from the column `count`, one table after the other."""
    found = np.asarray(read_table(path.parent, path.name)["count"])
    counts = found.astype(np.float64 if found.dtype.kind == "f" else np.int64)
    if len(counts) != sum(domain.size for domain in domains):
        raise InputError(f"{path.parent.name}: {path.name} does not have the cells that the study defines")
    return cut(domains, counts)


def cut(domains: Sequence[Domain], counts: NDArray[Any]) -> tuple[Factor, ...]:
    """Split consecutive counts of several tables into tables."""
    ends = np.cumsum([domain.size for domain in domains])[:-1]
    return tuple(
        Factor(domain, part.reshape(domain.sizes)) for domain, part in zip(domains, np.split(counts, ends), strict=True)
    )


def measured_by_tables(
    schema: Schema, tables: Sequence[Factor], variances: Sequence[float], *, rows: float | None, repeated: int
) -> Measured:
    """Return what noisy tables over all levels say; `rows` is the number of rows if it is public."""
    noisy = [
        Measurement(one.domain.names, one.values.astype(np.float64), variance)
        for one, variance in zip(tables, variances, strict=True)
    ]
    total = estimate_total(noisy) if rows is None else rows

    def shares(names: tuple[str, ...]) -> NDArray[np.float64]:
        fitting = [one for one in tables if set(names) <= set(one.domain.names)]
        if not fitting:
            raise InputError(f"no table has all of {', '.join(names)}")
        least = min(fitting, key=lambda one: one.domain.size)
        found = onto_simplex(least.project(names).values.astype(np.float64), total) / total
        # a cell that noise left empty may have people: as if half a person, and in all cells 1 % of all at most
        return np.maximum(found, min(0.5 / total, 0.01 / found.size))

    return Measured(
        schema=schema,
        shares=shares,
        tables=tuple(
            NoisyTable(one.names, tuple(np.arange(size) for size in one.values.shape), one.values, one.variance)
            for one in noisy
        ),
        rows=total,
        public=rows is not None,
        repeated=repeated,
    )
