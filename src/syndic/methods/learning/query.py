"""What is added up in one round of learning: whole numbers of which one person changes few, and not by much."""

import abc
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt, log2, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table
from syndic.errors import InputError
from syndic.methods.learning.rows import Encoding, Rows
from syndic.methods.refusals import wrong_size
from syndic.model.erm.loss import Loss, Numbers, Objective
from syndic.model.erm.second_order import STEPS, UNIT, Newton
from syndic.model.erm.solve import minimise

# steps that one person may change a model by: so fine that rounding to steps adds next to nothing
_MODEL_REACH: Final = 2.0**28
# no loss here is larger at a prediction of 0, for labels in [-1, 1]
_LARGEST_LOSS: Final = 1.25


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PartyRows:
    """One party's rows; public: its number of people, the most rows of each, the part of all people that it has."""

    party: str
    table: Table
    encoding: Encoding
    people: int
    rows: int
    share: float
    public_size: bool

    def batches(self) -> list[Rows]:
        """Return the rows in batches; where sizes are public, a wrong one may be said aloud."""
        batches = list(self.encoding.batches(self.table))
        if self.public_size and sum(len(batch) for batch in batches) != self.people:
            raise wrong_size(self.party, self.people)
        return batches

    def matrix(self) -> tuple[Numbers, Numbers]:
        """Return all features and labels at once. Private."""
        batches, (models, features) = self.batches(), self.encoding.shape
        rows = [np.empty((0, features)), *(batch.plain for batch in batches)]
        return np.concatenate(rows), np.concatenate([np.empty((0, models)), *(batch.labels for batch in batches)])


@dataclass(frozen=True, eq=False, kw_only=True)
class Query(abc.ABC):
    """One of `rounds` in all: `part` of the budget for `dimension` numbers in steps of size `unit`.

    `reach` bounds the Euclidean change of one party's numbers by one person, in steps, rounding included.
    """

    rounds: int
    part: Fraction
    dimension: int
    unit: float
    reach: Fraction

    @abc.abstractmethod
    def largest(self, people: int, rows: int) -> int:
        """Return a public bound on each number of a party with so many people of at most so many rows each."""

    @abc.abstractmethod
    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return a party's numbers at some public weights (model, feature). Private."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GradientQuery(Query):
    """The sum over records of the gradients of their losses, each cut to norm `clip`."""

    loss: Loss
    clip: float

    def largest(self, people: int, rows: int) -> int:
        """People x rows x clip."""
        return people * rows * ceil(Fraction(self.clip) * STEPS**2)

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return the sums, cut to their public bound, which never moves two neighbours apart."""
        total = np.zeros(holding.encoding.shape, dtype=np.int64)
        for rows in holding.batches():
            total += rows.gradient_steps(weights, self.loss, self.clip)
        most = self.largest(holding.people, holding.rows)
        return np.clip(total, -most, most).ravel()


def gradient_query(encoding: Encoding, loss: Loss, *, clip: float, records: int, rounds: int) -> GradientQuery:
    """Return the query of each round; `records` is how many records one person adds, takes away, or both."""
    models, features = encoding.shape
    return GradientQuery(
        rounds=rounds,
        part=Fraction(1, rounds),
        dimension=models * features,
        unit=UNIT,
        reach=records * Fraction(clip) * STEPS**2,
        loss=loss,
        clip=clip,
    )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NewtonQuery(Query):
    """The sum over records of gradients and, in some rounds, of curvatures: round `number` of the few-round method."""

    method: Newton
    number: int

    def largest(self, people: int, rows: int) -> int:  # noqa: ARG002 (the method knows the rows of a person)
        """The method's own bound."""
        return self.method.largest(self.number, people)

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return the sums, cut to their public bound."""
        total = np.zeros(self.dimension, dtype=np.int64)
        for batch in holding.batches():
            total += self.method.sums(self.number, weights, batch.plain, batch.labels)
        most = self.largest(holding.people, holding.rows)
        return np.clip(total, -most, most)


def newton_queries(method: Newton) -> tuple[NewtonQuery, ...]:
    """Return the queries of all rounds."""
    return tuple(
        NewtonQuery(
            rounds=method.rounds,
            part=method.share(number),
            dimension=method.dimension(number),
            unit=UNIT,
            reach=method.reach(number),
            method=method,
            number=number,
        )
        for number in range(1, method.rounds + 1)
    )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ModelQuery(Query):
    """The minimiser of a party's own objective, times the party's part of all people.

    The objective is the sum of losses over the PUBLIC number of people plus the penalty: one record more or less moves
    its gradient by clip / people at any number of rows, and strong convexity turns that into a distance.
    """

    objective: Objective
    tolerances: dict[int, float]
    radius: float

    def largest(self, people: int, rows: int) -> int:  # noqa: ARG002 (a model's bound does not depend on its rows)
        """The radius that models are cut to."""
        return ceil(self.radius / self.unit) + 1

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:  # noqa: ARG002 (asked once)
        """Return the model times the party's part of all people, in steps."""
        return self.steps(self.model(holding), holding.share)

    def model(self, holding: PartyRows) -> Numbers:
        """Return the party's minimiser (model, feature), inside the public radius. Private."""
        rows, labels = holding.matrix()
        if len(rows) == 0:
            return np.zeros(holding.encoding.shape)
        found = np.stack([self._one(rows, each, holding.people) for each in labels.T])
        length = float(np.linalg.norm(found))
        return found if length <= self.radius else found * (self.radius / length)

    def steps(self, model: Numbers, share: float) -> NDArray[np.int64]:
        """Return the model times the party's part, in steps."""
        most = self.largest(0, 0)
        return np.clip(np.rint(model * (share / self.unit)), -most, most).astype(np.int64).ravel()

    def _one(self, rows: Numbers, labels: Numbers, people: int) -> Numbers:
        ratio = people / len(rows)
        inner = Objective(self.objective.loss, self.objective.regularisation * ratio, clip=self.objective.clip)
        try:
            return minimise(inner, rows, labels, tolerance=self.tolerances[people] * ratio).weights
        except InputError:
            # an error would tell that this party's rows are hard: a public point instead
            return np.zeros(rows.shape[1])


