"""From Gaussian privacy (mu) to epsilon at a delta and back: the exact profile, rounded to the safe side.

A mu-GDP release (Dong, Roth and Su 2022) tells two neighbours apart no better than one draw tells N(0, 1) from
N(mu, 1). It is (epsilon, delta)-DP exactly if delta is at least
Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018), and releases compose by adding mu^2.

Rounding: the profile is computed to 50 digits and raised by 1e-30 of its first term, which covers every error of the
computation by far. Searches only propose; a number is returned after the raised profile was compared with delta.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, inf
from typing import Any, Final

import mpmath

from syndic.errors import InputError
from syndic.privacy.concentrated import PICO, check_open_delta, rho_for, zcdp_epsilon

ATTO: Final = 10**18

# of its own, since the library's global precision may be changed by another thread in the middle of a computation
_REAL: Final = mpmath.MPContext()
_REAL.dps = 50
# beyond it exp overflows; a slack of 1e-18, the least that is counted, takes more than the whole delta long before
_LARGEST_EPSILON: Final = 700
_ROUNDS: Final = 100


@lru_cache(maxsize=4096)
def gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon, in steps of 1e-12, such that sqrt(mu_squared)-GDP implies (epsilon, delta)-DP."""
    check_open_delta(delta)
    if mu_squared < 0:
        raise InputError(f"mu_squared ({float(mu_squared):g}) must not be negative")
    if mu_squared == 0:
        return Fraction(0)
    mu, wanted = _REAL.sqrt(_number(mu_squared)), _number(delta)

    def holds(epsilon: int) -> bool:
        return bool(_profile(mu, _REAL.mpf(epsilon) / PICO)[0] <= wanted)

    if holds(0):
        return Fraction(0)
    epsilon = _number(zcdp_epsilon(mu_squared / 2, delta))
    # log delta is concave in epsilon, so Newton's method comes down to the root from above
    for _ in range(_ROUNDS):
        value, far = _profile(mu, epsilon)
        step = value / far * _REAL.log(wanted / value)
        epsilon -= step
        if step < 1e-14:
            break
    return Fraction(_least(holds, int(_REAL.ceil(epsilon * PICO))), PICO)


@lru_cache(maxsize=1024)
def mu_squared_for(epsilon: Fraction, delta: Fraction, slack: Fraction = Fraction(0)) -> Fraction:
    """Return the largest mu^2 of Gaussian events that together cost at most (epsilon, delta), `slack` included.

    In steps of 2e-12: a ledger counts mu^2 / 2 in units of 1e-12. `slack` is the most that the events' slacks add
    up to; give a little more than that, 1e-12 say, and check it with the mechanism that was made.
    """
    check_open_delta(delta)
    if epsilon <= 0 or slack < 0:
        raise InputError(f"epsilon ({float(epsilon):g}) must be positive, slack ({float(slack):g}) not negative")
    steps = floor(epsilon * PICO)
    left = left_after(delta, Fraction(ceil(slack * ATTO), ATTO), Fraction(steps, PICO))
    if left <= 0:
        raise InputError(
            f"slack ({float(slack):g}) leaves nothing of delta ({float(delta):g}): use a finer grid, a larger delta "
            "or a smaller epsilon"
        )
    at, wanted = _REAL.mpf(steps) / PICO, _number(left)

    def fails(half: int) -> bool:
        return half > 0 and bool(_profile(_REAL.sqrt(_REAL.mpf(2 * half) / PICO), at)[0] > wanted)

    start = _REAL.sqrt(2 * _number(max(rho_for(epsilon, left), Fraction(1, PICO))))
    guess = int(_mu(at, wanted, start) ** 2 / 2 * PICO)
    return Fraction(2 * (_least(fails, guess) - 1), PICO)


def with_slack(
    epsilon_at: Callable[[Fraction], Fraction | float], delta: Fraction, slack: Fraction
) -> Fraction | float:
    """Return the least epsilon at delta of something within total variation `slack` of a release that is known.

    Let the known release be (e, epsilon_at^-1(e))-DP, and each neighbour's law be within `slack` of its law. Then
    P(S) <= P~(S) + slack <= e^e (P'(S) + slack) + d + slack: it is (e, d + (1 + e^e) slack)-DP. So every e with
    epsilon_at(delta - (1 + e^e) slack) <= e holds. The left side grows with e: repeated from 0 on it climbs to the
    least such e, and passes none. `inf` where there is none, or slack takes so much that it climbs too slowly.
    """
    if slack == 0:
        return epsilon_at(delta)
    epsilon: Fraction | float = Fraction(0)
    for _ in range(_ROUNDS):
        left = left_after(delta, slack, epsilon)
        if left < 0:
            return inf
        larger = epsilon_at(left)
        if larger <= epsilon:
            return epsilon
        epsilon = larger
    return inf


def left_after(delta: Fraction, slack: Fraction, epsilon: Fraction | float) -> Fraction:
    """Return delta - (1 + e^epsilon) slack, rounded down."""
    if slack == 0:
        return delta
    return delta - (1 + Fraction(exp(min(epsilon, _LARGEST_EPSILON)) * (1 + 2.0**-40))) * slack


def _profile(mu: Any, epsilon: Any) -> tuple[Any, Any]:
    """Return delta at epsilon, raised by far more than its error, and minus its derivative."""
    near = _REAL.erfc((epsilon / mu - mu / 2) / _REAL.sqrt(2)) / 2
    far = _REAL.exp(epsilon) * _REAL.erfc((epsilon / mu + mu / 2) / _REAL.sqrt(2)) / 2
    return near - far + near * _REAL.mpf(10) ** -30, far


def _mu(epsilon: Any, delta: Any, start: Any) -> Any:
    """Return about the mu with that delta at epsilon, by Newton's method on log delta."""
    mu = start
    for _ in range(_ROUNDS):
        value = _profile(mu, epsilon)[0]
        # the derivative of delta is the normal density there
        density = _REAL.exp(-((epsilon / mu - mu / 2) ** 2) / 2) / _REAL.sqrt(2 * _REAL.pi)
        step = _REAL.log(delta / value) * value / density
        # a step too far is taken back by the next
        mu = max(mu + step, mu / 2)
        if abs(step) < mu * _REAL.mpf(10) ** -16:
            break
    return mu


def _least(holds: Callable[[int], bool], guess: int) -> int:
    """Return the least number from 0 on that holds, where all above one that holds do too; quick near it."""
    low, high, step = guess - 1, guess, 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while low >= 0 and holds(low):
        low, high, step = max(low - step, -1), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _number(value: Fraction) -> Any:
    return _REAL.mpf(value.numerator) / value.denominator
