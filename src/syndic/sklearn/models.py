"""Fit logistic and ridge regression with differential privacy, to a table that the caller may read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, Self, final

import numpy as np

from syndic.errors import InputError
from syndic.methods.learning.result import chances_of
from syndic.model.erm.loss import SQUARED, Logistic, Softmax, one_against_others
from syndic.sklearn.estimator import Numbers, PrivateLinear
from syndic.sklearn.parameters import accuracy, r_squared, tags


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(PrivateLinear):
    """Logistic regression with differential privacy: each `fit` costs `epsilon` at `delta` for one person.

    The weights may be published. Learning takes a few noisy sums, which together cost the budget once, as in the method
    `learn`. For one organisation, or for a notebook that may see the rows of several.

    Args:
        epsilon: privacy cost of one fit, for one person.
        C: inverse regularisation strength, as in scikit-learn, for features scaled to [-1, 1] by `bounds`; the number
            of records is the public one. The intercept is penalised too. None: coefficients are shrunk as far as the
            noise requires, and numbers are cut at `limits_`. With `C`, `norm`, `clip`, without an intercept, or above
            2048 features, learning takes damped Newton steps: worse predictions, but scikit-learn's coefficients at a
            large epsilon.
        fit_intercept: whether to add an intercept.
        delta: at most 0.01 / people; by default people^-1.5.
        bounds: declared (lower, upper) of the features, each a number or one number for each feature. Values outside
            are clipped to them; missing and infinite values become the middle.
        classes: the declared labels; records with another label are left out. "public": the labels that occur in y,
            which are then not protected.
        norm: the largest Euclidean norm of a row whose features are scaled to [-1, 1]; longer rows are shortened for
            Newton steps. By default no row is shortened.
        clip: the largest norm of one record's gradient in Newton steps; longer gradients are shortened.
        rounds: the number of noisy sums of gradients, by default 7, or 16 Newton steps. All are taken; more rounds mean
            more noise in each.
        multiclass: how to treat more than two classes, "softmax" or "one_versus_rest".
        neighbours: `replace` protects the values of a person's rows, `add_remove` also whether there are any.
        rows_per_person: the most rows of one person; the caller vouches for it.
        people: public number of people; by default, under `replace`, the number of rows.
        seed: seed for a reproducible fit. A seeded fit is not private, and its statement says so.
        ledger: path of a ledger file that adds up the cost of all fits.
        dataset: the name of the people in the ledger; those of several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; required for a new data set.

    Attributes:
        classes_: the labels.
        coef_: one row of weights for each class, or one row for two classes, in the units of X.
        intercept_: one intercept for each row of weights.
        limits_: what each feature is cut to, (lower, upper), before the weights apply; infinite after Newton steps.
        n_iter_: the number of noisy sums.
        statement_: what the last fit protects and what it cost.
    """

    C: float | None = None
    classes: Sequence[Any] | Literal["public"] | None = None
    multiclass: Literal["softmax", "one_versus_rest"] = "softmax"

    def _strength(self, records: int) -> float | None:
        if self.C is None:
            return None
        if not 0 < self.C < inf:
            raise InputError(f"C ({self.C:g}) must be above 0 and finite")
        return 1 / (records * self.C)

    def fit(self, X: Any, y: Any, parties: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from rows X with labels y, and charge the cost; `parties` names the party of each row."""
        rows, found = self._taken(X, y)
        self.classes_ = self._classes(found)
        codes, known = _codes(found, self.classes_)
        labels = one_against_others(codes, len(self.classes_))
        if labels.shape[1] > 1 and self.multiclass not in ("softmax", "one_versus_rest"):
            raise InputError(f"multiclass ({self.multiclass}) must be 'softmax' or 'one_versus_rest'")
        loss = Softmax() if labels.shape[1] > 1 and self.multiclass == "softmax" else Logistic()
        self._learn(rows, labels, parties, loss, known)
        self.coef_, self.intercept_ = self._coefficients, self._intercepts
        return self

    def decision_function(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return X coef_' + intercept_, with X cut at `limits_`: one number for each row, or for each row and class."""
        values = self._rows(X) @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        """Return the most probable class of each row."""
        values = self.decision_function(X)
        codes = (values > 0).astype(np.int64) if values.ndim == 1 else np.argmax(values, axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return the probability of each class, for each row."""
        values = self.decision_function(X)
        return chances_of(values.reshape(len(values), -1), softmax=self.multiclass == "softmax")

    def score(self, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's name
        """Return the accuracy. It is computed from X and y without noise: if they are private, do not publish it."""
        return accuracy(self, X, y)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        return tags("classifier")

    def _classes(self, found: Any) -> Any:
        if self.classes is None:
            raise InputError('classes are missing: declare them, or give classes="public" if they are not secret')
        public = isinstance(self.classes, str)
        if public:
            _check_target(found)
        named = np.unique(found if public else np.asarray(self.classes))
        if len(named) < 2:
            # scikit-learn wants a ValueError with the words "class" and "one"
            raise ValueError("a classifier needs at least two classes, and there is only one class")
        return named


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRidge(PrivateLinear):
    """Ridge regression with differential privacy: each `fit` costs `epsilon` at `delta` for one person.

    As `PrivateLogisticRegression`, for a number instead of a class; parameters that are not listed here are the same.
    Gradients are clipped, so outliers weigh less than in ordinary ridge regression; `clip` is for a label in [-1, 1].

    Args:
        alpha: regularisation strength, as in scikit-learn, for features scaled to [-1, 1] by `bounds`; the number of
            records is the public one. The intercept is penalised too. None: coefficients are shrunk as far as the
            noise requires, and numbers are cut at `limits_`.
        label_bounds: declared (lower, upper) of y; values outside are clipped, records without a value are left out.

    Attributes:
        coef_: the weights, in the units of X and y.
        intercept_: the intercept.
        statement_: what the last fit protects and what it cost.
    """

    alpha: float | None = None
    label_bounds: tuple[float, float] | None = None

    def _strength(self, records: int) -> float | None:
        if self.alpha is None:
            return None
        if not 0 < self.alpha < inf:
            raise InputError(f"alpha ({self.alpha:g}) must be above 0 and finite")
        return self.alpha / records

    def fit(self, X: Any, y: Any, parties: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from rows X with numbers y, and charge the cost; `parties` names the party of each row."""
        rows, found = self._taken(X, y)
        if self.label_bounds is None:
            raise InputError("label_bounds are missing: declare (lower, upper) of y, never taken from the rows")
        lower, upper = (float(each) for each in self.label_bounds)
        if not -float("inf") < lower < upper < float("inf"):
            raise InputError("label_bounds must be finite, with lower below upper")
        # halved first: the difference of large bounds would be infinite
        centre, half = lower / 2 + upper / 2, upper / 2 - lower / 2
        numbers = np.asarray(found, dtype=np.float64)
        known = np.isfinite(numbers)
        within = np.clip(np.where(known, numbers, centre), lower, upper)
        labels = np.clip((within - centre) / half, -1.0, 1.0)[:, None]
        self._learn(rows, labels, parties, SQUARED, known)
        self.coef_ = self._coefficients[0] * half
        self.intercept_ = float(self._intercepts[0] * half + centre)
        return self

    def predict(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return X coef_ + intercept_, with X cut at `limits_`."""
        return np.asarray(self._rows(X) @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803 - scikit-learn's name
        """Return R squared. It is computed from X and y without noise: if they are private, do not publish it."""
        return r_squared(self, X, y)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        return tags("regressor")


def _codes(found: Any, classes: Any) -> tuple[Numbers, Any]:
    """Return the index of each label among the classes, and whether it is one of them."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    codes = np.array([places.get(label, -1) for label in found.tolist()], dtype=np.float64)
    return np.maximum(codes, 0.0), codes >= 0


def _check_target(found: Any) -> None:
    """Raise scikit-learn's own error for numbers that are not classes."""
    from sklearn.utils import assert_all_finite  # noqa: PLC0415 (an extra)
    from sklearn.utils.multiclass import check_classification_targets  # noqa: PLC0415 (an extra)

    assert_all_finite(found, input_name="y")
    check_classification_targets(found)
