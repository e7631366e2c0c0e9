"""Tables across columns from sketches: a cell is everybody less the union of the complements.

The largest of several ranks is the rank of the union. For values v_1, ..., v_l of l columns, everybody who has not all
of them is in the union of "not v_1", ..., "not v_l"; its sketch is the largest of those of all other values, and
holds the phantoms of all of them, sum over columns of (size - 1) times as many as one sketch has. All of this is after
the release: it costs nothing.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.estimate import harmonic, likeliest, printed
from syndic.methods.vertimrf.sketch.plan import SketchPlan

Decoder = Literal["likeliest", "harmonic", "printed"]


def union(*ranks: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the sketches of unions: arrays of ranks of the same key, repetitions along the first axis."""
    return reduce(np.maximum, ranks)


def complements(ranks: NDArray[np.uint16], plan: SketchPlan) -> NDArray[np.uint16]:
    """Return, for each value of one column, the sketch of everybody who has another value."""
    if ranks.shape[1] == 1:
        return np.full_like(ranks, plan.floor)
    largest = np.argmax(ranks, axis=1, keepdims=True)
    found = np.repeat(np.take_along_axis(ranks, largest, axis=1), ranks.shape[1], axis=1)
    rest = ranks.copy()
    np.put_along_axis(rest, largest, 0, axis=1)
    np.put_along_axis(found, largest, rest.max(axis=1, keepdims=True), axis=1)
    return found


def cell_table(
    columns: Sequence[NDArray[np.uint16]], plan: SketchPlan, people: float, decoder: Decoder = "likeliest"
) -> NDArray[np.float64]:
    """Return an estimate of every cell of the table of these columns, unrounded and perhaps negative.

    Args:
        columns: for each column its sketches, a row a repetition, a column a value, all of one key.
        plan: how they were made.
        people: the number of people, public or noisy.
        decoder: `printed` is the published formula, which clips at 0 and is wrong by a factor.
    """
    if not columns or any(len(ranks) != plan.repetitions for ranks in columns):
        raise InputError(f"a table needs columns of {plan.repetitions} repetitions each")
    phantoms = plan.phantoms * sum(ranks.shape[1] - 1 for ranks in columns)
    first, *others = [complements(ranks, plan) for ranks in columns]
    shape = tuple(ranks.shape[1] for ranks in columns)
    found = np.empty((shape[0], int(np.prod(shape[1:]))))
    rest = _crossed(others, plan)
    for value in range(shape[0]):  # one value at a time: a table of all repetitions may not fit into memory
        found[value] = _elements(np.maximum(rest, first[:, value : value + 1]), plan, decoder)
    cells = people - (found.reshape(shape) - phantoms)
    return np.asarray(np.maximum(cells, 0.0) if decoder == "printed" else cells)


def onto_simplex(cells: NDArray[np.float64], people: float) -> NDArray[np.float64]:
    """Return the nearest table without negative cells that sums to `people`."""
    if people <= 0:
        return np.zeros_like(cells)
    ordered = np.sort(cells.ravel())[::-1]
    surplus = (np.cumsum(ordered) - people) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered > surplus)[-1])
    return np.asarray(np.maximum(cells - surplus[kept], 0.0), dtype=np.float64)


def _crossed(columns: Sequence[NDArray[np.uint16]], plan: SketchPlan) -> NDArray[np.uint16]:
    result = np.full((plan.repetitions, 1), plan.floor, dtype=np.uint16)
    for ranks in columns:
        result = np.maximum(result[:, :, None], ranks[:, None, :]).reshape(plan.repetitions, -1)
    return result


def _elements(ranks: NDArray[np.uint16], plan: SketchPlan, decoder: Decoder) -> NDArray[np.float64]:
    if decoder == "likeliest":
        return likeliest(ranks, plan)
    return harmonic(ranks, plan.gamma) if decoder == "harmonic" else printed(ranks, plan.gamma)
