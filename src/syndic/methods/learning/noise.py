"""The noise of one round: a share of it at every party, or all of it at each. Integers, drawn exactly."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, isqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.learning.query import Query
from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FineGaussian,
    FineGaussianShare,
    GaussianShare,
    LaplaceShare,
)
from syndic.privacy import Budget, Event, GaussianEvent, mu_squared_for, rho_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO
from syndic.random import Randomness

Noise = Literal["gaussian", "laplace", "spherical"]
Share = FineGaussianShare | GaussianShare | LaplaceShare
Law = FineGaussian | DiscreteGaussian | DiscreteLaplace

# what a round is charged for the distance of its integer noise from the normal law: one unit of a ledger, far more
# than steps so fine need, so that charges add up to what was planned without rounding
_SLACK: Final = Fraction(1, ATTO)
# beyond, e^epsilon times even that would be too much for most deltas
_EXACT_UP_TO: Final = 16


@final
@dataclass(frozen=True, kw_only=True)
class Paid:
    """Noise with what is charged for it: a little more than it costs, in whole units of a ledger."""

    noise: Share | Law
    rounds: int

    @property
    def event(self) -> Event:
        """What one round costs."""
        event = self.noise.event
        if not isinstance(event, GaussianEvent):
            return event
        if event.slack > _SLACK:
            raise InputError(
                "the steps are too coarse for the exact account of Gaussian noise: raise clip or lower epsilon"
            )
        return GaussianEvent(mu_squared=event.mu_squared, slack=_SLACK, what=self._words(event.what))

    def _words(self, what: str) -> str:
        """Return what an event is about; of many rounds, without the part of each."""
        if self.rounds == 1:
            return what
        if isinstance(self.noise, FineGaussianShare):
            return self.noise.described("Gaussian noise", self.noise.honest)
        return "Gaussian noise"

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise."""
        return self.noise.apply(values, randomness)


def share_for(noise: Noise, query: Query, budgets: Iterable[Budget], apart: int, who: Mapping[str, int]) -> Share:
    """Return the share of the noise of one sum over all parties, made for the strictest budget.

    A person at `apart` parties moves the sum that many times as far, and each of them is charged that part of the
    budget: mu^2 = (r s)^2 / variance for all, so variance = r s^2 / (mu^2 / r). For epsilon, scale r d / epsilon.
    """
    budgets = tuple(budgets)
    if noise == "gaussian" and not _exactly(budgets, query.rounds * apart):
        rho = _part(min(_rho_of(budget) for budget in budgets), query.part, apart)
        square = apart * query.reach**2
        return GaussianShare(sensitivity_squared=square, rho=rho, dimension=query.dimension, **who)
    if noise == "gaussian":
        return FineGaussianShare(
            sensitivity_squared=apart * query.reach**2,
            mu_squared=_mu_squared(
                min(_mu_squared_of(budget, query.rounds * apart) for budget in budgets), query.part, apart
            ),
            changed=query.dimension,
            fraction_bits=0,
            dimension=query.dimension,
            **who,
        )
    epsilon = _part(min(budget.epsilon for budget in budgets), query.part, apart)
    return LaplaceShare(sensitivity=_l1(query), epsilon=epsilon, dimension=query.dimension, **who)


def law_for(noise: Noise, query: Query, budget: Budget, apart: int) -> Law:
    """Return the noise that one party adds by itself; a person at several parties pays a part at each of them."""
    if noise == "gaussian" and not _exactly((budget,), query.rounds * apart):
        rho = _part(_rho_of(budget), query.part, apart)
        return DiscreteGaussian(sensitivity_squared=query.reach**2, rho=rho)
    if noise == "gaussian":
        return FineGaussian(
            sensitivity_squared=query.reach**2,
            mu_squared=_mu_squared(_mu_squared_of(budget, query.rounds * apart), query.part, apart),
            changed=query.dimension,
            fraction_bits=0,
        )
    return DiscreteLaplace(sensitivity=_l1(query), epsilon=_part(budget.epsilon, query.part, apart))


def _l1(query: Query) -> int:
    """Return the l1 change that the Euclidean one allows: sqrt(dimension) times as much."""
    squared = query.reach**2 * query.dimension
    return isqrt(ceil(squared)) + 1


def _exactly(budgets: tuple[Budget, ...], events: int) -> bool:
    """Say whether so many slacks take at most half of every delta: if not, the concentrated account is used."""
    return all(
        budget.epsilon <= _EXACT_UP_TO and 2 * (1 + exp(budget.epsilon)) * events / ATTO <= budget.delta
        for budget in budgets
    )


@lru_cache(maxsize=64)
def _rho_of(budget: Budget) -> Fraction:
    return rho_for(budget.epsilon, budget.delta)


@lru_cache(maxsize=64)
def _mu_squared_of(budget: Budget, rounds: int) -> Fraction:
    return mu_squared_for(budget.epsilon, budget.delta, rounds * _SLACK)


def _mu_squared(whole: Fraction, part: Fraction, apart: int) -> Fraction:
    # halves of mu^2 are what a ledger adds up, in whole units
    return Fraction(2 * floor(whole * part / apart * PICO / 2), PICO)


def _part(whole: Fraction, part: Fraction, apart: int) -> Fraction:
    return Fraction(floor(whole * part / apart * PICO), PICO)
