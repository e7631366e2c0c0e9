"""Learning in few rounds: damped Newton steps from noisy sums of gradients and, in some rounds, of curvatures.

The worse the objective is conditioned, the more rounds gradient descent needs. Here round 1 also sums X'X, times the
loss's largest curvature (Boehning and Lindsay 1988: no step then overshoots). For twice differentiable losses two later
rounds sum the curvature at the current iterate. A noisy matrix is made positive and raised by a multiple of its noise's
spectral norm, as in adaptive ridge regression (Wang 2018); the multiple grows with the number of rounds, so that late
steps average. Later rounds get more of the budget: a Newton step discards earlier noise.

Sensitivity. A record adds its clipped gradient, of norm `clip` at most, and a positive matrix uu' of Frobenius norm
c |x|^2 at most, c being the largest curvature. Replacing r records changes the gradients by 2 r clip and the matrices
by sqrt(2) r c: |P - Q|^2 = |P|^2 + |Q|^2 - 2 <P, Q>, and <P, Q> is not negative for positive matrices. Adding or
removing them changes the sums by r clip and r c. Both parts of a round get one noise; sensitivities add up in squares.

Everything is summed in whole numbers: features, slopes and the rows u are rounded towards zero to multiples of 2^-16,
which makes none of them longer, so that a record changes a sum by its own term and by nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, isqrt, sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.model.erm.loss import JointObjective, Logistic, Numbers, Softmax, joint_curvature

STEPS: Final = 2**16
UNIT: Final = 1.0 / STEPS**2
"""The size of one step of a sum."""

CURVATURE_SHARE: Final = Fraction(1, 20)
"""The part of the budget, of mu^2 or rho, for matrices."""

WEIGHT_STEPS: Final = 2**20
LARGEST_NORM: Final = 2.0**15
_CHUNK: Final = 2**16
# off-diagonal entries occur twice, so their weight is sqrt(2) times the diagonal's, rounded down to whole numbers
_DIAGONAL, _BESIDE = 5, 7
_GRANULES: Final = 10**6


@final
@dataclass(frozen=True, eq=False)
class NewtonState:
    """Weights (model, feature), and the repaired curvature as eigenvectors and roots, per model or for all. Public."""

    weights: Numbers
    axes: Numbers
    roots: Numbers


@final
@dataclass(frozen=True, kw_only=True)
class Newton:
    """The few-round method: the sums of each round, their sensitivity to one person, and the update.

    `people` is the public number that sums are divided by, `rows` the most records of one person.
    """

    objective: JointObjective
    shape: tuple[int, int]
    people: int
    rows: int = 1
    neighbours: Literal["add_remove", "replace"] = "replace"
    rounds: int = 16

    def __post_init__(self) -> None:
        if min(*self.shape, self.people, self.rows, self.rounds) < 1:
            raise InputError("models, features, people, rows and rounds must be at least 1")

    # The queries.

    @cached_property
    def matrices(self) -> dict[int, int]:
        """The number of matrices by round, counted from 1: the bound first, then one for each model."""
        later = {1 + self.rounds // 8, 1 + self.rounds // 4} - {1}
        smooth = isinstance(self.objective.loss, Logistic | Softmax)
        return {1: 1} | (dict.fromkeys(sorted(later), self.shape[0]) if smooth else {})

    def dimension(self, number: int) -> int:
        """Return how many numbers a round sums."""
        models, features = self.shape
        return models * features + self.matrices.get(number, 0) * features * (features + 1) // 2

    def share(self, number: int) -> Fraction:
        """Return the round's share of the budget; the shares of all rounds add up to 1."""
        return self._gradient_share(number) + self._matrix_share(number)

    def reach(self, number: int) -> Fraction:
        """Return the l2 sensitivity of a round's sum to one person, in steps."""
        squared = self._gradient_reach**2
        if number in self.matrices:
            squared += Fraction(self._matrix_reach(number, self.weight(number)) * (1 + 1e-9)) ** 2
        return Fraction(isqrt(ceil(squared)) + 1)

    def weight(self, number: int) -> float:
        """Return the factor of matrices, so that the one noise of a round splits its budget as planned."""
        ratio = sqrt(self._matrix_share(number) / self._gradient_share(number))
        return ratio * float(self._gradient_reach) / self._matrix_reach(number, 1.0)

    def largest(self, number: int, people: int) -> int:
        """Return a public bound on each number of a sum over this many people."""
        return people * self.rows * ceil(self._largest_term(number) * STEPS**2)

    # The party's side.

    def sums(self, number: int, weights: Numbers, rows: Numbers, labels: Numbers) -> NDArray[np.int64]:
        """Return the round's sum over rows in the unit ball, with labels (record, model), in steps. Private."""
        total = np.zeros(self.dimension(number), dtype=np.int64)
        size = exact_rows(self._largest_term(number))
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            total += self._chunk(number, weights, np.trunc(rows[part] * STEPS), labels[part])
        return total

    def _chunk(self, number: int, weights: Numbers, steps: Numbers, labels: Numbers) -> NDArray[np.int64]:
        """Products of whole numbers: exact in double precision, whatever the order."""
        whole = np.rint(within_norm(weights, LARGEST_NORM) * WEIGHT_STEPS)
        predictions = (steps @ whole.T) / (STEPS * WEIGHT_STEPS)
        norms = np.linalg.norm(steps, axis=1) / STEPS
        slopes = np.trunc(self.objective.slopes(predictions, labels, norms) * STEPS)
        parts = [np.rint(slopes.T @ steps).ravel()]
        if number in self.matrices:
            scale = sqrt(self.weight(number)) * (1 - 1e-12)
            for curvature in self._curvatures(number, predictions, labels).T:
                cut = np.trunc(steps * (scale * np.sqrt(curvature))[:, None])
                parts.append(_packed(np.rint(cut.T @ cut)))
        return np.concatenate(parts).astype(np.int64)

    def _curvatures(self, number: int, predictions: Numbers, labels: Numbers) -> Numbers:
        if number == 1:
            return np.full((len(labels), 1), self.objective.loss.smoothness)
        return self.objective.loss.curvature(predictions, labels)

    # Everybody's side.

    def start(self) -> NewtonState:
        """Return the starting point: zero, with the largest curvature in every direction."""
        features = self.shape[1]
        roots = np.full((1, features), self.objective.loss.smoothness + self.objective.regularisation)
        return NewtonState(np.zeros(self.shape), np.eye(features)[None], roots)

    def update(self, before: NewtonState, number: int, total: Numbers, people: int, deviation: float) -> NewtonState:
        """Return the state after a round's noisy sum over this many people.

        `total` and the noise's standard deviation are in the units of the objective: steps times `UNIT`.
        """
        size = before.weights.size
        gradient = total[:size].reshape(self.shape) / people + self.objective.regularisation * before.weights
        axes, roots = before.axes, before.roots
        if number in self.matrices:
            axes, roots = self._repaired(number, total[size:] / people, deviation / people)
        along = np.einsum("kij,ki->kj", np.broadcast_to(axes, (len(gradient), *axes.shape[1:])), gradient) / roots
        step = np.einsum("kij,kj->ki", np.broadcast_to(axes, (len(gradient), *axes.shape[1:])), along)
        return NewtonState(before.weights - step, axes, roots)

    def _repaired(self, number: int, packed: Numbers, deviation: float) -> tuple[Numbers, Numbers]:
        """Return eigenvectors and roots of the noisy matrices, made positive, with the penalty and the damping."""
        features, weight = self.shape[1], self.weight(number)
        matrices = _unpacked(packed.reshape(self.matrices[number], -1) / weight, features)
        roots, axes = np.linalg.eigh(matrices)
        # the spectral norm of a symmetric matrix of noise is about 2 sqrt(features) sd
        noise = 2 * sqrt(features) * deviation / (_BESIDE * weight)
        raised = np.maximum(roots, 0.0) + self.objective.regularisation + max(1.0, self.rounds / 6) * noise
        return axes, raised

    # The public arithmetic.

    @property
    def _growth(self) -> float:
        """The budget of a round relative to the one before: with 16 rounds the last gets about 8 times the first."""
        return 1 + 2.4 / self.rounds

    @cached_property
    def _granules(self) -> tuple[int, ...]:
        return tuple(round(_GRANULES * self._growth**place) for place in range(self.rounds))

    def _gradient_share(self, number: int) -> Fraction:
        return (1 - CURVATURE_SHARE) * Fraction(self._granules[number - 1], sum(self._granules))

    def _matrix_share(self, number: int) -> Fraction:
        return CURVATURE_SHARE / len(self.matrices) if number in self.matrices else Fraction(0)

    @property
    def _gradient_reach(self) -> Fraction:
        records = self.rows * (2 if self.neighbours == "replace" else 1)
        return records * Fraction(self.objective.clip) * STEPS**2

    def _curvature(self, number: int) -> float:
        """Return the largest norm of a record's curvatures, over all models that have a matrix."""
        loss = self.objective.loss
        return loss.smoothness if number == 1 else joint_curvature(loss, self.shape[0])

    def _largest_term(self, number: int) -> Fraction:
        """Return a bound on each number that one record adds, in the units of the objective."""
        matrix = _BESIDE * self.weight(number) * self._curvature(number) if number in self.matrices else 0.0
        return max(Fraction(self.objective.clip), Fraction(matrix))

    def _matrix_reach(self, number: int, weight: float) -> float:
        change = sqrt(2.0) if self.neighbours == "replace" else 1.0
        return _DIAGONAL * change * self.rows * weight * self._curvature(number) * STEPS**2


