"""Accountants: the cost of events for one unit, and the noise that a budget needs.

Only this file and `sampled` import the accounting library, when first needed, because that takes a second.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, exp, floor, gcd, inf, lcm, sqrt
from typing import Any, Final, Literal

from syndic.errors import InputError
from syndic.privacy.concentrated import PICO, zcdp_epsilon
from syndic.privacy.cost import Cost
from syndic.privacy.event import ApproximateEvent, Event, PureEvent
from syndic.privacy.gaussian import ATTO, with_slack

Accountant = Literal["best", "pure", "zcdp", "pld"]

# privacy losses are kept on a grid of at most this many points
_POINTS: Final = 2**20
# points of the grid for each standard deviation of the loss of Gaussian events
_POINTS_PER_SD: Final = 500
# the part of delta reserved for the floating-point convolutions of the library
_NUMERICAL_DELTA: Final = Fraction(1, 10**10)
# shares of delta for the bounded events; concentrated events get the rest
_SHARES: Final = tuple(Fraction(share, 100) for share in (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99))


def epsilon_of(events: Iterable[Event], delta: Fraction, accountant: Accountant = "best") -> Fraction | float:
    """Return an epsilon such that the events together are (epsilon, delta)-DP for one unit.

    `pure` adds epsilons and deltas; concentrated and Gaussian events have no bound there. `zcdp` turns pure and
    Gaussian events into rho. `pld` composes the worst distributions of privacy loss of pure and approximate events,
    which is exact where nothing else is known of them (Kairouz, Oh and Viswanath 2015), and those of Gaussian
    events, and adds concentrated events by rho at a share of delta: of a concentrated event only rho is proven, so
    the loss of a continuous Gaussian is never used for it. `best` is the smallest of these and of `Cost.epsilon`.
    """
    if not 0 <= delta < 1:
        raise InputError(f"delta ({float(delta):g}) must be in [0, 1)")
    events = tuple(events)
    cost = Cost.of(events)
    match accountant:
        case "pure":
            return _added(cost, delta)
        case "zcdp":
            return _concentrated(cost, delta)
        case "pld":
            return _composed(events, cost, delta)
        case "best":
            return min(cost.epsilon(delta), _composed(events, cost, delta))
    raise InputError(f"accountant ({accountant}) must be one of best, pure, zcdp, pld")


def curve(spent: Cost | Iterable[Event], deltas: Sequence[Fraction]) -> list[tuple[Fraction | float, Fraction]]:
    """Return (epsilon, delta) for each delta; all pairs hold at once."""
    if isinstance(spent, Cost):
        return [(spent.epsilon(delta), delta) for delta in deltas]
    events = tuple(spent)
    return [(epsilon_of(events, delta), delta) for delta in deltas]


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


def _added(cost: Cost, delta: Fraction) -> Fraction | float:
    if cost.rho or cost.gaussian or Fraction(cost.delta_approximate, ATTO) > delta:
        return inf
    return Fraction(cost.pure + cost.epsilon_approximate, PICO)


def _concentrated(cost: Cost, delta: Fraction) -> Fraction | float:
    rho_only = Cost(
        rho=cost.rho + cost.rho_of_pure + cost.gaussian,
        epsilon_approximate=cost.epsilon_approximate,
        delta_approximate=cost.delta_approximate,
        slack=cost.slack,
    )
    return rho_only.epsilon(delta)


def _composed(events: Iterable[Event], cost: Cost, delta: Fraction) -> Fraction | float:
    bounded = Counter(
        (event.epsilon, event.delta if isinstance(event, ApproximateEvent) else Fraction(0))
        for event in events
        if isinstance(event, PureEvent | ApproximateEvent)
    )
    if not bounded:
        return cost.epsilon(delta)
    if delta <= _NUMERICAL_DELTA:
        return inf
    loss = _loss(bounded, Fraction(2 * cost.gaussian, PICO))
    rho = Fraction(cost.rho, PICO)

    def epsilon_at(left: Fraction) -> Fraction | float:
        if rho == 0:
            return _loss_epsilon(loss, left)
        if left <= 0:
            return inf
        # two groups of events, each at its own (epsilon, delta), add up: see `Cost.epsilon`
        return min(_loss_epsilon(loss, share * left) + zcdp_epsilon(rho, (1 - share) * left) for share in _SHARES)

    return with_slack(epsilon_at, delta, Fraction(cost.slack, ATTO))


def _loss(bounded: Counter[tuple[Fraction, Fraction]], mu_squared: Fraction) -> Any:
    """Return the privacy loss of all events, each taking the worst pair of distributions of its guarantee."""
    from dp_accounting.pld.privacy_loss_distribution import (  # noqa: PLC0415 (takes a second)
        PrivacyLossDistribution,
        from_gaussian_mechanism,
    )

    mu = sqrt(mu_squared) * (1 + 2.0**-40)
    step = _grid(bounded, Fraction(mu))
    total: Any = from_gaussian_mechanism(1 / mu, value_discretization_interval=float(step)) if mu else None
    for (epsilon, delta), count in bounded.items():
        # whole steps, rounded up by exact arithmetic
        likely = (1 - float(delta)) / (1 + exp(-epsilon))
        masses = {ceil(epsilon / step): likely, ceil(-epsilon / step): likely * exp(-epsilon)}
        loss = PrivacyLossDistribution.create_from_rounded_probability(masses, float(delta), float(step))
        loss = loss.self_compose(count)
        total = loss if total is None else total.compose(loss)
    return total


def _grid(bounded: Counter[tuple[Fraction, Fraction]], mu: Fraction) -> Fraction:
    """Return a step of which every epsilon is a multiple, or the finest that memory allows."""
    epsilons = [epsilon for epsilon, _ in bounded]
    denominator = lcm(*(epsilon.denominator for epsilon in epsilons))
    exact_step = Fraction(gcd(*(int(epsilon * denominator) for epsilon in epsilons)), denominator)
    # the loss of a Gaussian has mean mu^2 / 2 and sd mu
    widest = 2 * sum(epsilon * count for (epsilon, _), count in bounded.items()) + mu**2 + 20 * mu
    step = max(exact_step, Fraction(ceil(widest / _POINTS * PICO), PICO))
    if mu == 0:
        return step
    return step / max(1, min(ceil(step * _POINTS_PER_SD / mu), floor(step * _POINTS / widest)))


def _loss_epsilon(loss: Any, delta: Fraction) -> Fraction | float:
    if delta <= _NUMERICAL_DELTA:
        return inf
    epsilon = float(loss.get_epsilon_for_delta(float(delta - _NUMERICAL_DELTA)))
    return inf if epsilon == inf else Fraction(ceil(Fraction(epsilon * (1 + 1e-9)) * PICO) + 1, PICO)
