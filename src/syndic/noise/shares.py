"""Noise that several parties generate together: each adds a share, and only the masked sum is ever opened.

`parties` were agreed on, at most `colluding` of them reveal their shares (or draw none) and at most `missing` do
not contribute. What protects a person is the noise of the remaining parties - colluding - missing honest ones:
shares are sized so that it alone gives the stated guarantee. Whatever more is added is post-processing.

Unit: that of the sensitivity, which is of the whole opened sum. Semi-honest: a party that draws no noise counts
as colluding. The values plus one share must never be seen alone: they belong under a mask.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import final

import mpmath
import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.gaussian import DiscreteGaussian
from syndic.noise.integer import NEVER, SCALE_LIMIT, checked
from syndic.noise.laplace import DiscreteLaplace
from syndic.noise.poisson import TABLE_RATE, draw_poisson, signed_jumps
from syndic.noise.skellam import LEAST_TOTAL, skellam_rho, skellam_variance
from syndic.privacy.concentrated import PICO
from syndic.privacy.event import ConcentratedEvent, PureEvent, check_positive
from syndic.random import Randomness

LEAST_VARIANCE = 4
"""Sums of smaller discrete Gaussian shares are not close enough to a discrete Gaussian."""

_POISSON_LIMIT = 2**10 * TABLE_RATE


def in_shares(law: str, parties: int, honest: int) -> str:
    """Return a description of noise of which every party adds a share; so many of them are enough."""
    enough = f", of which any {honest} are enough" if honest < parties else ""
    return f"{law}, noise by {parties} parties together{enough}"


class Shared(Document, frozen=True, kw_only=True):
    """How many parties draw shares, and how many of them may collude or be missing."""

    parties: int
    colluding: int = 0
    missing: int = 0
    dimension: int

    def __post_init__(self) -> None:
        """Check that at least one honest share is left."""
        if self.parties < 1 or self.colluding < 0 or self.missing < 0 or self.dimension < 1:
            raise ValueError("parties and dimension must be at least 1, colluding and missing not negative")
        if self.honest < 1:
            raise ValueError(
                f"of {self.parties} parties {self.colluding} may collude and {self.missing} may be missing: "
                "none is left whose noise protects; allow fewer"
            )

    @property
    def honest(self) -> int:
        """The number of shares that are certainly in the sum and known to nobody else."""
        return self.parties - self.colluding - self.missing

    def check_values(self, values: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
        """Return the values as int64 if they are of the declared dimension and a share cannot overflow them."""
        if values.size != self.dimension:
            raise InputError(f"noise shares are for {self.dimension} values; found {values.size}")
        return checked(values, reach)

    def check_present(self, present: int) -> None:
        """Refuse an impossible number of contributing parties."""
        if not 1 <= present <= self.parties:
            raise ValueError(f"present ({present}) must be between 1 and the number of parties ({self.parties})")

    def described(self, law: str, honest: int) -> str:
        """Return a description of the event in words, if so many shares protect."""
        return in_shares(law, self.parties, honest)

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of one share, in squared units of the values."""

    def total_variance(self, present: int) -> float:
        """Return the variance of an opened value, in those units, when `present` parties contributed."""
        self.check_present(present)
        return present * self.variance


