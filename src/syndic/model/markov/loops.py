"""The inner loops, compiled by numba (an extra). Imported by `kernels` only.

Loops run over slices from 0: an index that might be negative is checked at every cell, which prevents vectorisation.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from syndic.model.markov.kernels import FLOOR, Floats, Integers, Shape

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile without the interpreter's lock, cached on disk; sums may be reordered, nothing else is relaxed."""
    decorate: Any = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
    made: F = decorate(function)
    return made


@compiled
def lift(shape: Shape, chosen: Integers, factors: Floats, tables: Floats) -> None:
    """Write into the groups' tables the products of the chosen small tables."""
    tables[:] = 1.0
    for small in chosen:
        group, size, first, start, count = shape.smalls[small]
        table, index = tables[group : group + size], shape.maps[first : first + size]
        factor = factors[start : start + count]
        for cell in range(size):
            table[cell] *= factor[np.uint32(index[cell])]


@compiled
def _multiply(row: Floats, table: Floats) -> None:
    for cell in range(len(row)):
        row[cell] *= table[cell]


@compiled
def _add(table: Floats, row: Floats) -> None:
    for cell in range(len(row)):
        table[cell] += row[cell]


@compiled
def _floor(row: Floats) -> float:
    total = 0.0
    for cell in range(len(row)):
        value = row[cell]
        least = FLOOR if value > 0.0 else 0.0
        value = max(value, least)
        row[cell] = value
        total += value
    return total


@compiled
def sweep(
    shape: Shape, cells: Floats, tables: Floats, sums: Floats, multiply: Integers, add: Integers,
    write: bool, lines: tuple[int, int],
) -> None:  # fmt: skip
    """Multiply a range of `lines` by the groups' tables, sum them onto groups, and store them if `write`."""
    width, starts, blocks, index = shape.width, shape.starts, shape.blocks, shape.places
    row = np.empty(width)
    for line in range(lines[0], lines[1]):
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
def drop(shape: Shape, chosen: Integers, sums: Floats, values: Floats) -> None:
    """Sum the groups' sums onto the chosen small tables."""
    for small in chosen:
        group, size, first, start, count = shape.smalls[small]
        table, index = sums[group : group + size], shape.maps[first : first + size]
        value = values[start : start + count]
        value[:] = 0.0
        for cell in range(size):
            value[np.uint32(index[cell])] += table[cell]
