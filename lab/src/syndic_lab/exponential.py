"""Selection of one candidate by integer scores, higher is better, drawn exactly."""

from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.noise.geometric import exponential_geometric
from syndic.noise.integer import SCALE_LIMIT
from syndic.noise.inverse_cdf import accept, uniform
from syndic.privacy.event import ConcentratedEvent, PureEvent, check_positive
from syndic.random import Randomness

_BATCH = 1 << 16
_SCORE_LIMIT = 2**61


@final
class ExponentialMechanism(Document, frozen=True, kw_only=True):
    """Choose i with probability proportional to exp(epsilon u_i / 2 sensitivity) (McSherry, Talwar 2007)."""

    sensitivity: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        _check_parameters(self.sensitivity, self.epsilon)

    @property
    def event(self) -> PureEvent:
        """What one `apply` costs."""
        return PureEvent(epsilon=self.epsilon, what="exponential mechanism")

    @property
    def concentrated_event(self) -> ConcentratedEvent:
        """The same cost as zCDP, epsilon^2 / 8 (Cesar, Rogers 2021): charge this or `event`, not both."""
        return ConcentratedEvent(rho=self.epsilon**2 / 8, what="exponential mechanism")

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> int:
        """Return the chosen index.

        By rejection: propose uniformly and keep i with chance exp(-epsilon (max u - u_i) / 2 sensitivity),
        so a kept i has the wanted law. One proposal is kept with chance 1 / len(scores) or better.
        """
        gaps = int(_checked_scores(values).max()) - values.astype(np.int64)
        factor = self.epsilon / (2 * self.sensitivity)
        while True:
            proposed = uniform(gaps.size, min(_BATCH, 2 * gaps.size), randomness).view(np.int64)
            behind = gaps[proposed]

            def exactly(place: int, behind: NDArray[np.int64] = behind) -> Fraction:
                return int(behind[place]) * factor

            kept = accept(
                behind.astype(np.float64) * float(factor),
                exactly,
                randomness.words(proposed.size),
                64,
                randomness,
            )
            if kept.any():
                return int(proposed[np.argmax(kept)])


@final
class ReportNoisyMax(Document, frozen=True, kw_only=True):
    """Choose the largest score after geometric noise of scale 2 sensitivity / epsilon; first of equals wins.

    Epsilon-DP, ties included. Fix the noise z_j of all others. Index i is chosen exactly if its own noise Z
    reaches the integer c = max over j of (u_j + z_j + [j < i]) - u_i, and between neighbours c moves by at
    most 2 sensitivity. P(Z >= c) = a^max(c, 0) then changes by at most a^(-2 sensitivity) = e^epsilon, so
    noise on one side is enough. (The argument of Dwork, Roth 2014, claim 3.9, carried over to integers.)
    """

    sensitivity: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        _check_parameters(self.sensitivity, self.epsilon)

    @property
    def event(self) -> PureEvent:
        """What one `apply` costs."""
        return PureEvent(epsilon=self.epsilon, what="report noisy max")

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> int:
        """Return the chosen index."""
        scores = _checked_scores(values).astype(np.int64)
        noise = exponential_geometric(2 * self.sensitivity / self.epsilon).draw(
            randomness.words(scores.size), randomness
        )
        return int(np.argmax(scores + noise.view(np.int64)))


def _check_parameters(sensitivity: int, epsilon: Fraction) -> None:
    if sensitivity < 1:
        raise ValueError(f"sensitivity ({sensitivity}) must be at least 1")
    check_positive("epsilon", epsilon)
    if not 1 / SCALE_LIMIT <= 2 * sensitivity / epsilon <= SCALE_LIMIT:
        raise ValueError(f"2 sensitivity / epsilon ({2 * sensitivity / epsilon}) must be in [2^-52, 2^52]")


def _checked_scores(values: NDArray[np.int64]) -> NDArray[np.int64]:
    if values.ndim != 1 or values.size == 0 or values.dtype.kind != "i":
        raise InputError("scores must be one vector of signed integers with at least one entry")
    if int(values.max()) > _SCORE_LIMIT or int(values.min()) < -_SCORE_LIMIT:
        raise InputError("scores must be within 2^61 of zero: clip them first")
    return values
