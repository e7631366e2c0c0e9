"""How long it will take: processor seconds of each item, and how fast this machine is now."""

import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from syndic_lab.reproduce.item import Item

# what the task below took on the machine whose seconds the catalogue has, idle
REFERENCE_SECONDS: Final = 0.2


def calibrated() -> float:
    """Return how many seconds pass here for one second of the catalogue, other work on the machine included."""
    start = time.perf_counter()
    generator = np.random.default_rng(0)
    values = generator.standard_normal(1_000_000)
    # no product of matrices: on a busy machine its threads wait for each other, and all else is less slow
    for _ in range(3):
        values = np.sort(np.tanh(values))[::-1].copy()
    total = 0
    for place in range(600_000):
        total += place & 7
    return max(0.1, (time.perf_counter() - start) / REFERENCE_SECONDS)


def in_words(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Pace:
    """Remaining time from what was expected and what really passed."""

    def __init__(self, items: Sequence[Item], quick: bool, speed: float) -> None:
        self._left = sum(item.expected(quick) or 0.0 for item in items)
        self._quick = quick
        self._expected = self._passed = 0.0
        self._speed = speed

    @property
    def remaining(self) -> float:
        """Seconds until all is done; from thirty expected seconds on what has passed says how fast it goes."""
        return self._left * (self._passed / self._expected if self._expected >= 30 else self._speed)

    def done(self, item: Item, passed: float) -> None:
        """Take note of an item that is done, so many seconds after the first one began."""
        expected = item.expected(self._quick) or 0.0
        self._left -= expected
        self._expected += expected
        self._passed = passed
