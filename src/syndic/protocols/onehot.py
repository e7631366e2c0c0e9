"""One-hot matrices of coded columns, and the tables that shares of their products make."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table


def onehot(table: Table, names: Sequence[str], groups: Sequence[int], span: tuple[int, int]) -> NDArray[np.uint8]:
    """Return rows of the one-hot matrix of some columns: for each its first levels, as many as `groups` says.

    The matrix is shorter than the span if the table has fewer rows. Private.
    """
    start, stop = span
    matrix = np.zeros((stop - start, sum(groups)), dtype=np.uint8)
    filled, begins = 0, np.cumsum([0, *groups[:-1]])
    for codes in _rows(table, names, start, stop):
        rows = np.arange(filled, filled + len(codes[0]))
        for begin, group, code in zip(begins, groups, codes, strict=True):
            kept = code < group
            matrix[rows[kept], begin + code[kept].astype(np.int64)] = 1
        filled += len(rows)
    return matrix[:filled]


def completed(part: NDArray[np.uint64], counts: NDArray[np.uint64], rows: int, *, left: bool) -> NDArray[np.uint64]:
    """Add the last row and column to a share of a table, modulo 2^64.

    A count with the last level is the party's own count of the other level less the counts with all earlier levels.
    Each party puts in the own counts that it knows; the left one puts in the number of rows.
    """
    full = np.zeros((part.shape[0] + 1, part.shape[1] + 1), dtype=np.uint64)
    full[:-1, :-1] = part
    full[:-1, -1] = (counts if left else np.uint64(0)) - part.sum(axis=1)
    full[-1, :-1] = (np.uint64(0) if left else counts) - part.sum(axis=0)
    full[-1:, -1:] = part.sum(keepdims=True) + np.uint64(rows if left else 0) - counts.sum(keepdims=True)
    return full


def _rows(table: Table, names: Sequence[str], start: int, stop: int) -> Iterator[list[NDArray[Any]]]:
    """Yield the codes of some columns of rows `start` to `stop`."""
    seen = 0
    for batch in table.batches(names):
        size = len(batch[names[0]])
        first, last = max(0, start - seen), min(size, stop - seen)
        seen += size
        if first < last:
            yield [batch[name][first:last] for name in names]
        if seen >= stop:
            return
