"""The PostgreSQL source against a real server."""

import datetime

import pytest

from syndic.data import Categorical, Date, Integer, Real, Schema, Table, open_source
from syndic.errors import InputError
from syndic_lab.bench.postgres_server import PostgresServer

ROWS = 150_000


@pytest.fixture(scope="module", name="uri")
def database(server: PostgresServer) -> str:
    server.execute(SETUP)
    return server.uri


SETUP = f"""
CREATE TABLE visits AS SELECT
    i AS id,
    CASE i % 4 WHEN 0 THEN 'F' WHEN 1 THEN 'M' WHEN 2 THEN 'X' END AS "Sex of ""a"" person",
    (i % 7)::smallint AS age,
    ((i % 10) / 10.0)::numeric(5, 2) AS height,
    CASE WHEN i % 5 = 0 THEN 'NaN'::float8 ELSE i % 5 END AS weight,
    DATE '2020-01-01' + (i % 3) AS day,
    TIMESTAMPTZ '2020-01-01 23:30:00+00' + make_interval(days => i % 3) AS moment
FROM generate_series(0, {ROWS - 1}) AS i;
CREATE SCHEMA clinic;
CREATE SEQUENCE clinic.counter;
CREATE TABLE clinic.beds AS SELECT 1 AS age;
"""
SCHEMA = Schema(
    columns=(
        Categorical(name='Sex of "a" person', values=("F", "M")),
        Integer(name="age", lower=0, upper=5),
        Real(name="height", lower=0.0, upper=1.0, bins=2),
        Integer(name="weight", lower=0, upper=4),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 3)),
        Date(name="moment", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 3)),
    )
)


def test_every_type_is_counted_as_the_server_made_it(uri: str) -> None:
    table = Table(SCHEMA, open_source({"postgres": uri, "table": "visits"}))
    found = [factor.values.tolist() for factor in table.marginals([(name,) for name in SCHEMA.names])]
    assert found == [
        [sum(i % 4 == kind for i in range(ROWS)) for kind in range(4)],
        [*(sum(i % 7 == age for i in range(ROWS)) for age in range(5)), sum(i % 7 >= 5 for i in range(ROWS)), 0],
        [sum(i % 10 < 5 for i in range(ROWS)), sum(i % 10 >= 5 for i in range(ROWS)), 0],
        [0, *(sum(i % 5 == w for i in range(ROWS)) for w in range(1, 5)), sum(i % 5 == 0 for i in range(ROWS))],
        [*(sum(i % 3 == day for i in range(ROWS)) for day in range(3)), 0],
        [*(sum(i % 3 == day for i in range(ROWS)) for day in range(3)), 0],
    ]


def test_rows_come_in_several_batches(uri: str) -> None:
    source = open_source({"postgres": uri, "table": "visits"})
    table = Table(SCHEMA, source, person="id")
    assert sum(1 for _ in source.batches(source.names())) > 1
    assert table.rows() == ROWS


def test_a_query_may_end_in_a_comment(uri: str) -> None:
    source = open_source({"postgres": uri, "query": "SELECT age, day FROM visits WHERE age = 3 -- only these"})
    assert source.names() == ("age", "day")
    assert Table(SCHEMA.select(["age"]), source).rows() == sum(i % 7 == 3 for i in range(ROWS))


def test_a_table_of_another_schema(uri: str) -> None:
    assert Table(SCHEMA.select(["age"]), open_source({"postgres": uri, "table": "clinic.beds"})).rows() == 1


def test_missing_columns_and_tables_are_named(uri: str) -> None:
    with pytest.raises(InputError, match=r"database postgres.*\['city'\]"):
        Table(Schema.from_domain({"city": 2}), open_source({"postgres": uri, "table": "visits"}))
    with pytest.raises(InputError, match="'absent'"):
        open_source({"postgres": uri, "table": "absent"}).names()


def test_errors_quote_neither_rows_nor_passwords(uri: str) -> None:
    casting = 'SELECT CASE WHEN id = 140000 THEN "Sex of ""a"" person"::int ELSE 1 END AS age FROM visits'
    source = open_source({"postgres": uri, "query": casting})
    with pytest.raises(InputError) as caught:
        Table(SCHEMA.select(["age"]), source).rows()
    assert "secret" not in str(caught.value) + repr(source)
    assert "invalid input" not in str(caught.value)
    assert str(caught.value).count('"') == 0


def test_nothing_can_be_written(uri: str) -> None:
    writing = "SELECT setval('clinic.counter', 5) AS age"
    with pytest.raises(InputError) as caught:
        list(open_source({"postgres": uri, "query": writing}).batches(["age"]))
    assert "read-only transaction" in str(caught.value.__cause__)
    assert Table(SCHEMA.select(["age"]), open_source({"postgres": uri, "table": "visits"})).rows() == ROWS


def test_a_server_that_is_not_there() -> None:
    source = open_source({"postgres": "postgresql://me:secret@127.0.0.1:1/clinic", "table": "t"})
    with pytest.raises(InputError, match="database clinic: the server did not answer") as caught:
        source.names()
    assert "secret" not in str(caught.value)
