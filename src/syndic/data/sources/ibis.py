"""Rows in an engine that ibis supports. PostgreSQL, DuckDB and Spark count in the engine; others are streamed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, final
from urllib.parse import urlsplit

import pyarrow as pa

from syndic.data.source import SourceSpec, check_columns, masked
from syndic.data.sources.engine import UNREADABLE, Engine, quietly
from syndic.errors import InputError, MissingExtraError


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class IbisSource:
    """A table expression of ibis and the engine it belongs to.

    `order` names columns that put a person's rows in order; the other columns break ties, except `fixed` ones, whose
    values must not move a row. Without `order` rows come as the engine sends them, and counts of people with several
    rows are made here, not there.
    """

    engine: Engine = field(repr=False)
    rows: Any = field(repr=False)
    order: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_columns(self, self.order)

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.rows.columns)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches as the engine sends them."""
        columns = check_columns(self, columns)
        rows = self.rows.order_by(self.ordering()) if self.order else self.rows
        with self.engine.asking(steady=True) as ask:
            # column names may have any characters, but result columns of the engines may not
            places = {f"c{place}": _plain(rows[name]) for place, name in enumerate(columns)}
            for batch in ask(rows.select(**places)):
                yield pa.RecordBatch.from_arrays(batch.columns, names=columns)

    def describe(self) -> str:
        """Return the kind of the engine."""
        return self.engine.describe()

    def ordering(self, *, last: bool = False) -> list[Any]:
        """Return the sort order of rows: the declared columns, then all others that can be sorted; or its reverse."""
        kinds = self.rows.schema()
        placed = {*self.order, *self.fixed}
        others = [name for name in self.names() if name not in placed and _sortable(kinds[name])]
        columns = [self.rows[name] for name in [*self.order, *others]]
        return [column.desc(nulls_first=True) if last else column.asc() for column in columns]


def open_ibis(spec: SourceSpec) -> IbisSource:
    """Connect to the engine of a party file, for reading only where it can be told so."""
    address = str(spec.ibis)
    kind = urlsplit(address).scheme
    with masked(f"{kind or 'the engine'} through ibis: {UNREADABLE}"), quietly():
        backend = _connect(address, kind)
        try:
            database, _, table = (spec.table or "").rpartition(".")
            rows = backend.table(table, database=database or None) if table else backend.sql(spec.query)
        finally:
            if backend.name == "postgres":
                backend.disconnect()
    engine = Engine(backend=backend, address=address if backend.name == "postgres" else None)
    return IbisSource(engine=engine, rows=rows, order=spec.order)


def of_expression(rows: Any, order: tuple[str, ...] = ()) -> IbisSource:
    """Return the source of a table expression of ibis, such as `ibis.connect(...).table("visits")`."""
    try:
        backend = rows.get_backend()
        address = _address(backend) if backend.name == "postgres" else None
    except Exception as error:  # ibis raises many types
        raise InputError("the ibis table has no engine: create it with a connection's table()") from error
    return IbisSource(engine=Engine(backend=backend, address=address), rows=rows.as_table(), order=order)


def _connect(address: str, kind: str) -> Any:
    try:
        import ibis  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("ibis-framework", "ibis") from None
    try:
        if kind == "duckdb":
            return ibis.duckdb.connect(address.removeprefix("duckdb://"), read_only=True)
        if kind in {"postgres", "postgresql"}:
            import psycopg  # noqa: PLC0415

            # by libpq, so that addresses, password files and PGPASSWORD work as usual
            return ibis.postgres.from_connection(psycopg.connect(address, autocommit=True))
        return ibis.connect(address)
    except ImportError as error:
        raise MissingExtraError(str(error.name or kind), "spark" if kind == "pyspark" else "ibis") from None


def _address(backend: Any) -> str:
    """Return how the connection of a backend was made, for a second one."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    info = backend.con.info
    return str(make_conninfo(**{**info.get_parameters(), "password": info.password or None}))


def _plain(column: Any) -> Any:
    """Return a column; null for arrays and the like, which count as missing values: drivers fail on some of them."""
    import ibis  # noqa: PLC0415

    return ibis.null().cast("string") if column.type().is_nested() else column


def _sortable(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_string() or kind.is_date() or kind.is_timestamp())
