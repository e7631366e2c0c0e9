"""One-hot matrices of coded columns, and tables from shares of their products."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded


def hot_rows(
    batches: Iterable[Coded],
    codes_of: Callable[[Coded], Sequence[NDArray[Any]]],
    groups: Sequence[int],
    span: tuple[int, int],
) -> NDArray[np.uint8]:
    """Return rows of a one-hot matrix: `codes_of` a batch gives one column of codes for each of the `groups`.

    A group is the number of first levels kept of its column; other levels leave its part of the row empty. The matrix
    is shorter than the span if there are fewer rows. Private.
    """
    matrix = np.zeros((span[1] - span[0], sum(groups)), dtype=np.uint8)
    begins, filled = list(accumulate(groups, initial=0))[:-1], 0
    for coded in rows_between(batches, *span):
        rows = np.arange(filled, filled + rows_of(coded))
        for begin, group, codes in zip(begins, groups, codes_of(coded), strict=True):
            kept = codes < group
            matrix[rows[kept], begin + codes[kept].astype(np.int64)] = 1
        filled += len(rows)
    return matrix[:filled]


def rows_between(batches: Iterable[Coded], start: int, stop: int) -> Iterator[Coded]:
    """Yield rows `start` to `stop` of all batches, as far as they exist. Private."""
    seen = 0
    for batch in batches:
        first, last = max(0, start - seen), min(rows_of(batch), stop - seen)
        seen += rows_of(batch)
        if first < last:
            yield {name: codes[first:last] for name, codes in batch.items()}
        if seen >= stop:
            return


def rows_of(coded: Coded) -> int:
    """Return how many rows a batch has. Private."""
    return len(next(iter(coded.values())))


def completed(part: NDArray[Any], counts: NDArray[np.int64], rows: int, *, left: bool) -> NDArray[np.int64]:
    """Add the last row and column to a share of a table; the result is for `reduce` of the ring of the share.

    A count with the last level is the party's own count of the other level minus the counts with all earlier levels.
    Each party adds the own counts that it knows; the left party adds the number of rows.
    """
    part = part.astype(np.int64)
    full = np.zeros((part.shape[0] + 1, part.shape[1] + 1), dtype=np.int64)
    full[:-1, :-1] = part
    full[:-1, -1] = (counts if left else 0) - part.sum(axis=1)
    full[-1, :-1] = (0 if left else counts) - part.sum(axis=0)
    full[-1:, -1:] = part.sum(keepdims=True) + (rows if left else 0) - counts.sum(keepdims=True)
    return full
