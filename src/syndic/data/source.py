"""Sources of a party's rows. A source yields Arrow record batches of the requested columns only.

Errors name the file and the requested columns, never a value. They do not quote another library's error, which may
quote a row: that one is chained, for the party's own log.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import pyarrow as pa

from syndic.document import Document, from_builtins
from syndic.errors import InputError, MissingExtraError

BATCH_ROWS = 65_536


@runtime_checkable
class Source(Protocol):
    """Rows that can be read any number of times, in the same order."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns there are."""

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `columns`, of any Arrow type, in bounded memory. Private."""

    def describe(self) -> str:
        """Return a description without folders, hosts or passwords: "Parquet file x.parquet"."""


@final
class SourceSpec(Document, frozen=True, kw_only=True):
    """A source as written in party.toml: `path`, or `duckdb` / `postgres` / `ibis` with a `query` or a `table`.

    `ibis` is the address of an engine, which then does the counting; `order` names columns that sort a person's rows.
    `multiline` states that quoted fields of a CSV file may contain line breaks.
    """

    path: str | None = None
    duckdb: str | None = None
    postgres: str | None = None
    ibis: str | None = None
    query: str | None = None
    table: str | None = None
    order: tuple[str, ...] = ()
    multiline: bool = False

    def __post_init__(self) -> None:
        if sum(place is not None for place in (self.path, self.duckdb, self.postgres, self.ibis)) != 1:
            raise ValueError("a source must have exactly one of `path`, `duckdb`, `postgres` and `ibis`")
        if self.order and self.ibis is None:
            raise ValueError("`order` is for ibis sources only: others are read in the order in which they are stored")
        if self.multiline and self.path is None:
            raise ValueError("`multiline` is for the `path` of a CSV file only")
        wanted = 0 if self.path is not None else 1
        if sum(what is not None for what in (self.query, self.table)) != wanted:
            raise ValueError("a database source needs a `query` or a `table`; a `path` takes neither")


@final
@dataclass(frozen=True, eq=False)
class ArrowSource:
    """Rows in memory, as an Arrow table."""

    table: pa.Table = field(repr=False)  # rows are private, also in logs

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.table.column_names)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield slices of the table."""
        columns = check_columns(self, columns)
        yield from self.table.select(columns).to_batches(max_chunksize=BATCH_ROWS)

    def describe(self) -> str:
        """Return "Arrow table"."""
        return "Arrow table"


def open_source(thing: Any) -> Source:
    """Return the source of a path, an Arrow, pandas, polars or ibis table, a `SourceSpec` or its dict."""
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, Mapping):
        thing = from_builtins(dict(thing), SourceSpec, where="source")
    if isinstance(thing, SourceSpec):
        return _of_spec(thing)
    if isinstance(thing, str | Path):
        # imported here because these modules import this one
        from syndic.data.sources.file import open_path  # noqa: PLC0415

        return open_path(Path(thing))
    if isinstance(thing, pa.RecordBatch):
        thing = pa.Table.from_batches([thing])
    if isinstance(thing, pa.Table):
        return ArrowSource(thing)
    return _of_frame(thing)


def open_rows(thing: Any) -> Source:
    """Return the source of rows to predict for: as `open_source`, but a dict has the values of every column."""
    if not isinstance(thing, Mapping):
        return open_source(thing)
    try:
        return ArrowSource(pa.table({name: pa.array(values) for name, values in thing.items()}))
    except (pa.ArrowException, TypeError, ValueError):
        # Arrow's own message may quote a value
        raise InputError("rows given as a dict must have lists of values, all of one length") from None


def check_columns(source: Source, columns: Iterable[str]) -> list[str]:
    """Return the columns as a list; refuse those that the source does not have, or has twice."""
    columns = list(columns)
    names = source.names()
    absent = [name for name in columns if name not in names]
    if absent:
        what = f"the required columns {absent} are missing"
        raise InputError(f"{source.describe()}: {what}{_hint(absent, names)}", elsewhere=what)
    repeated = [name for name in columns if names.count(name) > 1]
    if repeated:
        what = f"the columns {repeated} appear more than once"
        raise InputError(f"{source.describe()}: {what}", elsewhere=what)
    return columns


def _hint(absent: list[str], names: tuple[str, ...]) -> str:
    """Return why columns may be missing. It quotes no name of the source: without a header that is a value."""
    if len(names) == 1 and any(mark in names[0] for mark in ",;\t|"):
        return ". The first line has only one field: separate fields by commas in .csv files, by tabs in .tsv files"
    written = {name.strip().casefold() for name in names}
    alike = [name for name in absent if name.strip().casefold() in written]
    return f". {alike} are there with other capitals or spaces: spell them alike" if alike else ""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Replace the reader's errors by one that names the file and quotes nothing from it."""
    try:
        yield
    except pa.ArrowCancelled as error:
        # how Arrow says that somebody pressed Ctrl-C while it read
        raise KeyboardInterrupt from error
    except PermissionError as error:
        raise InputError(f"{what}: permission denied: let the account that runs Syndic read it") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # UnicodeDecodeError: the name of a column is damaged
        raise InputError(f"{what}: cannot be read: it is damaged, or its content is not of its file type") from error


@final
class NotCounted(Exception):  # noqa: N818 - it passes through here and is no error
    """Rows must be streamed: grouping so various values saves nothing, or there are more rows than count."""


@contextmanager
def masked(what: str) -> Iterator[None]:
    """Turn every error of a database into one that says what failed and quotes nothing: it may quote a row."""
    try:
        yield
    except (InputError, MissingExtraError, NotCounted):
        raise
    except Exception as error:  # every engine has its own errors
        raise InputError(what) from error


def quoted(name: str) -> str:
    """Return a name quoted for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _of_spec(spec: SourceSpec) -> Source:
    if spec.path is not None:
        from syndic.data.sources.file import open_path  # noqa: PLC0415

        return open_path(Path(spec.path), multiline=spec.multiline)
    if spec.duckdb is not None:
        from syndic.data.sources.duckdb import DuckdbSource  # noqa: PLC0415

        return DuckdbSource(database=spec.duckdb, query=spec.query, table=spec.table)
    if spec.ibis is not None:
        from syndic.data.sources.ibis import open_ibis  # noqa: PLC0415

        return open_ibis(spec)
    from syndic.data.sources.postgres import PostgresSource  # noqa: PLC0415

    return PostgresSource(uri=str(spec.postgres), query=spec.query, table=spec.table)


def _of_frame(thing: Any) -> Source:
    # by the module name of the class, so that neither library must be installed
    library = type(thing).__module__.partition(".")[0]
    if library in {"pandas", "polars"}:
        from syndic.data.sources.frames import PandasSource, PolarsSource  # noqa: PLC0415

        return PandasSource(thing) if library == "pandas" else PolarsSource(thing)
    if library == "ibis":
        from syndic.data.sources.ibis import of_expression  # noqa: PLC0415

        return of_expression(thing)
    raise InputError(
        f"a {type(thing).__name__} is not a source of rows: give a path, an Arrow table, a pandas or polars "
        "frame, an ibis table, or {path = ...}, {duckdb = ..., query = ...}, {postgres = ..., query = ...}, "
        "{ibis = ..., table = ...}"
    )
