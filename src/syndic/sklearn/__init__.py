"""Estimators and synthesizers in the manner of scikit-learn: parameters in the constructor, then `fit`."""

from syndic.sklearn.homm import HommSynthesizer
from syndic.sklearn.markov import MarkovSynthesizer
from syndic.sklearn.models import PrivateLogisticRegression, PrivateRidge
from syndic.sklearn.regression import GramClassifier, GramRegression

__all__ = [
    "GramClassifier",
    "GramRegression",
    "HommSynthesizer",
    "MarkovSynthesizer",
    "PrivateLogisticRegression",
    "PrivateRidge",
]
