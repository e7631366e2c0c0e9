"""The noise of one round: a share of it at every party, full noise at each party, or simulated.

Noise is drawn as exact integers unless it is simulated. In simulated variants parties send exact numbers, and a
simulated ideal functionality adds noise. These are the authors' program (`as_published`), distributions that cannot be
drawn exactly, methods that need a trusted third party, and methods without privacy. None of them is private; their
events state the cost in real arithmetic.
"""

import abc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, isqrt, log1p, sqrt
from typing import Final, Literal, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.methods.learning.query import ModelQuery, Query
from syndic.methods.learning.rows import PartyRows
from syndic.model.erm import noise_law
from syndic.model.erm.loss import Numbers, Objective
from syndic.model.erm.noise_law import CoordinateLaplace, Gaussian, ObjectiveNoise
from syndic.model.erm.private import (
    GradientMethod,
    ModelMethod,
    Setting,
    Variant,
    gradient_noise,
    local_objective,
    model_noise,
    two_noises,
)
from syndic.mpc.ring import OVERFLOW, Ring, ring_for
from syndic.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    FineGaussian,
    FineGaussianShare,
    GaussianShare,
    LaplaceShare,
)
from syndic.privacy import Budget, Event, GaussianEvent, PureEvent, mu_squared_for, rho_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO
from syndic.privacy.unit import LARGEST_EPSILON
from syndic.random import Randomness

Noise = Literal["gaussian", "laplace", "spherical"]
Share = FineGaussianShare | GaussianShare | LaplaceShare
Law = FineGaussian | DiscreteGaussian | DiscreteLaplace

