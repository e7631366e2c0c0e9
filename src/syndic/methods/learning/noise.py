"""The noise of one round: a share of it at every party, or full noise at each party, in exact integers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, isqrt, sqrt
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.learning.query import ModelQuery, Query
from syndic.mpc.ring import OVERFLOW, Ring, ring_for
from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FineGaussian,
    FineGaussianShare,
    GaussianShare,
    LaplaceShare,
)
from syndic.privacy import Budget, Event, GaussianEvent, mu_squared_for, rho_for
from syndic.privacy.concentrated import part_of
from syndic.privacy.cost import ATTO
from syndic.random import Randomness

Noise = Literal["gaussian", "laplace"]
Share = FineGaussianShare | GaussianShare | LaplaceShare
Law = FineGaussian | DiscreteGaussian | DiscreteLaplace

# charged to a round for the distance of its integer noise from the normal distribution: one unit of a ledger. Steps so
# fine need far less; a whole unit makes charges add up to the plan without rounding
SLACK: Final = Fraction(1, ATTO)
# beyond this, e^epsilon times even that would be too much for most deltas
_EXACT_UP_TO: Final = 16
# noise is added to 64-bit numbers, which must not wrap
_MOST_BITS: Final = 62


@final
@dataclass(frozen=True, kw_only=True)
class Paid:
    """Noise with its charge: slightly more than it costs, in whole units of a ledger."""

    noise: Share | Law
    rounds: int

    @cached_property
    def event(self) -> Event:
        """What one round costs."""
        event = self.noise.event
        if not isinstance(event, GaussianEvent):
            return event
        if event.slack > SLACK:
            raise InputError(
                "the steps are too coarse for the exact account of Gaussian noise: raise clip or lower epsilon"
            )
        what, noise = event.what, self.noise
        if self.rounds > 1:  # without the part of each round
            what = noise.described("Gaussian", noise.honest) if isinstance(noise, FineGaussianShare) else "Gaussian"
        return GaussianEvent(mu_squared=event.mu_squared, slack=SLACK, what=what)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise."""
        return self.noise.apply(values, randomness)


@final
@dataclass(frozen=True, kw_only=True)
class RoundNoise:
    """The noise on the sum of one round, with its charge, at each party that takes part.

    With a `ring`, which is large enough for numbers and noise, all parties share one noise in a masked sum; without,
    each adds all of its own.
    """

    query: Query
    charged: Mapping[str, Paid]
    ring: Ring | None = None

    def deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of a sum over some parties, in its units."""
        noises: list[Any] = [self.charged[name].noise for name in people]
        # a share says what all of them come to
        variance = noises[0].total_variance(len(noises)) if self.ring else sum(one.variance for one in noises)
        return float(variance**0.5) * self.query.unit

    def average_deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of an average; models are averaged by the parties themselves."""
        return self.deviation(people) / (1 if isinstance(self.query, ModelQuery) else sum(people.values()))


# Full noise at every party, or a share at each.


@final
@dataclass(frozen=True, kw_only=True)
class Whole:
    """The budget of all rounds together, for a person at `apart` parties: rho, mu^2 or epsilon."""

    kind: Literal["rho", "mu_squared", "epsilon"]
    amount: Fraction
    apart: int

    def part(self, query: Query) -> Fraction:
        """Return what one round costs one of the parties, in whole units of a ledger."""
        # halves of mu^2 are what a ledger adds up
        halves = 2 if self.kind == "mu_squared" else 1
        part = halves * part_of(self.amount * query.part / self.apart, halves)
        if part <= 0:
            raise InputError(
                f"a round's part of the budget, {float(query.part):.2g} of it, is less than a ledger can hold: "
                "lower iterations, or raise epsilon"
            )
        return part


