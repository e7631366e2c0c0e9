"""Families of measured values."""

from abc import abstractmethod
from typing import ClassVar, Self, final

import msgspec
import numpy as np
import scipy

from syndic.model.families.family import TINY, Array, Family, NotNegative, OfMean, OfValues, single

# shapes of the gamma distribution that are believed unless others are declared
_SHAPES = (0.05, 500.0)
_NEWTON_STEPS = 60


class _Rate(NotNegative, OfValues):
    """A gamma distribution of known shape; the parameter is its rate, one over the scale."""

    unbounded: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("rate",)

    @property
    @abstractmethod
    def shape(self) -> float:
        """The known shape."""

    def mean(self, theta: Array) -> Array:
        """Return shape / rate."""
        return self.shape / theta

    def covariance(self, theta: Array) -> Array:
        """Return shape / rate^2."""
        return single(self.shape / theta**2)

    def fit(self, mean: Array) -> Array:
        """Return shape / mean."""
        return self.shape / mean

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """Rates whose mean is between one step and the largest value."""
        return np.array([self.shape / upper]), np.array([self.shape / max(lower, step)])

    def first_bias(self, theta: Array) -> Array:
        """Return rate / shape."""
        return theta / self.shape


@final
class GammaRate(_Rate, tag="gamma_rate"):
    """A gamma distribution of known `shape`; the parameter is its rate, one over the scale. Shape 1: exponential."""

    shape: float

    def __post_init__(self) -> None:
        if not 0 < self.shape < float("inf"):
            raise ValueError(f"shape ({self.shape}) must be above 0")


@final
class Exponential(_Rate, tag="exponential"):
    """Waiting times; the parameter is the rate, one over the mean."""

    shape: ClassVar[float] = 1.0


@final
class Gamma(Family, tag="gamma"):
    """A gamma distribution; the parameters are shape and rate, one over the scale."""

    unbounded: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("shape", "rate")

    def statistic(self, values: Array) -> Array:
        """T(x) = (x, log x)."""
        return np.stack([values, np.log(values)], axis=-1)

    def mean(self, theta: Array) -> Array:
        """(shape / rate, digamma(shape) - log(rate))."""
        shape, rate = theta[..., 0], theta[..., 1]
        return np.stack([shape / rate, scipy.special.digamma(shape) - np.log(rate)], axis=-1)

    def covariance(self, theta: Array) -> Array:
        """Of x and log x."""
        shape, rate = theta[..., 0], theta[..., 1]
        both = 1 / rate
        return np.stack(
            [np.stack([shape / rate**2, both], axis=-1), np.stack([both, scipy.special.polygamma(1, shape)], axis=-1)],
            axis=-2,
        )

    def fit(self, mean: Array) -> Array:
        """Solve log(shape) - digamma(shape) = log(mean of x) - mean of log x by Newton's steps."""
        wanted = np.log(mean[..., 0]) - mean[..., 1]
        shape = (3 - wanted + np.sqrt((wanted - 3) ** 2 + 24 * wanted)) / (12 * wanted)
        for _ in range(_NEWTON_STEPS):
            slope = 1 / shape - scipy.special.polygamma(1, shape)
            change = (np.log(shape) - scipy.special.digamma(shape) - wanted) / slope
            shape = np.maximum(shape - change, shape / 2)
            if not np.any(np.abs(change) > 1e-14 * shape):
                break
        return np.stack([shape, shape / mean[..., 0]], axis=-1)

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """Shapes from 0.05 to 500, and the rates whose mean is within the bounds."""
        return np.array([_SHAPES[0], _SHAPES[0] / upper]), np.array([_SHAPES[1], _SHAPES[1] / max(lower, step)])

    def project(self, mean: Array, least: Array, most: Array) -> Array:
        """Return a mean of x and of log x that some shape and rate in the allowed range have."""
        shapes = np.array([most[0], least[0]])
        gaps = np.log(shapes) - scipy.special.digamma(shapes)
        first = np.clip(mean[..., 0], least[0] / most[1], most[0] / least[1])
        gap = np.clip(np.log(first) - mean[..., 1], gaps[0], gaps[1])
        return np.stack([first, np.log(first) - gap], axis=-1)

    def check_values(self, lower: float, upper: float) -> None:
        """Above 0, as their logarithms are summed."""
        del upper
        if lower <= 0:
            raise ValueError("its values must be above 0, as their logarithms are summed: raise lower")


