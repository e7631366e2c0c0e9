import datetime
import itertools
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import Categorical, Integer, Schema, Source, SparseCounts, Table, open_source
from syndic.data.counting import BUFFER_ROWS
from syndic.data.domain import Domain
from syndic.data.people import Choice, RowWeights
from syndic.errors import InputError

SIZES = {"a": 2, "b": 16, "c": 41, "d": 16, "e": 16, "f": 300, "g": 1}
RANDOM = np.random.default_rng(3)
ROWS = pa.table({name: RANDOM.integers(0, size, 20_000).astype(np.int16) for name, size in SIZES.items()})
TABLE = Table(Schema.from_domain(SIZES), open_source(ROWS))


@dataclass
class Watched:
    """A source that counts how often it is read."""

    rows: pa.Table
    asked: list[list[str]]

    def names(self) -> tuple[str, ...]:
        return tuple(self.rows.column_names)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        self.asked.append(list(columns))
        yield from self.rows.select(self.asked[-1]).to_batches(max_chunksize=777)

    def describe(self) -> str:
        return "watched"


def by_duckdb(names: tuple[str, ...]) -> dict[tuple[int, ...], int]:
    listed = ", ".join(names)
    with duckdb.connect() as connection:
        connection.register("rows", ROWS)
        found = connection.execute(f"SELECT {listed}, count(*) FROM rows GROUP BY {listed}").fetchall()
    return {row[:-1]: row[-1] for row in found}


def as_dict(values: np.ndarray[Any, Any]) -> dict[tuple[int, ...], int]:
    places = zip(*(axis.tolist() for axis in values.nonzero()), strict=True)
    return {place: int(values[place]) for place in places}


@pytest.mark.parametrize("width", [1, 2, 3])
def test_marginals_agree_with_a_database(width: int) -> None:
    cliques = list(itertools.combinations(SIZES, width))
    for names, factor in zip(cliques, TABLE.marginals(cliques), strict=True):
        assert factor.domain.names == names
        assert as_dict(factor.values) == by_duckdb(names)


def test_marginals_of_one_pass_over_the_columns_needed() -> None:
    source = Watched(ROWS, [])
    Table(TABLE.schema, source).marginals([("d", "a"), ("b",), ("a", "d")])
    assert source.asked == [["a", "b", "d"]]


def test_count_has_the_order_asked() -> None:
    assert as_dict(TABLE.count(("f", "a")).values) == by_duckdb(("f", "a"))


def test_count_of_no_column_is_the_number_of_rows() -> None:
    assert int(TABLE.count(()).values) == TABLE.rows() == 20_000


def test_a_buffer_that_fills_loses_no_row() -> None:
    rows = 2 * BUFFER_ROWS + 5
    codes = np.arange(rows) % 3
    table = Table(Schema.from_domain({"x": 3}), open_source(pa.table({"x": codes})))
    assert table.count(["x"]).values.tolist() == np.bincount(codes).tolist()


def test_a_group_of_exactly_sixteen_bits() -> None:
    codes = np.array([0, 65535, 65535])
    for sizes in ({"x": 65536, "y": 1}, {"y": 1, "x": 65536}):
        rows = pa.table({"x": codes, "y": np.zeros(3, dtype=np.uint8)})
        counts = Table(Schema.from_domain(sizes), open_source(rows)).count(["x", "y"]).values
        assert as_dict(counts) == {(0, 0): 1, (65535, 0): 2}


def test_cells_are_the_occupied_ones_in_order() -> None:
    names = ("c", "f", "b", "a", "d", "e")
    cells = TABLE.cells(names)
    expected = by_duckdb(names)
    codes = zip(*(column.tolist() for column in cells.domain.unravel(cells.cells)), strict=True)
    assert dict(zip(codes, cells.counts.tolist(), strict=True)) == expected
    assert cells.cells.tolist() == sorted(cells.cells.tolist())


