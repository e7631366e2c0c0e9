"""Convex losses of linear models, their slopes, and the bounds that privacy depends on.

A loss is a function of the prediction x'theta and the label; the gradient of a record is its slope times x. With
rows inside the unit ball the slope bounds the gradient's norm, so clipping slopes clips gradients. A clipped slope
still increases with the prediction, so it is the slope of another convex loss, to which all bounds apply.

Of several models, one for each class, predictions and labels are arrays (record, class); a label row has +1 at the
record's class and -1 elsewhere. A record's gradient is its row of slopes times its features, so its norm is the product
of their norms: bounds are on the norm of a whole row of slopes. One-versus-rest is any loss of two classes, for every
class by itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

Numbers = NDArray[np.float64]


class Loss(ABC):
    """A convex loss; predictions and labels are arrays that broadcast."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Largest absolute slope (`inf` if unbounded): a bound on a record's gradient norm inside the unit ball."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Largest curvature."""

    @abstractmethod
    def value(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return each record's loss."""

    @abstractmethod
    def slope(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return the derivative of each record's loss by its prediction."""

    @abstractmethod
    def curvature(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return the second derivative, from the right where it jumps."""


@final
@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y z)) with y of -1 or +1."""

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25

    def value(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return each record's loss."""
        return np.logaddexp(0.0, -labels * predictions)

    def slope(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return -y / (1 + exp(y z))."""
        # beyond 700 the exponential would overflow, and the slope is 0 to machine precision
        return -labels / (1.0 + np.exp(np.minimum(labels * predictions, 700.0)))

    def curvature(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return p (1 - p)."""
        share = np.abs(self.slope(predictions, labels))
        return share * (1.0 - share)


@final
@dataclass(frozen=True)
class Huber(Loss):
    """Quadratic for residuals up to the threshold, linear beyond."""

    smoothness: ClassVar[float] = 1.0
    threshold: float = 1.0

    def __post_init__(self) -> None:
        if not self.threshold > 0:
            raise InputError(f"threshold ({self.threshold:g}) must be positive")

    @property
    def lipschitz(self) -> float:
        """The threshold."""
        return self.threshold

    def value(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return each record's loss."""
        size = np.abs(predictions - labels)
        inner = np.minimum(size, self.threshold)
        return inner * (size - 0.5 * inner)

    def slope(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return the clipped residual."""
        return np.clip(predictions - labels, -self.threshold, self.threshold)

    def curvature(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return one inside the threshold, zero outside."""
        return (np.abs(predictions - labels) < self.threshold).astype(np.float64)


SQUARED: Final = Huber(inf)
"""(z - y)^2 / 2, the loss of ridge regression. One record can change the sum of slopes by any amount."""


@final
@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge max(0, 1 - y z), its corner rounded by a parabola between 1 - h and 1 + h."""

    lipschitz: ClassVar[float] = 1.0
    width: float = 0.5

    def __post_init__(self) -> None:
        _check_positive("width", self.width)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.width)

    def value(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return each record's loss."""
        lack = 1.0 - labels * predictions
        inner = np.clip(lack + self.width, 0.0, 2.0 * self.width)
        return inner**2 / (4.0 * self.width) + np.maximum(lack - self.width, 0.0)

    def slope(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return -y times the share of the rounded corner that is passed."""
        lack = 1.0 - labels * predictions
        return -labels * np.clip((lack + self.width) / (2.0 * self.width), 0.0, 1.0)

    def curvature(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return 1 / (2 h) inside the corner, zero outside."""
        inside = np.abs(1.0 - labels * predictions) < self.width
        return np.where(inside, self.smoothness, 0.0)


@final
@dataclass(frozen=True)
class Softmax(Loss):
    """-log of exp(z_y) / sum_k exp(z_k), the share of the record's own class."""

    # the largest norm of a row of slopes p - e_y is reached if another class has all of p
    lipschitz: ClassVar[float] = sqrt(2.0)
    # diag(p) - pp' is at most a half (Boehning 1992)
    smoothness: ClassVar[float] = 0.5

    def value(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return each record's loss."""
        top = predictions.max(axis=-1, keepdims=True)
        total = np.log(np.exp(predictions - top).sum(axis=-1)) + top[..., 0]
        return np.asarray(total - (predictions * (labels > 0)).sum(axis=-1))

    def slope(self, predictions: Numbers, labels: Numbers) -> Numbers:
        """Return p - e_y."""
        return shares(predictions) - (labels > 0)

    def curvature(self, predictions: Numbers, labels: Numbers) -> Numbers:  # noqa: ARG002 (the same for every label)
        """Return 2 p (1 - p), a diagonal upper bound of diag(p) - pp'.

        The latter's quadratic form is the sum over pairs of p_j p_k (v_j - v_k)^2 <= 2 p_j p_k (v_j^2 + v_k^2).
        """
        share = shares(predictions)
        return np.asarray(2.0 * share * (1.0 - share))


@dataclass(frozen=True)
class Penalised:
    """Mean loss plus `regularisation` / 2 times the squared norm of ALL weights, the intercept's included.

    Without a penalty on the intercept one flipped label can change it without bound. `clip` is G, the largest norm of
    one record's gradient.
    """

    loss: Loss
    regularisation: float
    clip: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("regularisation", self.regularisation)
        _check_positive("clip", self.clip)


@final
@dataclass(frozen=True)
class Objective(Penalised):
    """The objective of one model."""

    def value(self, weights: Numbers, rows: Numbers, labels: Numbers) -> float:
        """Return the objective at `weights`. Private."""
        losses = self.loss.value(rows @ weights, labels)
        return float(losses.mean() + 0.5 * self.regularisation * weights @ weights)

    def slopes(self, predictions: Numbers, labels: Numbers, norms: Numbers) -> Numbers:
        """Return slopes, clipped so that slope times norm of the row is at most `clip`."""
        slopes = self.loss.slope(predictions, labels)
        if self.loss.lipschitz * norms.max(initial=0.0) <= self.clip:
            return slopes
        limit = self.clip / np.maximum(norms, np.finfo(np.float64).tiny)
        return np.clip(slopes, -limit, limit)

    def record_gradients(self, weights: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
        """Return the clipped gradient of each record's loss, without the penalty. Private."""
        slopes = self.slopes(rows @ weights, labels, np.linalg.norm(rows, axis=1))
        return slopes[:, None] * rows

    def gradient(self, weights: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
        """Return the mean of the records' clipped gradients plus the penalty's. Private."""
        slopes = self.slopes(rows @ weights, labels, np.linalg.norm(rows, axis=1))
        return np.asarray(rows.T @ slopes / len(rows) + self.regularisation * weights)

    def check_minimiser(self) -> None:
        """Refuse a loss whose minimiser's sensitivity is not bounded by `clip`."""
        if self.loss.lipschitz > self.clip:
            raise InputError(
                f"the loss has slopes up to {self.loss.lipschitz:g}, above clip ({self.clip:g}): use a Huber loss "
                "with that threshold, or a larger clip"
            )


def shares(predictions: Numbers) -> Numbers:
    """Return each class's share exp(z) / sum exp(z)."""
    raised = np.exp(predictions - predictions.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def shortening(lengths: Numbers, clip: float) -> Numbers:
    """Return factors for gradients of these lengths, so that none is longer than `clip`."""
    # slightly below clip, so that the rounding of lengths and products cannot exceed it
    limit = clip * (1 - 1e-12)
    return np.asarray(np.where(lengths > limit, limit / np.maximum(lengths, limit), 1.0))


def joint_slope(loss: Loss, models: int) -> float:
    """Return the largest norm of a row of slopes, `inf` if unbounded."""
    return loss.lipschitz if isinstance(loss, Softmax) else sqrt(models) * loss.lipschitz


def joint_curvature(loss: Loss, models: int) -> float:
    """Return the largest norm of a row of curvatures.

    For softmax 4 sum p^2 (1 - p)^2 <= sum p (1 - p) <= 1 - 1 / models, as p (1 - p) is at most a quarter.
    """
    return sqrt(1.0 - 1.0 / models) if isinstance(loss, Softmax) else sqrt(models) * loss.smoothness


@final
@dataclass(frozen=True)
class JointObjective(Penalised):
    """The objective of several models together: weights are (model, feature), and `clip` is for all of them."""

    def value(self, weights: Numbers, rows: Numbers, labels: Numbers) -> float:
        """Return the objective at `weights`. Private."""
        losses = self.loss.value(rows @ weights.T, labels).reshape(len(labels), -1).sum(axis=1)
        return float(losses.mean() + 0.5 * self.regularisation * (weights**2).sum())

    def slopes(self, predictions: Numbers, labels: Numbers, norms: Numbers) -> Numbers:
        """Return slopes (record, model), each row scaled so that its norm times the record's is at most `clip`."""
        slopes = self.loss.slope(predictions, labels)
        return np.asarray(slopes * shortening(norms * np.linalg.norm(slopes, axis=1), self.clip)[:, None])

    def gradient(self, weights: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
        """Return the mean of the records' clipped gradients plus the penalty's. Private."""
        slopes = self.slopes(rows @ weights.T, labels, np.linalg.norm(rows, axis=1))
        return np.asarray(slopes.T @ rows / len(rows) + self.regularisation * weights)


def one_against_others(codes: Numbers, classes: int) -> Numbers:
    """Return labels (record, class) of class codes; two classes need only one column, that of the second."""
    if classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(np.asarray(codes)[:, None] == np.arange(classes), 1.0, -1.0)


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < inf:
        raise InputError(f"{name} ({value:g}) must be positive and finite")
