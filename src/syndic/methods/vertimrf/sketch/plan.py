"""Public parameters of Flajolet-Martin sketches, published and sound (Smith, Song and Thakurta 2020)."""

from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, log, log1p, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError

WORD_BITS: Final = 64
"""Bits of one hash. Ranks beyond those that 64 bits can show do not occur."""


@final
class SketchPlan(Document):
    """Sketches of every value of every column: the largest rank among its people and its phantoms.

    A rank is geometric, Pr[rank > a] = (1 + gamma)^-a. Each sketch is the largest of the ranks of the people with that
    value, which depend on a secret key and the person, and of `phantoms` fresh random ranks of its party. It is raised
    to `floor` and lowered to `cap`, if there is one. All of this is repeated `repetitions` times.
    """

    phantoms: int
    floor: int
    repetitions: int
    gamma: Fraction = Fraction(1)
    cap: int | None = None

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)
        if not 0 <= self.phantoms < 2**40:
            raise ValueError(f"phantoms ({self.phantoms}) must be in [0, 2^40)")
        if not 1 <= self.repetitions <= 2**24:
            raise ValueError(f"repetitions ({self.repetitions}) must be in [1, 2^24]")
        if not 0 <= self.floor < self.top:
            raise ValueError(f"floor ({self.floor}) must be at least 0 and below the largest rank, {self.top}")
        if self.cap is not None and self.cap > len(rank_thresholds(self.gamma)):
            raise ValueError(f"cap ({self.cap}) must be at most {len(rank_thresholds(self.gamma))}")

    @property
    def top(self) -> int:
        """The largest rank that a sketch shows."""
        return len(rank_thresholds(self.gamma)) if self.cap is None else self.cap


@lru_cache(maxsize=64)
def rank_thresholds(gamma: Fraction) -> NDArray[np.uint64]:
    """Return the 64-bit words at which the rank increases: ceil(2^64 (1 - (1 + gamma)^-a)) for a = 0, 1, 2, ..."""
    found, remains = [], Fraction(2**WORD_BITS)
    while remains >= 1:
        found.append(2**WORD_BITS - int(remains))
        remains /= 1 + gamma
    return np.array(found, dtype=np.uint64)


def ranks_of(words: NDArray[np.uint64], gamma: Fraction) -> NDArray[np.uint16]:
    """Return the rank of each uniform 64-bit word; it grows with the word, so the largest word has the largest rank.

    The distribution is geometric with every tail probability rounded down to a multiple of 2^-64.
    """
    return np.searchsorted(rank_thresholds(gamma), words, side="right").astype(np.uint16)


def printed_epsilon(*, epsilon: float, delta: float, columns: int, repetitions: int) -> float:
    """Return the epsilon of one sketch in the published composition (Zhao et al. 2024, Algorithm 3)."""
    if not (epsilon > 0 and 0 < delta < 1 and columns > 0 and repetitions > 0):
        raise InputError(
            f"epsilon ({epsilon:g}), columns ({columns}) and repetitions ({repetitions}) must be positive "
            f"and delta ({delta:g}) in (0, 1)"
        )
    return epsilon / (4 * sqrt(repetitions * columns * log(1 / delta)))


def printed_plan(
    *, epsilon: float, delta: float, columns: int, repetitions: int = 2000, gamma: Fraction = Fraction(1)
) -> SketchPlan:
    """Return the published parameters; their claim is false for two or more columns under one key."""
    one = printed_epsilon(epsilon=epsilon, delta=delta, columns=columns, repetitions=repetitions)
    _check_gamma(gamma)
    floor = ceil(-log(-expm1(-one)) / log1p(float(gamma)))
    # beyond this there is one phantom, and exp overflows
    return SketchPlan(phantoms=ceil(1 / expm1(min(one, 700.0))), floor=floor, repetitions=repetitions, gamma=gamma)


def floor_for(phantoms: int, gamma: Fraction) -> int:
    """Return the floor at which the absence of a person costs no more than their presence, log(1 + 1 / phantoms)."""
    _check_gamma(gamma)
    return ceil(log(phantoms + 1) / log1p(float(gamma)))


def _check_gamma(gamma: Fraction) -> None:
    if not Fraction(1, 100) <= gamma <= 1:
        raise ValueError(f"gamma ({float(gamma):g}) must be in [0.01, 1]")