def test_cells_project_and_write_out() -> None:
    small = TABLE.cells().project(("d", "a"))
    assert as_dict(small.dense().values) == by_duckdb(("d", "a"))
    assert TABLE.cells().project(()).counts.tolist() == [20_000]
    with pytest.raises(InputError, match=f"{2**40} cells is too large"):
        SparseCounts(Domain.of({"x": 2**40}), np.array([5]), np.array([1])).dense()


def test_cells_of_a_table_without_rows() -> None:
    empty = Table(TABLE.schema, open_source(ROWS.slice(0, 0)))
    assert empty.cells().cells.tolist() == []
    assert empty.cells().project(["a"]).dense().values.tolist() == [0, 0]
    assert empty.rows() == 0


def test_too_many_cells_say_their_number() -> None:
    wide = Schema.from_domain({f"c{i}": 100 for i in range(10)})
    rows = pa.table({name: [0] for name in wide.names})
    with pytest.raises(InputError, match=str(100**10)):
        Table(wide, open_source(rows)).cells()
    with pytest.raises(InputError, match=str(100**5)):
        Table(wide, open_source(rows)).count(wide.names[:5])


def test_unknown_columns_are_named() -> None:
    with pytest.raises(InputError, match=r"\['z'\]"):
        TABLE.count(["a", "z"])


def first_rows(people: list[Any], limit: int) -> list[int]:
    had: Counter[Any] = Counter()
    kept = []
    for place, person in enumerate(people):
        if person is None or had[person] >= limit:
            continue
        had[person] += 1
        kept.append(place)
    return kept


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.dictionary(pa.int16(), pa.string())])
def test_each_person_has_at_most_so_many_rows(limit: int, kind: pa.DataType) -> None:
    people = [None if code == 0 else int(code) for code in RANDOM.integers(0, 900, 5_000)]
    ids = pa.array(people) if kind == pa.int64() else pa.array(people).cast(pa.string()).cast(kind)
    values = np.arange(5_000)
    source = Watched(pa.table({"id": ids, "x": values}), [])
    table = Table(Schema.from_domain({"x": 5_000}), source, rows_per_person=limit, person="id")
    kept = np.concatenate([batch["x"] for batch in table.batches()])
    assert kept.tolist() == first_rows(people, limit)
    assert table.rows() == len(kept)


def test_rows_without_a_person_are_left_out() -> None:
    rows = pa.table({"id": ["a", "", " ", None, "a ", "b"], "x": [0, 1, 2, 3, 4, 5]})
    table = Table(Schema.from_domain({"x": 6}), open_source(rows), person="id")
    assert next(table.batches())["x"].tolist() == [0, 5]
    numbers = pa.table({"id": [1.0, float("nan"), None, 1.0], "x": [0, 1, 2, 3]})
    table = Table(Schema.from_domain({"x": 6}), open_source(numbers), person="id")
    assert next(table.batches())["x"].tolist() == [0]


def test_a_person_is_one_whatever_type_the_id_has() -> None:
    seven = [
        pa.array([7], pa.int8()), pa.array([7], pa.uint64()), pa.array([7.0]), pa.array([np.float16(7)], pa.float16()),
        pa.array([Decimal("7.00")]), pa.array(["7"]), pa.array([" 007 "]), pa.array([b"7.0"]), pa.array(["+7."]),
        pa.array(["7"]).dictionary_encode(),
    ]  # fmt: skip
    assert kept(seven) == [0]
    assert kept([pa.array([0.0]), pa.array([-0.0]), pa.array([0]), pa.array(["-0"]), pa.array(["00"])]) == [0]
    assert kept([pa.array([datetime.date(2020, 1, 1)]), pa.array(["2020-01-01"])]) == [0]
    # and two are two: large numbers, fractions, signs, letters
    people = [
        pa.array([2**53]),
        pa.array([2**53 + 1]),
        pa.array([1.5]),
        pa.array([1]),
        pa.array(["-1"]),
        pa.array(["1e1"]),
    ]
    assert kept(people) == list(range(6))
    assert kept([pa.array(["nan"]), pa.array([math.nan]), pa.array([None]), pa.array([""])]) == []


