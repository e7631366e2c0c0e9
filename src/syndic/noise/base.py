"""What every mechanism offers."""

from typing import Protocol, TypeVar

from syndic.privacy.event import Event
from syndic.random import Randomness

Input_contra = TypeVar("Input_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)


class Mechanism(Protocol[Input_contra, Output_co]):
    """Noise and its event in one frozen object. Whoever applies it has charged the event before."""

    @property
    def event(self) -> Event:
        """What one `apply` costs."""
        ...

    def apply(self, values: Input_contra, randomness: Randomness) -> Output_co:
        """Return what may be released."""
        ...
