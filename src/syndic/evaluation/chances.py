"""Score predicted probabilities of classes on real rows: discrimination, calibration, accuracy."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.evaluation.features import Numbers

BINS: Final = 10
# a class with probability 0 that occurs would have an infinite loss
_LEAST: Final = 1e-6


class ChanceScores(Document):
    """Scores of predicted probabilities. All are means over the classes, weighted by their shares of the test rows.

    `auc` is the area under the receiver operating characteristic, each class versus the rest: 1 perfect, 0.5 chance.
    `brier` is the mean squared error of the probability, `calibration_error` the expected calibration error over ten
    equal bins of probability, `log_loss` is in nats.
    """

    auc: float | None
    log_loss: float
    brier: float
    calibration_error: float
    accuracy: float
    balanced_accuracy: float


def chance_scores(chances: Numbers, truth: NDArray[np.integer]) -> ChanceScores:
    """Return the scores of probabilities (row, class) for the classes that occur, `truth` the class of each row."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415  # an extra

    places = truth.astype(np.int64)
    occur, counts = np.unique(places, return_counts=True)
    shares = counts / len(places)
    several = occur if len(occur) > 1 else ()
    areas = [roc_auc_score(places == level, chances[:, level]) for level in several]
    # in two classes both have the same area, the same squared error and the same calibration
    squares = [float(np.mean((chances[:, level] - (places == level)) ** 2)) for level in occur]
    apart = [calibration_error(chances[:, level], places == level) for level in occur]
    right = chances.argmax(axis=1) == places
    of_truth = np.clip(chances[np.arange(len(places)), places], _LEAST, 1.0)
    return ChanceScores(
        auc=float(shares @ np.array(areas)) if areas else None,
        log_loss=float(-np.log(of_truth).mean()),
        brier=float(shares @ np.array(squares)),
        calibration_error=float(shares @ np.array(apart)),
        accuracy=float(right.mean()),
        balanced_accuracy=float(np.mean([right[places == level].mean() for level in occur])),
    )


def calibration_error(chances: Numbers, is_class: NDArray[np.bool_]) -> float:
    """Return the mean distance of predicted and observed shares over ten equal bins, weighted by rows."""
    bins = np.minimum((chances * BINS).astype(np.int64), BINS - 1)
    predicted = np.bincount(bins, chances, minlength=BINS)
    observed = np.bincount(bins, is_class.astype(np.float64), minlength=BINS)
    return float(np.abs(predicted - observed).sum() / len(chances))
