"""Mean squared errors of the schemes, as published (Chen and Sung) and corrected, from public numbers only.

As in `syndic.model.families.estimate`; `diameter` is the length of the interval of T (or of the parameter, for block
schemes), `slope` the derivative of the estimate by the mean of T, which is 1 / I where the parameter is natural.
"""

import math
from math import sqrt

from syndic.model.families.estimate import Setting


def statistics_error(at: Setting, *, slope: float, diameter: float) -> float:
    """Return the error of DSSA with k = N: (1/MN) (1/I + 2 slope^2 diameter^2 / (N epsilon^2))."""
    return at.bound + 2 * (slope * diameter / (at.people * at.epsilon)) ** 2 / at.parties


def statistics_error_printed(at: Setting, *, diameter: float) -> float:
    """Return the error of DSSA as Theorem 3.3 prints it, where a standard deviation stands for a variance."""
    size = at.people
    middle = math.pow(32, 0.25) * diameter / sqrt(size * at.epsilon * at.information)
    return (1 / at.information + middle + sqrt(2) * diameter / (at.epsilon * size)) / (at.parties * size)


def masked_error(at: Setting, *, slope: float, diameter: float) -> float:
    """Return the error with one noise for the sum over all parties."""
    return at.bound + 2 * (slope * diameter / (at.parties * at.people * at.epsilon)) ** 2


def blocks_error_printed(at: Setting, *, blocks: int, diameter: float) -> float:
    """Return the error of DSaA as Theorem 3.2 prints it: half the noise, and k^2 for k^3."""
    noise = (diameter / (blocks * at.epsilon)) ** 2 / at.parties
    return at.bound + noise + blocks**2 / at.people**3


def efficient_epsilon(at: Setting, *, slope: float, diameter: float, excess: float, masked: bool = False) -> float:
    """Return the epsilon from which on DSSA is within the share `excess` of the Cramer-Rao bound.

    It falls as N^(-1/2), and with one noise for all parties as (MN)^(-1/2). The paper's abstract says 1/N.
    """
    count = at.people * (at.parties if masked else 1)
    return slope * diameter * sqrt(2 * at.information / (excess * count))


def blocks_condition_printed(people: int, parties: int) -> float:
    """Return the same as Corollary 3.1 prints it, upside down."""
    return math.pow(people, 1 / 6) * math.pow(parties, -1 / 3)
