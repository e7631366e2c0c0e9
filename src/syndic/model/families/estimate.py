"""Estimates from mean statistics: bias correction, subsample and aggregate, weights, intervals, and predicted errors.

Pure functions of arrays with any leading axes. Their results are as private as their inputs: means without noise are as
private as the rows; means with noise are public, and so is everything computed from them here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor
from statistics import NormalDist
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.model.families.family import Array, Family

Correction = Literal["analytic", "jackknife", "none"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A family with the public set of parameters, a box, into which estimates are clipped."""

    family: Family
    least: Array
    most: Array

    def estimate(self, mean: Array) -> Array:
        """Return the maximum likelihood estimate in the set, for any mean, also one that noise moved outside."""
        return self.inside(self.family.fit(self.family.project(mean, self.least, self.most)))

    def inside(self, theta: Array) -> Array:
        """Return the nearest parameters in the set; NaN becomes its middle."""
        middle = (self.least + self.most) / 2
        return np.clip(np.where(np.isfinite(theta), theta, middle), self.least, self.most)

    def corrected(self, mean: Array, count: NDArray[np.int64]) -> Array:
        """Return the estimate minus b1 / n, not yet clipped to the set."""
        theta = self.estimate(mean)
        return theta - self.family.first_bias(theta) / count[..., None]


def blocks_of(people: int, blocks: int) -> NDArray[np.int64]:
    """Return the block of every position: consecutive positions, sizes that differ by at most one. Public."""
    return np.arange(people, dtype=np.int64) * blocks // people


def block_estimates(
    model: Model, statistics: Array, block: NDArray[np.int64], blocks: int, correction: Correction
) -> Array:
    """Return the bias-corrected estimate of every block, not clipped: it may lie outside the set.

    A row changes only the estimate of its own block, if rows are assigned to blocks independently of their values.
    """
    count = np.bincount(block, minlength=blocks)
    sums = _by_block(statistics, block, blocks)
    means = sums / count[:, None]
    if correction == "none":
        return model.estimate(means)
    if correction == "analytic":
        return model.corrected(means, count)
    others = np.maximum(count - 1, 1)
    left_out = model.estimate((sums[block] - statistics) / others[block][:, None])
    average = _by_block(left_out, block, blocks) / count[:, None]
    whole = model.estimate(means)
    # leaving out the row of a block of one leaves no rows
    return np.where(count[:, None] > 1, count[:, None] * whole - others[:, None] * average, whole)


def _by_block(values: Array, block: NDArray[np.int64], blocks: int) -> Array:
    columns = [np.bincount(block, weights=column, minlength=blocks) for column in values.T]
    return np.stack(columns, axis=-1)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy:
    """Noisy means of several parties, and the distribution of their noise: all public.

    `means`: (..., parties, dimension). `people`: rows behind each. `noise`: variance of each, like one row of `means`.
    `peaked`: excess kurtosis of the noise, 3 for Laplace and 0 for Gaussian. `unit`: (dimension,), a public length
    that scales the coordinates when parties are weighted.
    """

    means: Array
    people: Array
    noise: Array
    peaked: Array
    unit: Array


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """Parameters, their covariance with noise included, and the excess kurtosis of each estimate's error."""

    theta: Array
    covariance: Array
    kurtosis: Array

    @property
    def standard_error(self) -> Array:
        """Standard deviations of the estimates, sampling and noise together."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def interval(self, confidence: float, model: Model) -> tuple[Array, Array]:
        """Return the ends of an interval for each parameter, within the set.

        Laplace noise has heavier tails than a normal distribution: the Cornish-Fisher term widens the interval.
        """
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        reach = self.standard_error * (z + self.kurtosis * (z**3 - 3 * z) / 24)
        return np.maximum(self.theta - reach, model.least), np.minimum(self.theta + reach, model.most)


def estimate_by_statistics(model: Model, noisy: Noisy, *, differ: bool = False) -> Estimated:
    """Return the estimate from parties' noisy mean statistics (DSSA).

    If the parties have one distribution, each has the best weight. If they `differ`, it has the weight of its people:
    the estimate is of all people together, and each party's sampling error is that of its own parameters.
    """
    return _combined(noisy, model.estimate, model.family.covariance, model.family.jacobian, differ=differ)


def estimate_by_blocks(model: Model, noisy: Noisy, *, differ: bool = False) -> Estimated:
    """Return the estimate from parties' noisy averages of block estimates (DSaA); `differ` as for statistics."""

    def identity(theta: Array) -> Array:
        return np.broadcast_to(np.eye(theta.shape[-1]), (*theta.shape, theta.shape[-1]))

    return _combined(noisy, model.inside, model.family.spread, identity, differ=differ)


