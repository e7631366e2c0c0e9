"""The noise of the paper, for simulation."""

import math
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.privacy import PureEvent
from syndic.privacy.concentrated import PICO
from syndic.random import Randomness, generator


@final
class PublishedLaplace(Document):
    """The paper's noise on fixed-point sums: a floating-point Laplace draw of this scale, rounded. Not private.

    `sensitivity`: the l1 change of the sums by one row; the paper uses the Euclidean diameter instead.
    """

    scale: float
    sensitivity: float

    @property
    def event(self) -> PureEvent:
        """The cost in real arithmetic."""
        holds = Fraction(math.ceil(Fraction(self.sensitivity) / Fraction(self.scale) * PICO), PICO)
        return PureEvent(epsilon=holds, what="continuous Laplace, as published")

    @property
    def variance(self) -> float:
        """Variance of one draw, in squared steps."""
        return 2 * self.scale**2

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, rounded to whole steps."""
        noise = generator(randomness).laplace(0.0, self.scale, values.shape)
        return np.rint(values + noise).astype(np.int64)
