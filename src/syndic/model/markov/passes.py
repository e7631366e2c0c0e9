"""One step of a model: multiply it by small tables, make it consistent again, and sum it onto small tables.

Every clique keeps its probabilities, not their logarithms, so a step takes exponentials of small tables only. The tree
is made consistent by dividing new separator tables by old ones (Jensen, Lauritzen and Olesen 1990): from the leaves to
the root, then back. What comes back to a clique is kept as a factor for its next step, not written into its cells.
"""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.clique import CliqueState
from syndic.model.markov.kernels import Floats, Integers, Kernels
from syndic.model.markov.log_space import calibrate
from syndic.model.markov.measurement import Measurement
from syndic.model.markov.tree import JunctionTree

# cells of a clique below which another thread does not pay off
THREADED_CELLS = 1 << 17
# a cell's product with exp of this stays above the floor and below the largest number
SMALL_LOGARITHM = 300.0


@final
class Passes:
    """All cliques of a tree with their small tables: the state of a fit. Not thread-safe."""

    def __init__(self, tree: JunctionTree, sets: Sequence[tuple[str, ...]], kernels: Kernels, threads: int) -> None:
        """Allocate. Every set must be inside a clique, with its columns in the domain's order."""
        self.tree = tree
        self.sets = list(sets)
        self.kernels = kernels
        self.pool = ThreadPoolExecutor(threads) if threads > 1 and kernels.compiled else None
        self.threads = threads if self.pool else 1
        names = [*sets, *tree.separators[1:]]
        counts = [tree.domain.project(one).size for one in names]
        starts = [0, *itertools.accumulate(counts)]
        self.slots = [slice(start, start + count) for start, count in zip(starts[:-1], counts, strict=True)]
        self.measured = starts[len(sets)]  # the flat tables begin with the sets; separators follow
        self.factors = np.ones(starts[-1])
        self.values = np.ones(starts[-1])
        self.risen = np.ones(starts[-1])
        self.scale = 1.0
        self.log_total = 0.0
        homes = [tree.home(one) for one in sets]
        self.cliques = []
        for place in tree.order:
            children = [len(sets) + child - 1 for up, child in tree.edges if up == place]
            used = [*(slot for slot, home in enumerate(homes) if home == place), *children]
            own = len(used) if place else -1
            used += [len(sets) + place - 1] if place else []
            domain = tree.domain.project(tree.cliques[place])
            masks = [sum(1 << axis for axis in domain.axes(names[slot])) for slot in used]
            self.cliques.append(CliqueState(domain.sizes, [(starts[one], counts[one]) for one in used], masks, own))

    def separator(self, place: int) -> slice:
        """Return the slice of a clique's separator in the flat tables."""
        return self.slots[len(self.sets) + place - 1]

    def start(self, logs: Floats, impossible: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]] = ()) -> Floats:
        """Restart from the logarithms of the sets' factors; return the sets' probabilities."""
        self.factors.fill(1.0)
        self.scale = 1.0
        sets = self.slots[: len(self.sets)]
        if not impossible and sum(float(np.abs(logs[slot]).max()) for slot in sets) < SMALL_LOGARITHM:
            return self._start_uniform(logs)
        potentials = [
            (names, logs[slot].reshape(self.tree.domain.project(names).sizes))
            for names, slot in zip(self.sets, sets, strict=True)
        ]
        self.log_total = calibrate(self.tree, potentials, impossible, [state.array for state in self.cliques])
        for state in self.cliques:
            self._sweep(state, state.every_group[:0], state.every_group, write=False)
            self.kernels.drop(state.shape, state.distinct, state.sums, self.values)
        return self.values[: self.measured]

    def _start_uniform(self, logs: Floats) -> Floats:
        """Restart from equal probabilities in one step, in which no cell is too small."""
        self.log_total = float(np.log(np.array(self.tree.domain.sizes, dtype=np.float64)).sum())
        for state in self.cliques:
            state.cells.fill(1 / len(state.cells))
        for slot in self.slots[len(self.sets) :]:
            self.values[slot] = 1 / (slot.stop - slot.start)
        return self.advance(logs)

    def advance(self, logs: Floats) -> Floats:
        """Multiply the model by exp of the sets' tables `logs`, each a small change; return the new probabilities."""
        np.exp(logs, out=self.factors[: self.measured])
        for place in reversed(range(1, len(self.cliques))):
            self._rise(place)
        root = self.cliques[0]
        self.kernels.lift(root.shape, root.distinct, self.factors, root.tables)
        root.tables[: root.shape.starts[1]] *= self.scale
        self._sweep(root, root.every_group, root.every_group, write=True)
        mass = float(root.sums[: root.shape.starts[1]].sum())
        if not 0 < mass < np.inf:
            raise FloatingPointError("a step left no finite probability: use smaller steps")
        self.scale = 1 / mass
        self.log_total += np.log(mass)
        root.sums *= self.scale
        self.kernels.drop(root.shape, root.distinct, root.sums, self.values)
        for place in range(1, len(self.cliques)):
            self._sink(place)
        return self.values[: self.measured]

    def _rise(self, place: int) -> None:
        state, slot = self.cliques[place], self.separator(place)
        self.kernels.lift(state.shape, state.distinct, self.factors, state.tables)
        self._sweep(state, state.every_group, state.every_group if state.single else state.own_group, write=True)
        self.kernels.drop(state.shape, state.own, state.sums, self.risen)
        self.factors[slot] = _ratio(self.risen[slot], self.values[slot])

    def _sink(self, place: int) -> None:
        state, slot = self.cliques[place], self.separator(place)
        self.factors[slot] = _ratio(self.values[slot], self.risen[slot])
        if state.single:
            self.kernels.lift(state.shape, state.copies, self.factors, state.tables)
            state.sums *= state.tables
        else:
            self.kernels.lift(state.shape, state.own, self.factors, state.tables)
            self._sweep(state, state.own_group, state.every_group, write=False)
        self.kernels.drop(state.shape, state.inner, state.sums, self.values)

    def settle(self) -> list[NDArray[np.float64]]:
        """Apply pending factors to the cells and return every clique's probabilities, columns in order (views)."""
        self.cliques[0].cells *= self.scale
        self.scale = 1.0
        for place in range(1, len(self.cliques)):
            state, slot = self.cliques[place], self.separator(place)
            self.kernels.lift(state.shape, state.own, self.factors, state.tables)
            self._sweep(state, state.own_group, state.every_group[:0], write=True)
            self.factors[slot] = 1.0
        return [state.array for state in self.cliques]

    def close(self) -> None:
        """End the threads."""
        if self.pool:
            self.pool.shutdown(wait=False, cancel_futures=True)

    def _sweep(self, state: CliqueState, multiply: Integers, add: Integers, *, write: bool) -> None:
        shape, sweep = state.shape, self.kernels.sweep
        if self.pool is None or len(state.cells) < THREADED_CELLS:
            state.sums.fill(0.0)
            sweep(shape, state.cells, state.tables, state.sums, multiply, add, write, (0, shape.rows))
            return
        cuts = np.linspace(0, shape.rows, self.threads + 1).astype(np.int64)
        parts = np.zeros((self.threads, len(state.sums)))
        waiting = [
            self.pool.submit(sweep, shape, state.cells, state.tables, part, multiply, add, write, (int(low), int(high)))
            for part, low, high in zip(parts, cuts[:-1], cuts[1:], strict=True)
        ]
        for one in waiting:
            one.result()
        np.sum(parts, axis=0, out=state.sums)