@final
class GaussianShare(Shared, frozen=True, kw_only=True, tag_field="kind", tag="gaussian_share"):
    """One of `parties` discrete Gaussian shares whose sum is rho-zCDP for that squared L2 sensitivity.

    Why it holds. Let s be the parameter sigma^2 of a share and v = s k / (k + 1). Convolving discrete Gaussians
    of k s and s gives, at x, the discrete Gaussian of (k + 1) s times sum_y exp(-(y - c_x)^2 / (2 v)), which by
    Poisson summation is within a factor 1 +- eta, eta = 2 sum_j exp(-2 pi^2 v j^2), of a constant. Both being
    normalised, their log ratio is at most log((1 + eta) / (1 - eta)) <= 5 exp(-2 pi^2 v) for v >= 2. So the sum P
    of h shares and the discrete Gaussian Q of h s differ by a log ratio of at most
    g = 5 sum_{k=1}^{h-1} exp(-2 pi^2 s k / (k + 1)) at each point. Being g-close is g^2/2-zCDP a coordinate, Q is
    D^2/(2 h s)-zCDP under a shift of length D, and roots of zCDP add along P, Q, Q shifted, P shifted (Bun and
    Steinke 2016): (D / sqrt(h s) + 2 g sqrt(dimension))^2 / 2. This is the second bound of Theorem 1 of Kairouz,
    Liu and Steinke (2021).
    """

    sensitivity_squared: Fraction
    rho: Fraction

    def __post_init__(self) -> None:
        """Check that shares of this size can be drawn."""
        super().__post_init__()
        check_positive("sensitivity_squared", self.sensitivity_squared)
        check_positive("rho", self.rho)
        if self.sigma_squared > SCALE_LIMIT**2:
            raise ValueError(f"sigma^2 of a share ({float(self.sigma_squared):.3g}) must be at most 2^104")

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter sigma^2 of one share, at least 4, in squared units of the values."""
        return _gaussian_share(self.sensitivity_squared, self.rho, self.honest, self.dimension)

    @property
    def event(self) -> ConcentratedEvent:
        """The event of the opened sum; less than `rho` only if shares of the least size give more noise."""
        return _event_of(self)

    def event_if(self, honest: int) -> ConcentratedEvent:
        """Return the event if only `honest` shares were in the sum and known to nobody else."""
        self.check_present(honest)
        holds = sum_rho(self.sensitivity_squared, self.sigma_squared, honest, self.dimension)
        return ConcentratedEvent(rho=_rounded_up(holds), what=self.described("discrete Gaussian", honest))

    @property
    def variance(self) -> float:
        """Variance of one share."""
        return self._noise.variance

    def tail(self, probability: float, present: int) -> int:
        """Return a magnitude that the noise on one opened value exceeds with at most this probability."""
        self.check_present(present)
        return sum_tail(self.sigma_squared, probability, present)

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw one party's shares."""
        return self._noise.draw(shape, randomness)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with one party's share on every entry: too little noise to be sent unmasked."""
        return self.check_values(values, self._noise.tail(NEVER)) + self.draw(values.shape, randomness)

    @property
    def _noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(sensitivity_squared=self.sigma_squared, rho=Fraction(1, 2))


