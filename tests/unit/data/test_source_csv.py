"""Every line of a CSV file is a row, and a malformed one affects no other."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import Categorical, Integer, Schema, Table, open_source
from syndic.data.sources.csv import BLOCK_BYTES, LINE_BYTES, Lines, records
from syndic.errors import InputError

SCHEMA = Schema(columns=(Categorical(name="sex", values=("F", "M")), Integer(name="age", lower=0, upper=9)))
BAD = (3, 10)
"""The codes of missing values."""


def codes(folder: Path, content: bytes, name: str = "rows.csv", *, multiline: bool = False) -> list[tuple[int, int]]:
    file = folder / name
    file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    batches = Table(SCHEMA, open_source({"path": str(file), "multiline": multiline})).batches()
    return [pair for batch in batches for pair in zip(batch["sex"].tolist(), batch["age"].tolist(), strict=True)]


@pytest.mark.parametrize("bad", [b'"F,3', b'F",3', b'F,"3', b'F"F","3', b'"F"x,3', b'"F" ,3', b'"F"",3', b'"F,3"""'])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_line_with_a_stray_quote_is_a_row_of_missing_values(tmp_path: Path, bad: bytes, name: str) -> None:
    content = b"\n".join([b"sex,age", b"F,1", bad, b'M,"2"', b"F,3", b""])
    assert codes(tmp_path, content, name) == [(0, 1), BAD, (1, 2), (0, 3)]


def test_well_quoted_lines_are_read(tmp_path: Path) -> None:
    content = b'"sex",age\r\n"F",1\r\n"F","2"\r\n"a ""b"", c",3\r\n"",""\r\n"""",4\r\n'
    assert codes(tmp_path, content) == [(0, 1), (0, 2), (2, 3), (3, 10), (2, 4)]


@pytest.mark.parametrize("length", [LINE_BYTES, LINE_BYTES + 1, 9 << 20])
@pytest.mark.parametrize("last", [False, True])
def test_a_long_line_is_a_row_of_missing_values(tmp_path: Path, length: int, last: bool) -> None:
    line = b"x" * (length - 2) + b",5"
    found = codes(tmp_path, b"\n".join([b"sex,age", b"F,1", line, *([] if last else [b"M,2"])]))
    assert found == [(0, 1), (2, 5) if length <= LINE_BYTES else BAD, *([] if last else [(1, 2)])]