def _ratio(new: Floats, old: Floats) -> Floats:
    # impossible cells stay impossible: 0 / 0 is 0
    return np.divide(new, old, out=np.zeros_like(new), where=old > 0)


@final
class SummedPasses:
    """A model that starts at `base` and is changed by tables, some of which are over groups of levels.

    A cell over groups is the sum of its cells over levels, which share its logarithm.
    """

    def __init__(self, passes: Passes, tables: Sequence[Measurement], base: Floats) -> None:
        """Work out which cells of the passes belong to each cell of the tables."""
        slots = dict(zip(passes.sets, passes.slots, strict=False))
        cells, levels, begin = [], [], 0
        for one in tables:
            slot = slots[one.names]
            levels.append(np.arange(slot.start, slot.stop))
            cells.append(begin + (np.arange(one.values.size) if one.groups is None else _cells(one.groups)))
            begin += one.values.size
        self.passes, self.base, self.measured = passes, base, begin
        self.sets = [one.names for one in tables]
        self._levels, self._cells = np.concatenate(levels), np.concatenate(cells)

    def lifted(self, logs: Floats) -> Floats:
        """Return the logarithms of the passes' tables: every level has those of its groups."""
        return np.bincount(self._levels, logs[self._cells], self.passes.measured).astype(np.float64)

    def start(self, logs: Floats, impossible: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]] = ()) -> Floats:
        """Restart from the base and these logarithms; return the tables' probabilities."""
        self.passes.start(self.base + self.lifted(logs), impossible)
        return self.values

    def advance(self, logs: Floats) -> Floats:
        """Multiply the model by exp of `logs`; return the new probabilities."""
        self.passes.advance(self.lifted(logs))
        return self.values

    @property
    def values(self) -> Floats:
        """The probabilities of the tables' cells."""
        return np.bincount(self._cells, self.passes.values[self._levels], self.measured).astype(np.float64)

    @property
    def log_total(self) -> float:
        """The logarithm of the model's mass."""
        return self.passes.log_total


AnyPasses = Passes | SummedPasses


def _cells(groups: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the cell over groups of every cell over levels, the last column fastest."""
    cells = np.zeros(1, dtype=np.int64)
    for one in groups:
        cells = (cells[:, None] * (int(one.max()) + 1) + one).reshape(-1)
    return cells
