"""Rows of a DuckDB database file."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from syndic.data.source import check_columns, masked, quoted, reading
from syndic.errors import InputError, MissingExtraError


@final
@dataclass(frozen=True, kw_only=True)
class DuckdbSource:
    """A query or a table of a database file, opened for reading only."""

    database: str
    query: str | None = None
    table: str | None = None

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        with self._connection() as connection:
            return tuple(connection.sql(f"SELECT * FROM {self._rows()} LIMIT 0").columns)  # noqa: S608 - the query is the owner's own

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches as the database streams them."""
        columns = check_columns(self, columns)
        wanted = ", ".join(quoted(name) for name in columns)
        with self._connection() as connection:
            relation = connection.sql(f"SELECT {wanted} FROM {self._rows()}")  # noqa: S608 - as above
            yield from pa.RecordBatchReader.from_stream(relation)

    def describe(self) -> str:
        """Return the kind and the file's name."""
        return f"DuckDB file {Path(self.database).name}"

    def _rows(self) -> str:
        return quoted(self.table) if self.table is not None else f"({self.query}\n) AS syndic_rows"

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            import duckdb  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("duckdb", "duckdb") from None
        if not Path(self.database).exists():
            raise InputError(f"{Path(self.database).name}: no such file")
        with reading(self.describe()):
            Path(self.database).open("rb").close()
        what = f"table {self.table!r}" if self.table is not None else "query"
        failed = f"{self.describe()}: the file or the {what} cannot be read"
        with masked(failed), duckdb.connect(self.database, read_only=True) as connection:
            yield connection
