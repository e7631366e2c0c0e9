"""Scikit-learn's side: synthesizers, estimators, regressions."""
