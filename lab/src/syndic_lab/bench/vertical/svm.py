"""What a classifier learns from rows of vertical methods: errors on people whom no run has seen.

As in the paper's experiment: columns as numbers, scaled, a support vector machine with a radial kernel, gamma 1 /
columns; five folds, rows made from four of them, tested on the fifth. The published code trains on all five folds. Its
time grows with the square of the rows, so it is trained on `MOST_ROWS` of the made rows and tested on as many.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic_lab.bench.model.synthesis_data import Coded, codes_of
from syndic_lab.bench.row import Row, standard_error
from syndic_lab.bench.vertical.methods import made

FOLDS: Final = 5
MOST_ROWS: Final = 4000
REAL: Final = "real rows"


def of_svm(
    data: Coded, label: str, epsilon: str, methods: Sequence[str], folds: int = FOLDS, most: int = MOST_ROWS
) -> Iterator[Row]:
    """Yield the misclassification of every method, beside that of real rows and of always saying the same."""
    errors: dict[str, list[float]] = {name: [] for name in (REAL, "always the most frequent", *methods)}
    for fold, (training, test) in enumerate(_folds(data, folds)):
        errors[REAL].append(misclassified(training.codes(), test, label, most))
        errors["always the most frequent"].append(1 - float(np.bincount(test[label]).max()) / len(test[label]))
        for name in methods:
            errors[name].append(misclassified(made(training, name, epsilon, fold).codes, test, label, most))
    real = float(np.mean(errors[REAL]))
    for name, found in errors.items():
        yield Row(
            bench="vertical",
            row=f"{data.name}, epsilon {epsilon}, 2 parties, SVM of '{label}' on {name}",
            metric="misclassified",
            value=float(np.mean(found)),
            unit=f"share, {folds} of {FOLDS} folds, {most} rows at most",
            baseline=real,
            error=standard_error(found),
            runs=len(found),
        )


def misclassified(training: Mapping[str, Any], test: Mapping[str, Any], label: str, most: int = MOST_ROWS) -> float:
    """Return the share of test rows that a support vector machine trained on other rows gets wrong."""
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415  # takes a second
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    from sklearn.svm import SVC  # noqa: PLC0415

    some, other = _some(training, most), _some(test, most)
    classes = np.unique(some[label])
    if len(classes) == 1:
        return float(np.mean(other[label] != classes[0]))
    model = make_pipeline(StandardScaler(), SVC(kernel="rbf", gamma="auto"))
    model.fit(_matrix(some, label), some[label])
    return 1 - float(model.score(_matrix(other, label), other[label]))


def _folds(data: Coded, folds: int) -> Iterator[tuple[Coded, Mapping[str, NDArray[np.int64]]]]:
    """Yield rows for training and codes for testing, never the same rows."""
    parts = np.array_split(np.random.default_rng(2024).permutation(data.table.num_rows), FOLDS)
    for place in range(folds):
        others = np.sort(np.concatenate([part for other, part in enumerate(parts) if other != place]))
        yield (
            Coded(data.name, data.schema, data.rows(others)),
            codes_of(data.rows(np.sort(parts[place])), data.schema),
        )


def _some(codes: Mapping[str, Any], most: int) -> dict[str, Any]:
    count = len(next(iter(codes.values())))
    chosen = np.sort(np.random.default_rng(2024).permutation(count)[:most])
    return {name: values[chosen] for name, values in codes.items()}


def _matrix(codes: Mapping[str, Any], label: str) -> NDArray[np.float64]:
    return np.stack([codes[name] for name in sorted(codes) if name != label], 1).astype(np.float64)
