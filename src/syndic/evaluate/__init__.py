"""What a release is worth to the owner of the real rows, and noisy scores that may be published."""

from syndic.evaluate.breakdown import ColumnScore, GroupScore
from syndic.evaluate.compare import evaluate
from syndic.evaluate.distance import Distance, Way, tvd
from syndic.evaluate.evaluation import BANNER, Evaluation, Scores
from syndic.evaluate.paid import PaidScore, PaidScores, paid_scores
from syndic.evaluate.prediction import Prediction
from syndic.evaluate.regression import Overlap

__all__ = [
    "BANNER",
    "ColumnScore",
    "Distance",
    "Evaluation",
    "GroupScore",
    "Overlap",
    "PaidScore",
    "PaidScores",
    "Prediction",
    "Scores",
    "Way",
    "evaluate",
    "paid_scores",
    "tvd",
]
