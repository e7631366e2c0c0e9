"""Counts made by DuckDB equal those made here, whatever the values."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_values import NASTY, check_same, columns, every_schema, nasty_table
from syndic.data import Categorical, Integer, Real, Schema, Table, open_source
from syndic.data.sources.ibis import IbisSource, of_expression
from syndic.errors import InputError
from syndic.model.selection.grouping import Grouping

ibis = pytest.importorskip("ibis", reason="ibis is not installed: pip install 'syndic[ibis]'")
pushdown = pytest.importorskip("syndic.data.sources.pushdown")
pushdown_codes = pytest.importorskip("syndic.data.sources.pushdown_codes")


@pytest.fixture(scope="module", name="backend")
def duckdb_backend() -> Iterator[Any]:
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def held(backend: Any, rows: pa.Table, *order: str) -> IbisSource:
    backend.con.register("rows_of_test", rows)
    backend.con.execute("CREATE OR REPLACE TABLE held AS SELECT * FROM rows_of_test")
    return of_expression(backend.table("held"), order=order)


# a few of the pairs of kinds and types; the others are among the slow tests
TURNS = [pytest.param(turn, marks=[pytest.mark.slow] if turn % 4 else []) for turn in range(len(columns("any")))]


@pytest.mark.parametrize("turn", TURNS)
def test_every_kind_of_column_reads_every_type_alike(backend: Any, turn: int) -> None:
    rows = nasty_table()
    check_same(every_schema(rows)[turn], open_source(rows), held(backend, rows))


def test_a_fixed_column_does_not_order_rows_of_one_id(backend: Any) -> None:
    """Where rows are matched by their places, one person's value would move another one's row."""
    for fixed, expected in (((), [["b", "a"], ["a", "b"]]), (("c",), [["a", "b"], ["a", "b"]])):
        found = []
        for value in (9, 0):
            rows = pa.table({"id": [1, 1], "c": [value, 5], "who": ["a", "b"]})
            source = replace(held(backend, rows, "id"), fixed=fixed)
            found.append([name for batch in source.batches(["who"]) for name in batch["who"].to_pylist()])
        assert found == expected


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A column of any type, filled with nasty and with ordinary values, and how to read it."""
    kind = draw(st.sampled_from(list(NASTY)))
    more: st.SearchStrategy[Any] = st.sampled_from(NASTY[kind])
    if pa.types.is_float64(kind):
        more |= st.floats() | st.floats(-3, 4)
    elif pa.types.is_int64(kind):
        more |= st.integers(-(2**63), 2**63 - 1) | st.integers(-10, 5_010)
    elif pa.types.is_string(kind):
        more |= st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5) | st.floats().map(repr)
    values = draw(st.lists(more, max_size=12))
    column = draw(st.sampled_from(columns("c")))
    other = pa.array([place % 2 for place in range(len(values))], pa.int64())
    schema = Schema(columns=(column, Integer(name="other", lower=0, upper=1)))
    return schema, pa.table([pa.array(values, kind), other], names=["c", "other"])


@given(case=drawn())
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_the_values(backend: Any, case: tuple[Schema, pa.Table]) -> None:
    schema, rows = case
    check_same(schema, open_source(rows), held(backend, rows))


@given(lower=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), bins=st.integers(128, 5_000), data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bins_found_by_division_have_the_same_edges(
    backend: Any, lower: float, width: float, bins: int, data: st.DataObject
) -> None:
    column = Real(name="c", lower=lower, upper=lower + width, bins=bins)
    places = data.draw(st.lists(st.integers(0, bins), max_size=50))
    near = [math.nextafter(float(column.bin_edges[at]), way) for at in places for way in (-math.inf, 0.0, math.inf)]
    rows = pa.table({"c": pa.array([*column.bin_edges.tolist(), *near], pa.float64())})
    check_same(Schema(columns=(column,)), open_source(rows), held(backend, rows))


@given(border=st.floats(-1e15, 1e15), scale=st.integers(0, 25))
def test_the_least_decimal_that_reaches_a_border(border: float, scale: int) -> None:
    least = pushdown_codes._least_decimal(border, scale)
    assert float(Fraction(least, 10**scale)) >= border
    assert float(Fraction(least - 1, 10**scale)) < border


