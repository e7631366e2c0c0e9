"""Private linear models in the manner of scikit-learn."""

from syndic.estimators.models import PrivateLogisticRegression, PrivateRidge

__all__ = ["PrivateLogisticRegression", "PrivateRidge"]
