"""The result of methods that draw rows from noisy tables: the rows, the tables, and a note on how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from syndic.data import ReleasedTable
from syndic.document import Document, from_file
from syndic.kernel import Result, read_table
from syndic.methods.synthesis.result import cells_of, read_cells
from syndic.model.markov import Measurement


class TableNote(Document):
    """One noisy table: its axes, the number of levels of each, and the standard deviation of a count."""

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
    """Synthetic rows and the noisy tables they were drawn from. All of it is released."""

    table: ReleasedTable
    tables: tuple[Measurement, ...]
    note: RowsNote

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet`, the noisy counts `tables.parquet`, and `rows.json`."""
        return {"synthetic.parquet": self.table, "tables.parquet": cells_of(self.tables), "rows.json": self.note}

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the rows and what they were made from."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "noisy tables": len(self.tables),
            "noisy counts": sum(one.values.size for one in self.tables),
        }


def notes_of(tables: Sequence[Measurement]) -> tuple[TableNote, ...]:
    """Return the notes on the tables."""
    return tuple(
        TableNote(axes=one.names, shape=tuple(one.values.shape), standard_deviation=one.variance**0.5) for one in tables
    )


def read_rows(folder: Path, kind: type[Note]) -> PublishedRows:
    """Read back the files of a `PublishedRows`."""
    note = from_file(folder / "rows.json", kind)
    rows = read_table(folder, "synthetic.parquet")
    parts = read_cells(folder, [one.shape for one in note.tables], "rows.json")
    tables = tuple(
        Measurement(one.axes, part, one.standard_deviation**2) for one, part in zip(note.tables, parts, strict=True)
    )
    return PublishedRows(table=ReleasedTable(rows), tables=tables, note=note)