def kept(people: list[pa.Array]) -> list[int]:
    """Which of some batches of one row count."""
    keep = RowWeights("first", 1)
    return [place for place, ids in enumerate(people) if keep(ids).any()]


def test_ids_that_are_objects_are_told_apart() -> None:
    ids = [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)]
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "x": [0, 1, 2]})
    typed = pa.table({"id": pa.array([one.bytes for one in ids], pa.uuid()), "x": [0, 1, 2]})
    for rows in (frame, typed):
        table = Table(Schema.from_domain({"x": 3}), open_source(rows), person="id")
        assert next(table.batches())["x"].tolist() == [0, 1]


def test_person_may_be_a_column_of_the_schema() -> None:
    rows = pa.table({"x": [0, 1, 0]})
    table = Table(Schema.from_domain({"x": 2}), open_source(rows), person="x")
    assert table.count(["x"]).values.tolist() == [1, 1]


def test_table_checks_itself() -> None:
    with pytest.raises(ValueError, match=r"rows_per_person \(0\)"):
        Table(TABLE.schema, TABLE.source, rows_per_person=0)
    with pytest.raises(InputError, match=r"\['id'\]"):
        Table(TABLE.schema, TABLE.source, person="id")
    # lists are nobody's ids, and stop nothing
    nested = pa.table({"x": [0], "id": [[1]]})
    assert Table(Schema.from_domain({"x": 2}), open_source(nested), person="id").rows() == 0


def test_neither_rows_nor_counts_show_in_logs() -> None:
    rows = pa.table({"x": [77, 77, 78]})
    for thing in (rows, rows.to_pandas(), pl.DataFrame(rows)):
        table = Table(Schema.from_domain({"x": 900}), open_source(thing))
        assert "77" not in repr(table)
        assert "77" not in repr(table.cells())
        assert "2" not in repr(table.count(["x"]))


def test_there_is_no_length_to_leak() -> None:
    assert not hasattr(TABLE, "__len__")


def test_sparse_counts_check_themselves() -> None:
    domain = Domain.of({"x": 3})
    for cells, counts, text in (([0], [1, 2], "same length"), ([3], [1], "between"), ([1, 1], [1, 1], "increasing")):
        with pytest.raises(ValueError, match=text):
            SparseCounts(domain, np.array(cells), np.array(counts))


def test_a_schema_of_text_counts_text() -> None:
    rows = pa.table({"sex": ["F", "M", "F", "?"], "age": ["1", "2", "1", "junk"]})
    schema = Schema(columns=(Categorical(name="sex", values=("F", "M")), Integer(name="age", lower=0, upper=2)))
    assert as_dict(Table(schema, open_source(rows)).count(["sex", "age"]).values) == {(0, 1): 2, (1, 2): 1, (2, 3): 1}


def visits(people: Sequence[int | None], x: list[int] | None = None) -> Watched:
    return Watched(pa.table({"id": people, "x": list(range(len(people))) if x is None else x}), [])


def chosen(source: Source, choose: Choice, limit: int, key: bytes = b"k") -> list[int]:
    table = Table(Schema.from_domain({"x": 5_000}), source, rows_per_person=limit, person="id", choose=choose, key=key)
    kept = np.concatenate([batch["x"] for batch in table.batches()])
    assert table.rows() == len(kept)
    return [int(each) for each in kept]


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("choose", ["last", "random"])
def test_each_person_keeps_the_chosen_rows(choose: Choice, limit: int) -> None:
    people = [None if code == 0 else int(code) for code in RANDOM.integers(0, 900, 5_000)]
    kept = chosen(visits(people), choose, limit)
    have, found = Counter(people), Counter(people[place] for place in kept)
    assert None not in found
    assert all(found[person] == min(rows, limit) for person, rows in have.items() if person is not None)
    if choose == "last":
        back = first_rows(people[::-1], limit)
        assert kept == sorted(len(people) - 1 - place for place in back)