def model_query(
    encoding: Encoding, objective: Objective, *, people: dict[str, int], records: int, rows: int, alone: bool = False
) -> ModelQuery:
    """Return the query for parties of so many people with at most `rows` rows each.

    One person moves a party's minimiser by at most records x slope / (people x penalty), and its solver by twice its
    tolerance over the penalty. Times the party's part of all people this is the same for every party, but for the
    tolerance. `alone` leaves the part out: what noise for one party's model by itself has to cover.
    """
    models, features = encoding.shape
    total, penalty = sum(people.values()), objective.regularisation
    slope = objective.loss.lipschitz * sqrt(models)
    radius = sqrt(2 * _LARGEST_LOSS * models / penalty)
    tolerances = {size: _tolerance(size * rows, features, radius, penalty) for size in people.values()}
    moved = {size: (records * slope / size + 2 * sqrt(models) * tolerances[size]) / penalty for size in tolerances}
    together = max(change * size / total for size, change in moved.items())
    unit = 2.0 ** floor(log2(together / _MODEL_REACH))
    dimension = models * features
    worst = max(moved.values()) if alone else together
    return ModelQuery(
        rounds=1,
        part=Fraction(1),
        dimension=dimension,
        unit=unit,
        reach=Fraction(ceil(Fraction(worst * (1 + 1e-12) / unit)) + isqrt(dimension) + 1),
        objective=objective,
        tolerances=tolerances,
        radius=radius,
    )


def _tolerance(rows: int, features: int, radius: float, penalty: float) -> float:
    """Return a gradient norm that a solver surely reaches in floating point: a thousandth of one record's at best."""
    rounding = 64 * np.finfo(np.float64).eps * (rows + features) * (1 + radius * (1 + penalty))
    return 0.001 / rows + float(rounding)
