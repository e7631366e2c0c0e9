"""Families of counts and categories."""

from typing import Self, final

import msgspec
import numpy as np

from syndic.model.family import TINY, Array, Family, single


@final
class Binomial(Family, tag="binomial"):
    """How many of `trials` succeeded; the parameter is the chance of one."""

    trials: int

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials ({self.trials}) must be at least 1")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The chance."""
        return ("chance",)

    def statistic(self, values: Array) -> Array:
        """T(x) = x."""
        return values[..., None]

    def natural(self, theta: Array) -> Array:
        """The log odds."""
        return np.asarray(np.log(theta) - np.log1p(-theta))

    def alpha(self, natural: Array) -> Array:
        """Return trials log(1 + e^eta)."""
        return np.asarray(self.trials * np.logaddexp(0.0, natural[..., 0]))

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
        """All chances."""
        del lower, upper, step
        return np.array([TINY]), np.array([1 - TINY])

    def check_values(self, lower: float, upper: float) -> None:
        """Counts of successes."""
        if lower < 0 or upper > self.trials:
            raise ValueError(f"its values must be from 0 to trials ({self.trials})")

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


@final
class Bernoulli(Family, tag="bernoulli"):
    """Truth or not, or one of two values; the parameter is the chance of the second."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The chance."""
        return ("chance",)

    def statistic(self, values: Array) -> Array:
        """T(x) = x."""
        return values[..., None]

    def natural(self, theta: Array) -> Array:
        """The log odds."""
        return Binomial(trials=1).natural(theta)

    def alpha(self, natural: Array) -> Array:
        """log(1 + e^eta)."""
        return Binomial(trials=1).alpha(natural)

    def mean(self, theta: Array) -> Array:
        """The chance itself."""
        return theta

    def covariance(self, theta: Array) -> Array:
        """Return p (1 - p)."""
        return single(theta * (1 - theta))

    def fit(self, mean: Array) -> Array:
        """Return the share."""
        return mean

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """All chances."""
        return Binomial(trials=1).span(lower, upper, step)

    def check_values(self, lower: float, upper: float) -> None:
        """0 and 1."""
        if (lower, upper) != (0.0, 1.0):
            raise ValueError("it must be a column of two values, truths or the integers 0 and 1, without other levels")

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


@final
class Poisson(Family, tag="poisson"):
    """Counts of rare things; the parameter is their mean."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The mean."""
        return ("mean",)

    def statistic(self, values: Array) -> Array:
        """T(x) = x."""
        return values[..., None]

    def natural(self, theta: Array) -> Array:
        """The logarithm of the mean."""
        return np.asarray(np.log(theta))

    def alpha(self, natural: Array) -> Array:
        """e^eta."""
        return np.asarray(np.exp(natural[..., 0]))

    def mean(self, theta: Array) -> Array:
        """The mean itself."""
        return theta

    def covariance(self, theta: Array) -> Array:
        """The mean again."""
        return single(theta)

    def fit(self, mean: Array) -> Array:
        """Return the average."""
        return mean

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """From the smallest to the largest value."""
        del step
        return np.array([max(lower, TINY)]), np.array([upper])

    def check_values(self, lower: float, upper: float) -> None:
        """Not negative."""
        check_not_negative(lower, upper)

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


@final
class Geometric(Family, tag="geometric"):
    """How many failures came before the first success: 0, 1, 2, ...; the parameter is the chance of success."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The chance."""
        return ("chance",)

    def statistic(self, values: Array) -> Array:
        """T(x) = x."""
        return values[..., None]

    def natural(self, theta: Array) -> Array:
        """log(1 - p)."""
        return np.asarray(np.log1p(-theta))

    def alpha(self, natural: Array) -> Array:
        """-log(1 - e^eta)."""
        return np.asarray(-np.log(-np.expm1(natural[..., 0])))

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
        """Chances whose mean is within the bounds."""
        del lower, step
        return np.array([1 / (1 + upper)]), np.array([1 - TINY])

    def check_values(self, lower: float, upper: float) -> None:
        """Not negative."""
        check_not_negative(lower, upper)

    def first_bias(self, theta: Array) -> Array:
        """Return p (1 - p): half of g'' = 2 p^3 times the variance (1 - p) / p^2."""
        return theta * (1 - theta)


@final
class Multinomial(Family, tag="multinomial"):
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

    def natural(self, theta: Array) -> Array:
        """The logarithms of the shares."""
        return np.asarray(np.log(theta))

    def alpha(self, natural: Array) -> Array:
        """The logarithm of the sum of e^eta."""
        return np.asarray(np.logaddexp.reduce(natural, axis=-1))

    def mean(self, theta: Array) -> Array:
        """The shares themselves."""
        return theta

    def covariance(self, theta: Array) -> Array:
        """diag(p) - p p'."""
        return np.asarray(theta[..., None] * np.eye(theta.shape[-1]) - theta[..., :, None] * theta[..., None, :])

    def fit(self, mean: Array) -> Array:
        """Return the shares."""
        return mean

    def span(self, lower: float, upper: float, step: float) -> tuple[Array, Array]:
        """All shares."""
        del lower, upper, step
        return np.full(len(self.categories), TINY), np.full(len(self.categories), 1 - TINY)

    def project(self, mean: Array, least: Array, most: Array) -> Array:
        """Return the nearest shares that are not negative and add up to one."""
        del most
        ordered = -np.sort(-mean, axis=-1)
        over = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, mean.shape[-1] + 1)
        kept = np.sum(ordered > over, axis=-1, keepdims=True)
        return np.maximum(mean - np.take_along_axis(over, kept - 1, axis=-1), least)

    def jacobian(self, theta: Array) -> Array:
        """The identity."""
        return np.broadcast_to(np.eye(theta.shape[-1]), (*theta.shape, theta.shape[-1]))

    def first_bias(self, theta: Array) -> Array:
        """None."""
        return np.zeros_like(theta)


def check_not_negative(lower: float, upper: float) -> None:
    """Raise `ValueError` for values below 0."""
    del upper
    if lower < 0:
        raise ValueError("its values must not be negative: set lower to 0 or more")