@final
class NormalMean(OfValues, OfMean, tag="normal_mean"):
    """A normal distribution of known `variance`; the parameter is its mean."""

    parameters: ClassVar[tuple[str, ...]] = ("mean",)
    variance: float

    def __post_init__(self) -> None:
        if not 0 < self.variance < float("inf"):
            raise ValueError(f"variance ({self.variance}) must be above 0")

    def covariance(self, theta: Array) -> Array:
        """The known variance."""
        return single(np.full_like(theta, self.variance))

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """Between the bounds."""
        del step
        return np.array([lower]), np.array([upper])


@final
class NormalVariance(OfMean, tag="normal_variance"):
    """A normal distribution of known mean, `centre`; the parameter is its variance."""

    parameters: ClassVar[tuple[str, ...]] = ("variance",)
    centre: float = 0.0

    def statistic(self, values: Array) -> Array:
        """T(x) = (x - centre)^2."""
        return (values[..., None] - self.centre) ** 2

    def covariance(self, theta: Array) -> Array:
        """2 variance^2."""
        return single(2 * theta**2)

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """From the square of one step of the values to the largest square."""
        return np.array([step**2 / 12]), np.array([max(self.centre - lower, upper - self.centre) ** 2])


@final
class Normal(Family, tag="normal"):
    """A normal distribution; the parameters are mean and variance. `centre`, set from the column, lowers the noise."""

    parameters: ClassVar[tuple[str, ...]] = ("mean", "variance")
    centre: float = 0.0

    def suited(self, lower: float, upper: float, labels: tuple[str, ...]) -> Self:
        """Measure from the middle of the bounds."""
        del labels
        return msgspec.structs.replace(self, centre=(lower + upper) / 2)

    def statistic(self, values: Array) -> Array:
        """T(x) = (x - centre, (x - centre)^2)."""
        return np.stack([values - self.centre, (values - self.centre) ** 2], axis=-1)

    def mean(self, theta: Array) -> Array:
        """Of the distance from the centre, and of its square."""
        distance = theta[..., 0] - self.centre
        return np.stack([distance, distance**2 + theta[..., 1]], axis=-1)

    def covariance(self, theta: Array) -> Array:
        """Of the distance from the centre, and its square."""
        distance, variance = theta[..., 0] - self.centre, theta[..., 1]
        both = 2 * distance * variance
        squares = 2 * variance**2 + 4 * distance**2 * variance
        return np.stack([np.stack([variance, both], axis=-1), np.stack([both, squares], axis=-1)], axis=-2)

    def fit(self, mean: Array) -> Array:
        """Return average and average square less squared average."""
        return np.stack([mean[..., 0] + self.centre, mean[..., 1] - mean[..., 0] ** 2], axis=-1)

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """A mean between the bounds, and a variance up to that of the two bounds."""
        return np.array([lower, step**2 / 12 + TINY**2]), np.array([upper, ((upper - lower) / 2) ** 2])

    def project(self, mean: Array, least: Array, most: Array) -> Array:
        """Return the nearest moments whose mean and variance are in the allowed range."""
        first = np.clip(mean[..., 0], least[0] - self.centre, most[0] - self.centre)
        return np.stack([first, np.clip(mean[..., 1] - first**2, least[1], most[1]) + first**2], axis=-1)

    def first_bias(self, theta: Array) -> Array:
        """None for the mean, minus the variance for the variance."""
        return np.stack([np.zeros_like(theta[..., 0]), -theta[..., 1]], axis=-1)
