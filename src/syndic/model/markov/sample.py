"""Rows from a model: each row has the model's distribution; together they are closer to it than independent rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data.column import code_type
from syndic.model.markov.log_space import sum_onto
from syndic.model.markov.tree import JunctionTree

Floats = NDArray[np.float64]
BATCH_CELLS = 1 << 22


def sample_rows(
    tree: JunctionTree, beliefs: Sequence[Floats], rows: int, generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Walk the tree from the root; draw each column given the columns of its clique that are already drawn."""
    codes: dict[str, NDArray[Any]] = {}
    for place in tree.order:
        names, table = tree.cliques[place], beliefs[place]
        fresh = [name for name in names if name not in codes]
        domain = tree.domain.project(names)
        for count, name in enumerate(fresh):
            known = [one for one in names if one not in fresh[count:]]
            local = sum_onto(table, domain, [*known, name])
            order = [one for one in names if one in known or one == name]
            local = np.moveaxis(local, order.index(name), -1).reshape(-1, tree.domain[name])
            cells = np.zeros(rows, dtype=np.int64)
            for one in known:
                cells *= tree.domain[one]
                cells += codes[one]
            codes[name] = draw_column(local, cells, generator).astype(code_type(tree.domain[name]))
    return {name: codes[name] for name in tree.domain.names}


def draw_column(table: Floats, cells: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw a level for each row from the line of `table` at its cell.

    Systematic sampling within a cell: each level gets its expected number of rows rounded up or down, with
    probabilities such that the expectation is exact. Which row gets which level is random.
    """
    shuffled = generator.permutation(len(cells))
    order = shuffled[np.argsort(cells[shuffled], kind="stable")]
    groups, counts = np.unique(cells, return_counts=True)
    levels = np.empty(len(cells), dtype=np.int64)
    each = max(1, BATCH_CELLS // table.shape[1])
    begin = 0
    for first in range(0, len(groups), each):
        numbers = counts[first : first + each]
        shares = _shares(table[groups[first : first + each]], numbers, generator)
        drawn = np.repeat(np.tile(np.arange(table.shape[1]), len(numbers)), shares.reshape(-1))
        levels[order[begin : begin + len(drawn)]] = drawn
        begin += len(drawn)
    return levels


def _shares(weights: Floats, numbers: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    ends = np.cumsum(weights, axis=1)
    whole = ends[:, -1:]
    uniform = np.arange(1, weights.shape[1] + 1) / weights.shape[1]
    ends = np.where(whole > 0, ends / np.where(whole > 0, whole, 1.0), uniform)
    # all rows are assigned by the last possible level, so that an impossible one gets none
    points = np.floor(ends * numbers[:, None] + generator.random((len(numbers), 1)))
    points = np.where(ends >= ends[:, -1:], numbers[:, None], np.minimum(points, numbers[:, None]))
    return np.diff(points, axis=1, prepend=0.0).astype(np.int64)
