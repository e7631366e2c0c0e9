"""Counts made by a real PostgreSQL and by Spark equal those made here."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edge_values import check_same, every_schema, nasty_table
from syndic.data import Boolean, Categorical, Date, Integer, Real, Schema, Table, open_source
from syndic.data.sources.ibis import IbisSource, of_expression
from syndic.errors import InputError
from syndic_lab.bench.postgres_server import PostgresServer

ibis = pytest.importorskip("ibis", reason="ibis is not installed: pip install 'syndic[ibis]'")

# values that only this server has
ODD = """
CREATE SCHEMA ward;
CREATE COLLATION ward.alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE ward.odd (
    person int, free numeric, fixed numeric(6, 3), day date, moment timestamptz, padded char(5),
    sex text COLLATE ward.alike, nothing jsonb
);
INSERT INTO ward.odd VALUES
    (1, 'NaN', 'NaN', 'infinity', '-infinity', 'a', 'F'),
    (1, 'Infinity', 0.300, '-infinity', 'infinity', 'b', 'f'),
    (2, 1e400, 0.299, '2020-01-01', '2020-01-02 00:30:00+01', '', 'M'),
    (2, 1e-400, 0.100, '4000-01-01 BC', '294000-01-01', NULL, NULL),
    (NULL, 0.3, NULL, NULL, NULL, 'a ', ' F ');
