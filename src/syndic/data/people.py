"""Which rows of a person count.

Every choice depends only on the person's own rows, their order and a key that is independent of all rows. So adding,
removing or changing other people changes nothing about this person's rows, and a person still has at most `limit` rows,
or rows with a bounded sum of weights: the sensitivity of a count follows from that alone.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import values as read

_SPAN: Final = 1 << 40
"""More rows than a person has: a person's number times this, plus the place of a row, is unique."""

Choice = Literal["first", "last", "random", "weighted"]
Keeper = Callable[[pa.Array], NDArray[np.bool_]]


@final
class FirstRows:
    """Counts the rows of each person, to keep the first ones."""

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` rows per person."""
        self._limit = limit
        self._had: dict[object, int] = {}

    def __call__(self, people: pa.Array) -> NDArray[np.bool_]:
        """Return which rows of a batch to keep."""
        ids, codes = _coded(people)
        had = np.array([self._had.get(each, 0) for each in ids] + [self._limit], dtype=np.int64)
        kept: NDArray[np.bool_] = had[codes] + _occurrence(codes) < self._limit
        added = np.bincount(codes[kept], minlength=len(ids))
        for each, more in zip(ids, added.tolist(), strict=False):
            if more:
                self._had[each] = self._had.get(each, 0) + more
        return kept


@final
class LastRows:
    """Keeps the last rows of each person, whose number of rows was counted in an earlier pass."""

    def __init__(self, limit: int, rows: Counter[object]) -> None:
        """Keep at most `limit` rows per person; `rows` is how many each person has."""
        self._limit = limit
        self._rows = rows
        self._had: Counter[object] = Counter()

    def __call__(self, people: pa.Array) -> NDArray[np.bool_]:
        """Return which rows of a batch to keep."""
        ids, codes = _coded(people)
        place = _places(ids, codes, self._had)
        rows = np.array([self._rows[each] for each in ids] + [0], dtype=np.int64)[codes]
        # also bounded above: rows that a table gained since they were counted are left out
        kept: NDArray[np.bool_] = (place >= rows - self._limit) & (place < rows)
        return kept


@final
class WeightedRows:
    """Weighs the first rows of each person, whose number of rows was counted in an earlier pass.

    Of k rows each gets whole // k, and the first whole % k one more: non-negative integers that depend on k and the
    place alone and add up to `whole`. Rows that a table gained or lost since they were counted only make the sum less.
    """

    def __init__(self, limit: int, rows: Counter[object], whole: int) -> None:
        """Weigh at most `limit` rows per person, together `whole`; `rows` is how many each person has."""
        self._limit = limit
        self._rows = rows
        self._whole = whole
        self._had: Counter[object] = Counter()

    def __call__(self, people: pa.Array) -> NDArray[np.int64]:
        """Return the weights of the rows of a batch, 0 where a row does not count."""
        ids, codes = _coded(people)
        place = _places(ids, codes, self._had)
        rows = np.array([min(self._rows[each], self._limit) for each in ids] + [0], dtype=np.int64)[codes]
        each, left = np.divmod(self._whole, np.maximum(rows, 1))
        return np.where(place < rows, each + (place < left), 0)


@final
class RandomRows:
    """Keeps rows of each person that a key decides: with the same key the same ones at every reading."""

    def __init__(self, limit: int, rows: Counter[object], key: bytes) -> None:
        """Keep at most `limit` rows per person; `rows` is how many each person has."""
        self._limit = limit
        self._rows = rows
        self._key = hashlib.sha256(key).digest()
        self._had: Counter[object] = Counter()
        self._chosen: dict[object, NDArray[np.int64]] = {}

    def __call__(self, people: pa.Array) -> NDArray[np.bool_]:
        """Return which rows of a batch to keep."""
        ids, codes = _coded(people)
        place = _places(ids, codes, self._had)
        rows = np.array([self._rows[each] for each in ids] + [0], dtype=np.int64)
        kept: NDArray[np.bool_] = place < rows[codes]
        many = np.flatnonzero(rows > self._limit)
        if len(many):
            chosen = np.concatenate([code * _SPAN + self._places_of(ids[code]) for code in many.tolist()])
            cut = rows[codes] > self._limit
            kept[cut] = np.isin(codes[cut] * _SPAN + place[cut], chosen)
        return kept

    def _places_of(self, person: object) -> NDArray[np.int64]:
        """Return the places of a person's rows that are kept: those with the smallest digests under the key."""
        found = self._chosen.get(person)
        if found is None:
            start = hashlib.blake2b(str(person).encode("utf-8", "surrogatepass"), digest_size=16, key=self._key)
            drawn = []
            for place in range(self._rows[person]):
                each = start.copy()
                each.update(b"\x00" + place.to_bytes(8, "little"))
                drawn.append((each.digest(), place))
            found = np.array(sorted(place for _, place in sorted(drawn)[: self._limit]), dtype=np.int64)
            self._chosen[person] = found
        return found


def rows_of_people(batches: Iterable[pa.Array]) -> tuple[Counter[object], int]:
    """Return how many rows each person has, and how many rows have no person. Private."""
    rows: Counter[object] = Counter()
    nobody = 0
    for people in batches:
        ids, codes = _coded(people)
        counts = np.bincount(codes, minlength=len(ids) + 1).tolist()
        nobody += counts.pop()
        rows.update(dict(zip(ids, counts, strict=True)))
    return rows, nobody


def person_ids(people: pa.Array) -> pa.Array:
    """Return each row's person as text; null if there is none. Lists, records and durations are nobody's ids."""
    people = read.plain(people)
    if pa.types.is_dictionary(people.type):
        return person_ids(people.dictionary_decode())
    if read.is_text(people.type) or read.is_number(people.type) or read.is_time(people.type):
        return read.ids(people)
    return pa.nulls(len(people), pa.large_string())


def as_text(array: pa.Array) -> pa.Array:
    """Return texts as they are, trimmed, and other values as `person_ids` does."""
    array = read.plain(array)
    if pa.types.is_dictionary(array.type):
        return as_text(array.dictionary_decode())
    return read.texts(array) if read.is_text(array.type) else person_ids(array)


def _coded(people: pa.Array) -> tuple[list[object], NDArray[np.int64]]:
    """Return the people of a batch, and the number of each row's; rows without a person have the next number."""
    encoded = person_ids(people).dictionary_encode()
    ids = encoded.dictionary.to_pylist()
    return ids, np.asarray(encoded.indices.fill_null(len(ids)), dtype=np.int64)


def _places(ids: list[object], codes: NDArray[np.int64], had: Counter[object]) -> NDArray[np.int64]:
    """Return for each row how many earlier rows its person has, and count the rows of this batch in `had`."""
    before = np.array([had[each] for each in ids] + [0], dtype=np.int64)
    counts = np.bincount(codes, minlength=len(ids) + 1).tolist()
    had.update(dict(zip(ids, counts, strict=False)))
    return np.asarray(before[codes] + _occurrence(codes))


def _occurrence(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many earlier rows have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered, side="left")
    result = np.empty(len(codes), dtype=np.int64)
    result[order] = np.arange(len(codes)) - first
    return result