@pytest.mark.parametrize("choose", ["first", "last"])
@pytest.mark.parametrize("most", [2, *(pytest.param(most, marks=pytest.mark.slow) for most in (1, 50))])
def test_the_chosen_rows_of_each_person_in_the_declared_order(backend: Any, most: int, choose: str) -> None:
    rows = nasty_table()
    schema = every_schema(rows)[4]
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(len(rows))))
    unit: Any = {"person": "person", "rows_per_person": most, "choose": choose}
    check_same(schema, open_source(rows), held(backend, shuffled, "place"), **unit)


def test_ties_of_the_order_are_broken_alike_here_and_there(backend: Any) -> None:
    rows = pa.table({"person": [1] * 8, "c": [3, 1, 2, 0, 3, 1, 2, 0], "when": [0] * 8})
    schema = Schema(columns=(Integer(name="c", lower=0, upper=3),))
    source = held(backend, rows, "when")
    table = Table(schema, source, person="person", rows_per_person=3)
    assert table.count(["c"]).values.tolist() == [2, 1, 0, 0, 0]
    check_same(schema, source, source, person="person", rows_per_person=3)
    assert [row["c"] for batch in source.batches(["c"]) for row in batch.to_pylist()] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_last_rows_are_those_of_the_order_reversed_also_for_nulls(backend: Any, most: int) -> None:
    rows = pa.table(
        {"person": [1] * 4 + [2] * 3, "c": [1, None, 0, 2, None, 2, 1], "when": [0, 0, 0, 0, 1, None, None]}
    )
    schema = Schema(columns=(Integer(name="c", lower=0, upper=3),))
    source = held(backend, rows, "when")
    streamed = open_source(pa.Table.from_batches(list(source.batches(["person", "c"]))))
    check_same(schema, streamed, source, person="person", rows_per_person=most, choose="last")


def test_random_rows_are_streamed(backend: Any) -> None:
    rows = pa.table({"person": [place % 9 for place in range(90)], "c": [place % 4 for place in range(90)]})
    rows = rows.append_column("place", pa.array(range(90)))
    schema = Schema(columns=(Integer(name="c", lower=0, upper=3),))
    unit: Any = {"person": "person", "rows_per_person": 2, "choose": "random", "key": b"k"}
    here, there = Table(schema, open_source(rows), **unit), Table(schema, held(backend, rows, "place"), **unit)
    assert there._pushdown() is None
    assert there.count(["c"]).values.tolist() == here.count(["c"]).values.tolist()


def test_people_without_an_order_or_with_text_ids_are_streamed(backend: Any) -> None:
    rows = pa.table({"person": [1, 1, 2], "name": ["7", "007", "8"], "c": [0, 1, 1]})
    schema = Schema(columns=(Integer(name="c", lower=0, upper=1),))
    for source, person in ((held(backend, rows), "person"), (held(backend, rows, "c"), "name")):
        table = Table(schema, source, person=person)
        assert table._pushdown() is None
        assert table.count(["c"]).values.tolist() == [1, 1, 0]


