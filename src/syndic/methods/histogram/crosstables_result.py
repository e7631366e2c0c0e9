"""What a study of two-way tables publishes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from syndic.data import Domain, Factor
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.methods.histogram.tables import read_counts

Pair = tuple[str, str]
Names = tuple[str, ...]


class CrossNote(Document):
    """What was opened, and the standard deviation of the noise on a count across parties and within one."""

    across: float
    within: float
    tables: tuple[Names, ...]


@final
@dataclass(frozen=True, kw_only=True)
class CrossTables(Result):
    """Noisy counts, one table for each pair of columns. They are released: anyone may see them."""

    note: CrossNote
    tables: tuple[Factor, ...]

    def __getitem__(self, names: Pair) -> Factor:
        """Return the table of two columns, in the order given."""
        for table in self.tables:
            if set(table.domain.names) == set(names):
                return table.transpose(names)
        raise InputError(f"there is no table of {names[0]} and {names[1]}")

    def files(self) -> Mapping[str, Any]:
        """Return `crosstables.parquet`, a row for each cell, and `crosstables.json`."""
        sizes = [each.domain.size for each in self.tables]
        levels = [np.unravel_index(np.arange(each.domain.size), each.domain.sizes) for each in self.tables]
        columns = {
            word: pa.array(np.repeat([each.domain.names[axis] for each in self.tables], sizes)).dictionary_encode()
            for axis, word in enumerate(("first", "second"))
        }
        cells = pa.table(
            {
                **columns,
                "first_level": np.concatenate([first for first, _ in levels]),
                "second_level": np.concatenate([second for _, second in levels]),
                "count": np.concatenate([each.values.ravel() for each in self.tables]),
            }
        )
        return {"crosstables.parquet": cells, "crosstables.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return the number of tables and the standard deviation of a count."""
        return {
            "tables": len(self.tables),
            "cells": sum(table.domain.size for table in self.tables),
            "standard deviation of a count across parties": round(self.note.across, 3),
            "standard deviation of a count within a party": round(self.note.within, 3),
        }


def read_tables(domains: Sequence[Domain], folder: Path) -> CrossTables:
    """Read back `crosstables.parquet` and `crosstables.json`."""
    note = from_file(folder / "crosstables.json", CrossNote)
    return CrossTables(note=note, tables=read_counts(domains, folder / "crosstables.parquet"))
