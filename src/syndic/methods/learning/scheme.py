"""Schemes: the queries of each round of learning, and how public weights follow from the noisy sums.

A scheme is a list of queries and an update rule: a further scheme is one more class here. A scheme does not depend on
who adds the noise.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from syndic.data.design import Design
from syndic.methods.learning.query import Query, few_round_queries, gradient_query, model_query
from syndic.model.erm.belief import Belief
from syndic.model.erm.loss import JointObjective, Numbers
from syndic.model.erm.posterior import Layout, Posterior, intercept_weight
from syndic.model.erm.second_order import Newton, NewtonState
from syndic.privacy import Unit

if TYPE_CHECKING:
    from syndic.methods.learning.learn import Learn


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
    kept: NewtonState | Belief | None = None


@dataclass(frozen=True, kw_only=True)
class Scheme(abc.ABC):
    """`queries`: that of each round; `people`: the public number of people that sums are divided by."""

    queries: tuple[Query, ...]
    shape: tuple[int, int]
    people: int

    @property
    def rounds(self) -> int:
        """How many sums are opened."""
        return len(self.queries)

    def start(self) -> Iterate:
        """Return the starting point: zero."""
        return Iterate(weights=np.zeros(self.shape))

    @property
    def needed(self) -> int:
        """How many of the first rounds must open: without them the others are useless."""
        return 0

    @property
    def asked(self) -> tuple[int, int]:
        """The shape of what parties are sent in every round."""
        return self.shape

    def sent(self, iterate: Iterate, number: int) -> Numbers:  # noqa: ARG002 (the same in every round)
        """Return what parties are sent in a round: weights."""
        return iterate.weights

    def limits(self, iterate: Iterate) -> Numbers | None:  # noqa: ARG002 (none unless a scheme cuts features)
        """Return what features are cut to (feature, 2) before weights apply, if they are."""
        return None

    def scores(self, iterate: Iterate, rows: Numbers) -> Numbers:
        """Return the scores (row, model) of rows of features."""
        limits = self.limits(iterate)
        if limits is None:
            return np.asarray(rows @ iterate.weights.T)
        return np.asarray(np.clip(rows, *limits.T) @ iterate.weights[:, :-1].T + iterate.weights[:, -1])

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
    """Gradient descent from zero; the penalty needs no rows and is added here."""

    rate: float
    regularisation: float

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:  # noqa: ARG002 (the same in every round)
        """Return the weights after one step against the noisy mean gradient."""
        gradient = opened.total.reshape(self.shape) / opened.people + self.regularisation * before.weights
        return Iterate(weights=before.weights - self.rate * gradient)


@final
@dataclass(frozen=True, kw_only=True)
class FewRounds(Scheme):
    """Damped Newton steps, see `syndic.model.erm.second_order`."""

    method: Newton

    def start(self) -> Iterate:
        """Return the starting point: zero, with the largest curvature in every direction."""
        state = self.method.start()
        return Iterate(weights=state.weights, kept=state)

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:
        """Return the weights after a step, and the curvature if the round summed it."""
        assert isinstance(before.kept, NewtonState)  # noqa: S101 (so started)
        state = self.method.update(before.kept, number, opened.total, opened.people, opened.deviation)
        return Iterate(weights=state.weights, kept=state)


@final
@dataclass(frozen=True, kw_only=True)
class FewSums(Scheme):
    """Moments, products and clipped gradients, see `syndic.model.erm.posterior`. Weights have the intercepts last."""

    method: Posterior

    @property
    def needed(self) -> int:
        """The first: features are centred by what it sums."""
        return 1

    @property
    def asked(self) -> tuple[int, int]:
        """The shape of what parties are sent in every round."""
        return self.method.asked

    def sent(self, iterate: Iterate, number: int) -> Numbers:
        """Return what parties are sent in a round."""
        return self.method.sent(_belief(iterate), number)

    def limits(self, iterate: Iterate) -> Numbers:
        """Return what features are cut to (feature, 2) before weights apply."""
        return _belief(iterate).linear()[2]

    def start(self) -> Iterate:
        """Return the starting point: what is known without rows."""
        return _believed(self.method.start())

    def update(self, before: Iterate, number: int, opened: Opened) -> Iterate:
        """Return the weights after a round."""
        after = self.method.update(_belief(before), number, opened.total, opened.people, opened.deviation)
        return _believed(after)


def _believed(belief: Belief) -> Iterate:
    coefficients, intercepts, _ = belief.linear()
    return Iterate(weights=np.column_stack([coefficients, intercepts]), kept=belief)


def _belief(iterate: Iterate) -> Belief:
    assert isinstance(iterate.kept, Belief)  # noqa: S101 (so started)
    return iterate.kept


def scheme_of(method: "Learn", unit: Unit, design: Design, people: Mapping[str, int], mu: float) -> Scheme:
    """Return a method's scheme; `people` are the public numbers of people of the parties that take part.

    `mu` is about what the budget allows; it decides on weights of a sum's parts, not on what is charged.
    """
    objective, shape, total, records = method.objective, design.shape, sum(people.values()), unit.l1_of_counts()
    if method.averages_models:
        alone = method.scheme == "pathak"
        sized, rows = unit.sizes_are_public, unit.rows
        query = model_query(design, objective, people=people, records=records, rows=rows, sized=sized, alone=alone)
        return Averaging(queries=(query,), shape=shape, people=total)
    if method.scheme == "posterior":
        columns, numbers = zip(*design.blocks, strict=True)
        posterior = Posterior(
            loss=objective.loss,
            layout=Layout(np.array(columns), np.array(numbers)),
            models=design.models,
            people=total,
            rows=unit.rows,
            neighbours=unit.neighbours,
            gradients=method.rounds,
            intercept=intercept_weight(total * mu / records, design.models * design.dimension),
        )
        return FewSums(
            queries=few_round_queries(posterior), shape=(shape[0], shape[1] + 1), people=total, method=posterior
        )
    if method.scheme == "newton":
        newton = Newton(
            objective=JointObjective(objective.loss, method.regularisation, clip=method.clip),
            shape=shape,
            people=total,
            rows=unit.rows,
            neighbours=unit.neighbours,
            rounds=method.rounds,
        )
        return FewRounds(queries=few_round_queries(newton), shape=shape, people=total, method=newton)
    gradients = gradient_query(design, objective.loss, clip=method.clip, records=records, rounds=method.rounds)
    # one over the largest curvature of the objective
    rate = 1 / (objective.loss.smoothness + method.regularisation)
    return Descent(
        queries=(gradients,) * method.rounds,
        shape=shape,
        people=total,
        rate=rate if method.rate is None else method.rate,
        regularisation=method.regularisation,
    )
