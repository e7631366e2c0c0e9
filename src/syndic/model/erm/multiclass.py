"""Losses of several linear models, one for each class, and the joint sensitivity of all of them to one record.

Predictions and labels are arrays (record, class); a label row has +1 at the record's class and -1 elsewhere. A record's
gradient is its row of slopes times its features, so its norm is the product of their norms: bounds are on the norm of
a whole row of slopes. One-versus-rest is any loss of two classes, for every class by itself.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, final

import numpy as np

from syndic.model.erm.loss import Loss, Numbers, check_positive


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
class JointObjective:
    """Mean over records of the losses of all models, plus the penalty of `regularisation` on ALL weights.

    Weights are (model, feature); `clip` is the largest norm of one record's gradient over all of them.
    """

    loss: Loss
    regularisation: float
    clip: float = 1.0

    def __post_init__(self) -> None:
        check_positive("regularisation", self.regularisation)
        check_positive("clip", self.clip)

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
