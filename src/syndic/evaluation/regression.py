"""Compare regressions on the release with those on the real rows; measure whether a model can tell their rows apart.

The overlap of confidence intervals is that of Karr, Kohnen, Oganian, Reiter and Sanil (2006, The American
Statistician 60), with disjoint intervals scored 0. Intervals on the release are computed as if it were real rows; they
do not account for the noise.

Rows of both kinds are combined, a model predicts which are released, and pMSE (propensity mean squared error) is the
mean squared distance of its predictions from the share c of released rows (Woo, Reiter, Oganian and Karr 2009). The
ratio is 1 for rows from one distribution; the larger it is, the easier the rows are to distinguish. The null is that
labels carry no information (permutations). For logistic regression with k coefficients besides the constant its
expectation is k c (1 - c) / N. Snoke, Raab, Nowok, Dibben and Slavkovic (2018) give k c (1 - c)^2 / N, for released
rows drawn from a distribution fitted to these same real rows, so their ratios are 1 / (1 - c) times ours. For trees
the null is the mean over permuted labels.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from syndic.data import Coded, Schema
from syndic.data.ranged import Ranged
from syndic.document import Document
from syndic.errors import MissingExtraError
from syndic.evaluation.features import Numbers, design, middle_of
from syndic.evaluation.rows import stream_of

_Z95: Final = 1.959963984540054
# too small to change a coefficient; keeps coefficients finite if groups are separated
_RIDGE: Final = 1e-6
_STEPS: Final = 50
PERMUTATIONS: Final = 20
_SMALLEST_LEAF: Final = 20


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients and their standard errors."""

    coefficients: Numbers
    errors: Numbers


class Overlap(Document):
    """Agreement of regression coefficients, over all but the constant.

    `mean` and `worst` are interval overlaps: 1 identical, 0 disjoint. `difference` is the mean absolute difference of
    coefficients, in standard errors on the real rows. `same_sign` is, of the coefficients that are significant on the
    real rows, the share with the same sign on the other.
    """

    regression: str
    coefficients: int
    mean: float
    worst: float
    worst_coefficient: str
    difference: float
    same_sign: float | None


def interval_overlap(fit: Fit, other: Fit) -> Numbers:
    """Return for each coefficient the mean share of the two 95 % intervals that is common to both."""
    halves = _Z95 * fit.errors, _Z95 * other.errors
    upper = np.minimum(fit.coefficients + halves[0], other.coefficients + halves[1])
    lower = np.maximum(fit.coefficients - halves[0], other.coefficients - halves[1])
    common = np.maximum(upper - lower, 0.0)
    return np.asarray((common / (2 * halves[0]) + common / (2 * halves[1])) / 2)


def linear(features: Numbers, target: Numbers) -> Fit:
    """Fit least squares; `features` include the constant."""
    rows, number = features.shape
    inverse = np.linalg.pinv(features.T @ features, hermitian=True)
    coefficients = inverse @ (features.T @ target)
    residuals = target - features @ coefficients
    variance = float(residuals @ residuals) / max(rows - number, 1)
    return Fit(coefficients, _errors(np.asarray(variance * inverse, dtype=np.float64)))


def logistic(features: Numbers, target: Numbers) -> Fit:
    """Fit a logistic regression of a 0/1 target by Newton's method; `features` include the constant."""
    coefficients = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        chances = predicted(features, coefficients)
        slope = features.T @ (target - chances) - _RIDGE * coefficients
        step = np.linalg.solve(_curvature(features, chances), slope)
        # at most 2 on the scale of log odds: full steps may diverge if groups are nearly separated
        reach = float(np.abs(features @ step).max(initial=0.0))
        coefficients = coefficients + step * min(1.0, 2.0 / max(reach, 1e-300))
        if reach < 1e-9:
            break
    curvature = _curvature(features, predicted(features, coefficients))
    return Fit(coefficients, _errors(np.asarray(np.linalg.inv(curvature), dtype=np.float64)))


def predicted(features: Numbers, coefficients: Numbers) -> Numbers:
    """Return the probabilities that a logistic regression predicts."""
    return np.asarray(1 / (1 + np.exp(-np.clip(features @ coefficients, -500, 500))))


