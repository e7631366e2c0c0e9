"""Ids by which organisations identify their common people, and a source's rows in the order of an alignment.

An id is interpreted independently of its type: numbers by their digits (7, 7.0 and "007" are one id), dates by their
ISO text, text trimmed. A public rule then normalises the spelling. A row without an id, or with a part of it missing,
belongs to nobody.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data.people import person_ids
from syndic.data.source import BATCH_ROWS, Source, check_columns
from syndic.document import Document

Spelling = Literal["nfkc", "casefold", "alphanumeric", "digits"]

NAME_BYTES: Final = 16
BLOCK_ROWS: Final = 1 << 20
"""Rows held in memory to put them in order; a longer table is read once for every block of rows."""

_WHOLE = re.compile(r"\+?(-?)0*([0-9]+)(\.0*)?", re.ASCII)
_STEPS: Mapping[str, Callable[[str], str]] = {
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
    "casefold": str.casefold,
    "alphanumeric": lambda text: "".join(filter(str.isalnum, text)),
    "digits": lambda text: "".join(each for each in text if each in "0123456789"),
}


class IdRule(Document):
    """The public rule for ids: how spelling is normalised, and how duplicates are handled.

    Normalisations apply in this order, whatever order they are given in. `nfkc`: one form for letters that Unicode has
    several forms of. `casefold`: ignore case. `alphanumeric`: keep only letters and digits. `digits`: keep only the
    digits 0 to 9. `duplicates`: `drop` all rows of an id that a table has twice, or keep the `first`.
    """

    spelling: tuple[Spelling, ...] = ("nfkc", "casefold")
    duplicates: Literal["drop", "first"] = "drop"


@final
class Alignment(Document):
    """A party's own record of the common people, in the common order. Private; it never leaves the party.

    `names` has 16 bytes of each person's id under `key`, which no other party knows; `columns` held the ids.
    """

    rule: IdRule
    columns: tuple[str, ...]
    key: bytes
    names: bytes

    @property
    def people(self) -> int:
        """The number of common people."""
        return len(self.names) // NAME_BYTES


def id_batches(batches: Iterable[pa.RecordBatch], columns: Iterable[str], rule: IdRule) -> Iterator[list[bytes | None]]:
    """Yield each row's id for batches of rows, None if it has none. Private."""
    columns = tuple(columns)
    for batch in batches:
        parts = [_column_ids(batch.column(name), rule) for name in columns]
        yield [_joined(row) for row in zip(*parts, strict=True)]


def distinct_ids(source: Source, columns: Iterable[str], rule: IdRule) -> list[bytes]:
    """Return the ids of a source that stand for one row each, in the source's order. Private."""
    columns = check_columns(source, columns)
    rows: dict[bytes, int] = {}
    for ids in id_batches(source.batches(columns), columns, rule):
        for each in ids:
            if each is not None:
                rows[each] = rows.get(each, 0) + 1
    return [each for each, times in rows.items() if times == 1 or rule.duplicates == "first"]


def name_of(identity: bytes, key: bytes) -> bytes:
    """Return the keyed digest that an alignment stores of an id."""
    return hashlib.blake2b(identity, digest_size=NAME_BYTES, key=key).digest()


def _column_ids(array: pa.Array, rule: IdRule) -> list[str | None]:
    return [None if text is None else _spelled(text, rule.spelling) or None for text in person_ids(array).to_pylist()]


def _spelled(text: str, spelling: tuple[Spelling, ...]) -> str:
    for name, change in _STEPS.items():
        text = change(text) if name in spelling else text
    # the capitals of a few letters fold to several letters in no common form
    text = (_STEPS["nfkc"](text) if "nfkc" in spelling else text).strip()
    # a rule may leave a number with zeros in front, as "No. 007" does by its digits
    whole = _WHOLE.fullmatch(text)
    return f"{whole[1]}{whole[2]}" if whole else text


def _joined(parts: tuple[str | None, ...]) -> bytes | None:
    """Return an unambiguous encoding of the parts: ("ab", "c") differs from ("a", "bc")."""
    written = [part.encode("utf-8", "surrogatepass") for part in parts if part is not None]
    if len(written) < len(parts):
        return None
    return b"".join(len(part).to_bytes(4, "little") + part for part in written)


@final
@dataclass(frozen=True, eq=False)
class AlignedSource:
    """The common people's rows of a source, in the common order; looked up by their ids at every reading.

    So a source may be exported again in another order, with more people or other columns. Who has no row any more, or
    several where the rule drops those, has a row of missing values: no value in a source stops a run. It needs about
    150 bytes of memory per person, and the requested columns of `block` rows at a time.
    """

    source: Source
    alignment: Alignment = field(repr=False)
    columns: tuple[str, ...]
    block: int = BLOCK_ROWS

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns there are."""
        return self.source.names()

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `columns` in the common order, one for each person of the alignment. Private."""
        columns = check_columns(self, columns)
        people, names = self.alignment.people, self.alignment.names
        places = {names[start : start + NAME_BYTES]: start // NAME_BYTES for start in range(0, len(names), NAME_BYTES)}
        for start in range(0, people, self.block):
            within = range(start, min(start + self.block, people))
            yield from self._ordered(columns, places, within).to_batches(max_chunksize=BATCH_ROWS)

    def describe(self) -> str:
        """Return what the source is."""
        return self.source.describe()

    def _ordered(self, columns: list[str], places: Mapping[bytes, int], within: range) -> pa.Table:
        """Return the rows of some people in order."""
        times, where = np.zeros(len(within), dtype=np.int64), np.zeros(len(within), dtype=np.int64)
        kept: list[list[pa.Array]] = []
        found = 0
        for batch in self.source.batches(list(dict.fromkeys([*columns, *self.columns]))):
            rows, order = self._matched(batch, places, within, times)
            where[order] = np.arange(found, found + len(order))
            found += len(order)
            kept.append([_plain(batch.column(name).take(pa.array(rows, pa.int64()))) for name in columns])
        absent = times != 1 if self.alignment.rule.duplicates == "drop" else times == 0
        back = pa.array(where, mask=absent)
        arrays = [_together([arrays[place] for arrays in kept]).take(back) for place in range(len(columns))]
        return pa.table(arrays, names=columns)

    def _matched(
        self, batch: pa.RecordBatch, places: Mapping[bytes, int], within: range, times: NDArray[np.int64]
    ) -> tuple[list[int], list[int]]:
        """Return the first rows of people in a batch, and their places; count in `times` the rows of each."""
        rows: list[int] = []
        order: list[int] = []
        (ids,) = id_batches([batch], self.columns, self.alignment.rule)
        for row, identity in enumerate(ids):
            place = None if identity is None else places.get(name_of(identity, self.alignment.key))
            if place is None or place not in within:
                continue
            if not times[place - within.start]:
                rows.append(row)
                order.append(place - within.start)
            times[place - within.start] += 1
        return rows, order


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _together(arrays: list[pa.Array]) -> pa.ChunkedArray:
    """Return the arrays as one; files that type a column differently are read as text, which has the same reading."""
    kinds = {array.type for array in arrays}
    return pa.chunked_array(arrays if len(kinds) == 1 else [person_ids(each) for each in [*arrays, pa.nulls(0)]])
