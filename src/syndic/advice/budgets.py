"""Other budgets: a study with all of them scaled, where sharing begins to pay, where intervals are narrow enough.

Reads no row, spends nothing.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, log, sqrt
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.advice.advice import PartyAdvice, PublishedError, standing_of
from syndic.errors import InputError
from syndic.kernel import budget_of
from syndic.privacy import Budget
from syndic.study import Study

Curve = Sequence[float] | NDArray[np.float64]

_LEAST: Final = 0.01
_MOST: Final = 64.0
_CLOSE: Final = 1.01


def scaled(study: Study, factor: float) -> Study:
    """Return the study with every budget's epsilon times `factor`; the deltas stay."""
    exact = Fraction(factor).limit_denominator(10**9)

    def times(budget: Budget) -> Budget:
        return msgspec.structs.replace(budget, epsilon=budget.epsilon * exact)

    parties = tuple(
        party if party.budget is None else msgspec.structs.replace(party, budget=times(party.budget))
        for party in study.parties
    )
    return msgspec.structs.replace(study, budget=times(study.budget), parties=parties)


def largest_epsilon(study: Study) -> float:
    """Return the epsilon of the party with the largest budget."""
    return max(float(budget_of(study, party.name).epsilon) for party in study.parties)


def break_even(factors: Curve, curve: Curve, own: float) -> float | None:
    """Return the factor on all budgets from which the error stays below `own`; None if it does not.

    Between the factors that were tried, the logarithm of the error is taken to be linear in that of the factor.
    """
    worse = np.flatnonzero(np.asarray(curve) >= own)
    if worse.size == 0:
        return float(factors[0])
    last = int(worse[-1])
    if last == len(curve) - 1:
        return None
    above, below = log(curve[last] / own), log(own / max(curve[last + 1], 1e-300))
    part = above / (above + below) if above + below > 0 else 1.0
    return exp(log(factors[last]) + part * log(factors[last + 1] / factors[last]))


def party_advice(
    study: Study, party: str, *, own: float, joint: float, factor: float | None, depends: bool = False
) -> PartyAdvice:
    """Return the advice to a party, whose error alone is `own`; `depends`: on the population's shape."""
    standing = standing_of(joint, own)
    return PartyAdvice(
        party=party,
        alone=own,
        standing=standing,
        pays=joint < own,
        close=depends or standing == "about even",
        epsilon=None if factor is None else factor * float(budget_of(study, party).epsilon),
        factor=factor,
    )


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
    own = float(study.budget.epsilon)

    def enough(epsilon: float) -> bool:
        try:
            errors = forecast(scaled(study, epsilon / own))
        except InputError:
            # a budget that the method cannot use
            return False
        known = [one for one in errors if one.wider is not None or one.error >= 1]
        return all(one.wider is not None and one.wider <= wider for one in known)

    high = own
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
