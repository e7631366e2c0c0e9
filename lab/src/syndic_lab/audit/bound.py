"""What counts of successes prove about an epsilon: exact lower bounds, right but for a stated chance.

If a release is (epsilon, delta)-DP, then for every event P(event | one) <= e^epsilon P(event | other) + delta. An
attack that meets its event often under one table and seldom under the other therefore shows an epsilon from below.
"""

from math import exp, inf, log

import numpy as np
from scipy import stats


def least_chance(hits: int, tries: int, miss: float) -> float:
    """Return a chance that the true one is below with probability at most `miss` (Clopper and Pearson 1934)."""
    return float(stats.beta.ppf(miss, hits, tries - hits + 1)) if hits else 0.0


def most_chance(hits: int, tries: int, miss: float) -> float:
    """Return a chance that the true one is above with probability at most `miss` (Clopper and Pearson 1934)."""
    return float(stats.beta.isf(miss, hits + 1, tries - hits)) if hits < tries else 1.0


def epsilon_shown(least: float, most: float, delta: float) -> float:
    """Return the epsilon, at least 0, below which no release has an event of these two chances."""
    if least <= delta:
        return 0.0
    return max(0.0, log((least - delta) / most)) if most > 0 else inf


def one_run_epsilon(*, canaries: int, guesses: int, right: int, delta: float, miss: float) -> float:
    """Return the epsilon that one run with many canaries shows (Steinke, Nasr and Jagielski 2023, Theorem 5.2).

    Each canary was put in or left out (or was one of two people) by a fair coin of its own; `guesses` coins were
    guessed from what the run showed, the others passed over, and `right` guesses were right.
    """
    low, high = 0.0, 1.0
    if one_run_chance(canaries, guesses, right, 0.0, delta) > miss:
        return 0.0
    while one_run_chance(canaries, guesses, right, high, delta) < miss and high < 64:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        below = one_run_chance(canaries, guesses, right, middle, delta) < miss
        low, high = (middle, high) if below else (low, middle)
    return low


def one_run_chance(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return the most likely that so many right guesses are under (epsilon, delta)-DP, whatever the attack."""
    if not 0 <= right <= guesses <= canaries:
        raise ValueError(f"right ({right}), guesses ({guesses}) and canaries ({canaries}) must be in that order")
    accuracy = 1 / (1 + exp(-epsilon))
    certain = float(stats.binom.sf(right - 1, guesses, accuracy))
    if delta == 0 or right == 0:
        return certain
    # P(right > correct >= right - i) / i at its largest: what delta can add at best
    near = np.cumsum(stats.binom.pmf(np.arange(right - 1, -1, -1), guesses, accuracy))
    largest = float((near / np.arange(1, right + 1)).max())
    return min(1.0, certain + 2 * canaries * delta * largest)
