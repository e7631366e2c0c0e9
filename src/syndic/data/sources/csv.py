"""Rows of CSV files. A record is one line: a malformed line never affects other lines.

With Arrow alone, one unmatched quote would consume all following lines, and one long line would make a file unreadable.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

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

    An empty field is null. Left out are lines with a wrong number of fields, with quotes that do not enclose whole
    fields, with a carriage return elsewhere than at their end, or of more than `LINE_BYTES`.
    """

    path: Path
    delimiter: str

    def names(self) -> tuple[str, ...]:
        """Return the header's names."""
        with reading(self.describe()), pa.input_stream(self.path) as file:
            return self._header(file)[0]

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield blocks of lines."""
        columns = check_columns(self, columns)
        with reading(self.describe()), pa.input_stream(self.path) as file:
            names, rest = self._header(file)
            for block in _blocks(file, rest):
                lines = records(block, ord(self.delimiter), len(names))
                yield from self._parsed(lines, names, columns).to_batches()

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
        # Arrow skips the empty line; without it, a value's first bytes might be taken for a byte order mark
        return pa.csv.read_csv(
            pa.py_buffer(b"\n" + lines),
            read_options=pa.csv.ReadOptions(column_names=names, block_size=len(lines) + 2),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.binary()),
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


def _blocks(file: BinaryIO, rest: bytes) -> Iterator[bytes]:
    """Yield whole lines, some mebibytes at a time; of a line longer than a block only a long part is kept."""
    while more := file.read(BLOCK_BYTES):
        lines, found, rest = (rest + more).rpartition(b"\n")
        if found:
            yield lines + found
        else:
            # still too long to be kept, and no longer
            rest = rest[: LINE_BYTES + 1]
    if rest:
        yield rest + b"\n"


def records(block: bytes, delimiter: int, fields: int) -> bytes:
    """Return the lines of a block that are records of so many fields, and blank ones of one field."""
    lines = _Lines(np.frombuffer(block, dtype=np.uint8))
    lines = lines.without(lines.lengths() > LINE_BYTES + 1)
    if block.count(b"\r") != block.count(b"\r\n"):
        returns = np.flatnonzero(lines.data == _RETURN)
        lines = lines.without(lines.holding(returns[lines.data[returns + 1] != _NEWLINE]))
    if _QUOTE in block:
        lines = lines.without(lines.counts(lines.data == _QUOTE) % 2 == 1)
        lines = lines.without(lines.holding(_misplaced(lines.data, delimiter)))
    between = lines.data == delimiter
    if _QUOTE in block:
        # quoted if the number of quotes so far is odd
        between &= np.cumsum(lines.data == _QUOTE, dtype=np.uint8) % 2 == 0
    # Arrow would skip these lines by itself, but fails where one is not UTF-8
    return lines.without(lines.counts(between) != fields - 1).data.tobytes()


@final
class _Lines:
    """Bytes of whole lines, and where each ends."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self._ends = np.flatnonzero(data == _NEWLINE)

    def lengths(self) -> NDArray[np.int64]:
        """Return the bytes of each line, its end included."""
        return np.diff(self._ends, prepend=-1)

    def counts(self, marked: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return how many bytes of each line are marked."""
        return np.diff(np.cumsum(marked, dtype=np.int32)[self._ends], prepend=np.int32(0))

    def holding(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which lines contain some of the places."""
        found = np.zeros(len(self._ends), dtype=bool)
        found[np.searchsorted(self._ends, places)] = True
        return found

    def without(self, bad: NDArray[np.bool_]) -> "_Lines":
        """Return the other lines."""
        return _Lines(self.data[np.repeat(~bad, self.lengths())]) if bad.any() else self


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
