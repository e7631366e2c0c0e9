"""The noise of each method of distributed private empirical risk minimisation, and its cost.

Two families: models are averaged and get noise once ("Out P", "Obj P"), or gradients get noise in every iteration
("Grad P"). With "MPC" one noise is added to the average inside secure aggregation; "Local" parties add their own before
sending. `as_published` is the authors' program (Jayaraman et al. 2018), with its errors; `sound` is correct.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, log, sqrt
from typing import Literal, final

import numpy as np

from syndic.errors import InputError
from syndic.privacy import gaussian_epsilon
from syndic_lab.bench.erm.noise_law import (
    Gaussian,
    Law,
    LawName,
    Numbers,
    ObjectiveNoise,
    gradient_sigma,
    law,
    objective_noise,
)

Variant = Literal["sound", "as_published"]
ModelMethod = Literal["MPC Out P", "Pathak", "Local Out P", "Central Out P"]
GradientMethod = Literal["MPC Grad P", "Local Grad P", "Central Grad P"]


@final
@dataclass(frozen=True)
class Setting:
    """Public numbers of a run. Neighbours differ in one record; `records` is the size of the smallest party.

    `tolerance` is the gradient norm that every party's solver proves; `lipschitz` is G, enforced by clipping.
    """

    parties: int
    records: int
    dimension: int
    epsilon: Fraction
    delta: Fraction
    regularisation: float
    iterations: int
    lipschitz: float = 1.0
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if min(self.parties, self.records, self.dimension, self.iterations) < 1:
            raise InputError("parties, records, dimension and iterations must be at least 1")
        if not (0 < self.lipschitz < inf and 0 < self.regularisation < inf and 0 <= self.tolerance < inf):
            raise InputError("lipschitz and regularisation must be positive, tolerance 0 or more, all of them finite")
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise InputError(f"epsilon ({float(self.epsilon):g}) must be positive, delta in (0, 1)")

    @property
    def gradient_sensitivity(self) -> float:
        """L2 sensitivity of the average of the parties' mean gradients, one record replaced."""
        return 2 * self.lipschitz / (self.parties * self.records)

    @property
    def model_sensitivity(self) -> float:
        """L2 sensitivity of the average of the parties' models, including the solver's error at both neighbours."""
        return self.party_sensitivity / self.parties

    @property
    def party_sensitivity(self) -> float:
        """L2 sensitivity of one party's model."""
        return 2 * self.lipschitz / (self.records * self.regularisation) + 2 * self.tolerance / self.regularisation


@final
@dataclass(frozen=True)
class ModelNoise:
    """Noise of an averaged model: the mean of `copies` independent vectors of the law."""

    law: Law
    copies: int

    def simulate(self, count: int, dimension: int, generator: np.random.Generator) -> Numbers:
        """Return `count` vectors of noise. They are not private."""
        total = np.zeros((count, dimension))
        for place in range(count):
            total[place] = self.law.simulate((self.copies, dimension), generator).mean(axis=0)
        return total

    def deviation(self, dimension: int) -> float:
        """Return the standard deviation of one coordinate."""
        return self.law.deviation(dimension) / sqrt(self.copies)


def model_noise(method: ModelMethod, setting: Setting, name: LawName = "gaussian") -> ModelNoise:
    """Return the noise of a method that averages models; `as_published` assumes an exact solver.

    Pathak et al. scale the noise of the average to one party's sensitivity: m times too much. A central curator is one
    party with all records.
    """
    if name == "as_published":
        setting = replace(setting, tolerance=0.0)
    sensitivity = setting.party_sensitivity
    copies = 1
    match method:
        case "MPC Out P":
            sensitivity = setting.model_sensitivity
        case "Local Out P":
            copies = setting.parties
        case "Central Out P":
            pooled = 2 * setting.lipschitz / (setting.parties * setting.records * setting.regularisation)
            sensitivity = pooled + 2 * setting.tolerance / setting.regularisation
    return ModelNoise(law(name, sensitivity, setting.dimension, setting.epsilon, setting.delta), copies)


