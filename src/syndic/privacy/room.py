"""Whether a cap covers a charge, what its refusal says, and the largest charge that fits."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from math import inf
from typing import Final

import msgspec

from syndic.privacy.cost import Cost
from syndic.privacy.event import ConcentratedEvent, Event, GaussianEvent
from syndic.privacy.filter import Charged
from syndic.privacy.spending import Spending, delta_needed
from syndic.privacy.unit import Budget

# sums are kept in SQLite integers of 64 bits: this is four million epsilons
_LARGEST_SUM: Final = 2**62
_PARTS: Final = 10**9
_FILE: Final = "party.toml; if a plain file of rows was given, give a party.toml instead"


def fits(charged: Charged, cap: Budget) -> bool:
    """Return whether the cap covers all that is charged."""
    if max(getattr(charged.cost, name) for name in Cost.__struct_fields__) > _LARGEST_SUM:
        return False
    return charged.epsilon(cap) <= cap.epsilon


def refusal(dataset: str, charged: Charged, events: Sequence[Event], cap: Budget, *, alone: bool) -> str:
    """Return why these events do not fit on top of what was charged, what would fit, and what the owner can do.

    `alone`: the first study asks, and no other study was charged.
    """
    asked, now = Cost.of(events).epsilon(cap.delta), Spending.of(dataset, charged, cap)
    text = (
        f"data set {dataset!r}{f', at delta {float(cap.delta):g}' if cap.delta else ''}: spent {_number(now.epsilon)} "
        f"of epsilon {float(cap.epsilon):.6g}, asked {_number(asked)}, left {rounded_down(now.left)}; "
    )
    if asked == inf:
        return text + delta_needed(events, cap)
    if now.epsilon is None:
        return f"{text}for what was charged before, {delta_needed((), cap)}"
    largest = largest_fitting(replace(charged, alone=alone), events, cap)
    if not largest and now.left:
        return f"{text}no charge of this kind fits; only the cap's owner can raise its delta, in {_FILE}"
    if not largest:
        return f"{text}the cap is used up, and only its owner can raise it, in {_FILE}"
    return f"{text}the largest charge of this kind that fits is {rounded_down(largest)}"


def largest_fitting(charged: Charged, events: Sequence[Event], cap: Budget) -> Fraction:
    """Return the epsilon of the largest charge that fits: the same events at a fraction of epsilon, rho or mu^2."""

    def weaker(parts: int) -> Cost:
        return Cost.of([_weaker(event, Fraction(parts, _PARTS)) for event in events])

    def too_much(parts: int) -> bool:
        part = weaker(parts)
        return not fits(charged.plus(part) if charged.cost != Cost() else Charged.by_one(part), cap)

    largest = bisect_left(range(1, _PARTS), True, key=too_much)
    return Fraction(weaker(largest).epsilon(cap.delta)) if largest else Fraction(0)


def rounded_down(number: Fraction) -> str:
    """Return the number with six digits, rounded down."""
    digits = Context(prec=6, rounding=ROUND_DOWN).divide(number.numerator, number.denominator)
    return f"{digits.normalize():f}"


def _number(epsilon: Fraction | float | None) -> str:
    return "unbounded" if epsilon is None or epsilon == inf else f"{float(epsilon):.6g}"


def _weaker(event: Event, factor: Fraction) -> Event:
    if isinstance(event, ConcentratedEvent):
        return msgspec.structs.replace(event, rho=event.rho * factor)
    if isinstance(event, GaussianEvent):
        return msgspec.structs.replace(event, mu_squared=event.mu_squared * factor)
    return msgspec.structs.replace(event, epsilon=event.epsilon * factor)