def test_random_rows_are_the_same_at_every_reading_and_others_with_another_key() -> None:
    people = [place % 50 for place in range(1_000)]
    once = chosen(visits(people), "random", 2)
    assert once == chosen(visits(people), "random", 2)
    assert once != chosen(visits(people), "random", 2, b"another")
    places = np.array([place // 50 for key in range(40) for place in chosen(visits(people), "random", 2, bytes([key]))])
    counts = np.bincount(places, minlength=20)
    # 4,000 draws over 20 places: each 200, with a deviation of 13.4
    assert abs(counts - 200).max() < 5 * 13.4


@pytest.mark.parametrize("choose", ["first", "last", "random"])
def test_other_people_do_not_change_which_rows_a_person_keeps(choose: Choice) -> None:
    people = [int(code) for code in RANDOM.integers(0, 60, 2_000)]
    x = list(range(2_000))
    everybody = set(chosen(visits(people, x), choose, 3))
    rest = [place for place in x if people[place] != 7]
    without = chosen(visits([people[place] for place in rest], rest), choose, 3)
    assert set(without) == {place for place in everybody if people[place] != 7}


def test_rows_that_were_added_between_two_passes_do_not_exceed_the_bound() -> None:
    class Growing:
        reads = 0

        def names(self) -> tuple[str, ...]:
            return ("id", "x")

        def describe(self) -> str:
            return "a table that is written to"

        def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
            self.reads += 1
            rows = 4 * self.reads
            yield from pa.table({"id": [1] * rows, "x": range(rows)}).select(list(columns)).to_batches()

    for choose in ("last", "random"):
        table = Table(Schema.from_domain({"x": 5_000}), Growing(), rows_per_person=2, person="id", choose=choose)
        assert sum(len(batch["x"]) for batch in table.batches()) == 2


def counted(values: list[int | None], size: int, **options: Any) -> Counter[int]:
    rows = pa.table({"x": pa.array(values, pa.int64()), "id": range(len(values))})
    table = Table(Schema.from_domain({"x": 6}), open_source(rows), size=size, **options)
    codes = Counter(code for batch in table.batches() for code in batch["x"].tolist())
    assert sum(codes.values()) == table.rows() == size
    return codes


def test_a_public_number_of_rows_is_kept_by_cutting_and_by_missing_values() -> None:
    for person in (None, "id"):
        assert counted([1, 2, 2], 5, person=person) == {1: 1, 2: 2, 0: 2}
        assert counted([1, 2, 3], 2, person=person) == {1: 1, 2: 1}
        assert counted([], 2, person=person) == {0: 2}
    more = Table(TABLE.schema, TABLE.source, size=200_000)
    assert [len(batch["a"]) for batch in more.batches(["a"])][-1] == 180_000 - 2 * 65_536
    assert int(more.count(["a", "f"]).sum()) == int(more.cells(["a", "c"]).counts.sum()) == 200_000
    assert more.sums() == TABLE.sums()


VALUES = st.lists(st.integers(1, 5), max_size=6)


@given(before=VALUES, between=VALUES, after=VALUES, one=st.integers(1, 5), other=st.integers(1, 5), data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_person_replaced_at_any_place_changes_one_row_of_a_public_number(
    before: list[int], between: list[int], after: list[int], one: int, other: int, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(before) + len(between) + len(after) + 3))
    first = counted([*before, one, *between, *after], size)
    second = counted([*before, *between, other, *after], size)
    assert sum(abs(first[code] - second[code]) for code in range(6)) <= 2
    # a row that disappears is one row replaced by a missing value, or by the next one
    gone = counted([*before, *between, *after], size)
    assert sum(abs(first[code] - gone[code]) for code in range(6)) <= 2
