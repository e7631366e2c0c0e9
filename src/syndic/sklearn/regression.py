"""Fit linear and logistic models to a published Gram matrix, in the manner of scikit-learn.

A fit costs nothing: the matrix is public, and any number of models may be fitted to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Table
from syndic.data.coding import INTERCEPT, Coding, Feature, coded_rows
from syndic.data.source import open_rows
from syndic.errors import InputError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.consistent import consistent
from syndic.model.gram.fit import Fit, Inference, in_own_units, infer, regress
from syndic.model.gram.logistic import Odds, classify
from syndic.model.gram.matrix import GramMatrix
from syndic.model.gram.rows import Clip
from syndic.sklearn.parameters import Parametrised, accuracy, r_squared, tags
from syndic.study import Release, Statement, Study

Numbers = NDArray[np.float64]


class GramModel(Parametrised):
    """Share what the models have in common: parameters, and turning rows into features."""

    _set_by_fit: ClassVar[str] = "feature_names_in_"
    model_: Fit | Odds
    intercept_: Any
    coef_: Numbers

    def __init__(
        self, label: str = "", *, features: Sequence[str] | None = None, alpha: float | str = "adaptive"
    ) -> None:
        self.label = label
        self.features = features
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        return tags("classifier" if isinstance(self, GramClassifier) else "regressor", rows=False)

    @property
    def coefficients_(self) -> pa.Table:
        """A row for the intercept and each feature: `coefficient` in the columns' own units, and as `scaled`."""
        self._used()
        fitted = self.model_
        own = [float(np.ravel(self.intercept_)[0]), *np.ravel(self.coef_)]
        return pa.table(
            {
                "feature": [INTERCEPT, *self._names],
                "coefficient": own,
                "scaled": [fitted.intercept, *fitted.coefficients],
            }
        )

    def _take(self, source: Any, y: None) -> GramMatrix:
        """Store the release and return its matrix."""
        if y is not None:
            raise InputError("y must be None: the label is one of the matrix's features, given by `label`")
        if not self.label:
            raise InputError(f"label is missing: give the feature to predict, {type(self).__name__}(label=...)")
        self._release = source if isinstance(source, Release) else None
        if isinstance(source, Release):
            self.statement_: Statement = source.statement
            source = source.result
        if isinstance(source, GramResult):
            source = source.gram
        if not isinstance(source, GramMatrix):
            raise InputError("fit takes a release of the method gram, its result, or a Gram matrix")
        self.gram_: GramMatrix = consistent(source)
        return self.gram_

    def _used(self) -> list[Feature]:
        if not self.__sklearn_is_fitted__():
            raise InputError("this model is not fitted: call fit(release) first")
        return [self.gram_.features[self.gram_.index(name)] for name in self.feature_names_in_]

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.feature_names_in_)

    def _name(self, names: tuple[str, ...]) -> None:
        self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _rows(self, rows: Any) -> Numbers:
        """Return scaled features z, from a table by the release's schema or from a matrix in the columns' units."""
        used = self._used()
        if not isinstance(rows, np.ndarray | list | tuple):
            return self._coded(rows)
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(used):
            raise InputError(f"rows must have {len(used)} columns: {', '.join(self._names)}")
        middle, half = self._units()
        scaled: Numbers = (matrix - middle) / half
        if not self.gram_.halved:
            return scaled
        # rescaled numbers were clipped for the fit
        return np.clip(scaled, [each.lower for each in used], [each.upper for each in used])

    def _units(self) -> tuple[Numbers, Numbers]:
        """Return middle and half-width of each feature: the columns' units are middle + half * z."""
        used = self._used()
        return np.array([each.middle for each in used]), np.array([each.half for each in used])

    def _coded(self, rows: Any) -> Numbers:
        if self._release is None:
            raise InputError("this model was fitted without a release, so it has no schema: give rows as a matrix")
        study = self._release.study
        every, clips, bits = _blocks(study, self._release.result)
        codings = {
            party: [block for block in blocks if {each.name for each in block.features} & set(self._names)]
            for party, blocks in every.items()
        }
        # shortening a row needs all columns of its party
        codings |= {party: list(every[party]) for party in clips if codings[party]}
        columns = dict.fromkeys(name for blocks in codings.values() for block in blocks for name in block.columns)
        table = Table(study.schema.select(columns), open_rows(rows))
        names = [each.name for blocks in codings.values() for block in blocks for each in block.features]
        parts = [np.empty((0, len(names)), dtype=np.int32)]
        for batch in table.batches():
            coded = {party: coded_rows(blocks, batch) for party, blocks in codings.items() if blocks}
            coded |= {party: clip.apply(coded[party], bits) for party, clip in clips.items() if party in coded}
            parts.append(np.concatenate(list(coded.values()), axis=1))
        found: Numbers = np.concatenate(parts)[:, [names.index(name) for name in self._names]] / float(1 << bits)
        return found


