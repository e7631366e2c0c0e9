"""What each experiment fits to a table, and the loss it is judged by. Real and synthetic tables go the same way."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.errors import MissingExtraError
from syndic_lab.bench.homm.data import MEAN, Columns

Loss = Callable[[Columns, Columns], float]
"""From a table to train on and one to test on to a loss; a table without rows is predicted by `empty`."""

TREES = 20
LEAF = 5


def check_sklearn() -> None:
    """Raise `MissingExtraError` where scikit-learn is not installed, before anything was measured."""
    try:
        import sklearn  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("scikit-learn", "bench") from None


def squared_error_of_mean(train: Columns, test: Columns) -> float:
    """Return (mean - MEAN)^2; a table without rows says 0."""
    del test
    return float((train["y"].mean() - MEAN) ** 2) if len(train["y"]) else MEAN**2


def least_squares(answer: str, levels: Mapping[str, int]) -> Loss:
    """Return the prediction RMSE of a linear model with intercept; `levels` lists columns that are categories."""

    def loss(train: Columns, test: Columns) -> float:
        inside, outside = (_design(rows, answer, levels) for rows in (train, test))
        weights = np.linalg.lstsq(inside, train[answer], rcond=None)[0]
        return _rmse(outside @ weights, test[answer])

    return loss


def forest(answer: str, covariates: Sequence[str]) -> Loss:
    """Return the prediction RMSE of a random forest; categories go in as their codes."""

    def loss(train: Columns, test: Columns) -> float:
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - an extra

        inside, outside = (np.column_stack([rows[name] for name in covariates]) for rows in (train, test))
        model: Any = RandomForestRegressor(TREES, min_samples_leaf=LEAF, random_state=0)
        return _rmse(model.fit(inside, train[answer]).predict(outside), test[answer])

    return loss


def misclassification(answer: str, levels: Mapping[str, int]) -> Loss:
    """Return the share of wrong answers of a logistic regression, nearly without penalty."""

    def loss(train: Columns, test: Columns) -> float:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra

        classes = np.unique(train[answer])
        if len(classes) < 2:
            # a small party may know one answer only, and an empty table none
            return float(np.mean(test[answer] != (classes[0] if len(classes) else 0)))
        inside, outside = (_design(rows, answer, levels)[:, 1:] for rows in (train, test))
        centre, spread = inside.mean(axis=0), inside.std(axis=0) + 1e-9
        model: Any = LogisticRegression(C=1000.0, solver="newton-cholesky", max_iter=200)
        model.fit((inside - centre) / spread, train[answer])
        return float(np.mean(model.predict((outside - centre) / spread) != test[answer]))

    return loss


def _design(rows: Columns, answer: str, levels: Mapping[str, int]) -> NDArray[np.float64]:
    """Return the matrix of covariates: a one, numbers as they are, a column for each level but the first."""
    columns = [np.ones(len(rows[answer]))]
    for name, values in rows.items():
        if name == answer:
            continue
        if name in levels:
            columns += [(values == level).astype(np.float64) for level in range(1, levels[name])]
        else:
            columns.append(values)
    return np.column_stack(columns)


def _rmse(predicted: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean((predicted - true) ** 2)))
