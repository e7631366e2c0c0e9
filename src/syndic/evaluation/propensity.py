"""Measure whether a model can distinguish released rows from real ones: the ratio of pMSE to its expectation by chance.

Rows of both kinds are combined, a model predicts which are released, and pMSE (propensity mean squared error) is the
mean squared distance of its predictions from the share c of released rows (Woo, Reiter, Oganian and Karr 2009). The
ratio is 1 for rows from one distribution; the larger it is, the easier the rows are to distinguish. The null is that
labels carry no information (permutations). For logistic regression with k coefficients besides the constant its
expectation is k c (1 - c) / N. Snoke, Raab, Nowok, Dibben and Slavkovic (2018) give k c (1 - c)^2 / N, for released
rows drawn from a distribution fitted to these same real rows, so their ratios are 1 / (1 - c) times ours. For trees
the null is the mean over permuted labels.
"""

from typing import Final

import numpy as np

from syndic.data import Coded, Schema
from syndic.errors import MissingExtraError
from syndic.evaluation.features import Numbers, design
from syndic.evaluation.regression import logistic, predicted
from syndic.evaluation.rows import stream_of

PERMUTATIONS: Final = 20
_SMALLEST_LEAF: Final = 20


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
