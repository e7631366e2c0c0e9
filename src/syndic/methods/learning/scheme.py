"""Queries and schemes: what is summed in each round of learning, and how public weights follow from the noisy sums.

A query is a vector of whole numbers with bounded sensitivity. A scheme is a list of queries and an update rule: a
further scheme is one more class here. A scheme does not depend on who adds the noise.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, isqrt, log2, sqrt
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.learning.rows import ROOM, Encoding, PartyRows
from syndic.model.erm.loss import Loss, Numbers, Objective
from syndic.model.erm.multiclass import JointObjective
from syndic.model.erm.second_order import STEPS, UNIT, Newton, NewtonState
from syndic.model.erm.solve import minimise
from syndic.privacy import Unit

if TYPE_CHECKING:
    from syndic.methods.learning.learn import Learn

# steps that one person may change a model by: so fine that rounding to steps is negligible
_MODEL_REACH: Final = 2.0**28
# no loss here is larger at a prediction of 0, for labels in [-1, 1]
_LARGEST_LOSS: Final = 1.25


@dataclass(frozen=True, kw_only=True)
class Query(abc.ABC):
    """The query of one of `rounds` rounds: `part` of the budget for `dimension` numbers in steps of size `unit`.

    `reach` bounds the Euclidean change of one party's numbers by one person, in steps, rounding included.
    """

    rounds: int
    part: Fraction
    dimension: int
    unit: float
    reach: Fraction

    @abc.abstractmethod
    def largest(self, people: int, rows: int) -> int:
        """Return a public bound on each number of a party with this many people and at most `rows` rows each."""

    @abc.abstractmethod
    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return a party's numbers at some public weights (model, feature). Private."""


@final
@dataclass(frozen=True, kw_only=True)
class GradientQuery(Query):
    """The sum over records of the gradients of their losses, each clipped to norm `clip`."""

    loss: Loss
    clip: float

    def largest(self, people: int, rows: int) -> int:
        """People x rows x clip."""
        return people * rows * ceil(Fraction(self.clip) * STEPS**2)

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return the sums, clipped to their public bound, which never increases the distance between neighbours."""
        total = np.zeros(holding.encoding.shape, dtype=np.int64)
        for rows in holding.batches():
            total += rows.gradient_steps(weights, self.loss, self.clip)
        most = self.largest(holding.people, holding.rows)
        return np.clip(total, -most, most).ravel()


def gradient_query(encoding: Encoding, loss: Loss, *, clip: float, records: int, rounds: int) -> GradientQuery:
    """Return the query of each round; `records` is how many records one person adds, removes, or both."""
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
@dataclass(frozen=True, kw_only=True)
class NewtonQuery(Query):
    """The sum over records of gradients and, in some rounds, of curvatures: round `number` of the few-round method."""

    method: Newton
    number: int

    def largest(self, people: int, rows: int) -> int:  # noqa: ARG002 (the method knows the rows of a person)
        """The method's own bound."""
        return self.method.largest(self.number, people)

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:
        """Return the sums, clipped to their public bound."""
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
@dataclass(frozen=True, kw_only=True)
class ModelQuery(Query):
    """The minimiser of a party's own objective, times the party's part of all people.

    The objective is the sum of losses divided by the PUBLIC number of people, plus the penalty. Adding or removing one
    record changes its gradient by clip / people for any number of rows; strong convexity turns that into a distance.

    A solver reaches its tolerance for a bounded number of rows only, and a source may have more than were declared. No
    cut of the rows helps: where people are added or removed, it replaces a row. So the model itself is multiplied by a
    factor that falls from 1 at the declared number of rows to 0 at `ROOM` times as many.
    """

    objective: Objective
    tolerances: dict[int, float]
    radius: float

    def largest(self, people: int, rows: int) -> int:  # noqa: ARG002 (a model's bound does not depend on its rows)
        """The radius that models are clipped to."""
        return ceil(self.radius / self.unit) + 1

    def values(self, holding: PartyRows, weights: Numbers) -> NDArray[np.int64]:  # noqa: ARG002 (asked once)
        """Return the model times the party's part of all people, in steps."""
        return self.steps(self.model(holding), holding.share)

    def model(self, holding: PartyRows) -> Numbers:
        """Return the party's minimiser (model, feature), inside the public radius. Private."""
        rows, labels = holding.matrix()
        factor = min(1.0, (ROOM - len(rows) / holding.declared) / (ROOM - 1))
        if len(rows) == 0 or factor <= 0:
            return np.zeros(holding.encoding.shape)
        found = np.stack([self._one(rows, each, holding.people) for each in labels.T])
        length = float(np.linalg.norm(found))
        return found * (factor if length <= self.radius else factor * self.radius / length)

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
            # an error would reveal something about this party's rows: return a public point instead
            return np.zeros(rows.shape[1])


def model_query(
    encoding: Encoding,
    objective: Objective,
    *,
    people: Mapping[str, int],
    records: int,
    rows: int,
    sized: bool = False,
    alone: bool = False,
) -> ModelQuery:
    """Return the query for parties with these numbers of people and at most `rows` rows each.

    One person changes a party's minimiser by at most records x slope / (people x penalty), and the solver's result by
    twice its tolerance over the penalty more. Times the party's part of all people this is the same for every party,
    except for the tolerance. `alone` omits that factor: the sensitivity of one party's model by itself. `sized` says
    that parties have exactly so many rows. Otherwise a person changes the factor for too many rows by 1 / people.
    """
    models, features = encoding.shape
    total, penalty = sum(people.values()), objective.regularisation
    slope = objective.loss.lipschitz * sqrt(models)
    radius = sqrt(2 * _LARGEST_LOSS * models / penalty)
    fold = 1 if sized else ROOM * rows
    tolerances = {size: _tolerance(size, rows, features, radius * sqrt(fold), penalty) for size in people.values()}
    # a model's length is at most the radius, and at most the sum of all slopes over the penalty
    shrunk = 0.0 if sized else min(radius, fold * slope / penalty) / (ROOM - 1)
    moved = {
        size: (records * slope / size + 2 * sqrt(models) * tolerance) / penalty + shrunk / size
        for size, tolerance in tolerances.items()
    }
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


