"""What an audit observed, before anything is concluded from it, and what is concluded.

An audit returns trials. How sure each conclusion must be depends on how many there are in all, so they are judged
together afterwards (`syndic_lab.audit.verdict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.privacy import Cost

CHOOSING: Final = 0.3
"""The part of the runs on which it is chosen what is judged on the others."""

Scores = NDArray[np.float64]
Kind = Literal["neighbours", "one run", "known law", "uniform", "same law", "same coins", "asked again", "charge"]


@final
@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """A number that one role computes from all it saw, in many runs on each of two neighbouring tables.

    `cost` is what was charged for the person, hence the claim at every delta; `delta` is the one it is stated at.
    `cuts` are thresholds that were fixed before any run, where the law is known: they need no runs to be chosen.
    `curve` has the claimed epsilons by delta where a cost does not say them all: that of a charge at one delta only.
    """

    view: str
    one: Scores
    other: Scores
    cost: Cost
    delta: float
    cuts: tuple[float, ...] = ()
    curve: Mapping[float, float] | None = None


@final
@dataclass(frozen=True, kw_only=True)
class OneRun:
    """Coins of many canaries (1 or -1) in a single run, and what speaks for each coin: its sign is the guess."""

    view: str
    coins: NDArray[np.int64]
    scores: Scores
    cost: Cost
    delta: float


@final
@dataclass(frozen=True, kw_only=True)
class KnownLaw:
    """Gaussian noise as one role meets it, what it knows taken off, and how far apart the two tables' numbers are.

    Each of `parts` is noise of one kind, and the distance in the numbers that have it, both in the same unit. Noise of
    so many entries and runs shows its size long before it shows who is in a table. That it is Gaussian is taken for
    granted here; audits of mechanisms show it.
    """

    view: str
    parts: tuple[tuple[Scores, float], ...]
    runs: int
    cost: Cost
    delta: float


@final
@dataclass(frozen=True, kw_only=True)
class Chance:
    """A test of a law that needs no epsilon: how likely something as unusual is if the claim holds."""

    view: str
    kind: Literal["uniform", "same law"]
    chance: float
    runs: int
    text: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something that must hold in every single run, and did or did not."""

    view: str
    kind: Literal["same coins", "asked again", "charge"]
    holds: bool
    runs: int
    text: str = ""


Trial = Neighbours | OneRun | KnownLaw | Chance | Fact


class Finding(Document):
    """What one trial shows.

    `epsilon` at `delta` is the claim, `shown` the lower bound there. `tight_delta` is where the lower bound comes
    nearest to the claim, or breaks it, with both epsilons there: the claim is of every delta. `part` is the largest
    part of the whole charge that is refuted (`syndic_lab.audit.fraction`) and `part_shown` its epsilon at `delta`.
    `confidence` is the chance that these bounds are right. Tests of laws and facts have no epsilon.
    """

    audit: str
    view: str
    test: Kind
    holds: bool
    confidence: float
    runs: int
    text: str = ""
    epsilon: float | None = None
    delta: float | None = None
    shown: float | None = None
    tight_delta: float | None = None
    tight_epsilon: float | None = None
    tight_shown: float | None = None
    part: float | None = None
    part_shown: float | None = None


def numbers(values: Any) -> Scores:
    """Return anything array-like as scores."""
    return np.asarray(values, dtype=np.float64)
