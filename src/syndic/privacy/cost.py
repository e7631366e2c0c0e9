"""The cost of events for one unit, as integers that add exactly.

A cost is a set of sums that compose by addition. It is converted into an epsilon at a delta only when needed: two
halves of a Gaussian budget then cost the whole budget, which a sum of epsilons would overstate.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, isinf
from typing import Final, Self

from syndic.document import Document
from syndic.errors import InputError
from syndic.privacy.concentrated import PICO, zcdp_epsilon
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.gaussian import ATTO, gaussian_epsilon, with_slack
from syndic.privacy.unit import Unit

__all__ = ["ATTO", "Cost", "joint_cost"]

# shares of delta for concentrated events; the rest is for Gaussian events by their exact profile
_SHARES: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))


class Cost(Document, frozen=True, kw_only=True):
    """Sums over events, rounded up. Unit: 1e-12 for epsilon and rho, 1e-18 for delta and slack.

    `pure` is the epsilon of the pure events and `rho_of_pure` the rho that the same events imply, an epsilon
    being min(epsilon^2 / 2, epsilon)-zCDP (Bun and Steinke 2016, Proposition 3.3; Renyi divergence is at most
    epsilon). `rho` is of the concentrated events, the next two are of the approximate ones. `gaussian` is the sum of
    mu^2 / 2 of the Gaussian events, which is also their rho, and `slack` that of their slacks.
    """

    pure: int = 0
    rho_of_pure: int = 0
    rho: int = 0
    epsilon_approximate: int = 0
    delta_approximate: int = 0
    gaussian: int = 0
    slack: int = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must not be negative")
        if bool(self.pure) != bool(self.rho_of_pure):
            raise ValueError(
                f"pure ({self.pure}) and rho_of_pure ({self.rho_of_pure}) are of the same events: use Cost.of"
            )

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """Return the cost of all the events together, rounded up once."""
        pure = rho_of_pure = rho = epsilon = delta = gaussian = slack = Fraction(0)
        for event, count in Counter(events).items():
            match event:
                case PureEvent():
                    pure += count * event.epsilon
                    rho_of_pure += count * min(event.epsilon**2 / 2, event.epsilon)
                case ConcentratedEvent():
                    rho += count * event.rho
                case ApproximateEvent():
                    epsilon += count * event.epsilon
                    delta += count * event.delta
                case GaussianEvent():
                    gaussian += count * event.mu_squared / 2
                    slack += count * event.slack
        return cls(
            pure=ceil(pure * PICO),
            rho_of_pure=ceil(rho_of_pure * PICO),
            rho=ceil(rho * PICO),
            epsilon_approximate=ceil(epsilon * PICO),
            delta_approximate=ceil(delta * ATTO),
            gaussian=ceil(gaussian * PICO),
            slack=ceil(slack * ATTO),
        )

    def __add__(self, other: Self) -> Self:
        """Return the cost of both, one after the other."""
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    def times(self, count: int) -> Self:
        """Return the cost of doing the same `count` times."""
        return self.scaled(Fraction(count))

    def scaled(self, factor: Fraction) -> Self:
        """Return every sum times the factor, rounded up."""
        return type(self)(**{name: ceil(getattr(self, name) * factor) for name in self.__struct_fields__})

    def covers(self, other: Self) -> bool:
        """Return whether every sum is at least that of `other`; then so is the epsilon at every delta."""
        return all(getattr(self, name) >= getattr(other, name) for name in self.__struct_fields__)

    def epsilon(self, delta: Fraction) -> Fraction | float:
        """Return an epsilon such that all together is (epsilon, delta)-DP; `inf` at too small a delta.

        The approximate events add their epsilons and deltas. What is left of delta is for the others: Gaussian
        events alone by their exact profile, concentrated ones by rho, both together by rho or each at a part of
        delta. Pure events are either added as epsilons (their privacy loss is bounded for certain) or as rho. The
        smallest of these holds. All of it is of releases within `slack` of the real ones, which `with_slack` adds.

        Questions may depend on earlier outcomes, amounts may not: for those see `syndic.privacy.filter`.
        """
        return with_slack(self._epsilon_without_slack, delta, Fraction(self.slack, ATTO))

    def _epsilon_without_slack(self, delta: Fraction) -> Fraction | float:
        left = delta - Fraction(self.delta_approximate, ATTO)
        if left < 0:
            return inf
        added = Fraction(self.pure, PICO) + _noise_epsilon(self.rho, self.gaussian, left)
        concentrated = _noise_epsilon(self.rho + self.rho_of_pure, self.gaussian, left)
        return min(added, concentrated) + Fraction(self.epsilon_approximate, PICO)


def joint_cost(costs: Mapping[str, Cost], unit: Unit) -> Cost:
    """Return a cost that covers what all parties together spend on one person.

    A person is at no more than `unit.parties` parties, and releases of other parties do not depend on the person
    (parallel composition), so the cost is the sum over the person's own parties. Taking the largest values of each
    sum separately covers every choice of parties, since epsilon grows with each of the sums.
    """
    return Cost(
        **{
            name: sum(sorted((getattr(cost, name) for cost in costs.values()), reverse=True)[: unit.parties])
            for name in Cost.__struct_fields__
        }
    )


def _noise_epsilon(rho: int, gaussian: int, delta: Fraction) -> Fraction | float:
    """Return an epsilon at delta for concentrated and Gaussian events, in any order."""
    if rho == gaussian == 0:
        return Fraction(0)
    if delta <= 0:
        return inf
    concentrated, mu_squared = Fraction(rho, PICO), Fraction(2 * gaussian, PICO)
    if rho == 0:
        return gaussian_epsilon(mu_squared, delta)
    together = zcdp_epsilon(concentrated + mu_squared / 2, delta)
    if gaussian == 0 or gaussian_epsilon(mu_squared, delta) + zcdp_epsilon(concentrated, delta) >= together:
        return together
    # two groups of events, each at its own (epsilon, delta), add up even when interleaved: with x and y the
    # groups' exp(epsilon - loss), the positive part of 1 - x y is at most the sum of those of 1 - x and 1 - y
    apart = (
        zcdp_epsilon(concentrated, share * delta) + gaussian_epsilon(mu_squared, (1 - share) * delta)
        for share in _SHARES
    )
    return min(together, *apart)


def pure_for(epsilon: Fraction, delta: Fraction, count: int = 1) -> Fraction:
    """Return the largest epsilon up to the budget's, in steps of 1e-12, that each of `count` pure events may have.

    A ledger with the cap (epsilon, delta) accepts all of them, by `Cost.epsilon`.
    """
    if epsilon <= 0 or not 0 <= delta < 1 or count < 1:
        raise InputError(
            f"epsilon ({float(epsilon):g}) must be positive, delta ({float(delta):g}) in [0, 1) "
            f"and count ({count}) at least 1"
        )

    def too_much(amount: int) -> bool:
        rho = min(Fraction(amount, PICO) ** 2 / 2, Fraction(amount, PICO))
        return Cost(pure=count * amount, rho_of_pure=ceil(count * rho * PICO)).epsilon(delta) > epsilon

    return Fraction(bisect_left(range(1, ceil(epsilon * PICO) + 1), True, key=too_much), PICO)


_DIGITS: Final = Context(prec=4, rounding=ROUND_CEILING)
# sums are rounded up at the twelfth decimal: that alone must not raise the fourth digit
_OWN_ROUNDING: Final = 1 - Fraction(1, 10**9)


class Price(Document, frozen=True, kw_only=True):
    """What one study costs one person at a party: `epsilon` at the study's `delta`, known before a row is read.

    `study` is the study's name. `epsilon` is None where no epsilon at this delta covers the study. `discloses` lists
    what the study shows exactly, outside any epsilon.
    """

    study: str
    epsilon: Fraction | None
    delta: Fraction
    discloses: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: str, events: Iterable[Event], delta: Fraction, discloses: tuple[str, ...] = ()) -> Self:
        """Return the price of a study that is charged these events at one party."""
        epsilon = Cost.of(events).epsilon(delta)
        return cls(study=study, epsilon=None if isinf(epsilon) else Fraction(epsilon), delta=delta, discloses=discloses)

    def __str__(self) -> str:
        return at_delta(self.epsilon, self.delta)


@lru_cache(maxsize=256)
def shown(epsilon: Fraction | float | None) -> str:
    """Return an epsilon with four digits, rounded up; "unbounded" for None and infinity."""
    if epsilon is None or isinf(epsilon):
        return "unbounded"
    exact = Fraction(epsilon) * _OWN_ROUNDING
    return f"{_DIGITS.divide(exact.numerator, exact.denominator).normalize():f}"


def at_delta(epsilon: Fraction | float | None, delta: Fraction | float) -> str:
    """Return "epsilon 0.8062 at delta 1e-06", without a delta of 0."""
    return f"epsilon {shown(epsilon)}" + (f" at delta {float(delta):g}" if delta else "")