def _tolerance(people: int, rows: int, features: int, radius: float, penalty: float) -> float:
    """Return a gradient norm that a solver always reaches in floating point: at best a thousandth of one record's.

    Losses are divided by the number of people, so rounding counts `rows` times. For `ROOM` times as many rows it is
    still four times the bound that `certified_norm` adds.
    """
    rounding = 64 * np.finfo(np.float64).eps * rows * (people * rows + features) * (1 + radius * (1 + penalty))
    return 0.001 / (people * rows) + float(rounding)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """A round's noisy sum in the units of the objective, its noise's standard deviation, and the parties in it.

    `people` is the public number of people of these parties.
    """

    total: Numbers
    deviation: float
    people: int
    present: tuple[str, ...]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Iterate:
    """Weights (model, feature), and what else a scheme keeps between rounds. Public."""

    weights: Numbers
    kept: dict[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scheme(abc.ABC):
    """`stages`: queries and how many rounds each; `people`: the public number of people that sums are divided by."""

    stages: tuple[tuple[Query, int], ...]
    shape: tuple[int, int]
    people: int

    @property
    def rounds(self) -> int:
        """How many sums are opened."""
        return sum(times for _, times in self.stages)

    def query(self, number: int) -> Query:
        """Return the query of a round, counted from 1."""
        return self.stages[self.stage(number)][0]

    def stage(self, number: int) -> int:
        """Return the index of a round's stage."""
        last = 0
        for place, (_, times) in enumerate(self.stages):
            last += times
            if 1 <= number <= last:
                return place
        raise ValueError(f"round ({number}) must be from 1 to {last}")

    def start(self) -> Iterate:
        """Return the starting point: zero."""
        return Iterate(weights=np.zeros(self.shape))

    @abc.abstractmethod
    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:
        """Return the next iterate from the noisy sum of a round."""


@final
@dataclass(frozen=True, kw_only=True)
class Averaging(Scheme):
    """One round: the average of the parties' models, weighted by their parts of all people."""

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:  # noqa: ARG002 (one round)
        """Return the average over the parties that are in the sum."""
        return Iterate(weights=opened.total.reshape(self.shape) * (self.people / opened.people))


@final
@dataclass(frozen=True, kw_only=True)
class Descent(Scheme):
    """Gradient descent from zero; the penalty needs no rows and is added here. `linear` is added to every gradient."""

    rate: float
    regularisation: float
    linear: Numbers | None = None

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:  # noqa: ARG002 (the same in every round)
        """Return the weights after one step against the noisy mean gradient."""
        gradient = opened.total.reshape(self.shape) / opened.people + self.regularisation * before.weights
        if self.linear is not None:
            gradient = gradient + self.linear
        return Iterate(weights=before.weights - self.rate * gradient)


@final
@dataclass(frozen=True, kw_only=True)
class FewRounds(Scheme):
    """Damped Newton steps, see `syndic.model.erm.second_order`."""

    method: Newton

    def start(self) -> Iterate:
        """Return the starting point: zero, with the largest curvature in every direction."""
        return _kept(self.method.start())

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:
        """Return the weights after a step, and the curvature if the round summed it."""
        state = NewtonState(before.weights, before.kept["axes"], before.kept["roots"])
        return _kept(self.method.update(state, number, opened.total, opened.people, opened.deviation))


def _kept(state: NewtonState) -> Iterate:
    return Iterate(weights=state.weights, kept={"axes": state.axes, "roots": state.roots})


def scheme_of(method: "Learn", unit: Unit, encoding: Encoding, people: Mapping[str, int]) -> Scheme:
    """Return a method's scheme; `people` are the public numbers of people of the parties that take part."""
    objective, shape, total, records = method.objective, encoding.shape, sum(people.values()), unit.l1_of_counts()
    if method.averages_models:
        alone = method.scheme == "pathak"
        sized, rows = unit.sizes_are_public, unit.rows
        query = model_query(encoding, objective, people=people, records=records, rows=rows, sized=sized, alone=alone)
        return Averaging(stages=((query, 1),), shape=shape, people=total)
    if method.scheme == "newton":
        newton = Newton(
            objective=JointObjective(objective.loss, method.regularisation, clip=method.clip),
            shape=shape,
            people=total,
            rows=unit.rows,
            neighbours=unit.neighbours,
            rounds=method.rounds,
        )
        stages = tuple((query, 1) for query in newton_queries(newton))
        return FewRounds(stages=stages, shape=shape, people=total, method=newton)
    gradients = gradient_query(encoding, objective.loss, clip=method.clip, records=records, rounds=method.rounds)
    # one over the largest curvature of the objective
    rate = 1.0 if method.as_published else 1 / (objective.loss.smoothness + method.regularisation)
    return Descent(
        stages=((gradients, method.rounds),),
        shape=shape,
        people=total,
        rate=rate if method.rate is None else method.rate,
        regularisation=method.regularisation,
    )
