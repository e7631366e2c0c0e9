"""The smallest epsilon at which forecast intervals are narrow enough. Reads no row, spends nothing."""

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Final

import msgspec

from syndic.advice.advice import PublishedError
from syndic.errors import InputError
from syndic.study import Study

_LEAST: Final = 0.01
_MOST: Final = 64.0
_CLOSE: Final = 1.01


def epsilon_for(study: Study, wider: float, forecast: Callable[[Study], list[PublishedError]]) -> float | None:
    """Return the study's smallest epsilon at which no interval is more than `wider` times as wide as on pooled rows.

    All budgets are multiplied alike. None if no epsilon up to 64 is enough.

    Raises:
        InputError: if `wider` is not above 1, or the method's intervals cannot be forecast.
    """
    if not wider > 1:
        raise InputError(f"wider ({wider:g}) must be above 1: noise always widens an interval")
    if all(one.wider is None for one in forecast(study)):
        raise InputError(f"the width of intervals of {study.protocol.title} cannot be forecast")

    def enough(epsilon: float) -> bool:
        try:
            errors = forecast(_at(study, epsilon))
        except InputError:
            # a budget that the method cannot use
            return False
        known = [one for one in errors if one.wider is not None or one.error >= 1]
        return all(one.wider is not None and one.wider <= wider for one in known)

    high = float(study.budget.epsilon)
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = high / 2
    while low > _LEAST and enough(low):
        low, high = low / 2, low
    while high > low * _CLOSE:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _at(study: Study, epsilon: float) -> Study:
    """Return the study with its epsilon, and all parties' in proportion."""
    factor = Fraction(epsilon).limit_denominator(10**6) / study.budget.epsilon
    replace = msgspec.structs.replace
    parties = tuple(
        one if one.budget is None else replace(one, budget=replace(one.budget, epsilon=one.budget.epsilon * factor))
        for one in study.parties
    )
    return replace(study, budget=replace(study.budget, epsilon=study.budget.epsilon * factor), parties=parties)
