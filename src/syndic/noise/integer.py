"""What every mechanism offers, and what additive noise on integers has in common: a check of values, and a sign."""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.privacy.event import Event
from syndic.random import Randomness

Input_contra = TypeVar("Input_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)

SCALE_LIMIT = 2**52
"""Noise of a larger scale does not fit 64-bit integers with room to spare."""

NEVER = 2.0**-200
"""A chance that is taken for impossible: guards against overflow, never part of a law."""


class Mechanism(Protocol[Input_contra, Output_co]):
    """Noise and its event in one frozen object. Whoever applies it has charged the event before."""

    @property
    def event(self) -> Event:
        """What one `apply` costs."""
        ...

    def apply(self, values: Input_contra, randomness: Randomness) -> Output_co:
        """Return what may be released."""
        ...


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
