"""Logistic and ridge regression with a privacy cost, for a table that its owner may read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np

from syndic.errors import InputError
from syndic.model.erm.loss import Logistic, Squared
from syndic.model.erm.multiclass import JointObjective, Softmax, one_against_others, shares
from syndic.privacy import Budget
from syndic.sklearn.estimator import Bounds, Numbers, PrivateLinear
from syndic.sklearn.parameters import Number, tags


@final
class PrivateLogisticRegression(PrivateLinear):
    """Logistic regression whose weights may be published: `epsilon` at `delta` for one person, paid at every `fit`.

    Learning takes `rounds` noisy sums of clipped gradients; all of them together cost the budget once. For one
    organisation, or for a notebook that may see the rows of several.

    Args:
        epsilon: privacy cost of one fit, for one person.
        delta: at most 0.01 / people; by default people^-1.5.
        bounds: declared (lower, upper) of the features, numbers or one for each feature. Values outside are cut to
            them, missing and infinite ones count as the middle.
        classes: the labels there may be, declared; records with another one are left out. "public": whatever labels
            occur in y, which then is not protected.
        norm: the largest Euclidean norm of a row whose features are scaled to [-1, 1]; longer ones are shortened for
            learning. By default no row is shortened. If rows are sparse, a smaller norm makes a better model.
        regularisation: weight of half the squared norm of all weights, of scaled features, the intercept's too.
        clip: the most that the gradient of one record may have as its norm.
        rounds: how many sums are taken.
        multiclass: what to do about more than two classes, "softmax" or "one_versus_rest".
        fit_intercept: whether there is an intercept.
        neighbours: `replace` protects the values of a person's rows, `add_remove` also whether there are any.
        rows_per_person: the most rows of one person; you vouch for it.
        people: public number of people; by default, under `replace`, that of the rows.
        seed: for repeatable trials on data that need no protection.
        ledger: path of a ledger file that keeps account over all fits.
        dataset: what the people are called in the ledger; those of several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; needed for a new data set.

    Attributes:
        classes_: the labels.
        coef_: a row of weights for each class, or one row where there are two classes, in the units of X.
        intercept_: one for each row of weights.
        statement_: what the last fit protects and what it cost.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name here
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number | None = None,
        bounds: Bounds | None = None,
        classes: Sequence[Any] | Literal["public"] | None = None,
        norm: float | None = None,
        regularisation: float = 0.001,
        clip: float = 1.0,
        rounds: int = 16,
        multiclass: Literal["softmax", "one_versus_rest"] = "softmax",
        fit_intercept: bool = True,
        neighbours: Literal["add_remove", "replace"] = "replace",
        rows_per_person: int = 1,
        people: int | None = None,
        seed: int | None = None,
        ledger: str | Path | None = None,
        dataset: str = "data",
        cap: Number | Budget | None = None,
    ) -> None:
        self.classes = classes
        self.multiclass = multiclass
        self._keep(locals())

    def fit(self, X: Any, y: Any, parties: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from rows X with labels y, and charge the cost; `parties` says whose each row is."""
        rows, found = self._taken(X, y)
        self.classes_ = self._classes(found)
        codes, known = _codes(found, self.classes_)
        labels = one_against_others(codes, len(self.classes_))
        if labels.shape[1] > 1 and self.multiclass not in ("softmax", "one_versus_rest"):
            raise InputError(f"multiclass ({self.multiclass}) must be 'softmax' or 'one_versus_rest'")
        loss = Softmax() if labels.shape[1] > 1 and self.multiclass == "softmax" else Logistic()
        self._learn(rows, labels, parties, JointObjective(loss, self.regularisation, self.clip), known)
        self.coef_, self.intercept_ = self._coefficients, self._intercepts
        return self

    def decision_function(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return X coef_' + intercept_: a number for each row, or for each row and class."""
        values = self._rows(X) @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        """Return the likeliest class of each row."""
        values = self.decision_function(X)
        codes = (values > 0).astype(np.int64) if values.ndim == 1 else np.argmax(values, axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return the probability of each class, for each row."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return shares(np.column_stack([np.zeros(len(values)), values]))
        if self.multiclass == "softmax":
            return shares(values)
        each = 1 / (1 + np.exp(-np.clip(values, -700, 700)))
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's name
        """Return the share of rows whose class is predicted. Private where y is: not part of what was paid for."""
        return float(np.mean(np.asarray(self.predict(X)) == np.asarray(y)))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn wants to know."""
        return tags("classifier")

    def _classes(self, found: Any) -> Any:
        if self.classes is None:
            raise InputError('classes are missing: declare them, or say classes="public" if they are no secret')
        public = isinstance(self.classes, str)
        if public:
            _check_target(found)
        named = np.unique(found if public else np.asarray(self.classes))
        if len(named) < 2:
            # scikit-learn wants a ValueError with the words "class" and "one"
            raise ValueError("a classifier needs at least two classes, and there is only one class")
        return named


@final
class PrivateRidge(PrivateLinear):
    """Ridge regression whose weights may be published: `epsilon` at `delta` for one person, paid at every `fit`.

    As `PrivateLogisticRegression`, for a number instead of a class, and with its parameters. Residuals are clipped, so
    outliers weigh less than in ordinary ridge regression; `regularisation` and `clip` are of a label in [-1, 1].

    Args:
        label_bounds: declared (lower, upper) of y; values outside are cut to them, records without one are left out.

    Attributes:
        coef_: the weights, in the units of X and y.
        intercept_: the intercept.
        statement_: what the last fit protects and what it cost.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name here
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number | None = None,
        bounds: Bounds | None = None,
        label_bounds: tuple[float, float] | None = None,
        norm: float | None = None,
        regularisation: float = 0.001,
        clip: float = 1.0,
        rounds: int = 16,
        fit_intercept: bool = True,
        neighbours: Literal["add_remove", "replace"] = "replace",
        rows_per_person: int = 1,
        people: int | None = None,
        seed: int | None = None,
        ledger: str | Path | None = None,
        dataset: str = "data",
        cap: Number | Budget | None = None,
    ) -> None:
        self.label_bounds = label_bounds
        self._keep(locals())

    def fit(self, X: Any, y: Any, parties: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from rows X with numbers y, and charge the cost; `parties` says whose each row is."""
        rows, found = self._taken(X, y)
        if self.label_bounds is None:
            raise InputError("label_bounds are missing: declare (lower, upper) of y, never read off the rows")
        lower, upper = (float(each) for each in self.label_bounds)
        if not -float("inf") < lower < upper < float("inf"):
            raise InputError("label_bounds must be finite, and lower below upper")
        # halved first: the difference of large bounds would be infinite
        centre, half = lower / 2 + upper / 2, upper / 2 - lower / 2
        numbers = np.asarray(found, dtype=np.float64)
        known = np.isfinite(numbers)
        within = np.clip(np.where(known, numbers, centre), lower, upper)
        labels = np.clip((within - centre) / half, -1.0, 1.0)[:, None]
        self._learn(rows, labels, parties, JointObjective(Squared(), self.regularisation, self.clip), known)
        self.coef_ = self._coefficients[0] * half
        self.intercept_ = float(self._intercepts[0] * half + centre)
        return self

    def predict(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return X coef_ + intercept_."""
        return np.asarray(self._rows(X) @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's name
        """Return the coefficient of determination. Private where y is: not part of what was paid for."""
        truth = np.asarray(y, dtype=np.float64)
        spread = float(((truth - truth.mean()) ** 2).sum())
        return 1.0 - float(((truth - self.predict(X)) ** 2).sum()) / spread

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn wants to know."""
        return tags("regressor")


def _codes(found: Any, classes: Any) -> tuple[Numbers, Any]:
    """Return the place of each label among the classes, and whether it is there."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    codes = np.array([places.get(label, -1) for label in found.tolist()], dtype=np.float64)
    return np.maximum(codes, 0.0), codes >= 0


def _check_target(found: Any) -> None:
    """Refuse numbers that are no classes, in scikit-learn's words."""
    from sklearn.utils import assert_all_finite  # noqa: PLC0415 (an extra)
    from sklearn.utils.multiclass import check_classification_targets  # noqa: PLC0415 (an extra)

    assert_all_finite(found, input_name="y")
    check_classification_targets(found)
