"""How much of what was charged some runs refute, whatever the kind of the charge.

A claim is a curve: an epsilon for every delta. One event bounds it best at one delta only, so a bound at the stated
delta says little of a claim that is made of Gaussian noise. Here the whole curve is asked: had only a part of this cost
been charged, would the runs have broken that claim? The largest part for which they would is a lower bound on the true
cost, if that is of the same kind. For Gaussian costs this is the bound on mu of Nasr et al. (2023).
"""

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Final

import numpy as np
from scipy.special import ndtri

from syndic.document import exact
from syndic.privacy import Cost
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO
from syndic_lab.audit.bound import epsilon_shown

Box = tuple[float, float]
"""The least chance of an event under one table, and the most under the other."""

_HALVINGS: Final = 10
_MOST: Final = Fraction(16)
_ORDERS: Final = (1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


@lru_cache(maxsize=4096)
def claimed(cost: Cost, delta: float) -> float:
    """Return the epsilon that the cost claims at a delta, `inf` where it claims none."""
    return float(cost.epsilon(exact(delta)))


def refuted_part(cost: Cost, boxes: Sequence[Box], deltas: Collection[float]) -> float:
    """Return the largest part of the cost whose claim the chances break; above 1 if they break the whole one."""
    if cost.gaussian and not (cost.pure or cost.rho or cost.epsilon_approximate):
        return _gaussian_part(cost, boxes)
    if cost.rho and not (cost.pure or cost.gaussian):
        return _concentrated_part(cost, boxes)
    shown = {delta: max((epsilon_shown(*box, delta) for box in boxes), default=0.0) for delta in deltas}
    asked = {delta: epsilon for delta, epsilon in shown.items() if epsilon > 0}

    def breaks(part: Fraction) -> bool:
        smaller = cost.scaled(part)
        return any(epsilon > claimed(smaller, delta) for delta, epsilon in asked.items())

    low, high = (Fraction(1), _MOST) if breaks(Fraction(1)) else (Fraction(0), Fraction(1))
    for _ in range(_HALVINGS if asked else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if breaks(middle) else (low, middle)
    return float(low) if low != 1 else float(high)


def _gaussian_part(cost: Cost, boxes: Sequence[Box]) -> float:
    """Return mu^2 beside that of the charge: a mu-Gaussian claim has Phi^-1(p) - Phi^-1(q) <= mu for all events."""
    slack = (cost.slack + cost.delta_approximate) / ATTO
    mu = max((_apart(least - slack, most + slack) for least, most in boxes), default=0.0)
    return max(0.0, mu) ** 2 * PICO / (2 * cost.gaussian)


def _concentrated_part(cost: Cost, boxes: Sequence[Box]) -> float:
    """Return rho beside that of the charge: events of rho-zCDP have Renyi divergences of at most rho times their order.

    Approximate events beside it move chances by their delta and divergences by their epsilon, at most.
    """
    delta, epsilon = cost.delta_approximate / ATTO, cost.epsilon_approximate / PICO
    rho = 0.0
    for least, most in boxes:
        one, other = least - delta, most + delta
        if 0 < other < one:
            rho = max(rho, *((_divergence(one, other, order) - epsilon) / order for order in _ORDERS))
    return rho * PICO / cost.rho


def _divergence(one: float, other: float, order: float) -> float:
    """Return the Renyi divergence of two coins."""
    terms = [order * np.log(one) + (1 - order) * np.log(other)]
    if one < 1 and other < 1:
        terms.append(order * np.log1p(-one) + (1 - order) * np.log1p(-other))
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def _apart(least: float, most: float) -> float:
    if least <= 0 or most >= 1:
        return 0.0
    return inf if most <= 0 else float(ndtri(min(1.0, least)) - ndtri(most))


def part_epsilon(cost: Cost, part: float, delta: float) -> float:
    """Return the epsilon at a delta of a part of the cost, rounded down."""
    return claimed(cost.scaled(Fraction(int(min(part, 1.0) * 10**4), 10**4)), delta)
