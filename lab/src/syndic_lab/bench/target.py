"""What a declared target is worth: a classifier trained on synthetic rows of Bank marketing, beside one on real rows.

Five banks share 36,211 customers at epsilon 1, and once more at 0.3; 9,000 others are kept to test on. Amounts are
counted in open bins on a logarithmic scale, and once more in 20 bins of equal width. Rows are simulated from a seed, so
nobody is protected here.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic import Study, simulate
from syndic.document import from_builtins
from syndic.errors import InputError
from syndic_lab.bench.row import Row

BANKS: Final = 5
TESTED: Final = 9_000
LABEL: Final = "y"
SKEWED: Final = "balance"
# of the bank's own data dictionary: bounds that were not read off these rows
NUMBERS: Final[dict[str, dict[str, Any]]] = {
    "age": {"lower": 18, "upper": 100},
    "balance": {"lower": -10_000, "upper": 110_000, "scale": "symlog"},
    "day": {"lower": 1, "upper": 31},
    "duration": {"lower": 0, "upper": 5_000, "scale": "symlog"},
    "campaign": {"lower": 1, "upper": 64, "scale": "log"},
    "pdays": {"lower": -1, "upper": 900, "scale": "symlog"},
    "previous": {"lower": 0, "upper": 300, "scale": "symlog"},
}
# what a row is called, epsilon, whether bins are of equal width, whether the label is the target
WAYS: Final = (
    ("target", "1", False, True),
    ("no target", "1", False, False),
    ("20 equal bins", "1", True, False),
    ("no target, epsilon 0.3", "0.3", False, False),
)


def rows(quick: bool) -> Iterator[Row]:
    """Yield the area under the curve and the error of a skewed mean, mean and worst over seeds, way by way."""
    table = _read()
    order = np.random.default_rng(1).permutation(table.num_rows)
    test, train = table.take(order[:TESTED]), table.take(order[TESTED:])
    real = _area(train, test)
    for way, epsilon, changed, target in WAYS[: 3 if quick else None]:
        study = _study(train, epsilon, equal_bins=changed, target=target)
        found = [_scores(study, train, test, seed) for seed in range(1, 3 if quick else 11)]
        areas, errors = (np.array(one) for one in zip(*found, strict=True))
        for metric, value in (("mean", areas.mean()), ("worst", areas.min())):
            yield _row(way, f"AUC of boosting, {metric}", float(value), "1", real)
        for metric, value in (("mean", errors.mean()), ("worst", errors[np.abs(errors).argmax()])):
            yield _row(way, f"error of the mean balance, {metric}", 100 * float(value), "%", None)


def _row(way: str, metric: str, value: float, unit: str, baseline: float | None) -> Row:
    return Row(bench="target", row=f"Bank, {way}", metric=metric, value=value, unit=unit, baseline=baseline)


def _read() -> pa.Table:
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / "bank_marketing.parquet"
    if folder is None or not path.is_file():
        raise InputError("bank_marketing.parquet was not found: set SYNDIC_DATA to a folder that contains it")
    return pq.read_table(path)


def _study(table: pa.Table, epsilon: str, *, equal_bins: bool, target: bool) -> Study:
    columns = []
    for name in table.column_names:
        if name in NUMBERS:
            bounds = dict(NUMBERS[name])
            if equal_bins:
                bounds.pop("scale", None)
                bounds["bins"] = min(20, bounds["upper"] - bounds["lower"] + 1)
            columns.append({"kind": "integer", "name": name, "missing": {"value": bounds["lower"]}, **bounds})
        else:
            values = sorted(set(table[name].to_pylist()))
            other = {"value": values[0]}
            columns.append({"kind": "categorical", "name": name, "values": values, "outside": other, "missing": other})
    return from_builtins(
        {
            "name": "banks",
            "unit": {"neighbours": "add_remove"},
            "budget": {"epsilon": epsilon, "delta": "1e-7"},
            "protocol": {"method": "synthesis", **({"target": LABEL} if target else {})},
            "parties": [{"name": f"bank{place}", "people": 10_000} for place in range(BANKS)],
            "schema": {"columns": columns},
        },
        Study,
        where="banks",
    )


def _scores(study: Study, train: pa.Table, test: pa.Table, seed: int) -> tuple[float, float]:
    held = {
        party.name: train.take(np.arange(place, train.num_rows, BANKS)) for place, party in enumerate(study.parties)
    }
    drawn = simulate(study, held, seed=seed).table.to_arrow()
    mean, real = (float(np.mean(one[SKEWED].to_numpy())) for one in (drawn, train))
    return _area(drawn, test), mean / real - 1


def _area(train: pa.Table, test: pa.Table) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    names = [name for name in test.column_names if name != LABEL]
    levels = {name: sorted(set(test[name].to_pylist())) for name in test.column_names if name not in NUMBERS}
    learnt, tested = (_features(one, names, levels) for one in (train, test))
    model = HistGradientBoostingClassifier(categorical_features=[name not in NUMBERS for name in names], random_state=0)
    model.fit(learnt, _codes(train, LABEL, levels[LABEL]))
    return float(roc_auc_score(_codes(test, LABEL, levels[LABEL]), model.predict_proba(tested)[:, 1]))


def _features(table: pa.Table, names: list[str], levels: dict[str, list[str]]) -> NDArray[np.float64]:
    return np.column_stack(
        [_codes(table, name, levels[name]) if name in levels else table[name].to_numpy() for name in names]
    ).astype(np.float64)


def _codes(table: pa.Table, name: str, levels: list[str]) -> NDArray[np.int64]:
    places = {value: place for place, value in enumerate(levels)}
    return np.array([places.get(value, len(levels)) for value in table[name].to_pylist()], dtype=np.int64)
