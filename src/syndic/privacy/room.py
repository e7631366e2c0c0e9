"""How much room a cap leaves, and the largest charge that fits into it."""

from collections.abc import Sequence
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Final

import msgspec

from syndic.privacy.cost import Cost
from syndic.privacy.event import ConcentratedEvent, Event, GaussianEvent
from syndic.privacy.unit import Budget

# sums are kept in SQLite integers of 64 bits: this is four million epsilons
_LARGEST_SUM: Final = 2**62


def fits(cost: Cost, cap: Budget) -> bool:
    """Return whether a cost is within the cap."""
    if max(getattr(cost, name) for name in Cost.__struct_fields__) > _LARGEST_SUM:
        return False
    return cost.epsilon(cap.delta) <= cap.epsilon


def largest_fitting(spent: Cost, events: Sequence[Event], cap: Budget) -> Fraction:
    """Return the epsilon of the largest charge that fits: the same events at a fraction of epsilon, rho or mu^2."""
    fitting, fails, parts = 0, 10**9, 10**9
    largest = Fraction(0)
    while fails - fitting > 1:
        middle = (fitting + fails) // 2
        part = Cost.of([_weaker(event, Fraction(middle, parts)) for event in events])
        if fits(spent + part, cap):
            fitting, largest = middle, Fraction(part.epsilon(cap.delta))
        else:
            fails = middle
    return largest


def rounded_down(number: Fraction) -> str:
    """Return the number with six digits, not above it."""
    digits = Context(prec=6, rounding=ROUND_DOWN).divide(number.numerator, number.denominator)
    return f"{digits.normalize():f}"


def _weaker(event: Event, factor: Fraction) -> Event:
    if isinstance(event, ConcentratedEvent):
        return msgspec.structs.replace(event, rho=event.rho * factor)
    if isinstance(event, GaussianEvent):
        return msgspec.structs.replace(event, mu_squared=event.mu_squared * factor)
    return msgspec.structs.replace(event, epsilon=event.epsilon * factor)
