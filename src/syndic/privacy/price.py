"""The cost of one study for one person, and the one way in which an epsilon is written."""

from collections.abc import Iterable
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import isinf
from typing import Final, Self

from syndic.document import Document
from syndic.privacy.cost import Cost
from syndic.privacy.event import Event

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


def shown(epsilon: Fraction | float | None) -> str:
    """Return an epsilon with four digits, rounded up; "unbounded" for None and infinity."""
    if epsilon is None or isinf(epsilon):
        return "unbounded"
    exact = Fraction(epsilon) * _OWN_ROUNDING
    return f"{_DIGITS.divide(exact.numerator, exact.denominator).normalize():f}"


def at_delta(epsilon: Fraction | float | None, delta: Fraction | float) -> str:
    """Return "epsilon 0.8062 at delta 1e-06", without a delta of 0."""
    return f"epsilon {shown(epsilon)}" + (f" at delta {float(delta):g}" if delta else "")
