"""Noise distributions on a vector of real numbers, calibrated to a budget, sound and as published.

For SIMULATION and planning: these distributions are continuous and drawn in floating point, which is not private. A
release draws integers (`syndic.noise`), calibrated by rho; `gradient_sigma(..., "zcdp")` is their standard deviation.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, sqrt
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.privacy import rho_for

Numbers = NDArray[np.float64]
LawName = Literal["spherical", "gaussian", "laplace", "as_published"]
Accounting = Literal["exact", "zcdp", "simple", "as_published"]


def gaussian_sigma(epsilon: Fraction, delta: Fraction) -> float:
    """Return the least sd of continuous Gaussian noise at l2 sensitivity 1 (Balle and Wang 2018)."""
    if epsilon <= 0 or not 0 < delta < 1:
        raise InputError(f"epsilon ({float(epsilon):g}) must be positive and delta ({float(delta):g}) in (0, 1)")
    from dp_accounting import gaussian_mechanism  # noqa: PLC0415 (takes a second)

    # the library's search ends within 1e-12 of the root on either side
    return float(gaussian_mechanism.get_sigma_gaussian(float(epsilon), float(delta))) * (1 + 1e-12) + 1e-12


@dataclass(frozen=True)
class Law(ABC):
    """A symmetric distribution of vectors; `scale` is in the units of the vector."""

    scale: float

    @abstractmethod
    def simulate(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Return vectors along the last axis of `shape`. They are not private."""

    @abstractmethod
    def deviation(self, dimension: int) -> float:
        """Return the standard deviation of one coordinate."""

    def norm(self, dimension: int) -> float:
        """Return the root mean square of the norm."""
        return sqrt(dimension) * self.deviation(dimension)


@final
@dataclass(frozen=True)
class Spherical(Law):
    """Density proportional to exp(-norm / scale): direction uniform, norm Gamma(dimension, scale)."""

    def simulate(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Return vectors along the last axis of `shape`."""
        direction = generator.standard_normal(shape)
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        return direction * generator.gamma(shape[-1], self.scale, (*shape[:-1], 1))

    def deviation(self, dimension: int) -> float:
        """Return scale times sqrt(dimension + 1)."""
        return self.scale * sqrt(dimension + 1)


@final
@dataclass(frozen=True)
class Gaussian(Law):
    """Independent normal coordinates of standard deviation `scale`."""

    def simulate(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Return vectors along the last axis of `shape`."""
        return generator.normal(0.0, self.scale, shape)

    def deviation(self, dimension: int) -> float:  # noqa: ARG002 (the same in every dimension)
        """Return the scale."""
        return self.scale


@final
@dataclass(frozen=True)
class CoordinateLaplace(Law):
    """Independent Laplace coordinates: private for an l1 sensitivity, not for an l2 sensitivity."""

    def simulate(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Return vectors along the last axis of `shape`."""
        return generator.laplace(0.0, self.scale, shape)

    def deviation(self, dimension: int) -> float:  # noqa: ARG002 (the same in every dimension)
        """Return sqrt(2) times the scale."""
        return sqrt(2) * self.scale

    def epsilon(self, sensitivity: float, dimension: int) -> float:
        """Return the pure epsilon at an l2 sensitivity, reached in the direction (1, ..., 1)."""
        return sqrt(dimension) * sensitivity / self.scale


def law(name: LawName, sensitivity: float, dimension: int, epsilon: Fraction, delta: Fraction) -> Law:
    """Return the noise for a vector of l2 `sensitivity`.

    `spherical` and `laplace` are epsilon-DP, `gaussian` is (epsilon, delta)-DP. `as_published` uses an l2 bound where
    Laplace coordinates need an l1 bound: its epsilon is sqrt(dimension) times the requested one.
    """
    if not 0 < sensitivity < inf or dimension < 1 or epsilon <= 0:
        raise InputError(
            f"sensitivity ({sensitivity:g}) and epsilon ({float(epsilon):g}) must be positive and finite, "
            f"dimension ({dimension}) at least 1"
        )
    match name:
        case "spherical":
            return Spherical(sensitivity / float(epsilon))
        case "gaussian":
            return Gaussian(sensitivity * gaussian_sigma(epsilon, delta))
        case "laplace":
            return CoordinateLaplace(sqrt(dimension) * sensitivity / float(epsilon))
        case "as_published":
            return CoordinateLaplace(sensitivity / float(epsilon))


def gradient_sigma(
    sensitivity: float, iterations: int, epsilon: Fraction, delta: Fraction, accounting: Accounting = "exact"
) -> float:
    """Return the sd of Gaussian noise on each of `iterations` vectors of l2 `sensitivity`, all of them public.

    `exact`: the iterations are one Gaussian mechanism of sqrt(iterations) times the sensitivity. `zcdp`: the tight
    conversion, which also holds for discrete noise. `simple`: the looser conversion of the authors' program.
    `as_published`: their Theorem 3.4, which misses its own lemma by 2 % and is false from epsilon 7.97 on.
    """
    if not 0 < sensitivity < inf or iterations < 1:
        raise InputError(f"sensitivity ({sensitivity:g}) must be positive, iterations ({iterations}) at least 1")
    tail = -log(delta)
    whole = sensitivity * sqrt(iterations)
    match accounting:
        case "exact":
            return whole * gaussian_sigma(epsilon, delta)
        case "zcdp":
            return whole / sqrt(2 * rho_for(epsilon, delta))
        case "simple":
            return whole / (sqrt(2) * (sqrt(tail + epsilon) - sqrt(tail)))
        case "as_published":
            return whole * sqrt(2 * tail) / float(epsilon)


@final
@dataclass(frozen=True)
class ObjectiveNoise:
    """A random linear term for one party's objective, b'theta / n, and a further penalty (Chaudhuri et al. 2011).

    `left` is the epsilon of the linear term, after the Jacobian's part; `extra` is added to the regularisation. The
    guarantee holds for the exact minimiser of a twice differentiable loss.
    """

    law: Law
    extra: float
    left: float
    shared: bool = False


def objective_noise(
    *,
    records: int,
    regularisation: float,
    lipschitz: float,
    smoothness: float,
    epsilon: float,
    as_published: bool = False,
) -> ObjectiveNoise:
    """Return the distribution of the linear term for a party of `records`.

    `as_published` is the authors' program: a "1 +" is missing in the logarithm, so that it may cost MORE than
    epsilon; coordinates are independent; and all parties share one vector, so that averaging does not reduce noise.
    """
    ratio = smoothness / (records * regularisation)
    left = epsilon - 2 * log(ratio if as_published else 1 + ratio)
    extra = 0.0
    if left <= 0:
        left, extra = epsilon / 2, smoothness / (records * (exp(epsilon / 4) - 1)) - regularisation
    scale = 2 * lipschitz / left
    noise: Law = CoordinateLaplace(scale) if as_published else Spherical(scale)
    return ObjectiveNoise(law=noise, extra=extra, left=left, shared=as_published)
