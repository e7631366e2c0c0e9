"""Table 1 of Wu et al.: test losses of every method on one data set, beside predicting zero or the mean."""

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.gram.mixed import RIDGE, solved
from syndic.model.gram.mixing import classical_sigma, printed_mixes
from syndic_lab.bench.regression.data import Data
from syndic_lab.bench.regression.noise import DELTA, Joint, mixed_sums, noisy_sums
from syndic_lab.bench.regression.published import EPSILONS
from syndic_lab.bench.regression.synthetic import Found

Numbers = NDArray[np.float64]

# what the authors tried; they took the best, by the mean loss on the test rows
CANDIDATES: Final = (100, 300, 1000, 3000, 10_000)
# the number of mixes that Figure 3 has here
_MIXES: Final = 3000
PUBLIC: Final = ("ols", "predict zero", "predict mean")
PRIVATE: Final = ("dgm", "rmgm", "bgm", "rmgm, one k", "rmgm, sound", "gram")


@final
@dataclass(frozen=True)
class Loss:
    """Mean squared test loss over splits, in units of values in [0, 1], and its standard error."""

    mean: float
    error: float
    runs: int = 1


@final
@dataclass(frozen=True, eq=False)
class Losses:
    """Losses by method and epsilon (0 where there is no privacy); `mixes` the number that was best for RMGM."""

    losses: dict[tuple[str, float], Loss]
    mixes: dict[float, int]


@final
@dataclass(frozen=True, eq=False)
class _Part:
    """Rows to learn from, as sums of products with the ones, and rows to test on; values in [0, 1]."""

    sums: Numbers
    people: int
    test: Numbers

    def loss(self, coefficients: Numbers) -> float:
        """Return the loss of predictions without intercept, clipped to [-1, 1] as the authors' program does."""
        predicted = np.clip(self.test[:, :-1] @ coefficients, -1.0, 1.0)
        return self.loss_of(predicted)

    def loss_of(self, predicted: Numbers | float) -> float:
        """Return the loss of predictions."""
        return float(np.mean((predicted - self.test[:, -1]) ** 2))

    @property
    def symmetric(self) -> Numbers:
        """The sums for values in [-1, 1]."""
        move = 2 * np.eye(len(self.sums))
        move[0, 0], move[1:, 0] = 1.0, -1.0
        return move @ self.sums @ move.T


def measure(data: Data, repeats: int, seed: int = 0) -> Losses:
    """Return the losses over so many splits, 4 rows to learn from for each to test on, with new noise each time."""
    found: dict[tuple[str, float], list[float]] = defaultdict(list)
    generator = np.random.default_rng([seed, data.features])
    for _ in range(repeats):
        part = _split(data, generator)
        found["ols", 0.0].append(part.loss(solved(part.sums[1:, 1:], 0.0, part.people, RIDGE)[0]))
        found["predict zero", 0.0].append(part.loss_of(0.0))
        found["predict mean", 0.0].append(part.loss_of(float(part.sums[0, -1] / part.people)))
        for epsilon in EPSILONS:
            for method, loss in _private(part, data, epsilon, generator).items():
                found[method, epsilon].append(loss)
    return _best(found)


def eigenvalues(data: Data, repeats: int, epsilon: float, seed: int = 1) -> dict[str, Found]:
    """Return, for printed methods, distances from the coefficients without privacy and least eigenvalues, by draw."""
    generator = np.random.default_rng([seed, data.features])
    sigma = classical_sigma(epsilon, DELTA)
    variance = 4 * data.widest * sigma**2
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(repeats):
        part = _split(data, generator)
        exact, people = part.sums[1:, 1:], part.people
        wanted, _ = solved(exact, 0.0, people, RIDGE)
        for method, sums, noise in (
            ("dgm", noisy_sums(exact, people, variance, generator), people * variance),
            ("rmgm", mixed_sums(exact, _MIXES, variance, generator), 0.0),
            ("bgm", noisy_sums(exact, people, variance, generator), 0.0),
        ):
            coefficients, least = solved(sums, noise, people, RIDGE)
            found[method].append((float(np.linalg.norm(coefficients - wanted)), least))
    return {method: Found(*np.array(values).T) for method, values in found.items()}


def _private(part: _Part, data: Data, epsilon: float, generator: np.random.Generator) -> dict[str, float]:
    exact, people = part.sums[1:, 1:], part.people
    sigma = classical_sigma(epsilon, DELTA)
    variance = 4 * data.widest * sigma**2

    def loss(sums: Numbers, noise: float = 0.0) -> float:
        return part.loss(solved(sums, noise, people, RIDGE)[0])

    found = {
        "dgm": loss(noisy_sums(exact, people, variance, generator), people * variance),
        "bgm": loss(noisy_sums(exact, people, variance, generator)),
    }
    # fewer mixes than columns would leave nothing to solve
    one = max(printed_mixes(people, sigma), len(exact))
    for name, mixes in (("rmgm, one k", one), *((str(count), count) for count in CANDIDATES)):
        found[name] = loss(mixed_sums(exact, mixes, variance, generator))
    joint = Joint(part.symmetric, people, epsilon, data.parties)
    test = 2 * part.test[:, :-1] - 1
    for name, fit in (("rmgm, sound", joint.mixed(generator)), ("gram", joint.gram(generator))):
        found[name] = part.loss_of((fit.predict(test) + 1) / 2)
    return found


def _best(found: dict[tuple[str, float], list[float]]) -> Losses:
    """Return means, RMGM's being that of the number of mixes with the least mean loss on the test rows."""
    losses = {
        key: Loss(float(np.mean(values)), float(np.std(values)) / sqrt(len(values)), len(values))
        for key, values in found.items()
    }
    mixes = {}
    for epsilon in EPSILONS:
        mixes[epsilon] = min(CANDIDATES, key=lambda count: losses[str(count), epsilon].mean)
        losses["rmgm", epsilon] = losses[str(mixes[epsilon]), epsilon]
    return Losses(losses, mixes)


def _split(data: Data, generator: np.random.Generator) -> _Part:
    order = generator.permutation(len(data.table))
    people = 4 * len(order) // 5
    learned = np.column_stack([np.ones(people), data.table[order[:people]]])
    return _Part(learned.T @ learned, people, data.table[order[people:]])