@final
@dataclass(frozen=True)
class GradientNoise:
    """Gaussian noise on the average gradient of every iteration; all iterates may be public.

    `sensitivity` and `law` are those of whoever adds the noise, `copies` the number of those who do.
    """

    law: Gaussian
    sensitivity: float
    iterations: int
    delta: float
    copies: int = 1

    @property
    def sigma(self) -> float:
        """The sd of one coordinate of the average gradient."""
        return self.law.scale / sqrt(self.copies)

    def simulate(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Return noise vectors along the last axis. They are not private."""
        # an average of normal numbers is normal: no need to draw each party's noise
        return Gaussian(self.sigma).simulate(shape, generator)

    def epsilon_after(self, iteration: int) -> float:
        """Return the exact epsilon, at delta, of all iterates up to this one; early ones cost less than the last."""
        if not 1 <= iteration <= self.iterations:
            raise InputError(f"iteration ({iteration}) must be from 1 to {self.iterations}")
        return float(
            gaussian_epsilon(iteration * Fraction(self.sensitivity / self.law.scale) ** 2, Fraction(self.delta))
        )


def gradient_noise(method: GradientMethod, setting: Setting, variant: Variant = "sound") -> GradientNoise:
    """Return the noise of a method that averages gradients.

    `sound` accounts exactly; `as_published` is the authors' program, which draws about a third too much.
    """
    alone = 2 * setting.lipschitz / setting.records
    local = method == "Local Grad P"
    sensitivity = alone if local else setting.gradient_sensitivity
    accounting: Literal["exact", "simple"] = "exact" if variant == "sound" else "simple"
    sigma = gradient_sigma(sensitivity, setting.iterations, setting.epsilon, setting.delta, accounting)
    return GradientNoise(
        law=Gaussian(sigma),
        sensitivity=sensitivity,
        iterations=setting.iterations,
        delta=float(setting.delta),
        copies=setting.parties if local else 1,
    )


def local_objective(setting: Setting, smoothness: float, variant: Variant = "sound") -> ObjectiveNoise:
    """Return the noise that every party of Local Obj P adds to its objective."""
    return objective_noise(
        records=setting.records,
        regularisation=setting.regularisation,
        lipschitz=setting.lipschitz,
        smoothness=smoothness,
        epsilon=float(setting.epsilon),
        as_published=variant == "as_published",
    )


@final
@dataclass(frozen=True)
class TwoNoises:
    """Rajkumar and Agarwal (2012): a fixed vector `start` / N in the objective and fresh noise in every iteration.

    `epsilon` is the cost of all iterations together, at `delta`: as published, the fresh Laplace coordinates cost
    sqrt(d) epsilon in EACH iteration. The fixed vector protects nothing if all iterates are public.
    """

    start: Gaussian
    fresh: Law
    extra: float
    epsilon: float
    delta: float


def two_noises(
    setting: Setting, smoothness: float, variant: Variant = "sound", *, joint: bool | None = None
) -> TwoNoises:
    """Return both noises; `sound` replaces the fresh one by Gaussian noise calibrated to all iterations.

    The fixed vector is that of the `joint` objective over all records (default with `sound`). The authors' program
    takes it from the records of one party, which are fewer, so that less of epsilon is left for the vector.
    """
    everyone = setting.parties * setting.records
    if variant == "sound" if joint is None else joint:
        first = local_objective(replace(setting, records=everyone), smoothness)
        extra = first.extra
    else:
        first = local_objective(setting, smoothness, variant)
        # the published update divides the further penalty by the number of all records
        extra = first.extra / everyone
    start = Gaussian(2 * setting.lipschitz * sqrt(2 * log(1.25 / setting.delta)) / first.left)
    if variant == "sound":
        fresh = gradient_noise("MPC Grad P", setting).law
        return TwoNoises(start, fresh, extra, float(setting.epsilon), float(setting.delta))
    drawn = law("as_published", setting.gradient_sensitivity, setting.dimension, setting.epsilon, setting.delta)
    true = setting.iterations * sqrt(setting.dimension) * float(setting.epsilon)
    return TwoNoises(start, drawn, extra, true, 0.0)
