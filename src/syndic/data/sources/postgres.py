"""Rows of a PostgreSQL database, streamed through ADBC."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, final
from urllib.parse import urlsplit

import pyarrow as pa

from syndic.data.source import check_columns, masked, quoted
from syndic.errors import MissingExtraError

BATCH_BYTES = 4 << 20

Read = Callable[[str], AbstractContextManager[pa.RecordBatchReader]]


@contextmanager
def reading_only(address: str, *, steady: bool = True) -> Iterator[Read]:
    """Yield a function that streams the answer of a statement; all answers are of one moment.

    `steady` answers have their rows in the stored order.
    """
    try:
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("adbc-driver-postgresql", "postgres") from None
    with driver.connect(address) as connection:

        @contextmanager
        def read(statement: str) -> Iterator[pa.RecordBatchReader]:
            with connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
                cursor.execute(statement)
                yield cursor.fetch_record_batch()

        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if steady:
                # a server may start in the middle of a large table, or read it with several workers
                cursor.execute("SET LOCAL synchronize_seqscans = off")
                cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        yield read


@final
@dataclass(frozen=True, kw_only=True)
class PostgresSource:
    """A query or a table of a database, in a transaction that may only read."""

    uri: str = field(repr=False)  # it may hold a password
    query: str | None = None
    table: str | None = None

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self._schema().names)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches as the server sends them."""
        columns, schema = check_columns(self, columns), self._schema()
        # arrays count as missing values, and the driver fails on some of them
        lists = {name for name in columns if pa.types.is_nested(schema.field(name).type)}
        wanted = ", ".join(f"{'NULL AS ' if name in lists else ''}{quoted(name)}" for name in columns)
        with self._read(f"SELECT {wanted} FROM {self._rows()}") as reader:  # noqa: S608 - as above
            yield from reader

    def describe(self) -> str:
        """Return the kind and the database's name."""
        return f"PostgreSQL database {urlsplit(self.uri).path.strip('/') or '(default)'}"

    def _schema(self) -> pa.Schema:
        with self._read(f"SELECT * FROM {self._rows()} LIMIT 0") as reader:  # noqa: S608 - the query is the owner's own
            return reader.schema

    def _rows(self) -> str:
        if self.table is not None:
            return ".".join(quoted(part) for part in self.table.split("."))
        return f"({self.query}\n) AS syndic_rows"

    @contextmanager
    def _read(self, statement: str) -> Iterator[Any]:
        what = f"table {self.table!r}" if self.table is not None else "query"
        failed = f"{self.describe()}: the server did not answer, or the {what} cannot be read"
        with masked(failed), reading_only(self.uri) as read, read(statement) as reader:
            yield reader
