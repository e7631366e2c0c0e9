"""What a release is worth to the owner of the real rows, and noisy scores that may be published."""

from syndic.evaluation.compare import evaluate as evaluate
from syndic.evaluation.evaluation import Evaluation as Evaluation
from syndic.evaluation.private_scores import PaidScores as PaidScores
from syndic.evaluation.private_scores import paid_scores as paid_scores
