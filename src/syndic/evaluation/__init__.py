"""What a release is worth to the owner of the real rows, and noisy scores that may be published."""

from syndic.evaluation.breakdown import ColumnScore, GroupScore
from syndic.evaluation.compare import evaluate
from syndic.evaluation.distance import Distance, Way, tvd
from syndic.evaluation.evaluation import BANNER, Evaluation, Scores
from syndic.evaluation.prediction import Prediction
from syndic.evaluation.private_scores import PaidScore, PaidScores, paid_scores
from syndic.evaluation.regression import Overlap

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
