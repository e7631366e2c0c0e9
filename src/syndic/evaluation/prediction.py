"""Train models on the release, and test them on held-out real rows.

Rows are at the schema's resolution: a column with bounds counts as the middle of its bin, also as target.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Coded, Schema
from syndic.data.ranged import Ranged
from syndic.document import Document
from syndic.errors import InputError, MissingExtraError
from syndic.evaluation.features import Numbers, design, middle_of, tree_features

Task = Literal["classification", "regression"]

BOOSTING: Final = "gradient boosting"
_ROUNDS: Final = 100
_TREES: Final = 50
_SMALLEST_LEAF: Final = 5
BINS: Final = 10
# a class with probability 0 that occurs would have an infinite loss
_LEAST: Final = 1e-6


class ChanceScores(Document):
    """Scores of predicted probabilities. All are means over the classes, weighted by their shares of the test rows.

    `auc` is the area under the receiver operating characteristic, each class versus the rest: 1 perfect, 0.5 chance.
    `brier` is the mean squared error of the probability, `calibration_error` the expected calibration error over ten
    equal bins of probability, `log_loss` is in nats.
    """

    auc: float | None
    log_loss: float
    brier: float
    calibration_error: float
    accuracy: float
    balanced_accuracy: float


class Prediction(Document):
    """Performance, on held-out real rows, of a model trained on one table.

    `score` is the accuracy, or for a regression R squared; `second` is the balanced accuracy, or the root mean squared
    error in the target's unit (for dates their resolution). `chances` has the scores of the probabilities of classes.
    """

    model: str
    metric: str
    score: float
    second_metric: str
    second: float
    chances: ChanceScores | None = None


def task_of(schema: Schema, target: str) -> Task:
    """Return "regression" for a column with bounds, otherwise "classification"."""
    if target not in schema.names:
        raise InputError(f"target '{target}' is not a column of the study; its columns are {', '.join(schema.names)}")
    if len(schema.names) < 2:
        raise InputError(f"target '{target}' is the study's only column: there is nothing to predict it from")
    return "regression" if isinstance(schema[target], Ranged) else "classification"


def default_target(schema: Schema, declared: str | None) -> tuple[str | None, str]:
    """Return the column to predict if the user names none, and why. It depends on public documents only."""
    if len(schema.names) < 2:
        return None, "the study has one column, so there is nothing to predict"
    if declared is not None:
        return declared, f"target {declared}: the study's own"
    pairs = [column.name for column in schema.columns if isinstance(column, Boolean) or column.levels == 2]
    if pairs:
        return pairs[-1], f"target {pairs[-1]}: the last column with two values; choose another with --target (target=)"
    last = schema.names[-1]
    return last, f"target {last}: the last column; choose another with --target (target=)"


def check_models() -> None:
    """Raise `MissingExtraError` if scikit-learn is not installed."""
    try:
        import sklearn.ensemble  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError("scikit-learn", "evaluate") from None


def one_thread() -> AbstractContextManager[Any]:
    """Keep numerical libraries to one thread: on a busy machine threads of small models mostly wait for each other."""
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (comes with scikit-learn)
    except ImportError:
        return nullcontext()
    return cast("AbstractContextManager[Any]", threadpool_limits(limits=1))


def predictions(
    schema: Schema, target: str, training: Coded, test: Coded, *, seed: int, full: bool = False
) -> tuple[Prediction, ...]:
    """Train gradient boosting, with `full` also a linear model and a forest, and test them.

    Return nothing if there are no rows to train or test on.
    """
    names = [name for name in schema.names if name != target]
    column, task = schema[target], task_of(schema, target)
    values, known = [], []
    for codes in (training, test):
        one: Any = middle_of(column, codes[target]) if isinstance(column, Ranged) else codes[target].astype(np.int64)
        known.append(~np.isnan(one))
        values.append(one[known[-1]])
    if not all(map(len, values)):
        return ()
    trees = [tree_features(schema, names, codes) for codes in (training, test)]
    grouped = [not isinstance(schema[name], Ranged) for name in names]
    models = {BOOSTING: (_boosting(task, grouped, column.size, seed), trees)}
    if full:
        matrices = [design(schema, names, codes, drop_first=False).values for codes in (training, test)]
        models |= {name: (model, matrices) for name, model in _models(task, seed).items()}
    scored = []
    with warnings.catch_warnings():
        # a fit that stops early is scored like any other
        warnings.simplefilter("ignore")
        for name, (model, matrices) in models.items():
            train, asked = (matrix[mask] for matrix, mask in zip(matrices, known, strict=True))
            # a column that no training row has tells nothing, and boosting fails on it
            blank = np.isnan(train).all(axis=0)
            train[:, blank] = asked[:, blank] = 0.0
            if task == "regression":
                scored.append(_regression(name, model.fit(train, values[0]).predict(asked), values[1]))
            else:
                scored.append(_classification(name, _chances(model, train, values[0], asked, column.size), values[1]))
    return tuple(scored)


def _boosting(task: Task, grouped: list[bool], classes: int, seed: int) -> Any:
    check_models()
    from sklearn import ensemble  # noqa: PLC0415

    # scikit-learn takes 32 bits; a round has one tree for each class
    rounds = _ROUNDS if task == "regression" or classes <= 3 else max(20, 3 * _ROUNDS // classes)
    regression = task == "regression"
    kind = ensemble.HistGradientBoostingRegressor if regression else ensemble.HistGradientBoostingClassifier
    return kind(max_iter=rounds, early_stopping=False, categorical_features=grouped, random_state=seed % 2**32)


def _models(task: Task, seed: int) -> dict[str, Any]:
    from sklearn import ensemble, linear_model  # noqa: PLC0415

    forest = {"n_estimators": _TREES, "min_samples_leaf": _SMALLEST_LEAF, "random_state": seed % 2**32}
    if task == "regression":
        linear, trees = linear_model.Ridge(alpha=1.0), ensemble.RandomForestRegressor(**forest)
        return {"linear regression": linear, "random forest": trees}
    logistic, trees = linear_model.LogisticRegression(max_iter=500), ensemble.RandomForestClassifier(**forest)
    return {"logistic regression": logistic, "random forest": trees}


def _chances(model: Any, features: Numbers, values: Any, questions: Numbers, classes: int) -> Numbers:
    """Return the probability of every class; 0 for one that the training rows do not have."""
    found = np.zeros((len(questions), classes))
    present = np.unique(values)
    if len(present) == 1:
        # a classifier cannot be fitted to one class: predict it
        found[:, present[0]] = 1.0
        return found
    found[:, present] = model.fit(features, values).predict_proba(questions)
    return found


def _regression(model: str, answers: Any, truth: Any) -> Prediction:
    squares = float(np.mean((answers - truth) ** 2))
    spread = float(np.var(truth))
    # a target that does not vary leaves nothing to explain
    score = 1 - squares / spread if spread > 0 else float(squares == 0)
    return Prediction(model=model, metric="R squared", score=score, second_metric="error", second=squares**0.5)


def _classification(model: str, chances: Numbers, truth: Any) -> Prediction:
    scores = chance_scores(chances, truth)
    metrics = {"metric": "accuracy", "second_metric": "balanced accuracy"}
    return Prediction(model=model, score=scores.accuracy, second=scores.balanced_accuracy, chances=scores, **metrics)


def chance_scores(chances: Numbers, truth: NDArray[np.integer]) -> ChanceScores:
    """Return the scores of probabilities (row, class) for the classes that occur, `truth` the class of each row."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415  # an extra

    places = truth.astype(np.int64)
    occur, counts = np.unique(places, return_counts=True)
    shares = counts / len(places)
    several = occur if len(occur) > 1 else ()
    areas = [roc_auc_score(places == level, chances[:, level]) for level in several]
    # in two classes both have the same area, the same squared error and the same calibration
    squares = [float(np.mean((chances[:, level] - (places == level)) ** 2)) for level in occur]
    apart = [calibration_error(chances[:, level], places == level) for level in occur]
    right = chances.argmax(axis=1) == places
    of_truth = np.clip(chances[np.arange(len(places)), places], _LEAST, 1.0)
    return ChanceScores(
        auc=float(shares @ np.array(areas)) if areas else None,
        log_loss=float(-np.log(of_truth).mean()),
        brier=float(shares @ np.array(squares)),
        calibration_error=float(shares @ np.array(apart)),
        accuracy=float(right.mean()),
        balanced_accuracy=float(np.mean([right[places == level].mean() for level in occur])),
    )


def calibration_error(chances: Numbers, is_class: NDArray[np.bool_]) -> float:
    """Return the mean distance of predicted and observed shares over ten equal bins, weighted by rows."""
    bins = np.minimum((chances * BINS).astype(np.int64), BINS - 1)
    predicted = np.bincount(bins, chances, minlength=BINS)
    observed = np.bincount(bins, is_class.astype(np.float64), minlength=BINS)
    return float(np.abs(predicted - observed).sum() / len(chances))