CREATE TABLE ward.unknown AS SELECT padded::bpchar FROM ward.odd;
"""
SCHEMA = Schema(
    columns=(
        Real(name="free", lower=0.1, upper=0.9, bins=8),
        Real(name="fixed", lower=0.1, upper=0.9, bins=8, outside="missing"),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 3)),
        Date(name="moment", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 3), outside="missing"),
        Categorical(name="padded", values=("a", "b")),
        Categorical(name="sex", values=("F", "M")),
    )
)


@pytest.fixture(scope="module", name="uri")
def postgres(server: PostgresServer) -> str:
    driver = pytest.importorskip(
        "adbc_driver_postgresql.dbapi", reason="the driver is not installed: pip install 'syndic[postgres]'"
    )
    with driver.connect(server.uri) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("nasty", nasty_table())
        connection.commit()
    server.execute("CREATE TABLE tall AS SELECT i % 5 AS c, i AS person FROM generate_series(1, 100000) AS i")
    server.execute(ODD)
    return server.uri


@pytest.mark.parametrize(
    "turn", [0, 9, 17, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (3, 6, 12, 15, 18))]
)
def test_postgres_reads_every_type_alike(uri: str, turn: int) -> None:
    rows = nasty_table()
    check_same(every_schema(rows)[turn], open_source(rows), open_source({"ibis": uri, "table": "nasty"}))


def test_postgres_values_that_python_has_not(uri: str) -> None:
    pushed = open_source({"ibis": uri, "table": "ward.odd"})
    check_same(SCHEMA, open_source({"postgres": uri, "table": "ward.odd"}), pushed)
    # by hand, as both could be wrong together
    tables = Table(SCHEMA, pushed).marginals([(name,) for name in SCHEMA.names])
    assert [one.values.tolist() for one in tables] == [
        [1, 1, 0, 0, 0, 0, 0, 2, 1],
        [1, 2, 0, 0, 0, 0, 0, 0, 2],
        [1, 0, 0, 4],
        [1, 0, 0, 4],
        [2, 1, 0, 2],
        [2, 1, 1, 1],
    ]


def test_types_that_ibis_does_not_know_are_streamed(uri: str) -> None:
    table = Table(SCHEMA.select(["padded"]), open_source({"ibis": uri, "table": "ward.unknown"}))
    way = table._pushdown()
    assert way is not None
    assert way.marginals([("padded",)], None) is None
    assert table.count(["padded"]).values.tolist() == [2, 1, 0, 2]


def test_postgres_first_rows_of_each_person(uri: str) -> None:
    rows = nasty_table()
    pushed = open_source({"ibis": uri, "query": "SELECT * FROM nasty ORDER BY c0", "order": ["place"]})
    check_same(every_schema(rows)[5], open_source(rows), pushed, person="person", rows_per_person=2)


def test_postgres_counts_without_its_rows(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(Schema(columns=(Integer(name="c", lower=0, upper=4),)), open_source({"ibis": uri, "table": "tall"}))
    assert sum(len(batch["c"]) for batch in table.batches()) == 100_000
    monkeypatch.setattr(IbisSource, "batches", None)
    assert table.count(["c"]).values.tolist() == [20_000] * 5 + [0]


def test_a_table_of_a_connection_in_python(uri: str) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'syndic[ibis]'")
    with psycopg.connect(uri, autocommit=True) as connection:
        rows = ibis.postgres.from_connection(connection).table("tall")
        source = of_expression(rows.filter(rows.c == 3))
        assert "secret" not in repr(source)
        table = Table(Schema(columns=(Integer(name="c", lower=0, upper=4),)), source)
        assert table.count(["c"]).values.tolist() == [0, 0, 0, 20_000, 0, 0]


def test_errors_of_postgres_quote_nothing(uri: str) -> None:
    query = "SELECT CASE WHEN person = 2 THEN sex::int ELSE 1 END AS c FROM ward.odd"
    table = Table(Schema(columns=(Boolean(name="c"),)), open_source({"ibis": uri, "query": query}))
    for way in (lambda: table.count(["c"]), lambda: list(table.batches())):
        with pytest.raises(InputError) as caught:
            way()
        assert str(caught.value).startswith("PostgreSQL through ibis: the engine did not answer")
        assert "invalid input" in str(caught.value.__cause__)
    with pytest.raises(InputError, match="postgresql through ibis") as caught:
        open_source({"ibis": "postgresql://me:secret@127.0.0.1:1/clinic", "table": "t"})
    assert "secret" not in str(caught.value)


def test_nothing_can_be_written_through_ibis(uri: str) -> None:
    query = "SELECT setval(pg_get_serial_sequence('kept', 'id'), 5) AS c"
    with pytest.raises(InputError):
        Table(Schema(columns=(Boolean(name="c"),)), open_source({"ibis": uri, "query": query})).count(["c"])


# Spark leaves its sockets to be closed by whoever collects them
of_spark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", name="lake")
def spark_table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    file: Path = tmp_path_factory.mktemp("lake") / "nasty.parquet"
    pq.write_table(nasty_table(), file)
    spark.read.parquet(str(file)).createOrReplaceTempView("nasty")
    return ibis.pyspark.connect(spark).table("nasty")


@of_spark
@pytest.mark.parametrize("turn", [5, 10])
def test_spark_reads_every_type_alike(lake: Any, turn: int) -> None:
    rows = nasty_table()
    # a pair costs Spark the translation of a program
    check_same(every_schema(rows)[turn], open_source(rows), of_expression(lake), few=True)


@of_spark
def test_spark_people_and_rows(lake: Any) -> None:
    rows = nasty_table()
    source = of_expression(lake, order=("place",))
    check_same(
        every_schema(rows)[2].select(["c0", "c4"]), open_source(rows), source, person="person", rows_per_person=1
    )
    streamed = pa.Table.from_batches(source.batches(["place", "c4"]))
    assert streamed.column("c4").to_pylist() == rows.column("c4").to_pylist()


@of_spark
def test_errors_of_spark_quote_nothing(lake: Any) -> None:
    broken = lake.select(c=lake.c4.cast("int64"))
    with pytest.raises(InputError) as caught:
        Table(Schema(columns=(Integer(name="c", lower=0, upper=4),)), of_expression(broken)).count(["c"])
    assert str(caught.value).startswith("Spark through ibis: the engine did not answer")