@final
class GramRegression(GramModel):
    """Linear regression on a published Gram matrix. A fit costs nothing.

    Args:
        label: the feature to predict.
        features: the features to predict it from; by default all features of other columns.
        alpha: "adaptive" shrinks as the noise requires; "adassp" adds Wang's (2018) ridge; a number is scikit-learn's
            `alpha` for features scaled to [-1, 1], 0 for least squares.

    Attributes:
        coef_: the coefficients, in the columns' own units.
        intercept_: the intercept.
        r_squared_: the share of the label's variance that the model explains, by the published matrix.
        inference_: least squares with standard errors and intervals.
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit a release, its result or a Gram matrix. Costs nothing."""
        gram = self._take(X, y)
        self.model_: Fit = regress(gram, self.label, self.features, ridge=self.alpha)
        self._name(self.model_.features)
        self.intercept_, self.coef_ = self.model_.original()
        self.r_squared_ = self.model_.r_squared
        return self

    @property
    def inference_(self) -> Inference:
        """Least squares with standard errors and intervals that include the noise."""
        self._used()
        return infer(self.gram_, self.label, self._names)

    def predict(self, X: Any) -> Numbers:  # noqa: N803
        """Return predictions in the label's own unit, within its bounds.

        X is a table with the study's columns, or a matrix of the features in their own units.
        """
        rows = self._rows(X)
        target = self.gram_.features[self.gram_.index(self.label)]
        return target.middle + target.half * self.model_.predict(rows)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return R squared. It is computed from X and y without noise: if they are private, do not publish it."""
        return r_squared(self, X, y)


@final
class GramClassifier(GramModel):
    """Logistic regression on a published Gram matrix, for a boolean label or one level of a list. A fit costs nothing.

    It uses second moments only; `syndic.model.gram.logistic` says when that is exact.

    Args:
        label: the feature to predict, a boolean or one level of a list of values.
        features: the features to predict it from; by default all features of other columns.
        alpha: as in `GramRegression`, for the least-squares fit that the odds come from.

    Attributes:
        classes_: false and true.
        coef_: coefficients of the log odds, in the columns' own units.
        intercept_: the intercept.
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803
        """Fit a release, its result or a Gram matrix. Costs nothing."""
        gram = self._take(X, y)
        self.model_: Odds = classify(gram, self.label, self.features, ridge=self.alpha)
        self._name(self.model_.features)
        self.classes_ = np.array([False, True])
        scaled = np.array([self.model_.intercept, *self.model_.coefficients])
        units = in_own_units(gram, self.model_.features) @ scaled
        self.intercept_, self.coef_ = units[:1], units[None, 1:]
        return self

    def predict_proba(self, X: Any) -> Numbers:  # noqa: N803
        """Return the probabilities of false and true."""
        rows = self._rows(X)
        likely = self.model_.probability(rows)
        return np.column_stack([1 - likely, likely])

    def predict(self, X: Any) -> NDArray[np.bool_]:  # noqa: N803
        """Return the more probable of false and true."""
        return self.predict_proba(X)[:, 1] > 0.5

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the accuracy. It is computed from X and y without noise: if they are private, do not publish it."""
        return accuracy(self, X, y)


@final
class GramModels:
    """All models that a release of a Gram matrix holds: name a label, and predict it from the other columns."""

    def __init__(self, release: Release) -> None:
        self._release = release

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of the matrix, any of which may be the label."""
        gram = self._release.result.gram  # type: ignore[attr-defined]  # a GramResult
        return tuple(each.name for each in gram.features if each.ones != each.name)

    def regression(
        self, label: str, *, features: Sequence[str] | None = None, alpha: float | str = "adaptive"
    ) -> GramRegression:
        """Return the fitted linear regression of a label."""
        return GramRegression(label, features=features, alpha=alpha).fit(self._release)

    def classifier(
        self, label: str, *, features: Sequence[str] | None = None, alpha: float | str = "adaptive"
    ) -> GramClassifier:
        """Return the fitted logistic regression of a boolean label or one level of a list."""
        return GramClassifier(label, features=features, alpha=alpha).fit(self._release)

    def predict(self, label: str, rows: Any) -> Numbers:
        """Return the label of each row by linear regression on all other columns, in the label's own unit."""
        return self.regression(label).predict(rows)

    def coefficients(self, label: str) -> pa.Table:
        """Return the linear regression of the label: coefficients in the columns' own units, and as scaled."""
        return self.regression(label).coefficients_


def _blocks(study: Study, result: Any) -> tuple[Mapping[str, Sequence[Coding]], Mapping[str, Clip], int]:
    """Return, by party, the coding of columns and the clipping of rows, as in the first group; and a feature's bits.

    Rescaled rows are shortened for their sums only: a shortened row of a fit on all rows would be predicted too small.
    """
    plan = study.plan
    if not isinstance(plan, GramPlan):
        raise InputError(f"{study.protocol.title} publishes no Gram matrix")
    codings = {name: plan.stages.coded(plan.blocks[name], result.note.scales) for name in plan.groups[0].parties}
    kept = {} if plan.stages.scaling else plan.stages.clips
    return codings, {name: clip for name, clip in kept.items() if name in codings}, plan.bits
