"""Which rows of a person count.

Every choice depends only on the person's own rows, their order and a key that is independent of all rows. So adding,
removing or changing other people changes nothing about this person's rows, and a person still has at most `limit` rows,
or rows with a bounded sum of weights: the sensitivity of a count follows from that alone.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import values as read

_SPAN: Final = 1 << 40
"""More rows than a person has: a person's number times this, plus the place of a row, is unique."""

Choice = Literal["first", "last", "random", "weighted"]


@final
class RowWeights:
    """Weighs rows batch by batch: 1 or, with "weighted", a part of `whole` where a row counts, 0 where it does not.

    All but "first" need `rows`, how many rows each person has, from an earlier pass. Rows that a table gained since
    then are left out. "random" depends on a key: the same rows at every reading. With "weighted" each of k rows gets
    whole // k, and the first whole % k one more: integers that depend on k and the place alone and add up to `whole`.
    """

    def __init__(
        self, choose: Choice, limit: int, rows: Counter[object] | None = None, *, key: bytes = b"", whole: int = 1
    ) -> None:
        """Let at most `limit` rows of each person count."""
        self._choose, self._limit, self._rows, self._whole = choose, limit, rows, whole
        self._key = hashlib.sha256(key).digest()
        self._had: Counter[object] = Counter()
        self._chosen: dict[object, NDArray[np.int64]] = {}

    def __call__(self, people: pa.Array) -> NDArray[np.int64]:
        """Return the weights of the rows of a batch."""
        ids, codes = _coded(people)
        before = np.array([self._had[each] for each in ids] + [0], dtype=np.int64)
        place = before[codes] + _occurrence(codes)
        counts = np.bincount(codes, minlength=len(ids) + 1).tolist()
        self._had.update(dict(zip(ids, counts, strict=False)))
        if self._rows is None:
            return ((place < self._limit) & (codes < len(ids))).astype(np.int64)
        rows = np.array([self._rows[each] for each in ids] + [0], dtype=np.int64)[codes]
        if self._choose == "weighted":
            rows = np.minimum(rows, self._limit)
            each, left = np.divmod(self._whole, np.maximum(rows, 1))
            return np.where(place < rows, each + (place < left), 0)
        kept = place < rows
        if self._choose == "last":
            kept &= place >= rows - self._limit
        else:
            cut = rows > self._limit
            chosen = [code * _SPAN + self._drawn(ids[code], self._rows) for code in np.unique(codes[cut]).tolist()]
            kept[cut] = np.isin(codes[cut] * _SPAN + place[cut], np.concatenate([*chosen, np.empty(0, np.int64)]))
        return kept.astype(np.int64)

    def _drawn(self, person: object, rows: Counter[object]) -> NDArray[np.int64]:
        """Return the places of a person's rows that are kept: those with the smallest digests under the key."""
        if person not in self._chosen:
            start = hashlib.blake2b(str(person).encode("utf-8", "surrogatepass"), digest_size=16, key=self._key)
            drawn = []
            for place in range(rows[person]):
                each = start.copy()
                each.update(b"\x00" + place.to_bytes(8, "little"))
                drawn.append((each.digest(), place))
            kept = sorted(place for _, place in sorted(drawn)[: self._limit])
            self._chosen[person] = np.array(kept, dtype=np.int64)
        return self._chosen[person]


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
    people = read.decoded(people)
    if read.is_text(people.type) or read.is_number(people.type) or read.is_time(people.type):
        return read.ids(people)
    return pa.nulls(len(people), pa.large_string())


def _coded(people: pa.Array) -> tuple[list[object], NDArray[np.int64]]:
    """Return the people of a batch, and the number of each row's; rows without a person have the next number."""
    encoded = person_ids(people).dictionary_encode()
    ids = encoded.dictionary.to_pylist()
    return ids, np.asarray(encoded.indices.fill_null(len(ids)), dtype=np.int64)


def _occurrence(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many earlier rows have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered, side="left")
    result = np.empty(len(codes), dtype=np.int64)
    result[order] = np.arange(len(codes)) - first
    return result
