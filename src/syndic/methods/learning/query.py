"""Queries: what is summed over records in a round of learning, in whole numbers with bounded sensitivity.

A party's rows are whole numbers, so that sums over them do not depend on order or on rounding.

Features are multiples of 2^-16, rounded towards zero, which never makes a row longer: a row inside the unit ball stays
inside. Slopes are rounded likewise. Products and sums of such numbers are exact in double precision up to 2^53, in any
library, so that one record changes a sum by its own term and by nothing else.
"""

import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, isqrt, log2, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table
from syndic.data.design import Design
from syndic.errors import InputError
from syndic.model.erm.loss import Loss, Numbers, Objective, joint_slope, shortening
from syndic.model.erm.posterior import Posterior
from syndic.model.erm.second_order import LARGEST_NORM, STEPS, UNIT, WEIGHT_STEPS, Newton, exact_rows, within_norm
from syndic.model.erm.solve import minimise

# rows at a time: sums of as many terms of 2^32 stay below 2^53
_CHUNK: Final = 2**16
ROOM: Final = 2
"""Times the declared rows: a party's model gets smaller beyond the declared ones and is zero from here on."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Features in steps of 2^-16 (whole numbers) and a label for each model. Private."""

    features: Numbers = field(repr=False)  # rows are private, also in logs
    labels: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def plain(self) -> Numbers:
        """The features as real numbers."""
        return np.asarray(self.features / STEPS)

    def gradient_steps(self, weights: Numbers, loss: Loss, clip: float) -> NDArray[np.int64]:
        """Return the sum of the records' gradients (model, feature), in steps of 2^-32.

        All models' gradients of a record together have norm at most `clip` 2^32.
        """
        # far larger than any penalty allows, and small enough for exact predictions
        shorter = within_norm(weights, LARGEST_NORM)
        whole = np.rint(shorter * WEIGHT_STEPS)
        predictions = (self.features @ whole.T) / (STEPS * WEIGHT_STEPS)
        slopes = loss.slope(predictions, self.labels)
        lengths = np.linalg.norm(self.plain, axis=1) * np.linalg.norm(slopes, axis=1)
        steps = np.trunc(slopes * shortening(lengths, clip)[:, None] * STEPS)
        total = np.zeros(weights.shape, dtype=np.int64)
        size = exact_rows(Fraction(min(clip, joint_slope(loss, len(weights)))))
        for start in range(0, len(steps), size):
            part = slice(start, start + size)
            total += np.rint(steps[part].T @ self.features[part]).astype(np.int64)
        return total


def batches(design: Design, table: Table) -> Iterator[Rows]:
    """Yield a table's rows a batch at a time. Private."""
    for coded in table.batches(design.schema.names):
        features, labels = design.rows(coded), design.labels(coded[design.label])
        for start in range(0, len(features), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield Rows(features=np.trunc(features[part] * STEPS), labels=labels[part])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PartyRows:
    """One party's rows. Public: its number of people, the most rows of one person, its part of all people."""

    table: Table
    design: Design
    people: int
    rows: int
    share: float

    @property
    def declared(self) -> int:
        """The public bound on the number of rows. A source may have more."""
        return self.people * self.rows

    def batches(self) -> Iterator[Rows]:
        """Yield the rows in batches."""
        return batches(self.design, self.table)

    def matrix(self) -> tuple[Numbers, Numbers]:
        """Return features and labels at once, reading no more than `ROOM` times the declared rows. Private."""
        models, features = self.design.shape
        rows, labels, left = [np.empty((0, features))], [np.empty((0, models))], ROOM * self.declared
        for batch in self.batches():
            rows.append(batch.plain[:left])
            labels.append(batch.labels[:left])
            left -= len(rows[-1])
            if not left:
                break
        return np.concatenate(rows), np.concatenate(labels)


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
        total = np.zeros(holding.design.shape, dtype=np.int64)
        for rows in holding.batches():
            total += rows.gradient_steps(weights, self.loss, self.clip)
        most = self.largest(holding.people, holding.rows)
        return np.clip(total, -most, most).ravel()


def gradient_query(design: Design, loss: Loss, *, clip: float, records: int, rounds: int) -> GradientQuery:
    """Return the query of each round; `records` is how many records one person adds, removes, or both."""
    models, features = design.shape
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
class FewRoundQuery(Query):
    """What round `number` of a few-round method sums over records."""

    method: Newton | Posterior
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


def few_round_queries(method: Newton | Posterior) -> tuple[FewRoundQuery, ...]:
    """Return the queries of all rounds."""
    return tuple(
        FewRoundQuery(
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
        most = self.largest(0, 0)
        return np.clip(np.rint(self.model(holding) * (holding.share / self.unit)), -most, most).astype(np.int64).ravel()

    def model(self, holding: PartyRows) -> Numbers:
        """Return the party's minimiser (model, feature), inside the public radius. Private."""
        rows, labels = holding.matrix()
        factor = min(1.0, (ROOM - len(rows) / holding.declared) / (ROOM - 1))
        if len(rows) == 0 or factor <= 0:
            return np.zeros(holding.design.shape)
        found = np.stack([self._one(rows, each, holding.people) for each in labels.T])
        length = float(np.linalg.norm(found))
        return found * (factor if length <= self.radius else factor * self.radius / length)

    def _one(self, rows: Numbers, labels: Numbers, people: int) -> Numbers:
        ratio = people / len(rows)
        inner = Objective(self.objective.loss, self.objective.regularisation * ratio, clip=self.objective.clip)
        try:
            return minimise(inner, rows, labels, tolerance=self.tolerances[people] * ratio).weights
        except InputError:
            # an error would reveal something about this party's rows: return a public point instead
            return np.zeros(rows.shape[1])


def model_query(
    design: Design,
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
    models, features = design.shape
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