# charged to a round for the distance of its integer noise from the normal distribution: one unit of a ledger. Steps so
# fine need far less; a whole unit makes charges add up to the plan without rounding
_SLACK: Final = Fraction(1, ATTO)
# beyond this, e^epsilon times even that would be too much for most deltas
_EXACT_UP_TO: Final = 16
# noise is added to 64-bit numbers, which must not wrap
_MOST_BITS: Final = 62
_MODELS: Final[dict[str, ModelMethod]] = {"mpc_out": "MPC Out P", "pathak": "Pathak", "local_out": "Local Out P"}
_GRADIENTS: Final[dict[str, GradientMethod]] = {"mpc_grad": "MPC Grad P", "local_grad": "Local Grad P"}


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
        if event.slack > _SLACK:
            raise InputError(
                "the steps are too coarse for the exact account of Gaussian noise: raise clip or lower epsilon"
            )
        return GaussianEvent(mu_squared=event.mu_squared, slack=_SLACK, what=self._words(event.what))

    def _words(self, what: str) -> str:
        """Return the description of an event; for many rounds, without the part of each."""
        if self.rounds == 1:
            return what
        if isinstance(self.noise, FineGaussianShare):
            return self.noise.described("Gaussian noise", self.noise.honest)
        return "Gaussian noise"

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise."""
        return self.noise.apply(values, randomness)


@dataclass(frozen=True, kw_only=True)
class RoundNoise(abc.ABC):
    """The noise on the sum of one round."""

    query: Query

    @abc.abstractmethod
    def event_of(self, party: str) -> Event:
        """Return what the round costs a party."""

    @abc.abstractmethod
    def deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of a sum over some parties, in its units."""

    def average_deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of an average over some parties."""
        return self.deviation(people) / self.divisor(people)

    def divisor(self, people: Mapping[str, int]) -> int:
        """Return what a sum is divided by: models are averaged by the parties themselves."""
        return 1 if isinstance(self.query, ModelQuery) else sum(people.values())


@final
@dataclass(frozen=True, kw_only=True)
class SharedNoise(RoundNoise):
    """One noise on the sum over all parties, a share of it at each; `ring` is large enough for numbers and noise."""

    share: Share
    ring: Ring

    @cached_property
    def charged(self) -> Paid:
        """A party's share of the noise, with its charge."""
        return Paid(noise=self.share, rounds=self.query.rounds)

    def event_of(self, party: str) -> Event:  # noqa: ARG002 (the same at every party)
        """Return what the round costs a party."""
        return self.charged.event

    def deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of a sum over some parties, in its units."""
        return float(self.share.total_variance(len(people)) ** 0.5) * self.query.unit


@final
@dataclass(frozen=True, kw_only=True)
class OwnNoise(RoundNoise):
    """The noise that each party adds by itself."""

    laws: Mapping[str, Law]

    def charged(self, party: str) -> Paid:
        """Return a party's noise, with its charge."""
        return Paid(noise=self.laws[party], rounds=self.query.rounds)

    def event_of(self, party: str) -> Event:
        """Return what the round costs a party."""
        return self.charged(party).event

    def deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of a sum over some parties, in its units."""
        return float(sum(self.laws[name].variance for name in people) ** 0.5) * self.query.unit


@final
@dataclass(frozen=True, kw_only=True)
class OpenNoise(RoundNoise):
    """Simulated: the event of each round, the noise on its average, a fixed vector and a further penalty."""

    event: Event
    law: noise_law.Law | None = None
    copies: int = 1
    start: Gaussian | None = None
    extra: float = 0.0

    def event_of(self, party: str) -> Event:  # noqa: ARG002 (the same at every party)
        """Return what the round costs a party."""
        return self.event

    def deviation(self, people: Mapping[str, int]) -> float:
        """Return the standard deviation on each number of a sum over some parties, in its units."""
        one = 0.0 if self.law is None else self.law.deviation(self.query.dimension)
        return self.divisor(people) * one / float(self.copies**0.5)

    def draw(self, generator: np.random.Generator) -> Numbers:
        """Return simulated noise of one round. It is not private."""
        dimension = self.query.dimension
        if self.law is None:
            return np.zeros(dimension)
        if isinstance(self.law, Gaussian):  # an average of normal numbers is normal
            return Gaussian(self.law.scale / sqrt(self.copies)).simulate((dimension,), generator)
        return np.asarray(self.law.simulate((self.copies, dimension), generator).mean(axis=0))


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
        part = self.amount * query.part / self.apart
        # halves of mu^2 are what a ledger adds up
        halves = 2 if self.kind == "mu_squared" else 1
        return Fraction(halves * floor(part * PICO / halves), PICO)


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
    amount = min(mu_squared_for(one.epsilon, one.delta, events * _SLACK) for one in budgets)
    return Whole(kind="mu_squared", amount=amount, apart=apart)


def shared_noise(whole: Whole, query: Query, who: Mapping[str, int], largest: int) -> SharedNoise:
    """Return the noise of one sum over all parties, whose numbers are at most `largest`; `who` shares it.

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
    return SharedNoise(query=query, share=share, ring=ring)


def own_noise(wholes: Mapping[str, Whole], query: Query, largest: Mapping[str, int]) -> OwnNoise:
    """Return the noise that each party adds by itself to numbers of at most `largest`."""
    made = {whole: _law(whole, query) for whole in set(wholes.values())}
    tails = {whole: law.tail(OVERFLOW / query.dimension) for whole, law in made.items()}
    _check_bits(max(largest[name] + tails[whole] for name, whole in wholes.items()).bit_length() + 1)
    return OwnNoise(query=query, laws={name: made[whole] for name, whole in wholes.items()})


def _law(whole: Whole, query: Query) -> Law:
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


# Simulated.


@final
class Exact(Document):
    """No noise at all; `event` is the cost of the noise that the ideal functionality adds."""

    event: Event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:  # noqa: ARG002 (unused)
        """Return the values as they are."""
        return values


