"""How public weights follow from noisy sums: a scheme is a list of stages and a rule. Who adds noise is not its matter.

A further scheme is one more class here: its stages name what is asked in which round, `update` says what follows.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from syndic.errors import PartyError
from syndic.methods.learning.query import Query
from syndic.model.erm.loss import Numbers
from syndic.model.erm.second_order import Newton, NewtonState


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Iterate:
    """Weights (model, feature) that everybody may see, and what else a scheme keeps between rounds. Public."""

    weights: Numbers
    kept: dict[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
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
        """Return what is asked in a round, counted from 1."""
        last = 0
        for query, times in self.stages:
            last += times
            if 1 <= number <= last:
                return query
        raise ValueError(f"round {number} is none of the {last}")

    def start(self) -> Iterate:
        """Return where to begin: at zero."""
        return Iterate(weights=np.zeros(self.shape))

    @abc.abstractmethod
    def update(self, before: Iterate, number: int, opened: "Opened") -> Iterate:
        """Return the next iterate from the noisy sum of a round."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Averaging(Scheme):
    """One round: models, each times its party's part of all people, add up to their average."""

    def update(self, before: Iterate, number: int, opened: "Opened") -> Iterate:  # noqa: ARG002 (one round)
        """Return the average over the parties that are in the sum."""
        return Iterate(weights=opened.total.reshape(self.shape) * (self.people / opened.people))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Descent(Scheme):
    """Gradient descent from zero; the penalty needs no rows and is added here. `linear` adds to every gradient."""

    rate: float
    regularisation: float
    linear: Numbers | None = None

    def update(self, before: Iterate, number: int, opened: "Opened") -> Iterate:  # noqa: ARG002 (all alike)
        """Return the weights after one step against the noisy mean gradient."""
        gradient = opened.total.reshape(self.shape) / opened.people + self.regularisation * before.weights
        if self.linear is not None:
            gradient = gradient + self.linear
        return Iterate(weights=before.weights - self.rate * gradient)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FewRounds(Scheme):
    """Damped Newton steps, see `syndic.model.erm.second_order`."""

    method: Newton

    def start(self) -> Iterate:
        """Return where to begin: at zero, with the largest curvature in every direction."""
        return _kept(self.method.start())

    def update(self, before: Iterate, number: int, opened: "Opened") -> Iterate:
        """Return the weights after a step, and the curvature if the round asked for it."""
        state = NewtonState(before.weights, before.kept["axes"], before.kept["roots"])
        return _kept(self.method.update(state, number, opened.total, opened.people, opened.deviation))


def _kept(state: NewtonState) -> Iterate:
    return Iterate(weights=state.weights, kept={"axes": state.axes, "roots": state.roots})


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """A round's noisy sum in the units of what is learnt, its noise's standard deviation, whose it is.

    `people` is the public number of people of the parties that are in it.
    """

    total: Numbers
    deviation: float
    people: int
    present: tuple[str, ...]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Followed:
    """Every iterate from the start on, how many rounds were lost, and who was in the last sum. Public."""

    path: tuple[Numbers, ...]
    lost: int
    present: tuple[str, ...]


def follow(scheme: Scheme, ask: Callable[[int, Numbers], Opened | None]) -> Followed:
    """Run all rounds; `ask(round, weights)` opens the noisy sum over all parties, or None if the round was lost."""
    iterate = scheme.start()
    path, lost = [iterate.weights], 0
    present: tuple[str, ...] = ()
    for number in range(1, scheme.rounds + 1):
        opened = ask(number, iterate.weights)
        if opened is None:
            lost += 1
        else:
            iterate, present = scheme.update(iterate, number, opened), opened.present
        path.append(iterate.weights)
    if lost == scheme.rounds:
        raise PartyError("in every round parties fell silent before the sum could be opened: run the study again")
    return Followed(path=tuple(path), lost=lost, present=present)
