"""Gaussian noise on a fine grid: integer noise that is charged by the exact profile of the continuous Gaussian.

Values are multiplied by 2^fraction_bits, then discrete Gaussian noise is added. Results are in units of
2^-fraction_bits: divide what is opened by `scale`.

Why it holds. Let RG be round(Z), Z ~ N(0, s). An integer vector plus RG in every entry is the rounding of the
continuous Gaussian mechanism, so it is mu-GDP with mu^2 = D^2 / s for L2 sensitivity D. The noise drawn is the
discrete Gaussian DG of parameter v = s + 1/12 (rounding adds 1/12 to the variance) with v >= 4. The two are close:

Let f_s be the density of N(0, s) and t uniform on (-1/2, 1/2). RG(k) = E f_s(k + t)
= f_s(k) E exp(-t^2 / 2s) cosh(u t), u = k / s. Weigh t by cosh(u t): Jensen's inequality gives at least
f_s(k) E[cosh(u t)] exp(-m / 2s), m = E[t^2 cosh(u t)] / E[cosh(u t)]. With K(u) = log E cosh(u t)
= log(sinh(u/2) / (u/2)), m = K'' + K'^2, and the partial fractions of coth give K >= u^2/24 - u^4/2880,
0 <= K' / u <= 1/12 and K'' <= 1/12. Put together with log(f_s(k) / f_v(k)), all terms of first order cancel:

    log(RG(k) / f_v(k)) >= -1 / (576 s^2) - k^2 / (3456 s^3 v) - k^4 / (2880 s^4).

DG = f_v / C with C >= 1 (Poisson summation), so RG / DG is at least this too. The total variation is the mean under
DG of the positive part of 1 - RG / DG. Means under DG of k^2 and k^4 are at most v and, by Poisson summation,
3.0001 v^2. For v >= 4 the sum is below 1 / (331 v^2); 1 / (300 v^2) is charged.

Only entries in which two neighbours differ count, at most `changed`: the others have one law under both, and
appending them is post-processing. So the event's slack is changed / (300 v^2), v being sigma^2 4^fraction_bits: 12
bits make it 1e-17 for each changed entry at sigma 1. For the sum of h shares the log ratio g to a discrete Gaussian
(see `GaussianShare`) adds at most g for each changed entry.
"""

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.noise.gaussian import DiscreteGaussian
from syndic.noise.integer import NEVER, SCALE_LIMIT, checked
from syndic.noise.shares import LEAST_VARIANCE, Shared, log_ratio, sum_tail
from syndic.privacy.event import GaussianEvent, check_positive
from syndic.random import Randomness

ROUNDING: Final = Fraction(1, 12)
"""The variance that rounding to integers adds."""

_FRACTION_BITS: Final = 40
_SLACK_STEPS: Final = 10**24


class FineGrid:
    """Common base of noise on a fine grid and of its shares."""

    __slots__ = ()
    fraction_bits: int

    @property
    @abstractmethod
    def _fine_variance(self) -> Fraction:
        """The parameter sigma^2 of what is drawn, at least 4, in squared units of the result."""

    @property
    def scale(self) -> int:
        """The number of units of the result in one unit of the values."""
        return 1 << self.fraction_bits

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter sigma^2 of what is drawn, in squared units of the values; at least 4 on the fine grid."""
        return self._fine_variance / self.scale**2

    @property
    def variance(self) -> float:
        """Variance of one draw, in squared units of the values."""
        return self._noise.variance / self.scale**2

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw independent noise, or one party's shares, in units of the result."""
        return self._noise.draw(shape, randomness)

    @property
    def _noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(sensitivity_squared=self._fine_variance, rho=Fraction(1, 2))

    def _reach(self) -> int:
        """Return the margin below 2^63 that values need, so that values times `scale` plus noise fit 64 bits."""
        end = 2**63 - 1
        return end - ((end - self._noise.tail(NEVER)) >> self.fraction_bits)


