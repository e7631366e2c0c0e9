"""What methods publish that draw rows from noisy tables: the rows, the tables, and a note on how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from syndic.data import ReleasedTable
from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.model.markov import Measurement

_FILES = ("synthetic.parquet", "tables.parquet", "rows.json")


class TableNote(Document):
    """One noisy table: its axes, how many levels each has, and the standard deviation of a count."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    standard_deviation: float


class RowsNote(Document):
    """How the rows were made. Public."""

    tables: tuple[TableNote, ...]


Note = TypeVar("Note", bound=RowsNote)


@final
@dataclass(frozen=True, kw_only=True)
class PublishedRows(Result):
    """Synthetic rows and the noisy tables they were drawn from. All of it follows from what passed a door."""

    table: ReleasedTable
    tables: tuple[Measurement, ...]
    note: RowsNote

    def write(self, folder: Path) -> list[Path]:
        """Write `synthetic.parquet`, the noisy counts `tables.parquet`, and `rows.json`."""
        self.table.write(folder / _FILES[0])
        sizes = [one.values.size for one in self.tables]
        cells = {
            "number": np.repeat(np.arange(1, len(sizes) + 1, dtype=np.int32), sizes),
            "table": pa.array(np.repeat([" x ".join(one.names) for one in self.tables], sizes)).dictionary_encode(),
            "cell": np.concatenate([np.arange(size) for size in sizes]),
            "count": np.concatenate([one.values.ravel() for one in self.tables]),
        }
        pq.write_table(pa.table(cells), folder / _FILES[1])
        (folder / _FILES[2]).write_bytes(to_readable_json(self.note))
        return [folder / name for name in _FILES]

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the rows and what they were made from."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "noisy tables": len(self.tables),
            "noisy counts": sum(one.values.size for one in self.tables),
        }


def notes_of(tables: Sequence[Measurement]) -> tuple[TableNote, ...]:
    """Return what a note says about the tables."""
    return tuple(
        TableNote(axes=one.names, shape=tuple(one.values.shape), standard_deviation=one.variance**0.5) for one in tables
    )


def read_rows(folder: Path, kind: type[Note]) -> PublishedRows:
    """Read back what `PublishedRows.write` wrote."""
    note = from_file(folder / _FILES[2], kind)
    try:
        rows = pq.read_table(folder / _FILES[0])
        counts = np.asarray(pq.read_table(folder / _FILES[1])["count"], dtype=np.float64)
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{folder.name}: its release cannot be read: {type(error).__name__}") from None
    ends = np.cumsum([int(np.prod(one.shape)) for one in note.tables])
    if not note.tables or len(counts) != ends[-1]:
        raise InputError(f"{folder.name}: tables.parquet does not have the cells that rows.json lists")
    parts = np.split(counts, ends[:-1])
    tables = tuple(
        Measurement(one.axes, part.reshape(one.shape), one.standard_deviation**2)
        for one, part in zip(note.tables, parts, strict=True)
    )
    return PublishedRows(table=ReleasedTable(rows), tables=tables, note=note)