@final
class SkellamShare(Shared, frozen=True, kw_only=True, tag_field="kind", tag="skellam_share"):
    """One of `parties` Skellam shares, differences of two Poisson variables: sums are exactly Skellam again.

    Needs the L1 and the squared L2 sensitivity. The cost, rho-zCDP, is derived in `syndic.noise.skellam`.
    """

    sensitivity: int
    sensitivity_squared: Fraction
    rho: Fraction

    def __post_init__(self) -> None:
        """Check that shares of this size can be drawn."""
        super().__post_init__()
        check_positive("sensitivity_squared", self.sensitivity_squared)
        check_positive("rho", self.rho)
        if not self.sensitivity_squared <= self.sensitivity**2 or self.sensitivity > self.sensitivity_squared:
            raise ValueError(
                f"sensitivity ({self.sensitivity}) in L1 and sensitivity_squared ({self.sensitivity_squared}) in L2 "
                "cannot belong to one integer vector"
            )
        if self.rate > _POISSON_LIMIT:
            raise ValueError(
                f"a share of Poisson rate {float(self.rate):.3g} is above the limit {_POISSON_LIMIT}: "
                "use a coarser scale, or discrete Gaussian shares"
            )

    @property
    def rate(self) -> Fraction:
        """Rate of each of the two Poisson variables of one share: half its variance."""
        return skellam_variance(self.rho, self.sensitivity, self.sensitivity_squared) / (2 * self.honest)

    @property
    def event(self) -> ConcentratedEvent:
        """The event of the opened sum."""
        holds = self.event_if(self.honest)
        return ConcentratedEvent(rho=min(self.rho, holds.rho), what=holds.what)

    def event_if(self, honest: int) -> ConcentratedEvent:
        """Return the event if only `honest` shares were in the sum and known to nobody else."""
        self.check_present(honest)
        total = float(2 * honest * self.rate) * (1 - 2.0**-50)
        if total < LEAST_TOTAL * (1 - 2.0**-40):
            raise ValueError(f"a variance of {total:.3g} from {honest} share(s) is too small for a bound")
        holds = skellam_rho(total, self.sensitivity, float(self.sensitivity_squared))
        return ConcentratedEvent(rho=_rounded_up(Fraction(holds)), what=self.described("Skellam", honest))

    @property
    def variance(self) -> float:
        """Variance of one share."""
        return float(2 * self.rate)

    def tail(self, probability: float, present: int) -> int:
        """Return a magnitude that the noise on one opened value exceeds with at most this probability."""
        self.check_present(present)
        total = present * self.variance
        # E exp(t x) = exp(total (cosh t - 1))
        return _chernoff(probability, lambda t: total * (math.cosh(t) - 1), 40.0)

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw one party's shares."""
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        drawn = draw_poisson(self.rate, 2 * count, randomness)
        return (drawn[:count] - drawn[count:]).reshape(shape)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with one party's share on every entry: too little noise to be sent unmasked."""
        return self.check_values(values, self.tail(NEVER, 1)) + self.draw(values.shape, randomness)


@final
class LaplaceShare(Shared, frozen=True, kw_only=True, tag_field="kind", tag="laplace_share"):
    """One of `parties` Polya shares: `honest` of them add up to exactly a discrete Laplace variable.

    A share is the difference of two negative binomial variables of shape 1 / honest and ratio
    exp(-epsilon / sensitivity). Pure epsilon-DP for that L1 sensitivity, at any dimension.
    """

    sensitivity: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        """Check that shares of this size can be drawn."""
        super().__post_init__()
        self._whole  # noqa: B018 - its own checks are the checks

    @property
    def event(self) -> PureEvent:
        """The event of the opened sum."""
        return self.event_if(self.honest)

    def event_if(self, honest: int) -> PureEvent:
        """Return the event if only `honest` shares were in the sum and known to nobody else.

        With fewer shares, negative binomial laws of shape r < 1 are mixtures of geometric ones, so P(0), P(1), ... of
        their difference is a mixture of powers and log-convex: no step changes it more than the one from 0 to 1, and
        the cost is `sensitivity` such steps, log(P(0) / P(1)) each. It grows fast: 0 to 1 is a large step in a peak.
        """
        self.check_present(honest)
        what = self.described("discrete Laplace", honest)
        if honest >= self.honest:
            return PureEvent(epsilon=self.epsilon, what=what)
        with mpmath.workdps(40):
            shape = mpmath.mpf(honest) / self.honest
            ratio = mpmath.exp(-mpmath.mpf(self.epsilon.numerator) / (self.epsilon.denominator * self.sensitivity))
            zero, one = (mpmath.hyp2f1(shape, shape + k, 1 + k, ratio**2) for k in (0, 1))
            steps = self.sensitivity * mpmath.log(zero / (shape * ratio * one))
            return PureEvent(epsilon=Fraction(int(mpmath.ceil(steps * PICO)) + 1, PICO), what=what)

    @property
    def variance(self) -> float:
        """Variance of one share."""
        return self._whole.variance / self.honest

    def tail(self, probability: float, present: int) -> int:
        """Return a magnitude that the noise on one opened value exceeds with at most this probability."""
        self.check_present(present)
        rate = 1 / float(self._whole.scale)
        start, shape = math.log(-math.expm1(-rate)), present / self.honest

        def cumulant(t: float) -> float:
            return shape * (2 * start - math.log(-math.expm1(t - rate)) - math.log(-math.expm1(-t - rate)))

        return _chernoff(probability, cumulant, rate)

    def draw(self, shape: int | tuple[int, ...], randomness: Randomness) -> NDArray[np.int64]:
        """Draw one party's shares."""
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        return signed_jumps(self._whole.scale, self.honest).draw(count, randomness).reshape(shape)

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with one party's share on every entry: too little noise to be sent unmasked."""
        return self.check_values(values, self.tail(NEVER, 1)) + self.draw(values.shape, randomness)

    @property
    def _whole(self) -> DiscreteLaplace:
        return DiscreteLaplace(sensitivity=self.sensitivity, epsilon=self.epsilon)