def _combined(
    noisy: Noisy,
    fit: Callable[[Array], Array],
    covariance: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    *,
    differ: bool,
) -> Estimated:
    """Return the estimate that `fit` makes of a weighted mean; `covariance`: of one row's statistic or estimate."""
    by_people = noisy.people / noisy.people.sum()
    theta = fit(_weighed(noisy.means, by_people))
    if differ:
        return _estimated(noisy, by_people, theta, slope(theta), covariance(fit(noisy.means)))
    weights = best_weights(noisy, covariance(theta))
    theta = fit(_weighed(noisy.means, weights))
    return _estimated(noisy, weights, theta, slope(theta), covariance(theta)[..., None, :, :])


def best_weights(noisy: Noisy, covariance: Array) -> Array:
    """Return inverse-variance weights of the parties, which add up to one."""
    sampling = (np.diagonal(covariance, axis1=-2, axis2=-1) / noisy.unit**2).sum(axis=-1)
    own = sampling[..., None] / noisy.people + (noisy.noise / noisy.unit**2).sum(axis=-1)
    return np.asarray((1 / own) / (1 / own).sum(axis=-1, keepdims=True))


def _weighed(means: Array, weights: Array) -> Array:
    shares = weights / weights.sum(axis=-1, keepdims=True)
    return np.asarray((means * shares[..., None]).sum(axis=-2))


def _estimated(noisy: Noisy, weights: Array, theta: Array, slope: Array, covariance: Array) -> Estimated:
    # of each party, or of all alike
    sampling = (covariance * (weights**2 / noisy.people)[..., None, None]).sum(axis=-3)
    noise = (weights[..., None] ** 2 * noisy.noise).sum(axis=-2)
    total = slope @ (sampling + noise[..., None] * np.eye(noise.shape[-1])) @ np.swapaxes(slope, -1, -2)
    # fourth cumulants of independent parts add up; a normal part has none
    fourth = (weights[..., None] ** 4 * noisy.noise**2 * noisy.peaked[:, None]).sum(axis=-2)
    cumulant = (slope**4 @ fourth[..., None])[..., 0]
    return Estimated(
        theta=theta,
        covariance=total,
        kurtosis=cumulant / np.maximum(np.diagonal(total, axis1=-2, axis2=-1) ** 2, 1e-300),
    )


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """The public numbers that the mean squared error of block estimates (DSaA, Chen and Sung) is predicted from.

    M `parties` of N `people` each, k blocks, `epsilon` each; `information` is the Fisher information I of one value,
    `diameter` the length of the interval of the parameter. For one parameter and Laplace noise.
    """

    parties: int
    people: int
    epsilon: float
    information: float

    @property
    def bound(self) -> float:
        """The Cramer-Rao bound 1 / (M N I): the error of all rows together without noise."""
        return 1 / (self.parties * self.people * self.information)


def blocks_error(at: Setting, *, blocks: int, diameter: float, bias: float = 1.0) -> float:
    """Return the error of DSaA: (1/MN) (1/I + 2 N diameter^2 / (k epsilon)^2 + bias M k^3 / N^2).

    The bias of a block estimate is at most sqrt(bias) (k/N)^(3/2); it does not average out over parties.
    """
    noise = 2 * (diameter / (blocks * at.epsilon)) ** 2 / at.parties
    return at.bound + noise + bias * (blocks / at.people) ** 3


def best_blocks(at: Setting, *, diameter: float, bias: float = 1.0) -> int:
    """Return the k with the smallest error of DSaA: (4 diameter^2 N^3 / (3 bias M epsilon^2))^(1/5), from 1 to N/2."""
    best = math.pow(4 * diameter**2 * at.people**3 / (3 * bias * at.parties * at.epsilon**2), 0.2)
    most = max(1, at.people // 2)
    near = [min(most, max(1, each)) for each in (floor(best), ceil(best))]
    return min(near, key=lambda blocks: blocks_error(at, blocks=blocks, diameter=diameter, bias=bias))


def printed_blocks(people: int, epsilon: float) -> int:
    """Return the k behind the rate of Theorem 3.1: N^(3/5) epsilon^(-2/5), from 1 to N."""
    return min(people, max(1, round(math.pow(people, 0.6) * math.pow(epsilon, -0.4))))


def blocks_condition(people: int, parties: int) -> float:
    """Return N^(-1/6) M^(1/3): epsilon must be well above it for DSaA to be efficient; more parties make it harder."""
    return math.pow(people, -1 / 6) * math.pow(parties, 1 / 3)
