"""Engines that evaluate ibis expressions: how each is queried, without quoting its errors.

PostgreSQL is read through ADBC, not through the connection of ibis, which creates Python objects and fails on dates
that Python cannot represent.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from syndic.data.source import masked
from syndic.data.sources.postgres import reading_only

Ask = Callable[[Any], Iterator[pa.RecordBatch]]
KNOWN = {"postgres": "PostgreSQL", "duckdb": "DuckDB", "pyspark": "Spark"}
UNREADABLE = "the engine did not answer, or the table or query cannot be read"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Engine:
    """A backend of ibis, and for PostgreSQL the address it was reached by."""

    backend: Any = field(repr=False)
    address: str | None = field(repr=False, default=None)  # it may hold a password

    @property
    def name(self) -> str:
        """The backend's name in ibis: "postgres"."""
        return str(self.backend.name)

    @property
    def counts(self) -> bool:
        """Whether counting in this engine was tested against counting in Python, value by value."""
        return self.name in KNOWN

    def describe(self) -> str:
        """Return the kind of the engine."""
        return f"{KNOWN.get(self.name, self.name)} through ibis"

    @contextmanager
    def asking(self, *, steady: bool) -> Iterator[Ask]:
        """Yield a function that evaluates expressions: few rows, or with `steady` any number in their stored order.

        All answers of PostgreSQL are of one moment.
        """
        backend = self.backend
        with masked(f"{self.describe()}: {UNREADABLE}"):
            if self.address is not None:
                with reading_only(self.address, steady=steady) as read:
                    yield lambda expression: _read(read(backend.compile(expression)))
            elif self.name == "pyspark":
                yield lambda expression: _of_spark(backend.raw_sql(backend.compile(expression)), steady=steady)
            elif self.name == "duckdb":
                read_stream = pa.RecordBatchReader.from_stream
                yield lambda expression: iter(read_stream(backend.con.sql(backend.compile(expression))))
            else:
                yield lambda expression: iter(backend.to_pyarrow_batches(expression))


@contextmanager
def quietly() -> Iterator[None]:
    """Keep back warnings: ibis calls what DuckDB and pandas are giving up. Nothing may be yielded inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _read(answer: AbstractContextManager[pa.RecordBatchReader]) -> Iterator[pa.RecordBatch]:
    with answer as reader:
        yield from reader


def _of_spark(frame: Any, *, steady: bool) -> Iterator[pa.RecordBatch]:
    if not steady:
        with quietly():
            found = frame.toArrow()
        yield from found.to_batches()
        return
    # one partition at a time: other ways to get Arrow from Spark collect the whole result first
    for row in frame.mapInArrow(_serialiser(), "batch binary").toLocalIterator():
        yield from pa.ipc.open_stream(row.batch)


def _serialiser() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # defined here, so that Spark can serialise it: its processes do not have this package
    def serialised(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # noqa: PLC0415

        for batch in batches:
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            held = pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())
            yield pyarrow.RecordBatch.from_arrays([held], names=["batch"])

    serialised.__annotations__ = {}
    return serialised
