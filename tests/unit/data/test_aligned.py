"""Ids read alike from whatever carries them, and rows put in an alignment's order."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syndic.data import ArrowSource, open_source
from syndic.data.aligned import AlignedSource, Alignment, IdRule, _changes, _spelled, distinct_ids, id_batches, name_of

KEY = b"k" * 32
PLAIN = IdRule(spelling=())


def ids(values: list[Any], rule: IdRule = PLAIN, kind: pa.DataType | None = None) -> list[bytes | None]:
    (found,) = id_batches([pa.record_batch({"id": pa.array(values, kind)})], ["id"], rule)
    return found


def test_one_id_whatever_type_or_zeros_it_is_written_with() -> None:
    spelled = [ids([7]), ids([7.0]), ids(["007"]), ids([" 7 "]), ids(["7.0"]), ids([b"7"], kind=pa.binary())]
    assert len({each[0] for each in spelled}) == 1
    day = datetime.date(2001, 2, 3)
    assert ids([day]) == ids(["2001-02-03"])
    assert ids(["x"]) != ids(["X"])


@pytest.mark.parametrize("missing", [None, "", "   ", "nan"])
def test_a_missing_id_is_nobodys(missing: str | None) -> None:
    assert ids([missing, "a"])[0] is None
    assert ids([float("nan"), 1.0])[0] is None
    assert ids(["---", "a-1"], IdRule(spelling=("alphanumeric",)))[0] is None


@pytest.mark.parametrize(
    ("spelling", "one", "other"),
    [
        (("nfkc",), "\uff21\uff11", "A1"),
        (("nfkc",), "e\u0301", "\u00e9"),
        (("casefold",), "STRASSE", "straße"),
        (("alphanumeric",), "AB-12/3", "AB 123"),
        (("digits",), "No. 00-42", "42"),
        (("nfkc", "casefold", "alphanumeric"), "\uff2f'Hara", "ohara"),
        (("accents",), "Mu\u0308ller \u0141", "M\u00fcller L"),
        (("accents",), "\u00c9va S\u00f8r", "Eva Sor"),
        (("words",), "Hara, Ann", "Ann  Hara"),
        (("words", "alphanumeric"), "d'Arc Daniel", "Daniel, dArc"),
        (("day_first",), "3.2.2001", "2001-02-03"),
        (("day_first",), "03/02/2001 00:00", "20010203"),
        (("month_first",), "2/3/2001", "2001/02/03"),
        (("zeros",), "A-007/08", "A-7/8"),
        (("words", "zeros"), "1 02", "02, 01"),
        (("words", "alphanumeric", "zeros"), "1-01 102", "102 101"),
    ],
)
def test_a_rule_makes_spellings_equal(spelling: Any, one: str, other: str) -> None:
    assert ids([one]) != ids([other])
    rule = IdRule(spelling=spelling)
    assert ids([one], rule) == ids([other], rule)
    assert ids([one], rule) != [None]


@pytest.mark.parametrize(
    ("spelling", "one", "other"),
    [
        (("day_first",), "3.2.2001", "2.3.2001"),
        (("day_first",), "2001023", "20010203"),  # a number of seven digits is no date
        (("day_first",), "31.2.2001", "3.3.2001"),  # nor is a day that does not exist
        (("words",), "2001-02-03", "2001-03-02"),
        (("zeros", "alphanumeric"), "2001-01-23", "2001-12-3"),
        (("accents", "casefold", "words"), "ann b", "an nb"),
    ],
)
def test_a_rule_keeps_different_ids_apart(spelling: Any, one: str, other: str) -> None:
    rule = IdRule(spelling=spelling)
    assert ids([one], rule) != ids([other], rule)


@pytest.mark.parametrize("spelling", [("nfkc", "nfkc"), ("digits", "alphanumeric"), ("day_first", "month_first")])
def test_rules_that_contradict_each_other_are_refused(spelling: Any) -> None:
    with pytest.raises(ValueError, match="spelling names"):
        IdRule(spelling=spelling)


EVERY_RULE = ("nfkc", "accents", "casefold", "words", "day_first", "alphanumeric", "zeros")
RULES = [(), ("nfkc",), ("nfkc", "casefold"), ("casefold", "nfkc"), ("digits",), *((one,) for one in EVERY_RULE)]
NEARLY = st.text(alphabet="0123. -/,aB\u00fc\u0308\u00a0", max_size=10)


@example("1,02", ("words", "zeros"))
@given(
    st.text(max_size=4) | NEARLY,
    st.sampled_from(
        [*RULES, EVERY_RULE, ("words", "zeros"), ("nfkc", "casefold", "words", "zeros"), ("accents", "casefold")]
    ),
)
def test_spelling_an_id_twice_changes_nothing(text: str, spelling: Any) -> None:
    """So every spelling of an id is equal to the one that the rule makes of it."""
    changes, folds = _changes(spelling), _changes(("nfkc", "casefold"))
    once = _spelled(text, changes)
    assert _spelled(once, changes) == once
    assert _spelled("\u1fb3".upper(), folds) == _spelled("\u1fb3", folds)


@given(st.lists(st.text(max_size=5), min_size=2, max_size=2), st.lists(st.text(max_size=5), min_size=2, max_size=2))
def test_several_columns_are_one_id_and_never_run_together(one: list[str], other: list[str]) -> None:
    batch = pa.record_batch({"a": [one[0], other[0]], "b": [one[1], other[1]]})
    (found,) = id_batches([batch], ["a", "b"], PLAIN)
    alone = [ids([first]) + ids([second]) for first, second in (one, other)]
    assert (found[0] == found[1] and found[0] is not None) == (alone[0] == alone[1] and None not in alone[0])


def test_an_id_in_several_rows_is_dropped_or_stands_for_its_first() -> None:
    source = ArrowSource(pa.table({"id": ["a", "b", "a", None, "c"]}))
    letters = {each: ids([each])[0] for each in "abc"}
    assert distinct_ids(source, ["id"], PLAIN) == [letters["b"], letters["c"]]
    first = IdRule(spelling=(), duplicates="first")
    assert distinct_ids(source, ["id"], first) == [letters["a"], letters["b"], letters["c"]]


def alignment(order: list[Any], rule: IdRule = PLAIN) -> Alignment:
    names = b"".join(name_of(each, KEY) for each in ids(order, rule) if each is not None)
    return Alignment(rule=rule, columns=("id",), key=KEY, names=names)


def read(source: Any, order: list[Any], columns: list[str], *, block: int = 1 << 20, rule: IdRule = PLAIN) -> list[Any]:
    aligned = AlignedSource(open_source(source), alignment(order, rule), ("id",), block)
    tables = pa.Table.from_batches(list(aligned.batches(columns)))
    return [tuple(row[name] for name in columns) for row in tables.to_pylist()]


@pytest.mark.parametrize("block", [1, 3, 7, 1000])
def test_rows_come_in_the_alignments_order_from_any_order(block: int) -> None:
    draws = np.random.default_rng(1)
    order = draws.permutation(40)[:25].tolist()
    for _ in range(2):
        shuffled = draws.permutation(40)
        table = pa.table({"value": shuffled * 10, "id": shuffled, "text": [f"t{each}" for each in shuffled]})
        expected = [(f"t{each}", 10 * each) for each in order]
        assert read(table, order, ["text", "value"], block=block) == expected
    frame = pd.DataFrame({"id": shuffled, "value": pd.Categorical([f"v{each}" for each in shuffled])})
    assert read(frame, order, ["value"], block=block) == [(f"v{each}",) for each in order]


def test_files_that_type_a_column_differently_are_read_alike(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "value": [10, 20]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["3", "4"], "value": ["30", "40"]}), tmp_path / "b.parquet")

    class Both:
        def names(self) -> tuple[str, ...]:
            return ("id", "value")

        def batches(self, columns: Any) -> Iterator[pa.RecordBatch]:
            for name in ("a", "b"):
                yield from pq.read_table(tmp_path / f"{name}.parquet").select(list(columns)).to_batches()

        def describe(self) -> str:
            return "both"

    assert read(Both(), [4, 1, 3], ["value"]) == [("40",), ("10",), ("30",)]


@pytest.mark.parametrize("block", [1, 2, 1000])
def test_people_who_left_or_came_twice_have_a_row_of_missing_values(block: int) -> None:
    table = pa.table({"id": [1, 2], "value": [1, 2]})
    assert read(table, [4711, 2, 1], ["value"], block=block) == [(None,), (2,), (1,)]
    assert read(table.slice(0, 0), [1, 2], ["value", "id"], block=block) == [(None, None)] * 2
    twice = pa.table({"id": [1, 2, 1], "value": [1, 2, 3]})
    assert read(twice, [2, 1], ["value"], block=block) == [(2,), (None,)]
    assert read(table, [2, 2], ["value"], block=block)[1:] == [(2,)]
    assert read(twice, [2, 1], ["value"], rule=IdRule(spelling=(), duplicates="first")) == [(2,), (1,)]
    assert read(twice, [2], ["value"]) == [(2,)]


def test_nobody_in_common_is_no_row() -> None:
    source = AlignedSource(ArrowSource(pa.table({"id": [1]})), alignment([]), ("id",))
    assert list(source.batches(["id"])) == []
    assert "names" not in repr(source)