def coefficient_overlap(schema: Schema, target: str, real: Coded, other: Coded) -> Overlap | None:
    """Compare the regressions of `target` on all other columns; None if there are too few rows.

    The regression is linear for a target with bounds, otherwise logistic: its most frequent real level versus the
    rest. Columns that do not vary in the real rows are left out.
    """
    names = [name for name in schema.names if name != target]
    if not names or not len(other[target]):
        return None
    level = int(np.bincount(real[target]).argmax()) if len(real[target]) else 0
    designs = [design(schema, names, codes, drop_first=True) for codes in (real, other)]
    vary = np.ptp(designs[0].values, axis=0) > 0 if len(designs[0].values) else np.zeros(0, dtype=bool)
    fits = []
    for codes, one in zip((real, other), designs, strict=True):
        values, known = _target(schema, target, codes, level)
        features = np.column_stack([np.ones(int(known.sum())), one.values[known][:, vary]])
        if len(features) <= features.shape[1] or not vary.any():
            return None
        fits.append((linear if isinstance(schema[target], Ranged) else logistic)(features, values[known]))
    labels = [name for name, kept in zip(designs[0].names, vary, strict=True) if kept]
    kind = f"linear regression of {target}"
    if not isinstance(schema[target], Ranged):
        kind = f"logistic regression of {target} = {schema[target].labels()[level]}"
    return _overlap(kind, labels, fits[0], fits[1])


def _overlap(regression: str, labels: list[str], real: Fit, other: Fit) -> Overlap:
    overlaps = interval_overlap(real, other)[1:]
    difference = np.abs(real.coefficients - other.coefficients)[1:] / real.errors[1:]
    sure = np.abs(real.coefficients[1:]) > _Z95 * real.errors[1:]
    same = np.sign(real.coefficients[1:]) == np.sign(other.coefficients[1:])
    worst = int(overlaps.argmin())
    return Overlap(
        regression=regression,
        coefficients=len(labels),
        mean=float(overlaps.mean()),
        worst=float(overlaps[worst]),
        worst_coefficient=labels[worst],
        difference=float(difference.mean()),
        same_sign=float(same[sure].mean()) if sure.any() else None,
    )


def _target(
    schema: Schema, target: str, codes: Coded, level: int
) -> tuple[Numbers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    column = schema[target]
    if isinstance(column, Ranged):
        values = middle_of(column, codes[target])
        return values, ~np.isnan(values)
    return (codes[target] == level).astype(np.float64), np.ones(len(codes[target]), dtype=bool)


def _curvature(features: Numbers, chances: Numbers) -> Numbers:
    weights = chances * (1 - chances)
    return np.asarray((features * weights[:, None]).T @ features + _RIDGE * np.eye(features.shape[1]))


def _errors(covariance: Numbers) -> Numbers:
    # a coefficient that the rows do not determine has variance 0 in a pseudo-inverse; a tiny one avoids 0 / 0
    return np.sqrt(np.maximum(np.diag(covariance), 1e-24))


def pmse(chances: Numbers, share: float) -> float:
    """Return the mean squared distance of predicted probabilities from the share of released rows."""
    return float(np.mean((chances - share) ** 2))


def logistic_ratio(schema: Schema, real: Coded, other: Coded) -> float | None:
    """Return the pMSE of a logistic regression on the columns' main effects, divided by its expectation by chance.

    It detects differences in single columns only. None if there are too few rows.
    """
    features, labels = _stacked(schema, real, other, drop_first=True)
    vary = np.ptp(features, axis=0) > 0 if len(features) else np.zeros(features.shape[1], dtype=bool)
    features = np.column_stack([np.ones(len(features)), features[:, vary]])
    rank = int(np.linalg.matrix_rank(features)) if len(features) else 0
    share = float(labels.mean()) if len(labels) else 0.0
    if rank < 2 or len(features) <= 2 * rank or not 0 < share < 1:
        return None
    chances = predicted(features, logistic(features, labels).coefficients)
    expected = (rank - 1) * share * (1 - share) / len(features)
    return pmse(chances, share) / expected


def tree_ratio(schema: Schema, real: Coded, other: Coded, *, seed: int) -> float | None:
    """Return the pMSE of a tree, divided by its mean for permuted labels. It also detects associations of columns."""
    try:
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("scikit-learn", "evaluate") from None
    features, labels = _stacked(schema, real, other, drop_first=False)
    share = float(labels.mean()) if len(labels) else 0.0
    if not 0 < share < 1 or len(labels) < 4 * _SMALLEST_LEAF:
        return None

    def reached(marks: Numbers) -> float:
        tree = DecisionTreeClassifier(min_samples_leaf=_SMALLEST_LEAF, random_state=0)
        return pmse(tree.fit(features, marks).predict_proba(features)[:, 1], share)

    stream = stream_of(seed, "permutations")
    chance = float(np.mean([reached(stream.permutation(labels)) for _ in range(PERMUTATIONS)]))
    return reached(labels) / chance if chance > 0 else None


def _stacked(schema: Schema, real: Coded, other: Coded, *, drop_first: bool) -> tuple[Numbers, Numbers]:
    parts = [design(schema, schema.names, codes, drop_first=drop_first).values for codes in (real, other)]
    labels = np.concatenate([np.zeros(len(parts[0])), np.ones(len(parts[1]))])
    return np.vstack(parts), labels
