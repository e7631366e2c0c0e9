"""Compare a release with real rows, for their owner; and make noisy scores that may be published."""

from syndic.evaluation.compare import evaluate as evaluate
from syndic.evaluation.evaluation import Evaluation as Evaluation
from syndic.evaluation.scores import PrivateScores as PrivateScores
from syndic.evaluation.scores import private_scores as private_scores
