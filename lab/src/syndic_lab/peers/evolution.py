"""Tab-PE (Tran, Backurs, Lin, Reis, Xiong and Yekhanin 2026): private evolution for tables, after paper and source.

Random rows are varied, every real row votes for the nearest, and the rows with the most noisy votes are varied again.
A person adds one vote in every round, so the noise is that of a sum. Everything is as in the authors' example for
Adult: 1,000 rows; 29 rounds of votes; the first five draw rows in proportion to their votes, the others keep those with
the most and add three variations of each; each class is evolved by itself, and the shares of the classes are taken as
public, which favours it. Noise is floating-point, from a seed: sufficient to compare, not to publish.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain

Integers = NDArray[np.int64]

FIRST_RATE: Final = 0.5
LAST_RATE: Final = 0.01
DECAY: Final = 0.2
CATEGORY_WEIGHT: Final = 1 / 3
"""Of a category beside a number that goes from 0 to 1."""

_CHUNK: Final = 4096


@final
@dataclass(frozen=True)
class Settings:
    """mu squared of all rounds, the ordered columns, the column with the class, and how rows evolve."""

    mu_squared: float
    ordered: frozenset[str] = frozenset()
    label: str | None = None
    rows: int = 1000
    rounds: int = 29
    drawn: int = 5
    variations: int = 3


def evolve(codes: Mapping[str, Integers], domain: Domain, settings: Settings, seed: int) -> dict[str, Integers]:
    """Return the rows that are left after all rounds of votes."""
    draws, people = np.random.default_rng(seed), len(codes[domain.names[0]])
    names = tuple(name for name in domain.names if name != settings.label)
    table, space = np.column_stack([codes[name] for name in names]), Space.of(domain.project(names), settings)
    classes = np.zeros(people, dtype=np.int64) if settings.label is None else codes[settings.label]
    parts = []
    for label in np.unique(classes):
        real, wanted = table[classes == label], round(settings.rows * float(np.mean(classes == label)))
        made = _evolved(real, space, settings, wanted, draws)
        parts.append(np.column_stack([made, np.full(len(made), label)]))
    together = np.concatenate(parts)
    columns = dict(zip((*names, settings.label), together.T, strict=True))
    return {name: columns[name] for name in domain.names}


def _evolved(real: Integers, space: "Space", settings: Settings, wanted: int, draws: np.random.Generator) -> Integers:
    people, votes = np.unique(real, axis=0, return_counts=True)
    sigma = math.sqrt(settings.rounds / settings.mu_squared)
    made = candidates = space.random(wanted, draws)
    for turn in range(settings.rounds if wanted else 0):
        noisy = space.votes(people, votes, candidates) + draws.normal(0, sigma, len(candidates))
        rate = FIRST_RATE - (FIRST_RATE - LAST_RATE) * (turn / (settings.rounds + 1)) ** DECAY
        if turn < settings.drawn:
            odds = np.maximum(noisy, 0) + 1e-9
            made = candidates[draws.choice(len(odds), wanted, p=odds / odds.sum())]
            candidates = space.varied(made, rate, draws)
        else:
            made = candidates[np.argsort(-noisy, kind="stable")[:wanted]]
            candidates = np.concatenate([made, *(space.varied(made, rate, draws) for _ in range(settings.variations))])
    return made


@final
@dataclass(frozen=True, eq=False)
class Space:
    """Sizes of columns, and which of them are ordered."""

    sizes: Integers
    ordered: NDArray[np.bool_]

    @classmethod
    def of(cls, domain: Domain, settings: Settings) -> "Space":
        """Return the space of a domain."""
        return cls(np.array(domain.sizes), np.array([name in settings.ordered for name in domain.names]))

    def random(self, count: int, draws: np.random.Generator) -> Integers:
        """Return rows of even and independent columns."""
        return draws.integers(0, self.sizes, (count, len(self.sizes)))

    def varied(self, rows: Integers, rate: float, draws: np.random.Generator) -> Integers:
        """Return rows with categories drawn anew at a rate, and numbers moved by at most this share of their range."""
        fresh = np.where(draws.random(rows.shape) < rate, self.random(len(rows), draws), rows)
        moved = np.rint(rows + draws.uniform(-rate, rate, rows.shape) * (self.sizes - 1)).astype(np.int64)
        return np.where(self.ordered, np.clip(moved, 0, self.sizes - 1), fresh)

    def votes(self, people: Integers, weights: Integers, candidates: Integers) -> NDArray[np.float64]:
        """Return for every candidate the number of real rows to which it is the nearest."""
        points = self._points(candidates)
        halves = (points**2).sum(axis=1) / 2
        found = np.zeros(len(candidates))
        for begin in range(0, len(people), _CHUNK):
            nearest = np.argmax(self._points(people[begin : begin + _CHUNK]) @ points.T - halves, axis=1)
            found += np.bincount(nearest, weights[begin : begin + _CHUNK], len(candidates))
        return found

    def _points(self, rows: Integers) -> NDArray[np.float32]:
        """Return one coordinate from 0 to 1 for a number, one for each level of a category."""
        parts = [
            rows[:, [place]] / max(1, size - 1) if ordered else CATEGORY_WEIGHT * np.eye(size)[rows[:, place]]
            for place, (size, ordered) in enumerate(zip(self.sizes, self.ordered, strict=True))
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)