def _chernoff(probability: float, cumulant: Callable[[float], float], end: float) -> int:
    """Return the best x with 2 exp(cumulant(t) - t x) <= probability over some t in (0, end); each t is valid."""
    if not 0 < probability <= 1:
        raise ValueError(f"probability ({probability}) must be in (0, 1]")
    needed = math.log(2) - math.log(probability)
    slopes = [end * k / 400 for k in range(1, 400)] + [end * 2.0**-k for k in range(8, 60)]
    return math.ceil(min((needed + cumulant(t)) / t for t in slopes) * (1 + 2.0**-30))


def sum_tail(share: Fraction, probability: float, present: int) -> int:
    """Return a magnitude that the sum of `present` discrete Gaussian shares exceeds with at most this probability."""
    if not 0 < probability <= 1:
        raise ValueError(f"probability ({probability}) must be in (0, 1]")
    # discrete Gaussians are sub-Gaussian with their sigma^2 (Canonne, Kamath, Steinke), and those add
    square = 2 * present * float(share) * (math.log(2) - math.log(probability))
    return math.ceil(math.sqrt(square) * (1 + 2.0**-40))


def _rounded_up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * PICO), PICO)


def sum_rho(sensitivity_squared: Fraction, share: Fraction, honest: int, dimension: int) -> Fraction:
    """Return a rho that holds for the sum of `honest` discrete Gaussian shares of sigma^2 `share` >= 4."""
    plain = sensitivity_squared / (2 * honest * share)
    # (root + gap)^2 = plain (1 + x)^2 with x = gap / root
    excess = 2 * log_ratio(float(share), honest) * math.sqrt(dimension) / math.sqrt(2 * float(plain))
    return plain * (1 + Fraction((2 * excess + excess**2) * (1 + 2.0**-40)))


def log_ratio(share: float, honest: int) -> float:
    """Bound g: the log ratio between the sum of the shares and the discrete Gaussian; never rounded to 0."""
    if honest == 1:
        return 0.0
    terms = [math.exp(-2 * math.pi**2 * share * k / (k + 1)) for k in range(1, min(honest, 10))]
    # later terms are smaller than the last one counted
    return 5 * (math.fsum(terms) + (honest - 1 - len(terms)) * terms[-1]) * (1 + 2.0**-40) + 1e-300


@lru_cache(maxsize=64)
def _event_of(share: GaussianShare) -> ConcentratedEvent:
    """Return the event of an opened sum, computed once for all parties."""
    holds = share.event_if(share.honest)
    return ConcentratedEvent(rho=min(share.rho, holds.rho), what=holds.what)


@lru_cache(maxsize=256)
def _gaussian_share(sensitivity_squared: Fraction, rho: Fraction, honest: int, dimension: int) -> Fraction:
    """Return the least sigma^2 of a share, to about 1 in 2^40, for which `sum_rho` is at most rho."""
    wanted = sensitivity_squared / (2 * rho * honest)
    extra = Fraction(1, 2**40) if honest > 1 else Fraction(0)
    while True:
        share = max(Fraction(LEAST_VARIANCE), wanted * (1 + extra))
        if honest == 1 or sum_rho(sensitivity_squared, share, honest, dimension) <= rho:
            return share
        extra *= 2