@final
class FineGaussian(FineGrid, Document, frozen=True, kw_only=True, tag_field="kind", tag="fine_gaussian"):
    """Gaussian noise of mu^2 = `mu_squared` for integer values of that squared L2 sensitivity, of the whole vector.

    `changed` is the most entries in which two neighbours differ; integer values never differ in more than
    `sensitivity_squared`. The sensitivity is of the values before they are multiplied by `scale`.
    """

    sensitivity_squared: Fraction
    mu_squared: Fraction
    changed: int
    fraction_bits: int = 12

    def __post_init__(self) -> None:
        _check(self.sensitivity_squared, self.mu_squared, self.changed, self.fraction_bits)
        if self._fine_variance > SCALE_LIMIT**2:
            raise ValueError(f"sigma^2 on the fine grid ({float(self._fine_variance):.3g}) must be at most 2^104")

    @property
    def event(self) -> GaussianEvent:
        """The event of one `apply`; less than `mu_squared` only if noise of the least size protects more."""
        mu_squared = self.sensitivity_squared * self.scale**2 / (self._fine_variance - ROUNDING)
        slack = _slack(self.changed, self._fine_variance, 1)
        return GaussianEvent(mu_squared=mu_squared, slack=slack, what=f"Gaussian, mu {math.sqrt(mu_squared):.3g}")

    def tail(self, probability: float) -> int:
        """Return a magnitude, in units of the result, that one draw exceeds with at most this probability."""
        return self._noise.tail(probability)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values times `scale` with fresh noise on every entry."""
        wide = checked(values, self._reach())
        return wide * self.scale + self.draw(values.shape, randomness)

    @property
    def _fine_variance(self) -> Fraction:
        wanted = self.sensitivity_squared * self.scale**2 / self.mu_squared + ROUNDING
        return max(Fraction(LEAST_VARIANCE), wanted)


@final
class FineGaussianShare(FineGrid, Shared, frozen=True, kw_only=True, tag_field="kind", tag="fine_gaussian_share"):
    """One of `parties` shares of such noise: what `GaussianShare` is to `DiscreteGaussian`.

    A share is at least 4 on the fine grid, so shares of small variance are possible: 2.4e-7 at 12 bits. Masked sums
    open in units of 2^-fraction_bits and need that many more bits.
    """

    sensitivity_squared: Fraction
    mu_squared: Fraction
    changed: int
    fraction_bits: int = 12

    def __post_init__(self) -> None:
        """Check that shares of this size can be drawn."""
        super().__post_init__()
        _check(self.sensitivity_squared, self.mu_squared, self.changed, self.fraction_bits)
        if self.changed > self.dimension:
            raise ValueError(f"changed ({self.changed}) must be at most dimension ({self.dimension})")
        if self._fine_variance > SCALE_LIMIT**2:
            raise ValueError(f"sigma^2 of a share on the fine grid ({float(self._fine_variance):.3g}) is above 2^104")

    @property
    def event(self) -> GaussianEvent:
        """The event of the opened sum; less than `mu_squared` only if shares of the least size give more noise."""
        return _event_of(self)

    def event_if(self, honest: int) -> GaussianEvent:
        """Return the event if only `honest` shares were in the sum and known to nobody else."""
        self.check_present(honest)
        mu_squared = self.sensitivity_squared * self.scale**2 / (honest * self._fine_variance - ROUNDING)
        law = f"Gaussian, mu {math.sqrt(mu_squared):.3g}"
        slack = _slack(self.changed, self._fine_variance, honest)
        return GaussianEvent(mu_squared=mu_squared, slack=slack, what=self.described(law, honest))

    def tail(self, probability: float, present: int) -> int:
        """Return a magnitude, in units of the result, that noise on an opened value exceeds at most so often."""
        self.check_present(present)
        return sum_tail(self._fine_variance, probability, present)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values times `scale` with one party's share on every entry: not to be sent unmasked."""
        wide = self.check_values(values, self._reach())
        return wide * self.scale + self.draw(values.shape, randomness)

    @property
    def _fine_variance(self) -> Fraction:
        wanted = self.sensitivity_squared * self.scale**2 / self.mu_squared + ROUNDING
        return max(Fraction(LEAST_VARIANCE), wanted / self.honest)


@lru_cache(maxsize=64)
def _event_of(share: FineGaussianShare) -> GaussianEvent:
    """Return the event of an opened sum, computed once for all parties."""
    return share.event_if(share.honest)


def _check(sensitivity_squared: Fraction, mu_squared: Fraction, changed: int, fraction_bits: int) -> None:
    check_positive("sensitivity_squared", sensitivity_squared)
    check_positive("mu_squared", mu_squared)
    if changed < 1:
        raise ValueError(f"changed ({changed}) must be at least 1")
    if not 0 <= fraction_bits <= _FRACTION_BITS:
        raise ValueError(f"fraction_bits ({fraction_bits}) must be between 0 and {_FRACTION_BITS}")


def _slack(changed: int, share: Fraction, honest: int) -> Fraction:
    """Return the total variation distance from the sum of shares to rounded Gaussian noise, over changed entries."""
    each = 1 / (300 * (honest * share) ** 2) + Fraction(log_ratio(float(share), honest))
    slack = Fraction(math.ceil(changed * each * _SLACK_STEPS), _SLACK_STEPS)
    if slack >= 1:
        raise ValueError(f"noise on {changed} changed entries is too far from Gaussian: use more fraction_bits")
    return slack
