"""An interval for a share that is not too narrow near 0 and 1, with noise in it."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL: Final = 0.95
"""How often an interval of a statistic contains the truth."""
WIDTH: Final = 1.959963984540054
"""How many standard errors it reaches: Phi^-1(0.975)."""


def wilson(value: Floats, people: Floats, noise: Floats, width: float = WIDTH) -> tuple[Floats, Floats]:
    """Return the ends `width` deviations away, as Wilson's for a share.

    They are the probabilities p from which the value is not further away than that, if n people were observed, with a
    sampling variance of p (1 - p) / n and the variance of the noise.
    """
    square = width**2 / np.maximum(people, 1.0)
    middle = (value + square / 2) / (1 + square)
    far = (value**2 - width**2 * noise) / (1 + square)
    reach = np.sqrt(np.clip(middle**2 - far, 0.0, None))
    return np.clip(middle - reach, 0.0, value), np.clip(middle + reach, value, 1.0)
