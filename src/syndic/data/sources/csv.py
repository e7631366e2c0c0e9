"""Rows of CSV files. A record is one line: a malformed line is a row of missing values and never affects other lines.

With Arrow alone, one unmatched quote would consume all following lines, and one long line would make a file unreadable.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from syndic.data.source import check_columns, reading
from syndic.errors import InputError

BLOCK_BYTES = 4 << 20
LINE_BYTES = 1 << 20
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_MARK = b"\xef\xbb\xbf"


@final
@dataclass(frozen=True, kw_only=True)
class CsvSource:
    """A text file with a header line. Every value is read as bytes, so that none is refused.

    Every line after the header is a row, also a blank one. An empty field is null. All fields are null in a line with a
    wrong number of fields, with quotes that do not enclose whole fields, with a carriage return elsewhere than at its
    end, or of more than `LINE_BYTES`. With `multiline`, which the owner states, line breaks within quotes belong to the
    field: then an unmatched quote takes other lines with it, at most `LINE_BYTES` of them.
    """

    path: Path
    delimiter: str
    multiline: bool = False

    def names(self) -> tuple[str, ...]:
        """Return the header's names."""
        with reading(self.describe()), pa.input_stream(self.path) as file:
            return self._header(file)[0]

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield blocks of lines."""
        columns = check_columns(self, columns)
        with reading(self.describe()), pa.input_stream(self.path) as file:
            names, rest = self._header(file)
            for block in blocks(file, rest, multiline=self.multiline):
                read = records(block, ord(self.delimiter), len(names))
                table = self._parsed(read.data.tobytes(), names, columns)
                yield from (table if read is block else table.take(read.rows_of(block))).to_batches()

    def describe(self) -> str:
        """Return the kind and the file's name."""
        return f"CSV file {self.path.name}"

    def _header(self, file: BinaryIO) -> tuple[tuple[str, ...], bytes]:
        """Return the names in the first line that is not blank, and the bytes read after it."""
        line, rest = b"", b""
        while not line.strip():
            line, found, rest = rest.partition(b"\n")
            while not found:
                more = file.read(LINE_BYTES)
                line, found, rest = (line + more).partition(b"\n")
                if not more or len(line) > LINE_BYTES:
                    break
            if not line and not rest:
                break
        try:
            text = line.removeprefix(_MARK).strip(b"\r").decode()
            names = tuple(next(csv.reader([text], delimiter=self.delimiter, strict=True)))
        except (UnicodeDecodeError, csv.Error):
            names = ()
        if not names:
            raise InputError(f"{self.describe()}: the first line must contain the column names, in UTF-8")
        return names, rest

    def _parsed(self, lines: bytes, names: tuple[str, ...], columns: list[str]) -> pa.Table:
        # a line is put before them and skipped: a value's first bytes might be taken for a byte order mark
        return pa.csv.read_csv(
            pa.py_buffer(b"\n" + lines),
            read_options=pa.csv.ReadOptions(column_names=names, block_size=len(lines) + 2, skip_rows=1),
            parse_options=pa.csv.ParseOptions(
                delimiter=self.delimiter, ignore_empty_lines=False, newlines_in_values=self.multiline
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.binary()),
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


def blocks(file: BinaryIO, rest: bytes, *, multiline: bool) -> Iterator["Lines"]:
    """Yield whole records, some mebibytes at a time; of a line longer than a block only a long part is kept."""
    while more := file.read(BLOCK_BYTES):
        data = rest + more
        lines = Lines.of(data, multiline=multiline)
        if len(lines.rows):
            yield lines
        # a line without an end is still too long to be kept, and no longer
        rest = data[len(lines.data) :][: LINE_BYTES + 1]
    if rest:
        yield Lines.of(rest if rest.endswith(b"\n") else rest + b"\n", multiline=multiline, last=True)


def records(lines: "Lines", delimiter: int, fields: int) -> "Lines":
    """Return the lines that are records of so many fields; a blank one has one field."""
    lines = lines.without(lines.lengths() > LINE_BYTES + 1)
    returns = np.flatnonzero(lines.data == _RETURN)
    lines = lines.without(lines.holding(returns[lines.data[returns + 1] != _NEWLINE]))
    quoted = bool((lines.data == _QUOTE).any())
    if quoted:
        lines = lines.without(lines.counts(lines.data == _QUOTE) % 2 == 1)
        lines = lines.without(lines.holding(_misplaced(lines.data, delimiter)))
    between = lines.data == delimiter
    if quoted:
        # quoted if the number of quotes so far is odd
        between &= np.cumsum(lines.data == _QUOTE, dtype=np.uint8) % 2 == 0
    # Arrow would skip these lines by itself, but fails where one is not UTF-8
    return lines.without(lines.counts(between) != fields - 1)


@final
@dataclass(frozen=True, eq=False)
class Lines:
    """Bytes of whole lines, where each ends, and which row of its block each is."""

    data: NDArray[np.uint8] = field(repr=False)  # rows are private, also in logs
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, data: bytes, *, multiline: bool = False, last: bool = False) -> Self:
        """Return the lines of some bytes; what follows the last one is left out."""
        found = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(found == _NEWLINE)
        if multiline:
            ends = ends[_closed(found, ends, 0 if last else LINE_BYTES + 1)]
        return cls(found[: ends[-1] + 1 if len(ends) else 0], ends, np.arange(len(ends)))

    def lengths(self) -> NDArray[np.int64]:
        """Return the bytes of each line, its end included."""
        return np.diff(self.ends, prepend=-1)

    def counts(self, marked: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return how many bytes of each line are marked."""
        return np.diff(np.cumsum(marked, dtype=np.int32)[self.ends], prepend=np.int32(0))

    def holding(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which lines contain some of the places."""
        found = np.zeros(len(self.ends), dtype=bool)
        found[np.searchsorted(self.ends, places)] = True
        return found

    def without(self, bad: NDArray[np.bool_]) -> "Lines":
        """Return the other lines."""
        if not bad.any():
            return self
        lengths = self.lengths()
        return Lines(self.data[np.repeat(~bad, lengths)], np.cumsum(lengths[~bad]) - 1, self.rows[~bad])

    def rows_of(self, block: "Lines") -> pa.Array:
        """Return for each row of the block the place of its line here; null if it is not here."""
        places = np.full(len(block.rows), -1)
        places[self.rows] = np.arange(len(self.rows))
        return pa.array(places, mask=places < 0)


def _closed(data: NDArray[np.uint8], newlines: NDArray[np.int64], rest: int) -> NDArray[np.bool_]:
    """Return which line ends are ends of records: those outside quotes.

    A record of more than `LINE_BYTES`, or at the end one of more than `rest` bytes that is not closed, has an unmatched
    quote: its first line is a record by itself, and reading begins again after it.
    """
    quotes = np.cumsum(data == _QUOTE, dtype=np.int32)[newlines]
    closed = np.zeros(len(newlines), dtype=bool)
    first = 0
    while first < len(newlines):
        start, before = (newlines[first - 1] + 1, quotes[first - 1]) if first else (0, 0)
        closed[first:] = (quotes[first:] - before) % 2 == 0
        stops = np.append(newlines[first:][closed[first:]] + 1, len(data))
        begins = np.concatenate([[start], stops[:-1]])
        long = begins[stops - begins > np.append(np.full(len(stops) - 1, LINE_BYTES + 1), rest)]
        if not len(long):
            break
        first = int(np.searchsorted(newlines, long[0])) + 1
        closed[first - 1 : first] = True
    return closed


def _misplaced(data: NDArray[np.uint8], delimiter: int) -> NDArray[np.int64]:
    """Return the quotes that neither enclose a whole field nor stand doubled within one, in lines of even numbers.

    Every second quote closes what the one before it opened; a doubled one closes and opens.
    """
    quotes = np.flatnonzero(data == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    first, last = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
    first[[_NEWLINE, _QUOTE, delimiter]] = True
    last[[_NEWLINE, _RETURN, _QUOTE, delimiter]] = True
    wrong = ~first[data[opening - 1]] & (opening > 0)
    return np.concatenate([opening[wrong], closing[~last[data[closing + 1]]]])
