"""Estimators and synthesizers in the manner of scikit-learn: parameters in the constructor, then `fit`."""

from syndic.sklearn.models import PrivateLogisticRegression, PrivateRidge
from syndic.sklearn.regression import GramClassifier, GramRegression
from syndic.sklearn.synthesizer import HommSynthesizer, MarkovSynthesizer

__all__ = [
    "GramClassifier",
    "GramRegression",
    "HommSynthesizer",
    "MarkovSynthesizer",
    "PrivateLogisticRegression",
    "PrivateRidge",
]
