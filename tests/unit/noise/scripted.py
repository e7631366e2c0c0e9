"""Randomness that is known word by word."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray


class Scripted:
    """Gives out the words it was made with, and nothing else."""

    simulated: ClassVar[bool] = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        given, self.left = self.left[:count], self.left[count:]
        if len(given) < count:
            raise AssertionError("more words were drawn than expected")
        return np.array(given, dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        raise AssertionError("words only")