def test_long_lines_at_every_place_in_a_block(tmp_path: Path) -> None:
    short = b"F,1\n" * (BLOCK_BYTES // 4 - 7)
    content = b"sex,age\n" + short + b"x" * (BLOCK_BYTES + 5) + b"\nM,2\n" + b"y" * (3 * BLOCK_BYTES) + b"\nM,3"
    found = codes(tmp_path, content)
    assert found == [(0, 1)] * (BLOCK_BYTES // 4 - 7) + [BAD, (1, 2), BAD, (1, 3)]


@pytest.mark.parametrize(
    ("content", "bad"),
    [
        (b"sex,age\nF,1\nM,2\n", 0),
        (b"sex,age\nF,1\nM,2", 0),
        (b"sex,age\r\nF,1\r\nM,2\r\n", 0),
        (b"sex,age\r\nF,1\r\nM,2\r", 0),
        (b"\xef\xbb\xbfsex,age\nF,1\n\n\r\nM,2\n", 2),
        (b"\n\nsex,age\nF,1\nM,2\n", 0),
        (b'\xef\xbb\xbf"sex","age"\nF,1\nM,2\n', 0),
        (b"other,sex,other,age\n\xff,F,,1\n\xff,M,\xff,2\n", 0),
        (b"sex,age\nF,1\nF\rF,2\nF,3\r4\nM,2\n", 2),
        (b"sex,age\nF,1\nF\nF,1,1\nM,2\n", 2),
        (b"sex,age\nF,1\n\xff\n\xff,1,\xff\nM,2\n", 2),
        (b'sex,age\nF,1\n"F,1"\n"F,1",1,1\nM,2\n', 2),
    ],
)
@pytest.mark.parametrize("multiline", [False, True])
def test_line_ends_marks_and_blank_lines(tmp_path: Path, content: bytes, bad: int, multiline: bool) -> None:
    assert codes(tmp_path, content, multiline=multiline) == [(0, 1), *[BAD] * bad, (1, 2)]
    assert codes(tmp_path, content + b"\n\n", multiline=multiline)[2 + bad :] in ([BAD], [BAD] * 2)


def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    for content in (b"sex\nF\n\nM\n", b"sex\r\nF\r\n\r\nM\r\n", b'sex\nF\n""\nM', b"sex\nF\n,\nM"):
        file.write_bytes(content)
        table = Table(SCHEMA.select(["sex"]), open_source(file))
        assert [code for batch in table.batches() for code in batch["sex"].tolist()] == [0, 3, 1]


NOTE = b'sex,age\nF,1\n"a\nb,c\n",5\nM,2\n'


def test_line_breaks_in_quotes_belong_to_a_field_if_the_owner_says_so(tmp_path: Path) -> None:
    assert codes(tmp_path, NOTE) == [(0, 1), BAD, (2, 10), BAD, (1, 2)]
    assert codes(tmp_path, NOTE, multiline=True) == [(0, 1), (2, 5), (1, 2)]
    for path, told in (("rows.parquet", "multiline is for .csv"), (None, "`path` of a CSV file")):
        spec = {"multiline": True, **({"duckdb": "x", "table": "t"} if path is None else {"path": path})}
        with pytest.raises(InputError, match=told):
            open_source(spec)


@pytest.mark.parametrize("lines", [1, 3, LINE_BYTES, 3 * LINE_BYTES])
def test_an_unmatched_quote_takes_a_bounded_number_of_lines_with_it(tmp_path: Path, lines: int) -> None:
    good = b"F,1\n" * (lines // 4 + 1)
    content = b'sex,age\n"F,1\n' + good + b"M,2\n" + NOTE[8:]
    found = codes(tmp_path, content, multiline=True)
    if len(good) > LINE_BYTES:
        # a record of that length is none: only its first line is bad
        assert found == [BAD, *[(0, 1)] * (len(good) // 4), (1, 2), (0, 1), (2, 5), (1, 2)]
    else:
        assert found[0] == BAD
        assert found[-1] == (1, 2)
    # at the end of the file nothing closes it
    assert codes(tmp_path, b'sex,age\n"F,1\n' + good + b"M,2", multiline=True) == [
        BAD,
        *[(0, 1)] * (len(good) // 4),
        (1, 2),
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfes\x00e\x00x\x00\n", b"sex,age\rF,1\rM,2\r"])
def test_a_header_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"rows\.csv: the first line must contain the column names"):
        codes(tmp_path, content)


def test_a_value_that_begins_a_block_keeps_its_first_bytes(tmp_path: Path) -> None:
    # Arrow takes these bytes for a byte order mark at the start of what it parses
    for first in (b"\xef\xbb\xbfF,1", b"\xef"):
        content = b"sex,age\n" + b"M,22\n" * (BLOCK_BYTES // 5) + first + b"\nM,1\n"
        found = codes(tmp_path, content)
        rest = found[BLOCK_BYTES // 5 :]
        assert rest == [(2, 1) if first != b"\xef" else BAD, (1, 1)]


LINES = st.lists(st.text('F",\r ', max_size=8).map(str.encode), max_size=6)


@given(
    lines=LINES, odd=st.text('F",\r x', max_size=9).map(str.encode), place=st.integers(0, 6), fields=st.integers(1, 3)
)
@settings(max_examples=400, deadline=None)
def test_lines_are_kept_one_by_one(lines: list[bytes], odd: bytes, place: int, fields: int) -> None:
    every = [line + b"\n" for line in [*lines[:place], odd, *lines[place:]]]
    alone = [kept(line, fields) for line in every]
    together = records(Lines.of(b"".join(every)), ord(","), fields)
    assert together.data.tobytes() == b"".join(alone)
    assert together.rows.tolist() == [place for place, one in enumerate(alone) if one]


@given(fields=st.lists(st.text('F", x', max_size=5), min_size=2, max_size=4))
@settings(max_examples=200, deadline=None)
def test_whatever_a_writer_of_csv_writes_is_kept(fields: list[str]) -> None:
    for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL):
        written = io.StringIO()
        csv.writer(written, quoting=quoting).writerow(fields)
        line = written.getvalue().encode()
        assert kept(line, len(fields)) == line


def kept(line: bytes, fields: int) -> bytes:
    return records(Lines.of(line), ord(","), fields).data.tobytes()


@given(rows=st.lists(st.lists(st.text('F", \r\nx', max_size=5), min_size=2, max_size=2), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_whatever_a_writer_of_csv_writes_is_one_row_each_with_line_breaks(rows: list[list[str]]) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    assert len(Lines.of(written.getvalue().encode(), multiline=True).rows) == len(rows)
