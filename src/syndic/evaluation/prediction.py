"""Train models on the release, and test them on held-out real rows.

Rows are at the schema's resolution: a column with bounds counts as the middle of its bin, also as target.
"""

import warnings
from typing import Any, Final, Literal

import numpy as np

from syndic.data import Coded, Schema
from syndic.data.ranged import Ranged
from syndic.document import Document
from syndic.errors import InputError, MissingExtraError
from syndic.evaluation.features import Numbers, design, middle_of

Task = Literal["classification", "regression"]

_TREES: Final = 50
_SMALLEST_LEAF: Final = 5


class Prediction(Document):
    """Performance, on held-out real rows, of a model trained on one table.

    `score` is the accuracy, or for a regression R squared; `second` is the balanced accuracy, or the root mean squared
    error in the target's unit (days for dates).
    """

    model: str
    metric: str
    score: float
    second_metric: str
    second: float


def task_of(schema: Schema, target: str) -> Task:
    """Return "regression" for a column with bounds, otherwise "classification"."""
    if target not in schema.names:
        raise InputError(f"target '{target}' is not a column of the study; its columns are {', '.join(schema.names)}")
    if len(schema.names) < 2:
        raise InputError(f"target '{target}' is the study's only column: there is nothing to predict it from")
    return "regression" if isinstance(schema[target], Ranged) else "classification"


def predictions(schema: Schema, target: str, training: Coded, test: Coded, *, seed: int) -> tuple[Prediction, ...]:
    """Train a linear model and a forest, and test them; return nothing if there are no rows to train or test on."""
    names = [name for name in schema.names if name != target]
    column = schema[target]
    parts = []
    for codes in (training, test):
        values: Any = middle_of(column, codes[target]) if isinstance(column, Ranged) else codes[target]
        known = ~np.isnan(values) if isinstance(column, Ranged) else np.ones(len(values), dtype=bool)
        parts.append((design(schema, names, codes, drop_first=False).values[known], values[known]))
    if not all(len(values) for _, values in parts):
        return ()
    task = task_of(schema, target)
    return tuple(
        _scored(task, name, _answers(model, *parts[0], parts[1][0]), parts[1][1])
        for name, model in _models(task, seed).items()
    )


def _models(task: Task, seed: int) -> dict[str, Any]:
    try:
        from sklearn import ensemble, linear_model  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("scikit-learn", "evaluate") from None
    # scikit-learn takes 32 bits
    forest = {"n_estimators": _TREES, "min_samples_leaf": _SMALLEST_LEAF, "random_state": seed % 2**32}
    if task == "regression":
        return {
            "linear regression": linear_model.Ridge(alpha=1.0),
            "random forest": ensemble.RandomForestRegressor(**forest),
        }
    return {
        "logistic regression": linear_model.LogisticRegression(max_iter=500),
        "random forest": ensemble.RandomForestClassifier(**forest),
    }


def _answers(model: Any, features: Numbers, values: Any, questions: Numbers) -> Any:
    if len(np.unique(values)) == 1:
        # a classifier cannot be fitted to one class: predict it
        return np.full(len(questions), values[0])
    with warnings.catch_warnings():
        # a fit that stops early is scored like any other
        warnings.simplefilter("ignore")
        return model.fit(features, values).predict(questions)


def _scored(task: Task, model: str, answers: Any, truth: Any) -> Prediction:
    if task == "regression":
        squares = float(np.mean((answers - truth) ** 2))
        spread = float(np.var(truth))
        # a target that does not vary leaves nothing to explain
        score = 1 - squares / spread if spread > 0 else float(squares == 0)
        return Prediction(model=model, metric="R squared", score=score, second_metric="error", second=squares**0.5)
    right = answers == truth
    classes = [float(right[truth == level].mean()) for level in np.unique(truth)]
    balanced = float(np.mean(classes))
    metrics = {"metric": "accuracy", "second_metric": "balanced accuracy"}
    return Prediction(model=model, score=float(right.mean()), second=balanced, **metrics)
