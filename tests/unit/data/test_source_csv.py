"""A line of a CSV file costs itself only."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import Categorical, Integer, Schema, Table, open_source
from syndic.data.sources.csv import BLOCK_BYTES, LINE_BYTES, records
from syndic.errors import InputError

SCHEMA = Schema(columns=(Categorical(name="sex", values=("F", "M")), Integer(name="age", lower=0, upper=9)))


def codes(folder: Path, content: bytes, name: str = "rows.csv") -> list[tuple[int, int]]:
    file = folder / name
    file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    batches = Table(SCHEMA, open_source(file)).batches()
    return [pair for batch in batches for pair in zip(batch["sex"].tolist(), batch["age"].tolist(), strict=True)]


@pytest.mark.parametrize("bad", [b'"F,3', b'F",3', b'F,"3', b'F"F","3', b'"F"x,3', b'"F" ,3', b'"F"",3', b'"F,3"""'])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_stray_quote_costs_its_own_line(tmp_path: Path, bad: bytes, name: str) -> None:
    content = b"\n".join([b"sex,age", b"F,1", bad, b'M,"2"', b"F,3", b""])
    assert codes(tmp_path, content, name) == [(0, 1), (1, 2), (0, 3)]


def test_well_quoted_lines_are_read(tmp_path: Path) -> None:
    content = b'"sex",age\r\n"F",1\r\n"F","2"\r\n"a ""b"", c",3\r\n"",""\r\n"""",4\r\n'
    assert codes(tmp_path, content) == [(0, 1), (0, 2), (2, 3), (3, 10), (2, 4)]


@pytest.mark.parametrize("length", [LINE_BYTES, LINE_BYTES + 1, 9 << 20])
@pytest.mark.parametrize("last", [False, True])
def test_a_long_line_costs_itself(tmp_path: Path, length: int, last: bool) -> None:
    line = b"x" * (length - 2) + b",5"
    found = codes(tmp_path, b"\n".join([b"sex,age", b"F,1", line, *([] if last else [b"M,2"])]))
    assert found == [(0, 1), *([(2, 5)] if length <= LINE_BYTES else []), *([] if last else [(1, 2)])]


def test_long_lines_at_every_place_in_a_block(tmp_path: Path) -> None:
    short = b"F,1\n" * (BLOCK_BYTES // 4 - 7)
    content = b"sex,age\n" + short + b"x" * (BLOCK_BYTES + 5) + b"\nM,2\n" + b"y" * (3 * BLOCK_BYTES) + b"\nM,3"
    found = codes(tmp_path, content)
    assert found == [(0, 1)] * (BLOCK_BYTES // 4 - 7) + [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    "content",
    [
        b"sex,age\nF,1\nM,2\n",
        b"sex,age\nF,1\nM,2",
        b"sex,age\r\nF,1\r\nM,2\r\n",
        b"sex,age\r\nF,1\r\nM,2\r",
        b"\xef\xbb\xbfsex,age\nF,1\n\n\r\nM,2\n\n",
        b"\n\nsex,age\nF,1\nM,2\n",
        b'\xef\xbb\xbf"sex","age"\nF,1\nM,2\n',
        b"other,sex,other,age\n\xff,F,,1\n\xff,M,\xff,2\n",
        b"sex,age\nF,1\nF\rF,2\nF,3\r4\nM,2\n",
        b"sex,age\nF,1\nF\nF,1,1\nM,2\n",
        b"sex,age\nF,1\n\xff\n\xff,1,\xff\nM,2\n",
        b'sex,age\nF,1\n"F,1"\n"F,1",1,1\nM,2\n',
    ],
)
def test_line_ends_marks_and_blank_lines(tmp_path: Path, content: bytes) -> None:
    assert codes(tmp_path, content) == [(0, 1), (1, 2)]


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
        assert rest == [*([(2, 1)] if first != b"\xef" else []), (1, 1)]


LINES = st.lists(st.text('F",\r ', max_size=8).map(str.encode), max_size=6)


@given(
    lines=LINES, odd=st.text('F",\r x', max_size=9).map(str.encode), place=st.integers(0, 6), fields=st.integers(1, 3)
)
@settings(max_examples=400, deadline=None)
def test_lines_are_kept_one_by_one(lines: list[bytes], odd: bytes, place: int, fields: int) -> None:
    alone = [records(line + b"\n", ord(","), fields) for line in [*lines[:place], odd, *lines[place:]]]
    together = records(b"".join(line + b"\n" for line in [*lines[:place], odd, *lines[place:]]), ord(","), fields)
    assert together == b"".join(alone)


@given(fields=st.lists(st.text('F", x', max_size=5), min_size=2, max_size=4))
@settings(max_examples=200, deadline=None)
def test_whatever_a_writer_of_csv_writes_is_kept(fields: list[str]) -> None:
    for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL):
        written = io.StringIO()
        csv.writer(written, quoting=quoting).writerow(fields)
        line = written.getvalue().encode()
        assert records(line, ord(","), len(fields)) == line
