"""The inner loops of a step: in numpy, and compiled by numba if it is installed."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The smallest value of a cell that is not zero: numbers below 2e-308 are a hundred times slower, and a cell that
# reached zero could never become positive again.
FLOOR = 1e-200


class Shape(NamedTuple):
    """One clique as the loops use it: `rows` x `width` cells and flat tables of its groups, one after the other."""

    rows: int
    width: int
    starts: Integers  # of each group in the flat tables
    blocks: NDArray[np.bool_]  # whether the group has the block, so that its table has `width` cells a row
    places: NDArray[np.int32]  # groups x rows: the row (or cell) of the group's table
    smalls: Integers  # a line for each small table: start and size of its group, start of its map, start and size of it
    maps: NDArray[np.int32]  # for each small table and each cell of its group: the small table's cell


class Kernels(NamedTuple):
    """One implementation of the loops: `lift`, `sweep` and `drop`, which several threads can share if `compiled`."""

    lift: Callable[[Shape, Integers, Floats, Floats], None]
    sweep: Callable[[Shape, Floats, Floats, Floats, Integers, Integers, bool, tuple[int, int]], None]
    drop: Callable[[Shape, Integers, Floats, Floats], None]
    compiled: bool


def _lift(shape: Shape, chosen: Integers, factors: Floats, tables: Floats) -> None:
    """Write into the groups' tables the products of the chosen small tables."""
    tables.fill(1.0)
    for group, size, first, start, count in shape.smalls[chosen]:
        tables[group : group + size] *= factors[start : start + count][shape.maps[first : first + size]]


def _sweep(
    shape: Shape, cells: Floats, tables: Floats, sums: Floats, multiply: Integers, add: Integers,
    write: bool, lines: tuple[int, int],
) -> None:  # fmt: skip
    """Multiply a range of `lines` by the groups' tables, sum them onto groups, and store them if `write`."""
    low, high = lines
    work = cells.reshape(shape.rows, shape.width)[low:high]
    work = work if write else work.copy()
    for group in multiply:
        table, index = tables[shape.starts[group] : shape.starts[group + 1]], shape.places[group, low:high]
        work *= table.reshape(-1, shape.width)[index] if shape.blocks[group] else table[index][:, None]
    np.copyto(work, FLOOR, where=(work < FLOOR) & (work > 0))
    for group in add:
        table, index = sums[shape.starts[group] : shape.starts[group + 1]], shape.places[group, low:high]
        if shape.blocks[group]:
            order = np.argsort(index, kind="stable")
            first = np.flatnonzero(np.diff(index[order], prepend=-1))
            table.reshape(-1, shape.width)[index[order][first]] += np.add.reduceat(work[order], first, axis=0)
        else:
            table += np.bincount(index, weights=work.sum(axis=1), minlength=len(table))


def _drop(shape: Shape, chosen: Integers, sums: Floats, values: Floats) -> None:
    """Sum the groups' sums onto the chosen small tables."""
    for group, size, first, start, count in shape.smalls[chosen]:
        index = shape.maps[first : first + size]
        values[start : start + count] = np.bincount(index, weights=sums[group : group + size], minlength=count)


NUMPY_KERNELS = Kernels(_lift, _sweep, _drop, compiled=False)
"""Loops in numpy: no compiler needed, several times slower."""


@cache
def kernels() -> Kernels:
    """Return the compiled loops if numba is installed, else numpy's."""
    try:
        return compile_loops()
    except ImportError:
        return NUMPY_KERNELS


def compile_loops() -> Kernels:
    """Return the compiled loops, or the cached result of an earlier process."""
    from syndic.model.markov import loops  # noqa: PLC0415 - needs numba, an extra

    return Kernels(loops.lift, loops.sweep, loops.drop, compiled=True)
