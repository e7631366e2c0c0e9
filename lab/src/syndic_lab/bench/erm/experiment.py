"""Every method of distributed private learning on one data set and number of parties, along the iterations."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.erm.loss import SQUARED, JointObjective, Logistic, Objective
from syndic.model.erm.second_order import Newton
from syndic_lab.bench.erm.cohort import Cohort
from syndic_lab.bench.erm.data import Split
from syndic_lab.bench.erm.newton import newton_models
from syndic_lab.bench.erm.noise_law import LawName, gaussian_sigma
from syndic_lab.bench.erm.private import (
    GradientMethod,
    GradientNoise,
    ModelMethod,
    Setting,
    TwoNoises,
    Variant,
    gradient_noise,
    local_objective,
    model_noise,
    two_noises,
)
from syndic_lab.bench.erm.published import POSITIONS
from syndic_lab.bench.row import standard_error

Numbers = NDArray[np.float64]
Draw = Callable[[int, Numbers], Numbers]

ITERATIONS: Final = 1500
# every position that Figure 1 shows, and the last iteration
CHECKPOINTS: Final = (*POSITIONS, ITERATIONS)
# rows average these, where the published curves are level
LATE: Final = slice(POSITIONS.index(800), len(POSITIONS))
VARIANTS: Final[tuple[Variant, ...]] = ("as_published", "sound")
TOLERANCE: Final = 1e-8
# as published, but for the epsilon left to the vector: that of the joint objective, not of one party's
# the loss measured from the average of models without noise, not from the central model
AGAINST: Final = "MPC Out P, against averaged models"
JOINT: Final = "Rajkumar-Agarwal, joint objective"


@final
@dataclass(frozen=True)
class Trace:
    """Optimality gap and accuracy loss at each checkpoint, averaged over repeats.

    `errors` are the standard errors of the late gap and the late loss over repeats.
    """

    gaps: tuple[float, ...]
    losses: tuple[float, ...]
    errors: tuple[float, float] = (0.0, 0.0)

    @property
    def gap(self) -> float:
        """The gap over the late checkpoints."""
        return float(np.mean(self.gaps[LATE]))

    @property
    def loss(self) -> float:
        """The loss over the late checkpoints."""
        return float(np.mean(self.losses[LATE]))


@final
@dataclass(frozen=True, eq=False)
class Experiment:
    """One data set and number of parties, with the published settings."""

    split: Split
    parties: int
    repeats: int
    epsilon: Fraction = Fraction(1, 2)
    delta: Fraction = Fraction(1, 1000)
    regularisation: float = 0.001
    iterations: int = ITERATIONS
    seed: int = 0

    @property
    def name(self) -> str:
        """Data set and number of parties."""
        return f"{self.split.name}, m {self.parties}"

    @cached_property
    def cohort(self) -> Cohort:
        """The parties."""
        return Cohort.equal(self.split.rows, self.split.labels, self.parties, self._objective)

    @property
    def setting(self) -> Setting:
        """The public numbers."""
        return Setting(
            parties=self.parties,
            records=int(self.cohort.sizes.min()),
            dimension=self.split.rows.shape[1],
            epsilon=self.epsilon,
            delta=self.delta,
            regularisation=self.regularisation,
            iterations=self.iterations,
            tolerance=TOLERANCE,
        )

    @cached_property
    def reference(self) -> Numbers:
        """The model that gaps and losses are measured from: the pooled descent's last iterate, without privacy."""
        return self.cohort.descend(1, [self.iterations], _nothing)[0, :, 0]

    def objective(self, weights: Numbers) -> float:
        """Return the training objective of all rows."""
        return self._objective.value(weights, self.split.rows, self.split.labels)

    def accuracy(self, weights: Numbers) -> float:
        """Return the share of test rows on the right side, 0 counting as -1; in a regression less the squared error."""
        if self.split.regression:
            return -float(((self.split.test_rows @ weights - self.split.test_labels) ** 2).mean())
        predicted = np.where(self.split.test_rows @ weights > 0, 1.0, -1.0)
        return float((predicted == self.split.test_labels).mean())

    def measure(self) -> dict[str, Trace]:
        """Return the trace of each method; ", sound" after a name is the variant that holds.

        A regression has the authors' variants only: the slopes of its loss have no bound, so none of them is sound.
        """
        generator = np.random.default_rng([self.seed, self.parties])
        if self.split.regression:
            models = self._averaged(generator) | self._objectives(generator) | self._gradients(generator)
            return {name: self._trace(found) for name, found in models.items()}
        models = self._averaged(generator) | self._objectives(generator) | self._gradients(generator) | self._newton()
        traces = {name: self._trace(found) for name, found in models.items()}
        final = models["Distributed, no privacy"][-1, 0]
        return traces | {AGAINST: self._trace(models["MPC Out P"], final)}

    def few_and_many(self) -> dict[str, Trace]:
        """Return the traces of the few-round method and of MPC Grad P only."""
        noise, shape = gradient_noise("MPC Grad P", self.setting), (self.repeats, self.setting.dimension)
        draw = _single(noise, shape, np.random.default_rng([self.seed, self.parties]))
        many = self.cohort.descend(self.repeats, CHECKPOINTS, draw).transpose(0, 2, 1)
        models = {"MPC Grad P, sound": many} | self._newton()
        return {name: self._trace(found) for name, found in models.items()}

    def seconds(self) -> float:
        """Return the time of MPC Grad P alone, all iterations."""
        noise = gradient_noise("MPC Grad P", self.setting)
        generator = np.random.default_rng(self.seed)
        draw = _single(noise, (1, self.setting.dimension), generator)
        start = time.perf_counter()
        self.cohort.descend(1, [self.iterations], draw)
        return time.perf_counter() - start

    @property
    def _objective(self) -> Objective:
        if self.split.regression:
            # slopes are not clipped in the authors' program
            return Objective(SQUARED, self.regularisation, clip=1e12)
        return Objective(Logistic(), self.regularisation)

    def _trace(self, models: Numbers, reference: Numbers | None = None) -> Trace:
        """Return the trace of models (checkpoint, repeat, dimension), measured from the reference or another model."""
        fixed = self.reference if reference is None else reference
        best, right = self.objective(fixed), self.accuracy(fixed)
        gaps = np.array([[abs(self.objective(one) - best) for one in repeats] for repeats in models])
        losses = np.array([[abs(self.accuracy(one) - right) for one in repeats] for repeats in models])
        late = [each[LATE].mean(axis=0) for each in (gaps, losses)]
        # what has no noise has one repeat, and no error
        errors = [standard_error(each.tolist()) if len(each) > 1 else 0.0 for each in late]
        means = [tuple(map(float, each.mean(axis=1))) for each in (gaps, losses)]
        return Trace(means[0], means[1], (errors[0], errors[1]))

    def _averaged(self, generator: np.random.Generator) -> dict[str, Numbers]:
        """Averages of models: as published at every iterate, sound at the certified minimisers."""
        iterates = self.cohort.average_descent(CHECKPOINTS)[:, None, :]
        if not self.split.regression:
            minimiser, _ = self.cohort.average_minimiser(TOLERANCE)
            everybody = Cohort.equal(self.split.rows, self.split.labels, 1, self._objective)
            pooled, _ = everybody.average_minimiser(TOLERANCE)
        found = {"Distributed, no privacy": iterates}
        cases: list[tuple[ModelMethod, LawName, str]] = [
            ("MPC Out P", "as_published", ""),
            ("Pathak", "as_published", ""),
            ("Local Out P", "as_published", ""),
            ("MPC Out P", "gaussian", ", sound"),
            ("MPC Out P", "spherical", ", sound spherical"),
            ("Pathak", "gaussian", ", sound"),
            ("Local Out P", "gaussian", ", sound"),
            ("Central Out P", "gaussian", ", sound"),
        ]
        for method, law, word in cases[: 3 if self.split.regression else None]:
            centre = pooled if method == "Central Out P" else minimiser if word else iterates
            found[f"{method}{word}"] = centre + self._noise(method, law, generator)
        return found

    def _noise(self, method: ModelMethod, law: LawName, generator: np.random.Generator) -> Numbers:
        """Return noise (checkpoint, repeat, dimension), drawn anew at every checkpoint, as published."""
        noise, dimension = model_noise(method, self.setting, law), self.setting.dimension
        drawn = noise.simulate(len(CHECKPOINTS) * self.repeats, dimension, generator)
        return drawn.reshape(len(CHECKPOINTS), self.repeats, dimension)

    def _objectives(self, generator: np.random.Generator) -> dict[str, Numbers]:
        shape = (self.parties, self.setting.dimension)
        printed = local_objective(self.setting, self._objective.loss.smoothness, "as_published")
        sound = local_objective(self.setting, self._objective.loss.smoothness)
        iterates, minimisers = [], []
        for _ in range(self.repeats):
            shared = np.broadcast_to(printed.law.simulate((1, shape[1]), generator), shape)
            iterates.append(self.cohort.average_descent(CHECKPOINTS, linear=shared, extra=printed.extra))
            if self.split.regression:
                continue
            own = sound.law.simulate(shape, generator)
            minimisers.append(self.cohort.average_minimiser(TOLERANCE, linear=own, extra=sound.extra)[0])
        found = {"Local Obj P": np.stack(iterates, axis=1)}
        return found if self.split.regression else found | {"Local Obj P, sound": _level(np.stack(minimisers))}

    def _gradients(self, generator: np.random.Generator) -> dict[str, Numbers]:
        """All descents side by side, as columns of one matrix."""
        draws = dict(self._draws(generator))
        width = self.repeats

        def noise(iteration: int, weights: Numbers) -> Numbers:
            parts = np.split(weights, len(draws), axis=1)
            return np.hstack([draw(iteration, part) for draw, part in zip(draws.values(), parts, strict=True)])

        models = self.cohort.descend(width * len(draws), CHECKPOINTS, noise)
        parts = np.split(models.transpose(0, 2, 1), len(draws), axis=1)
        return dict(zip(draws, parts, strict=True))

    def _newton(self) -> dict[str, Numbers]:
        """The few-round method: drawn as a level line, its rounds are over before the first checkpoint."""
        kept = self.parties * self.setting.records
        rows, labels = self.split.rows[:kept].toarray(), self.split.labels[:kept, None]
        objective = JointObjective(Logistic(), self.regularisation)
        scheme = Newton(objective=objective, shape=(1, rows.shape[1]), people=kept)
        generator = np.random.default_rng([self.seed, self.parties, scheme.rounds])
        deviation = gaussian_sigma(self.epsilon, self.delta)
        found = [newton_models(scheme, rows, labels, deviation, generator)[0] for _ in range(self.repeats)]
        return {"MPC Newton, sound": _level(np.stack(found))}

    def _draws(self, generator: np.random.Generator) -> Iterator[tuple[str, Draw]]:
        shape = (self.repeats, self.setting.dimension)
        methods: tuple[GradientMethod, ...] = ("MPC Grad P", "Local Grad P")
        for variant in VARIANTS[: 1 if self.split.regression else None]:
            word = ", sound" if variant == "sound" else ""
            for method in methods:
                yield f"{method}{word}", _single(gradient_noise(method, self.setting, variant), shape, generator)
            both = two_noises(self.setting, self._objective.loss.smoothness, variant)
            yield f"Rajkumar-Agarwal{word}", self._both(both, shape, generator)
        both = two_noises(self.setting, self._objective.loss.smoothness, "as_published", joint=True)
        yield JOINT, self._both(both, shape, generator)

    def _both(self, noises: TwoNoises, shape: tuple[int, int], generator: np.random.Generator) -> Draw:
        start = noises.start.simulate(shape, generator).T / (self.parties * self.setting.records)

        def draw(_iteration: int, weights: Numbers) -> Numbers:
            return start + noises.extra * weights + noises.fresh.simulate(shape, generator).T

        return draw


def best_baseline(traces: Mapping[str, Trace], variant: str) -> Mapping[str, float]:
    """Return the least gap and the least loss of the local methods and Pathak, all in one variant."""
    names = [f"{method}{variant}" for method in ("Pathak", "Local Out P", "Local Obj P", "Local Grad P")]
    return {
        "gap": min(traces[name].gap for name in names),
        "loss": min(traces[name].loss for name in names),
    }


def _level(models: Numbers) -> Numbers:
    """Return models that do not depend on the iteration as if they did."""
    return np.broadcast_to(models, (len(CHECKPOINTS), *models.shape))


def _single(noise: GradientNoise, shape: tuple[int, int], generator: np.random.Generator) -> Draw:
    def draw(_iteration: int, _weights: Numbers) -> Numbers:
        return noise.simulate(shape, generator).T

    return draw


def _nothing(_iteration: int, weights: Numbers) -> Numbers:
    return np.zeros_like(weights)