def test_groups_of_levels(backend: Any) -> None:
    rows = nasty_table()
    schema = every_schema(rows)[0].select(["c0", "c4", "c5"])
    grouping = Grouping(schema.domain, tuple(tuple(code // 2 for code in range(size)) for size in schema.domain.sizes))
    cliques = [("c0", "c5"), ("c4",)]
    pushed = Table(schema, held(backend, rows)).marginals(cliques, grouping)
    streamed = Table(schema, open_source(rows)).marginals(cliques, grouping)
    assert [one.values.tolist() for one in pushed] == [one.values.tolist() for one in streamed]
    assert pushed[0].domain.sizes == grouping.domain_of_groups.project(["c0", "c5"]).sizes


def test_texts_of_more_spellings_than_are_worth_grouping_are_streamed(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushdown, "LEAST_GROUPS", 8)
    rows = pa.table({"c": [f"word {row}" for row in range(40)] + ["a"]})
    table = Table(Schema(columns=(Categorical(name="c", values=("a",)),)), held(backend, rows))
    way = table._pushdown()
    assert way is not None
    assert way.marginals([("c",)], None) is None
    assert table.count(["c"]).values.tolist() == [1, 40, 0]
    assert table.cells().counts.tolist() == [1, 40]


def test_numbers_that_the_schema_does_not_expect_are_coded_by_the_engine(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushdown, "LEAST_GROUPS", 8)
    rows = pa.table({"c": [*range(-50, 50), None]})
    table = Table(Schema(columns=(Integer(name="c", lower=0, upper=2),)), held(backend, rows))
    way = table._pushdown()
    assert way is not None
    counted = way.marginals([("c",)], None)
    assert counted is not None
    assert counted[0].values.tolist() == [51, 1, 48, 1]


@pytest.mark.parametrize("size", [5, 1000, *(pytest.param(size, marks=pytest.mark.slow) for size in (1, 100))])
def test_a_public_number_of_rows_is_kept_by_the_engine_too(backend: Any, size: int) -> None:
    rows = nasty_table()
    for turn in (0, 5):
        schema = every_schema(rows)[turn]
        here, there = (
            Table(schema, open_source(rows), size=size),
            Table(schema, held(backend, rows, "place"), size=size),
        )
        sets = [(), ("c0",), ("c1", "c2")]
        found = [one.values.tolist() for one in there.marginals(sets)]
        assert found == [one.values.tolist() for one in here.marginals(sets)]
        assert there.cells(["c0", "c3"]).counts.tolist() == here.cells(["c0", "c3"]).counts.tolist()
        assert there.sums() == here.sums()
        assert there.rows() == size
        way = there._pushdown()
        assert way is not None
        assert (way.marginals(sets, None) is None) is (size < len(rows))


def test_types_that_only_streaming_reads(backend: Any) -> None:
    backend.con.execute("CREATE OR REPLACE TABLE odd AS SELECT TIME '10:30' AS c, [1, 2] AS list, 1::HUGEINT AS huge")
    schema = Schema(columns=(Categorical(name="c", values=("10:30",)), Categorical(name="list", values=("a",))))
    table = Table(schema, open_source(backend.table("odd")))
    assert [one.values.tolist() for one in table.marginals([("c",), ("list",)])] == [[1, 0, 0], [0, 0, 1]]
    assert table.rows() == 1
    assert table.sums() == [0, 2]


def test_an_expression_counts_without_its_rows(backend: Any) -> None:
    """Proof that the engine counted: the rows of this one cannot be read at all."""
    backend.con.execute("CREATE OR REPLACE TABLE many AS SELECT i % 3 AS c FROM range(100_000) AS r(i)")
    source = of_expression(backend.table("many").filter(ibis._.c > 0))
    table = Table(Schema(columns=(Integer(name="c", lower=0, upper=2),)), source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IbisSource, "batches", None)
        assert table.count(["c"]).values.tolist() == [0, 33_333, 33_333, 0]
        assert table.rows() == 66_666


def test_errors_of_the_engine_quote_nothing(backend: Any) -> None:
    backend.con.execute("CREATE OR REPLACE TABLE words AS SELECT 'secret' AS c")
    rows = backend.table("words")
    table = Table(
        Schema(columns=(Integer(name="c", lower=0, upper=2),)), of_expression(rows.select(c=rows.c.cast(int)))
    )
    for way in (lambda: table.count(["c"]), lambda: list(table.batches())):
        with pytest.raises(InputError) as caught:
            way()
        assert (
            str(caught.value) == "DuckDB through ibis: the engine did not answer, or the table or query cannot be read"
        )


def test_a_duckdb_file_in_a_party_file(tmp_path: Any) -> None:
    file = tmp_path / "rows.duckdb"
    backend = ibis.duckdb.connect(file)
    backend.con.execute("CREATE TABLE visits AS SELECT i % 2 AS c, 1 AS person, -i AS place FROM range(9) AS r(i)")
    backend.disconnect()
    schema = Schema(columns=(Integer(name="c", lower=0, upper=1),))
    address = f"duckdb://{file}"
    whole = Table(schema, open_source({"ibis": address, "table": "visits"}))
    assert whole.count(["c"]).values.tolist() == [5, 4, 0]
    query = {"ibis": address, "query": "SELECT * FROM visits WHERE c = 1 -- only these", "order": ["place"]}
    part = Table(schema, open_source(query), person="person", rows_per_person=2)
    assert part._pushdown() is not None
    assert part.count(["c"]).values.tolist() == [0, 2, 0]
    with pytest.raises(InputError, match="duckdb through ibis: the engine did not answer"):
        open_source({"ibis": address, "table": "absent"})
    with pytest.raises(InputError, match=r"\['absent'\] are missing"):
        open_source({"ibis": address, "table": "visits", "order": ["absent"]})


def test_an_order_is_for_ibis_only() -> None:
    with pytest.raises(InputError, match="`order` is for ibis sources"):
        open_source({"path": "x.csv", "order": ["place"]})
