"""The synthetic experiment of Wu et al.: ten features, no label noise, distances from the true coefficients."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.gram.mixed import solved
from syndic.model.gram.mixing import classical_sigma, printed_mixes
from syndic_lab.bench.regression.noise import DELTA, Joint, mixed_sums, noisy_sums, with_signs

Numbers = NDArray[np.float64]

FEATURES: Final = 10
PARTIES: Final = 6
PRINTED: Final = ("dgm", "rmgm", "bgm")
METHODS: Final = ("ols", *PRINTED, "rmgm, sound", "gram")
# five parties hold two columns each, the sixth the label
_WIDEST: Final = 2
# what the authors' program adds here, ten times what the text says
_RIDGE: Final = 1e-4
# from so many people on, sums over people are drawn from their normal limit
_LIMIT: Final = 100_000


@final
@dataclass(frozen=True, eq=False)
class Found:
    """Distance of a method's coefficients from the true ones, and its Hessian's least absolute eigenvalue, by draw."""

    distances: Numbers
    eigenvalues: Numbers

    @property
    def mean(self) -> float:
        """The mean distance."""
        return float(self.distances.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean distance."""
        return float(self.distances.std() / sqrt(len(self.distances)))

    def beyond(self, distance: float) -> float:
        """Return the share of draws that are further off."""
        return float((self.distances > distance).mean())


@final
@dataclass(frozen=True)
class Synthetic:
    """So many people, and so many draws of coefficients, people and noise; sound methods have `fewer` draws."""

    people: int
    repeats: int
    fewer: int
    seed: int = 0

    def measure(self, epsilon: float) -> dict[str, Found]:
        """Return what each method finds, the printed ones at (epsilon, 1e-5) a party, the sound ones jointly."""
        generator = np.random.default_rng([self.seed, self.people, int(1000 * epsilon)])
        found: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
        for place in range(self.repeats):
            weights, sums = self._draw(generator)
            for method, (coefficients, least) in self._printed(sums, epsilon, generator):
                found[method].append((float(np.linalg.norm(coefficients - weights)), least))
            if place < self.fewer:
                joint = Joint(sums, self.people, epsilon, PARTIES)
                for method, fit in (("rmgm, sound", joint.mixed(generator)), ("gram", joint.gram(generator))):
                    found[method].append((float(np.linalg.norm(fit.coefficients - weights)), np.nan))
        return {method: Found(*np.array(values).T) for method, values in found.items()}

    def signs(self, epsilon: float, repeats: int) -> Found:
        """Return RMGM as published with the signs themselves, rows by the thousand."""
        generator = np.random.default_rng([self.seed + 1, self.people, int(1000 * epsilon)])
        sigma = classical_sigma(epsilon, DELTA)
        found = []
        for _ in range(repeats):
            weights = generator.uniform(-1 / FEATURES, 1 / FEATURES, FEATURES)
            rows = generator.uniform(-1, 1, (self.people, FEATURES))
            table = np.column_stack([rows, rows @ weights])
            sums = with_signs(table, printed_mixes(self.people, sigma), 4 * _WIDEST * sigma**2, generator)
            coefficients, least = solved(sums, 0.0, self.people, _RIDGE)
            found.append((float(np.linalg.norm(coefficients - weights)), least))
        return Found(*np.array(found).T)

    def _draw(self, generator: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Return true coefficients, and the sums of products of the ones, the features and the label."""
        weights = generator.uniform(-1 / FEATURES, 1 / FEATURES, FEATURES)
        if self.people < _LIMIT:
            rows = np.column_stack([np.ones(self.people), generator.uniform(-1, 1, (self.people, FEATURES))])
            square = rows.T @ rows
        else:
            square = _limit(self.people, generator)
        to_label = np.vstack([np.eye(FEATURES + 1), np.concatenate([[0.0], weights])])
        return weights, to_label @ square @ to_label.T

    def _printed(
        self, sums: Numbers, epsilon: float, generator: np.random.Generator
    ) -> Iterator[tuple[str, tuple[Numbers, float]]]:
        exact, people = sums[1:, 1:], self.people
        sigma = classical_sigma(epsilon, DELTA)
        variance = 4 * _WIDEST * sigma**2
        yield "ols", solved(exact, 0.0, people, _RIDGE)
        mixed = mixed_sums(exact, printed_mixes(people, sigma), variance, generator)
        yield "rmgm", solved(mixed, 0.0, people, _RIDGE)
        yield "dgm", solved(noisy_sums(exact, people, variance, generator), people * variance, people, _RIDGE)
        yield "bgm", solved(noisy_sums(exact, people, variance, generator), 0.0, people, _RIDGE)


def _limit(people: int, generator: np.random.Generator) -> Numbers:
    """Return sums of products of ones and values spread evenly over [-1, 1], in the limit of many people.

    They are uncorrelated; a value has variance 1/3, a product of two 1/9, a square 1/5 - 1/9.
    """
    size = FEATURES + 1
    spread = np.full((size, size), sqrt(people / 9))
    spread[0] = sqrt(people / 3)
    upper = np.triu(spread * generator.standard_normal((size, size)), 1)
    squares = people / 3 + sqrt(people * (1 / 5 - 1 / 9)) * generator.standard_normal(size)
    squares[0] = people
    return upper + upper.T + np.diag(squares)