def whole_of(noise: Noise, budgets: Iterable[Budget], rounds: int, apart: int) -> Whole:
    """Return the total budget that the strictest of some budgets allows."""
    budgets, events = set(budgets), rounds * apart
    if noise != "gaussian":
        return Whole(kind="epsilon", amount=min(budget.epsilon for budget in budgets), apart=apart)
    # if the slack of all rounds would use more than half of some delta, zero-concentrated accounting is used
    exact = all(
        budget.epsilon <= _EXACT_UP_TO and 2 * (1 + exp(budget.epsilon)) * events / ATTO <= budget.delta
        for budget in budgets
    )
    if not exact:
        return Whole(kind="rho", amount=min(rho_for(one.epsilon, one.delta) for one in budgets), apart=apart)
    amount = min(mu_squared_for(one.epsilon, one.delta, events * SLACK) for one in budgets)
    return Whole(kind="mu_squared", amount=amount, apart=apart)


def likely_mu(noise: Noise, budgets: Iterable[Budget]) -> float:
    """Return about the mu that the strictest of some budgets allows: a plan weighs the parts of its sums by it."""
    if noise != "gaussian":
        return float(min(budget.epsilon for budget in budgets))
    return sqrt(2 * min(rho_for(one.epsilon, one.delta) for one in set(budgets)))


def shared_noise(whole: Whole, query: Query, people: Iterable[str], who: Mapping[str, int], largest: int) -> RoundNoise:
    """Return the noise of one sum over all parties, whose numbers are at most `largest`; `people` share it.

    A person at r parties changes the sum r times as much, and each party is charged 1 / r of the budget: mu^2 =
    (r s)^2 / variance for all, so variance = r s^2 / (mu^2 / r). For epsilon, scale r d / epsilon.
    """
    part, square, dimension = whole.part(query), whole.apart * query.reach**2, query.dimension
    share: Share
    match whole.kind:
        case "rho":
            share = GaussianShare(sensitivity_squared=square, rho=part, dimension=dimension, **who)
        case "mu_squared":
            share = FineGaussianShare(
                sensitivity_squared=square,
                mu_squared=part,
                changed=dimension,
                fraction_bits=0,
                dimension=dimension,
                **who,
            )
        case "epsilon":
            share = LaplaceShare(sensitivity=_l1(query), epsilon=part, dimension=dimension, **who)
    ring = ring_for(largest + share.tail(OVERFLOW / dimension, share.parties))
    _check_bits(ring.bits)
    charged = dict.fromkeys(people, Paid(noise=share, rounds=query.rounds))
    return RoundNoise(query=query, charged=charged, ring=ring)


def own_noise(wholes: Mapping[str, Whole], query: Query, largest: Mapping[str, int]) -> RoundNoise:
    """Return the noise that each party adds by itself to numbers of at most `largest`."""
    made = {whole: law_of(whole, query) for whole in set(wholes.values())}
    tails = {whole: law.tail(OVERFLOW / query.dimension) for whole, law in made.items()}
    _check_bits(max(largest[name] + tails[whole] for name, whole in wholes.items()).bit_length() + 1)
    paid = {whole: Paid(noise=law, rounds=query.rounds) for whole, law in made.items()}
    return RoundNoise(query=query, charged={name: paid[whole] for name, whole in wholes.items()})


def law_of(whole: Whole, query: Query) -> Law:
    """Return the noise of one round that a party adds by itself."""
    part, square = whole.part(query), query.reach**2
    match whole.kind:
        case "rho":
            return DiscreteGaussian(sensitivity_squared=square, rho=part)
        case "mu_squared":
            return FineGaussian(sensitivity_squared=square, mu_squared=part, changed=query.dimension, fraction_bits=0)
        case "epsilon":
            return DiscreteLaplace(sensitivity=_l1(query), epsilon=part)


def _check_bits(bits: int) -> None:
    """Refuse numbers that could overflow 64 bits with their noise: an overflow would reveal something about rows."""
    if bits > _MOST_BITS:
        raise InputError(f"sums of {bits} bits leave no room for noise in 64 bits: lower clip, or raise epsilon")


def _l1(query: Query) -> int:
    """Return the l1 sensitivity that the l2 sensitivity allows: sqrt(dimension) times as much."""
    return isqrt(ceil(query.reach**2 * query.dimension)) + 1
