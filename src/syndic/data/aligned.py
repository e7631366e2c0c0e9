"""Ids by which organisations identify their common people, and a source's rows in the order of an alignment.

An id is interpreted independently of its type: numbers by their digits (7, 7.0 and "007" are one id), dates by their
ISO text, text trimmed. A public rule then normalises the spelling. A row without an id, or with a part of it missing,
belongs to nobody.
"""

import datetime
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data.people import person_ids
from syndic.data.source import BATCH_ROWS, Source, check_columns
from syndic.data.values import decoded, is_text, texts
from syndic.document import Document

Spelling = Literal[
    "nfkc", "accents", "casefold", "day_first", "month_first", "words", "alphanumeric", "digits", "zeros"
]

NAME_BYTES: Final = 16
BLOCK_ROWS: Final = 1 << 20
"""Rows held in memory to put them in order; a longer table is read once for every block of rows."""

_APART: Final = " | "
_WHOLE = re.compile(r"\+?(-?)0*([0-9]+)(\.0*)?", re.ASCII)
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})")
_TIME = re.compile(r"[T ][0-9]{1,2}:[0-9:.]+Z?$")
_UNMARKED = str.maketrans({"\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L", "\u0111": "d", "\u0110": "D"})


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFKD", text)
    kept = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    return unicodedata.normalize("NFC", kept).translate(_UNMARKED)


def _as_date(text: str, *, day_first: bool) -> str:
    """Return the ISO text of a day if the text is one, else the text."""
    day = _TIME.sub("", text.strip())
    if found := _YEAR_FIRST.fullmatch(day):
        parts = [part for part in found.groups() if part and part.isdecimal()]
    elif found := _YEAR_LAST.fullmatch(day):
        parts = [found[3], *((found[2], found[1]) if day_first else (found[1], found[2]))]
    else:
        return text
    try:
        return datetime.date(*map(int, parts)).isoformat()
    except ValueError:
        return text


def _sorted_words(text: str, later: Iterable[Callable[[str], str]] = ()) -> str:
    """Return the words in the order of what `later` changes make of them, so that what these ignore has no effect."""
    return " ".join(sorted(text.replace(",", " ").split(), key=lambda word: _changed(word, later)))


def _changed(text: str, changes: Iterable[Callable[[str], str]]) -> str:
    for change in changes:
        text = change(text)
    return text


_STEPS: Mapping[str, Callable[[str], str]] = {
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
    "accents": _without_accents,
    "casefold": str.casefold,
    "day_first": partial(_as_date, day_first=True),
    "month_first": partial(_as_date, day_first=False),
    "words": _sorted_words,
    "alphanumeric": lambda text: "".join(filter(str.isalnum, text)),
    "digits": lambda text: "".join(each for each in text if each in "0123456789"),
    "zeros": lambda text: re.sub(r"(?<![0-9])0+(?=[0-9])", "", text),
}


class IdRule(Document):
    """The public rule for ids: how spelling is normalised, and how duplicates are handled.

    Normalisations apply in this order, whatever order they are given in. `nfkc`: one form for letters that Unicode has
    several forms of. `accents`: leave out marks on letters. `casefold`: ignore case. `day_first`, `month_first`: read
    dates, such as 3.2.2001 or 2/3/2001, as days. `words`: ignore the order of words, and commas between them.
    `alphanumeric`: keep only letters and digits. `digits`: keep only the digits 0 to 9. `zeros`: ignore zeros in front
    of numbers within a text. `duplicates`: `drop` all rows of an id that a table has twice, or keep the `first`.
    """

    spelling: tuple[Spelling, ...] = ("nfkc", "casefold")
    duplicates: Literal["drop", "first"] = "drop"

    def __post_init__(self) -> None:
        if len(set(self.spelling)) != len(self.spelling):
            raise ValueError("spelling names a rule twice")
        for one, other in (("alphanumeric", "digits"), ("day_first", "month_first")):
            if {one, other} <= set(self.spelling):
                raise ValueError(f"spelling names both {one} and {other}: choose one")


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
        yield [None if None in row else b"".join(filter(None, row)) for row in zip(*parts, strict=True)]


def distinct_ids(source: Source, columns: Iterable[str], rule: IdRule) -> list[bytes]:
    """Return the ids of a source that stand for one row each, in the source's order. Private."""
    columns = check_columns(source, columns)
    rows: Counter[bytes] = Counter()
    for ids in id_batches(source.batches(columns), columns, rule):
        rows.update(each for each in ids if each is not None)
    return [each for each, times in rows.items() if times == 1 or rule.duplicates == "first"]


def written_ids(batch: pa.RecordBatch, columns: Iterable[str]) -> list[str]:
    """Return each row's id as the source writes it, for its owner. Private."""
    arrays = [decoded(batch.column(name)) for name in columns]
    parts = [(texts(one) if is_text(one.type) else person_ids(one)).to_pylist() for one in arrays]
    return [_APART.join(part or "" for part in row) for row in zip(*parts, strict=True)]


def id_text(identity: bytes) -> str:
    """Return an id as it is compared, for its owner. Private."""
    parts = []
    while identity:
        end = 4 + int.from_bytes(identity[:4], "little")
        parts.append(identity[4:end].decode("utf-8", "replace"))
        identity = identity[end:]
    return _APART.join(parts)


def name_of(identity: bytes, key: bytes) -> bytes:
    """Return the keyed digest that an alignment stores of an id."""
    return hashlib.blake2b(identity, digest_size=NAME_BYTES, key=key).digest()


def _column_ids(array: pa.Array, rule: IdRule) -> list[bytes | None]:
    """Return each row's part of an id, with its length: ("ab", "c") differs from ("a", "bc"). None if it is empty."""
    changes = _changes(rule.spelling)
    texts = [_spelled(text, changes) if text else "" for text in person_ids(array).to_pylist()]
    written = [text.encode("utf-8", "surrogatepass") for text in texts]
    return [len(part).to_bytes(4, "little") + part if part else None for part in written]


def _changes(spelling: tuple[Spelling, ...]) -> list[Callable[[str], str]]:
    # the capitals of a few letters fold to several letters in no common form
    again = ("nfkc",) if "nfkc" in spelling else ()
    names = (*(name for name in _STEPS if name in spelling), *again)
    changes = [_STEPS[name] for name in names]
    if "words" in names:
        place = names.index("words")
        changes[place] = partial(_sorted_words, later=changes[place + 1 :])
    return changes


def _spelled(text: str, changes: Iterable[Callable[[str], str]]) -> str:
    text = _changed(text, changes).strip()
    # a rule may leave a number with zeros in front, as "No. 007" does by its digits
    whole = _WHOLE.fullmatch(text)
    return f"{whole[1]}{whole[2]}" if whole else text


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
            kept.append([decoded(batch.column(name).take(pa.array(rows, pa.int64()))) for name in columns])
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


def _together(arrays: list[pa.Array]) -> pa.ChunkedArray:
    """Return the arrays as one; files that type a column differently are read as text, which has the same reading."""
    kinds = {array.type for array in arrays}
    return pa.chunked_array(arrays if len(kinds) == 1 else [person_ids(each) for each in [*arrays, pa.nulls(0)]])
