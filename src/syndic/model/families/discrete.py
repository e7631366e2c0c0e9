"""Families of counts and categories."""

from abc import abstractmethod
from typing import ClassVar, Self, final

import msgspec
import numpy as np

from syndic.model.families.family import TINY, Array, NotNegative, OfMean, OfValues, single


class _Successes(OfValues):
    """The number of successes in a known number of trials; the parameter is the probability of success."""

    parameters: ClassVar[tuple[str, ...]] = ("probability",)

    @property
    @abstractmethod
    def trials(self) -> int:
        """The known number of trials."""

    def mean(self, theta: Array) -> Array:
        """Return trials p."""
        return self.trials * theta

    def covariance(self, theta: Array) -> Array:
        """Return trials p (1 - p)."""
        return single(self.trials * theta * (1 - theta))

    def fit(self, mean: Array) -> Array:
        """Return the share of successes."""
        return mean / self.trials

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """All probabilities."""
        del lower, upper, step
        return np.array([TINY]), np.array([1 - TINY])

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


@final
class Binomial(_Successes, tag="binomial"):
    """The number of successes in `trials` trials; the parameter is the probability of success."""

    trials: int

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials ({self.trials}) must be at least 1")

    def check_values(self, lower: float, upper: float) -> None:
        """Counts of successes."""
        if lower < 0 or upper > self.trials:
            raise ValueError(f"its values must be from 0 to trials ({self.trials})")


@final
class Bernoulli(_Successes, tag="bernoulli"):
    """A boolean, or one of two values; the parameter is the probability of the second."""

    trials: ClassVar[int] = 1

    def check_values(self, lower: float, upper: float) -> None:
        """0 and 1."""
        if (lower, upper) != (0.0, 1.0):
            raise ValueError("it must be a boolean, two values, or the integers 0 and 1, without other levels")


@final
class Poisson(NotNegative, OfValues, OfMean, tag="poisson"):
    """Counts of rare events; the parameter is their mean."""

    parameters: ClassVar[tuple[str, ...]] = ("mean",)

    def covariance(self, theta: Array) -> Array:
        """Equal to the mean."""
        return single(theta)

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """From the smallest to the largest value."""
        del step
        return np.array([max(lower, TINY)]), np.array([upper])


@final
class Geometric(NotNegative, OfValues, tag="geometric"):
    """The number of failures before the first success: 0, 1, 2, ...; the parameter is the probability of success."""

    parameters: ClassVar[tuple[str, ...]] = ("probability",)

    def mean(self, theta: Array) -> Array:
        """(1 - p) / p."""
        return (1 - theta) / theta

    def covariance(self, theta: Array) -> Array:
        """(1 - p) / p^2."""
        return single((1 - theta) / theta**2)

    def fit(self, mean: Array) -> Array:
        """1 / (1 + mean)."""
        return 1 / (1 + mean)

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """Probabilities whose mean is within the bounds."""
        del lower, step
        return np.array([1 / (1 + upper)]), np.array([1 - TINY])

    def first_bias(self, theta: Array) -> Array:
        """Return p (1 - p): half of g'' = 2 p^3 times the variance (1 - p) / p^2."""
        return theta * (1 - theta)


@final
class Multinomial(OfMean, tag="multinomial"):
    """One of several categories; the parameters are their shares. `categories` is set from the column."""

    categories: tuple[str, ...] = ()

    def suited(self, lower: float, upper: float, labels: tuple[str, ...]) -> Self:
        """Name the categories."""
        del lower, upper
        return msgspec.structs.replace(self, categories=labels)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The shares."""
        return tuple(f"share of {name}" for name in self.categories)

    def statistic(self, values: Array) -> Array:
        """One for the category, zero for all others."""
        return np.eye(len(self.categories))[values.astype(np.int64)]

    def covariance(self, theta: Array) -> Array:
        """diag(p) - p p'."""
        return np.asarray(theta[..., None] * np.eye(theta.shape[-1]) - theta[..., :, None] * theta[..., None, :])

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """All shares."""
        del lower, upper, step
        return np.full(len(self.categories), TINY), np.full(len(self.categories), 1 - TINY)

    def project(self, mean: Array, least: Array, most: Array) -> Array:
        """Return the nearest non-negative shares that add up to one."""
        del most
        ordered = -np.sort(-mean, axis=-1)
        over = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, mean.shape[-1] + 1)
        kept = np.sum(ordered > over, axis=-1, keepdims=True)
        return np.maximum(mean - np.take_along_axis(over, kept - 1, axis=-1), least)

    def jacobian(self, theta: Array) -> Array:
        """The identity."""
        return np.broadcast_to(np.eye(theta.shape[-1]), (*theta.shape, theta.shape[-1]))