def follow(scheme: Newton, ask: Callable[[int, Numbers], tuple[Numbers, float] | None]) -> list[Numbers]:
    """Return the weights before the first round and after each; all of them may be public.

    `ask(number, weights)` opens a noisy sum in the units of the objective, with its noise's standard deviation, or
    returns None if the round was lost.
    """
    state = scheme.start()
    path = [state.weights]
    for number in range(1, scheme.rounds + 1):
        opened = ask(number, state.weights)
        if opened is not None:
            state = scheme.update(state, number, opened[0], scheme.people, opened[1])
        path.append(state.weights)
    return path


def exact_rows(largest: Fraction) -> int:
    """Return how many records, each adding at most `largest`, can be summed exactly in double precision."""
    return max(1, min(_CHUNK, floor(2**53 / (largest * STEPS**2))))


def _packed(matrix: Numbers) -> Numbers:
    """Return diagonal and upper part as one vector, never longer than 5 times the matrix's Frobenius norm."""
    above = np.triu_indices(len(matrix), 1)
    return np.concatenate([_DIAGONAL * np.diag(matrix), _BESIDE * matrix[above]])


def _unpacked(packed: Numbers, features: int) -> Numbers:
    """Return the symmetric matrices that are packed as vectors along the last axis."""
    matrices = np.zeros((len(packed), features, features))
    above = np.triu_indices(features, 1)
    matrices[:, above[0], above[1]] = packed[:, features:] / _BESIDE
    matrices += matrices.transpose(0, 2, 1)
    places = np.arange(features)
    matrices[:, places, places] = packed[:, :features] / _DIAGONAL
    return matrices


def within_norm(weights: Numbers, norm: float) -> Numbers:
    """Return the weights, scaled to `norm` if they are longer."""
    length = float(np.linalg.norm(weights))
    return weights if length <= norm else weights * (norm / length)
