"""The inner loops, compiled by numba (an extra). Imported by `kernels` only.

Loops run over slices from 0: an index that might be negative is checked at every cell, which prevents vectorisation.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.kernels import FLOOR

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile without the interpreter's lock, cached on disk; sums may be reordered, nothing else is relaxed."""
    decorate: Any = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
    made: F = decorate(function)
    return made


@compiled
def lift(
    smalls: NDArray[np.int64],
    maps: NDArray[np.int32],
    chosen: NDArray[np.int64],
    factors: NDArray[np.float64],
    tables: NDArray[np.float64],
) -> None:
    """Write into the groups' tables the products of the chosen small tables."""
    tables[:] = 1.0
    for small in chosen:
        group, size, first, start, count = smalls[small]
        table, index, factor = tables[group : group + size], maps[first : first + size], factors[start : start + count]
        for cell in range(size):
            table[cell] *= factor[np.uint32(index[cell])]


@compiled
def _multiply(row: NDArray[np.float64], table: NDArray[np.float64]) -> None:
    for cell in range(len(row)):
        row[cell] *= table[cell]


@compiled
def _add(table: NDArray[np.float64], row: NDArray[np.float64]) -> None:
    for cell in range(len(row)):
        table[cell] += row[cell]


@compiled
def _floor(row: NDArray[np.float64]) -> float:
    total = 0.0
    for cell in range(len(row)):
        value = row[cell]
        least = FLOOR if value > 0.0 else 0.0
        value = max(value, least)
        row[cell] = value
        total += value
    return total


@compiled
def sweep(  # noqa: PLR0913, PLR0917 - one pass is one call
    width: int,
    starts: NDArray[np.int64],
    blocks: NDArray[np.bool_],
    index: NDArray[np.int32],
    cells: NDArray[np.float64],
    tables: NDArray[np.float64],
    sums: NDArray[np.float64],
    multiply: NDArray[np.int64],
    add: NDArray[np.int64],
    write: bool,
    low: int,
    high: int,
) -> None:
    """Multiply rows by the groups' tables, sum them onto groups, and store them if `write`."""
    row = np.empty(width)
    for line in range(low, high):
        stored = cells[line * width : (line + 1) * width]
        row[:] = stored
        for group in multiply:
            place = starts[group] + index[group, line] * (width if blocks[group] else 1)
            if blocks[group]:
                _multiply(row, tables[place : place + width])
            else:
                row *= tables[place]
        total = _floor(row)
        if write:
            stored[:] = row
        for group in add:
            place = starts[group] + index[group, line] * (width if blocks[group] else 1)
            if blocks[group]:
                _add(sums[place : place + width], row)
            else:
                sums[place] += total


@compiled
def drop(
    smalls: NDArray[np.int64],
    maps: NDArray[np.int32],
    chosen: NDArray[np.int64],
    sums: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Sum the groups' sums onto the chosen small tables."""
    for small in chosen:
        group, size, first, start, count = smalls[small]
        table, index, value = sums[group : group + size], maps[first : first + size], values[start : start + count]
        value[:] = 0.0
        for cell in range(size):
            value[np.uint32(index[cell])] += table[cell]
