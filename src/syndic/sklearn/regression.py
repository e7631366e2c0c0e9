"""Linear and logistic models from a published Gram matrix, in the manner of scikit-learn.

Nothing is charged here: the matrix is public, and any number of models may be fitted to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.data.coding import Coding, Feature, coded_rows
from syndic.errors import InputError
from syndic.methods.regression.gram import Gram
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.methods.regression.pooled_gram import PooledGram, PooledGramPlan
from syndic.model.gram.consistent import consistent
from syndic.model.gram.fit import Inference, infer, regress
from syndic.model.gram.logistic import classify
from syndic.model.gram.matrix import GramMatrix
from syndic.model.gram.rows import Clip
from syndic.sklearn.parameters import Parametrised, tags
from syndic.study import Release, Statement, Study

Numbers = NDArray[np.float64]


class GramModel(Parametrised):
    """What the models share: rows turned into features.

    `label` is the feature to predict and `features` those to predict it from, all of other columns by default. `fit`
    takes a release, its result, or a Gram matrix.
    """

    def __init__(
        self, label: str = "", *, features: Sequence[str] | None = None, ridge: float | str = "adaptive"
    ) -> None:
        self.label = label
        self.features = features
        self.ridge = ridge

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "gram_")

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn wants to know."""
        return tags("classifier" if isinstance(self, GramClassifier) else "regressor", rows=False)

    def _take(self, source: Any, y: None) -> GramMatrix:
        """Keep what is fitted, and return its matrix."""
        if y is not None:
            raise InputError("y must be None: the label is one of the features, named by `label`")
        if not self.label:
            raise InputError(f"label is missing: {type(self).__name__}(label=...)")
        self._release = source if isinstance(source, Release) else None
        if isinstance(source, Release):
            self.statement_: Statement = source.statement
            source = source.result
        if isinstance(source, GramResult):
            source = source.gram
        if not isinstance(source, GramMatrix):
            raise InputError("fit takes a release of method gram, its result, or a Gram matrix")
        self.gram_: GramMatrix = consistent(source)
        return self.gram_

    def _used(self) -> list[Feature]:
        if not self.__sklearn_is_fitted__():
            raise InputError("this model is not fitted yet: call fit(release) first")
        return [self.gram_.features[self.gram_.index(name)] for name in self.feature_names_in_]

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.feature_names_in_)

    def _name(self, names: tuple[str, ...]) -> None:
        self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _rows(self, rows: Any) -> Numbers:
        """Return z of the features: of a table by the release's schema, or of a matrix in the columns' own units."""
        used = self._used()
        if not isinstance(rows, np.ndarray | list | tuple):
            return self._coded(rows)
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(used):
            raise InputError(f"rows must have {len(used)} columns: {', '.join(self._names)}")
        middle, half = self._units()
        scaled: Numbers = (matrix - middle) / half
        return scaled

    def _units(self) -> tuple[Numbers, Numbers]:
        """Return what turns the features' z into the columns' own units: middle + half * z."""
        used = self._used()
        return np.array([each.middle for each in used]), np.array([each.half for each in used])

    def _coded(self, rows: Any) -> Numbers:
        if self._release is None:
            raise InputError("only a model fitted on a release knows its schema: give rows as a matrix of the features")
        study = self._release.study
        every, clips, bits = _blocks(study)
        codings = {
            party: [block for block in blocks if {each.name for each in block.features} & set(self._names)]
            for party, blocks in every.items()
        }
        # rows that were shortened are so again, for which all columns of the party are needed
        codings |= {party: list(every[party]) for party in clips if codings[party]}
        columns = dict.fromkeys(name for blocks in codings.values() for block in blocks for name in block.columns)
        table = Table(study.schema.select(columns), open_source(rows))
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
    """Linear regression on a published Gram matrix.

    `ridge`: "adaptive" shrinks as the noise requires, "adassp" adds Wang's ridge, 0 is least squares, whose
    intervals are in `inference_`. Coefficients (`coef_`, `intercept_`) are in the columns' own units.
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit a release, its result or a Gram matrix. Costs nothing."""
        gram = self._take(X, y)
        self.model_ = regress(gram, self.label, self.features, ridge=self.ridge)
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

        Rows are a table with the study's columns, or a matrix with the features in their own units.
        """
        rows = self._rows(X)
        target = self.gram_.features[self.gram_.index(self.label)]
        return target.middle + target.half * self.model_.predict(rows)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return R^2 on other rows; on private rows this would be a release."""
        truth = np.asarray(y, dtype=np.float64)
        rest = float(((truth - self.predict(X)) ** 2).sum())
        return 1 - rest / float(((truth - truth.mean()) ** 2).sum())


@final
class GramClassifier(GramModel):
    """Logistic regression on a published Gram matrix, for a boolean label or one level of a list of values.

    Coefficients are of the log odds, in the columns' own units; see `syndic.model.gram.logistic` for when it is exact.
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803
        """Fit a release, its result or a Gram matrix. Costs nothing."""
        gram = self._take(X, y)
        self.model_ = classify(gram, self.label, self.features, ridge=self.ridge)
        self._name(self.model_.features)
        self.classes_ = np.array([False, True])
        middle, half = self._units()
        slopes = self.model_.coefficients / half
        self.intercept_, self.coef_ = np.array([self.model_.intercept - slopes @ middle]), slopes[None, :]
        return self

    def predict_proba(self, X: Any) -> Numbers:  # noqa: N803
        """Return the probabilities of false and true."""
        rows = self._rows(X)
        likely = self.model_.probability(rows)
        return np.column_stack([1 - likely, likely])

    def predict(self, X: Any) -> NDArray[np.bool_]:  # noqa: N803
        """Return the likelier of false and true."""
        return self.predict_proba(X)[:, 1] > 0.5

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the share of right predictions on other rows; on private rows this would be a release."""
        return float((self.predict(X) == np.asarray(y)).mean())


def _blocks(study: Study) -> tuple[Mapping[str, Sequence[Coding]], Mapping[str, Clip], int]:
    """Return, by party, how columns become features and what is shortened; the bits of a feature."""
    protocol = study.protocol
    if isinstance(protocol, Gram):
        plan = study.plan_as(GramPlan)
        return plan.codings, plan.clips, plan.bits
    if isinstance(protocol, PooledGram):
        pooled = study.plan_as(PooledGramPlan)
        return {"": pooled.codings}, {} if pooled.clip is None else {"": pooled.clip}, pooled.bits
    raise InputError(f"{protocol.title} publishes no Gram matrix")
