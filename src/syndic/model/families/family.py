"""Exponential families: the statistic that is summed over rows, and the parameters estimated from its mean.

f(x) = h(x) exp(natural . T(x) - alpha(natural)). Everything here is public mathematics: no row, no noise. All
functions take arrays with any leading axes; the last axis is that of the statistic or of the parameters.
"""

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document

Array = NDArray[np.float64]

TINY = 1e-9
"""The distance of the ends from the boundary of an open parameter set."""


class Family(Document, tag_field="kind"):
    """A family of distributions. A new family defines T, its mean and covariance, `fit` and the range of parameters.

    The maximum likelihood estimate is `fit` of the mean statistic. `unbounded`: block estimates have no bound, so their
    set must be declared before they are released with noise.
    """

    unbounded: ClassVar[bool] = False

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the last axis."""

    @abstractmethod
    def statistic(self, values: Array) -> Array:
        """Return T(x) for every value, along a new last axis."""

    @abstractmethod
    def mean(self, theta: Array) -> Array:
        """Return the mean of T."""

    @abstractmethod
    def covariance(self, theta: Array) -> Array:
        """Return the covariance matrix of T for one value."""

    @abstractmethod
    def fit(self, mean: Array) -> Array:
        """Return the maximum likelihood estimate, for means inside the mean space."""

    @abstractmethod
    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """Return the smallest and the largest plausible parameters, for values in these bounds `step` apart."""

    def check_values(self, lower: float, upper: float) -> None:
        """Raise `ValueError` unless the distribution can have values between these bounds."""
        del lower, upper

    def suited(self, lower: float, upper: float, labels: tuple[str, ...]) -> Self:
        """Return the family adapted to a column: its statistic centred between public bounds, its categories named."""
        del lower, upper, labels
        return self

    def project(self, mean: Array, least: Array, most: Array) -> Array:
        """Return the nearest mean that parameters from `least` to `most` can have; for one parameter."""
        ends = np.sort(np.stack([self.mean(least), self.mean(most)]), axis=0)
        return np.clip(mean, ends[0], ends[1])

    def jacobian(self, theta: Array) -> Array:
        """Return the derivatives of the estimate by the mean statistic."""
        size = theta.shape[-1]
        columns = []
        for place in range(size):
            step = np.zeros(size)
            step[place] = 1.0
            width = 1e-5 * np.maximum(np.abs(theta[..., place : place + 1]), 1e-3)
            columns.append((self.mean(theta + width * step) - self.mean(theta - width * step)) / (2 * width))
        return np.asarray(np.linalg.inv(np.stack(columns, axis=-1)))

    def spread(self, theta: Array) -> Array:
        """Return n times the covariance of the estimate from n values: the inverse of the Fisher information."""
        slope = self.jacobian(theta)
        return np.asarray(slope @ self.covariance(theta) @ np.swapaxes(slope, -1, -2))

    def first_bias(self, theta: Array) -> Array:
        """Return b1: the bias of the estimate from n values is b1 / n, up to smaller terms.

        The estimate is a function g of the mean statistic, whose covariance is V / n: b1 is half the trace of g'' V.
        """
        centre, covariance = self.mean(theta), self.covariance(theta)
        size = centre.shape[-1]
        width = 1e-3 * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        unit = np.eye(size)
        bias = np.zeros_like(theta)
        for one in range(size):
            for other in range(size):
                first, second = width * unit[one], width * unit[other]
                bent = self.fit(centre + first + second) - self.fit(centre + first - second)
                bent = bent - self.fit(centre - first + second) + self.fit(centre - first - second)
                bent = bent / (4 * width[..., one] * width[..., other])[..., None]
                bias += 0.5 * bent * covariance[..., one, other, None]
        return bias


class OfValues(Family):
    """A family of one parameter whose statistic is the value itself."""

    def statistic(self, values: Array) -> Array:
        """T(x) = x."""
        return values[..., None]


class OfMean(Family):
    """A family whose parameters are the mean of its statistic."""

    def mean(self, theta: Array) -> Array:
        """The parameters themselves."""
        return theta

    def fit(self, mean: Array) -> Array:
        """Return the average."""
        return mean

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


class NotNegative(Family):
    """A family of values from 0 upwards."""

    def check_values(self, lower: float, upper: float) -> None:
        """Not negative."""
        del upper
        if lower < 0:
            raise ValueError("its values must not be negative: set lower to 0 or more")


def single(value: Array) -> Array:
    """Return a variance as a 1 x 1 covariance matrix."""
    return value[..., None]
