"""What additive noise on integers has in common: the check of what it is added to, and its sign."""

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

SCALE_LIMIT = 2**52
"""Noise of a larger scale does not fit 64-bit integers with room to spare."""

NEVER = 2.0**-200
"""A chance that is taken for impossible: guards against overflow, never part of a law."""


def checked(values: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Return the values as int64 if noise up to `reach` cannot overflow them."""
    if values.dtype.kind != "i":
        raise InputError(f"values are {values.dtype}: noise is added to signed integers; quantise and clip them first")
    room = 2**63 - 1 - reach
    wide = values.astype(np.int64, copy=False)
    if wide.size and (int(wide.max()) > room or int(wide.min()) < -room):
        raise InputError(f"values must be within {room} of zero so that the noise fits 64 bits: clip them first")
    return wide


def signed(magnitudes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Give each magnitude the sign that the lowest bit of its word shows."""
    flips = -(words & np.uint64(1)).view(np.int64)
    return (magnitudes ^ flips) - flips
