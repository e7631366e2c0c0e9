"""Wu et al.: Theorems 1 and 2 and the lemma on random signs, beside simulation."""

from collections.abc import Iterator
from math import exp, log, sqrt
from typing import Final

import numpy as np

from syndic_lab.bench.regression.synthetic import Synthetic
from syndic_lab.bench.row import Row

# numbers of people: the theorems let the chance of a distance above 0.2 fall with them
PEOPLE: Final = {"dgm": (10**8, 10**9, 10**10), "rmgm": (30_000, 100_000, 300_000)}
DISTANCE: Final = 0.2
MIXES, POINTS, BEYOND = 400, 5, 0.3


def chances(quick: bool) -> Iterator[Row]:
    """Yield how often coefficients are further off than 0.2 at epsilon 1, over the number of people."""
    repeats = 150 if quick else 4000
    for method, numbers in PEOPLE.items():
        for people in numbers:
            found = Synthetic(people, repeats, 1).measure(1.0)[method]
            share = found.beyond(DISTANCE)
            yield Row(
                bench="regression",
                row=f"{method}, n {people:.0e}, epsilon 1",
                metric=f"P(distance > {DISTANCE:g})",
                value=share,
                unit="share",
                error=sqrt(share * (1 - share) / repeats),
                runs=repeats,
            )


def signs(quick: bool) -> Iterator[Row]:
    """Yield how often an inner product of points of norm 1 moves by more than 4 b, where the lemma bounds it."""
    repeats, draws = (200 if quick else 2000), np.random.default_rng(2022)
    points = draws.normal(size=(POINTS, 50))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    missed = 0
    for _ in range(repeats):
        mixed = points @ draws.choice([-1.0, 1.0], size=(50, MIXES)) / sqrt(MIXES)
        missed += bool(np.abs(mixed @ mixed.T - points @ points.T).max() > 4 * BEYOND)
    allowed = (POINTS + 1) ** 2 * exp(-MIXES * (BEYOND**2 / 4 - BEYOND**3 / 6))
    yield Row(
        bench="regression",
        row=f"Lemma 2, {POINTS} points, {MIXES} mixes, b {BEYOND}",
        metric="chance of a larger error",
        value=missed / repeats,
        unit="share",
        published=allowed,
        error=sqrt(max(missed, 1)) / repeats,
        runs=repeats,
    )


def falling(shares: list[float]) -> list[float]:
    """Return minus the logarithm of every share, 0 where all draws are further off."""
    return [-log(max(share, 1e-4)) + 0.0 for share in shares]