def open_noise(scheme: str, query: Query, setting: Setting, smoothness: float, variant: Variant) -> OpenNoise:
    """Return the simulated noise of one round of a scheme."""
    if scheme in ("distributed", "central"):
        rounds = setting.iterations if scheme == "central" else 1
        return OpenNoise(
            query=query, event=PureEvent(epsilon=Fraction(LARGEST_EPSILON, rounds), what="no noise at all")
        )
    if scheme == "local_obj":
        return OpenNoise(query=query, event=_objective_event(setting, smoothness, variant))
    if scheme == "rajkumar_agarwal":
        both = two_noises(setting, smoothness, variant)
        return OpenNoise(
            query=query, event=_event(both.fresh, setting, query), law=both.fresh, start=both.start, extra=both.extra
        )
    if scheme in _GRADIENTS:
        noise = gradient_noise(_GRADIENTS[scheme], setting, variant)
        ratio = Fraction(noise.sensitivity / noise.law.scale) ** 2
        event = GaussianEvent(mu_squared=_up(ratio), what="continuous Gaussian, as published")
        return OpenNoise(query=query, event=event, law=noise.law, copies=noise.copies)
    if variant == "as_published":
        models = model_noise(_MODELS[scheme], setting, "as_published")
        whose = setting.party_sensitivity if scheme == "local_out" else setting.model_sensitivity
        return OpenNoise(
            query=query, event=_event(models.law, setting, query, whose), law=models.law, copies=models.copies
        )
    # one spherical vector for the average, or one for each party's own model, whose sensitivity is not divided
    local = scheme == "local_out"
    whose = float(query.reach) * query.unit * (setting.parties if local else 1)
    spherical = noise_law.law("spherical", whose, setting.dimension, setting.epsilon, setting.delta)
    event_ = PureEvent(epsilon=setting.epsilon, what="continuous spherical noise")
    return OpenNoise(query=query, event=event_, law=spherical, copies=setting.parties if local else 1)


def objective_model(
    objective: Objective,
    holding: PartyRows,
    noise: ObjectiveNoise,
    generator: np.random.Generator | None,
    shared: Numbers,
) -> Numbers:
    """Return the minimiser of one party's objective with a random linear term; `shared` if all parties use the same."""
    rows, labels = holding.matrix()
    linear = shared.ravel() if generator is None else noise.law.simulate((rows.shape[1],), generator)
    penalised = Objective(objective.loss, objective.regularisation + noise.extra, clip=objective.clip)

    def both(weights: Numbers) -> tuple[float, Numbers]:
        value = penalised.value(weights, rows, labels[:, 0]) + linear @ weights / len(rows)
        return float(value), penalised.gradient(weights, rows, labels[:, 0]) + linear / len(rows)

    if len(rows) == 0:
        return np.zeros((1, rows.shape[1]))
    found = scipy.optimize.minimize(both, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-10})
    return np.asarray(found.x, dtype=np.float64)[None, :]


def _objective_event(setting: Setting, smoothness: float, variant: Variant) -> PureEvent:
    noise = local_objective(setting, smoothness, variant)
    if variant == "sound":
        return PureEvent(epsilon=setting.epsilon, what="objective perturbation, continuous noise")
    # the Jacobian's part, and Laplace coordinates where the Euclidean norm was intended
    ratio = smoothness / (setting.records * (setting.regularisation + noise.extra))
    holds = 2 * log1p(ratio) + sqrt(setting.dimension) * noise.left
    return PureEvent(epsilon=_up(Fraction(holds)), what="objective perturbation, as published")


def _event(noise: noise_law.Law, setting: Setting, query: Query, sensitivity: float | None = None) -> Event:
    moved = setting.gradient_sensitivity if sensitivity is None else sensitivity
    if isinstance(noise, CoordinateLaplace):
        holds = Fraction(noise.epsilon(moved, query.dimension))
        return PureEvent(epsilon=_up(holds), what="continuous Laplace coordinates, as published")
    return GaussianEvent(mu_squared=_up(Fraction(moved / noise.scale) ** 2), what="continuous Gaussian")


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * PICO), PICO)
