"""The interface of mechanisms, and helpers for additive noise on integers."""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.privacy.event import Event
from syndic.random import Randomness

Input_contra = TypeVar("Input_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)

SCALE_LIMIT = 2**52
"""The largest noise scale that fits 64-bit integers with a margin."""

NEVER = 2.0**-200
"""A probability treated as zero in overflow checks; never used for drawing."""


class Mechanism(Protocol[Input_contra, Output_co]):
    """Noise and its privacy event in one frozen object. The caller must charge the event before `apply`."""

    @property
    def event(self) -> Event:
        """The privacy event of one `apply`."""
        ...

    def apply(self, values: Input_contra, randomness: Randomness) -> Output_co:
        """Return the values that may be released."""
        ...


def checked(values: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Return the values as int64 if noise up to `reach` cannot overflow them."""
    if values.dtype.kind != "i":
        raise InputError(
            f"values are of type {values.dtype}; noise needs signed integers: clip and quantise the values first"
        )
    room = 2**63 - 1 - reach
    wide = values.astype(np.int64, copy=False)
    if wide.size and (int(wide.max()) > room or int(wide.min()) < -room):
        raise InputError(f"values must be within {room} of zero so that values plus noise fit 64 bits: clip them first")
    return wide


def signed(magnitudes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the magnitudes with signs from the lowest bits of the words."""
    flips = -(words & np.uint64(1)).view(np.int64)
    return (magnitudes ^ flips) - flips
