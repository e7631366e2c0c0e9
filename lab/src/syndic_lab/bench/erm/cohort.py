"""Many parties' learning at once, for simulation: every iteration is two products with one sparse matrix.

A party's model that starts at zero stays in the span of its rows (and of its own random linear term), so it is kept
as a coefficient for each record. All parties' predictions are then one product, however many parties there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.model.erm.loss import Numbers, Objective

Update = Callable[[int, Numbers], Numbers]
_LONGEST: Final = 20_000


@final
@dataclass(frozen=True, eq=False)
class Cohort:
    """The rows of all parties, row i belonging to party `party[i]`; every party has at least one. Private."""

    rows: Any  # a scipy csr_array of (records, dimension), rows in the unit ball
    labels: Numbers
    party: NDArray[np.int64]
    objective: Objective

    def __post_init__(self) -> None:
        if not (self.rows.shape[0] == len(self.labels) == len(self.party) > 0):
            raise InputError("rows, labels and party must have the same length, at least 1")
        if self.sizes.min() < 1:
            raise InputError("every party must have a record: number the parties from 0 without gaps")

    @classmethod
    def equal(cls, rows: Any, labels: Numbers, parties: int, objective: Objective) -> "Cohort":
        """Return the rows dealt out in order, to `parties` of one size; the rest is left out."""
        size = rows.shape[0] // parties
        if size == 0:
            raise InputError(f"{rows.shape[0]} rows are too few for {parties} parties")
        kept = size * parties
        return cls(scipy.sparse.csr_array(rows)[:kept], labels[:kept], np.repeat(np.arange(parties), size), objective)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of records of each party."""
        return np.bincount(self.party)

    @property
    def parties(self) -> int:
        """Number of parties."""
        return len(self.sizes)

    @cached_property
    def norms(self) -> Numbers:
        """Norm of each row."""
        return np.sqrt(np.asarray(self.rows.multiply(self.rows).sum(axis=1), dtype=np.float64))

    def average_gradient(self, weights: Numbers) -> Numbers:
        """Return the average over parties of their mean clipped gradients, penalty left out.

        `weights` has a model in each column, and so has the answer. Replacing one record moves a column by at most
        2 clip / (parties x smallest size).
        """
        slopes = self.objective.slopes(self.rows @ weights, self.labels[:, None], self.norms[:, None])
        return np.asarray(self.rows.T @ (self._record_weights[:, None] * slopes))

    def descend(self, columns: int, checkpoints: Sequence[int], noise: Update, *, rate: float = 1.0) -> Numbers:
        """Return models (checkpoint, dimension, column) along descents from zero that share the rows.

        `noise(iteration, weights)` is added to the gradients; every column is a run of its own.
        """
        weights = np.zeros((self.rows.shape[1], columns))
        found = {0: weights}
        for iteration in range(1, max(checkpoints) + 1):
            gradient = self.average_gradient(weights) + self.objective.regularisation * weights
            weights = weights - rate * (gradient + noise(iteration, weights))
            if iteration in checkpoints:
                found[iteration] = weights
        return np.stack([found[iteration] for iteration in checkpoints])

    def average_descent(
        self, checkpoints: Sequence[int], *, rate: float = 1.0, linear: Numbers | None = None, extra: float = 0.0
    ) -> Numbers:
        """Return averages (checkpoint, dimension) of the parties' own descents from zero.

        `linear` (party, dimension) adds linear'theta / size to each party's objective, `extra` to its penalty.
        """
        penalty = self.objective.regularisation + extra
        vectors, offsets = self._linear(linear)
        coefficients, along = np.zeros(len(self.labels)), np.zeros(self.parties)
        found = {}
        for iteration in range(1, max(checkpoints) + 1):
            slopes = self._slopes(coefficients, along[self.party] * offsets)
            coefficients = coefficients - rate * (slopes + penalty * coefficients)
            along = along - rate * (1 / self.sizes + penalty * along)
            if iteration in checkpoints:
                found[iteration] = self._average(coefficients, along, vectors)
        return np.stack([found[iteration] for iteration in checkpoints])

    def average_minimiser(
        self, tolerance: float, *, linear: Numbers | None = None, extra: float = 0.0
    ) -> tuple[Numbers, float]:
        """Return the average of the parties' minimisers and the largest gradient norm of any of them.

        Nesterov's method on all parties at once, until every gradient norm is at most `tolerance`.
        """
        self.objective.check_minimiser()
        penalty = self.objective.regularisation + extra
        vectors, offsets = self._linear(linear)
        # the linear term's own coefficient has its final value from the start
        along = -1 / (penalty * self.sizes)
        fixed = along[self.party] * offsets
        rate = 1 / (self.objective.loss.smoothness + penalty)
        root = sqrt(penalty * rate)
        momentum = (1 - root) / (1 + root)
        here = ahead = np.zeros(len(self.labels))
        for iteration in range(_LONGEST):
            change = self._slopes(ahead, fixed) + penalty * ahead
            if iteration % 25 == 0 and (norm := self._largest_norm(change)) <= tolerance:
                return self._average(ahead, along, vectors), norm
            before, here = here, ahead - rate * change
            ahead = here + momentum * (here - before)
        raise InputError(f"the solver did not reach a gradient norm of {tolerance:g}: set a larger tolerance")

    @cached_property
    def _record_weights(self) -> Numbers:
        return 1 / (self.parties * self.sizes[self.party])

    @cached_property
    def _blocks(self) -> tuple[Any, NDArray[np.int64]]:
        """The rows as blocks on a diagonal, unused columns left out, and where each column was: party x d + place."""
        entries = self.rows.tocoo()
        places = self.party[entries.row] * self.rows.shape[1] + entries.col
        used, columns = np.unique(places, return_inverse=True)
        return scipy.sparse.csr_array((entries.data, (entries.row, columns)), shape=(len(self.labels), len(used))), used

    def _slopes(self, coefficients: Numbers, fixed: Numbers) -> Numbers:
        """Return each record's slope over its party's size, at the party's own model."""
        blocks, _ = self._blocks
        predictions = blocks @ (blocks.T @ coefficients) + fixed
        return self.objective.slopes(predictions, self.labels, self.norms) / self.sizes[self.party]

    def _largest_norm(self, change: Numbers) -> float:
        blocks, used = self._blocks
        squares = np.bincount(used // self.rows.shape[1], weights=(blocks.T @ change) ** 2, minlength=self.parties)
        return sqrt(float(squares.max()))

    def _linear(self, linear: Numbers | None) -> tuple[Numbers, Numbers]:
        """Return the linear terms and their products with the party's rows."""
        if linear is None:
            return np.zeros((1, self.rows.shape[1])), np.zeros(len(self.labels))
        blocks, used = self._blocks
        return linear, np.asarray(blocks @ linear.ravel()[used])

    def _average(self, coefficients: Numbers, along: Numbers, vectors: Numbers) -> Numbers:
        return np.asarray(self.rows.T @ coefficients / self.parties + (along[:, None] * vectors).mean(axis=0))
