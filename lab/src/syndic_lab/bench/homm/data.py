"""The five data sets of HOMM's experiments, cut into parties and a test set.

Every column is a number; a category is its place in a public list. Lists are constants written here, never read
off the rows. Where the paper is silent, `lab/docs/experiments-homm.md` says what was chosen and why.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from syndic.data import Column, Instead, Integer, Real, Schema
from syndic.errors import InputError

Columns = Mapping[str, NDArray[np.float64]]

MEAN = 1.0
LOGISTIC = (-0.5, 2.0, 1.0)
NOISE_VARIANCE = 3.0

INSURANCE_LISTS = {
    "sex": ("female", "male"),
    "smoker": ("no", "yes"),
    "region": ("northeast", "northwest", "southeast", "southwest"),
}
ADS_LISTS = {"Gender": ("Female", "Male")}


@final
@dataclass(frozen=True)
class Split:
    """One repeat: the rows of every party, and rows that nobody trained on."""

    parties: tuple[Columns, ...]
    test: Columns


Draw = Callable[[np.random.Generator], Split]


def normal(sizes: Sequence[int]) -> Draw:
    """Experiment 1: Y ~ N(MEAN, 1). There is nothing to predict, so the test set is empty."""

    def draw(generator: np.random.Generator) -> Split:
        return Split(tuple({"y": generator.normal(MEAN, 1, size)} for size in sizes), {"y": np.empty(0)})

    return draw


def linear(sizes: Sequence[int], test: int, weight: float) -> Draw:
    """Experiment 2: Y = 1 + weight X1 + weight X2 + e with e of variance 3."""

    def answer(mean: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
        return mean + generator.normal(0, NOISE_VARIANCE**0.5, len(mean))

    return _two_covariates(sizes, test, (1.0, weight, weight), answer)


def logistic(sizes: Sequence[int], test: int) -> Draw:
    """Experiment 3: Y ~ Bernoulli(expit(X LOGISTIC))."""

    def answer(mean: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
        return (generator.random(len(mean)) < 1 / (1 + np.exp(-mean))).astype(np.float64)

    return _two_covariates(sizes, test, LOGISTIC, answer)


def shuffled(rows: Columns, sizes: Sequence[int]) -> Draw:
    """Experiments 4 and 5: rows of a file in random order; those that no party gets are the test set."""
    ends = np.cumsum(sizes)

    def draw(generator: np.random.Generator) -> Split:
        order = generator.permutation(len(next(iter(rows.values()))))
        *parties, test = ({name: rows[name][part] for name in rows} for part in np.split(order, ends))
        return Split(tuple(parties), test)

    return draw


def insurance() -> Columns:
    """Return the 1338 rows of insurance.csv."""
    return _read("insurance.csv", ("age", "sex", "bmi", "children", "smoker", "region", "charges"), INSURANCE_LISTS)


def ads() -> Columns:
    """Return the 400 rows of Social_Network_Ads.csv."""
    return _read("Social_Network_Ads.csv", ("Gender", "Age", "EstimatedSalary", "Purchased"), ADS_LISTS)


def schema_of(*columns: Column) -> Schema:
    """Return a schema of these columns."""
    return Schema(columns=columns)


def real(name: str, lower: float, upper: float, bins: int) -> Real:
    """Return a column of equal bins without a level for missing values: there are none."""
    return Real(name=name, lower=lower, upper=upper, bins=bins, missing=Instead(value=lower))


def coded(name: str, levels: int) -> Integer:
    """Return a column of the codes 0 .. levels-1."""
    return Integer(name=name, lower=0, upper=levels - 1, missing=Instead(value=0))


def _two_covariates(
    sizes: Sequence[int],
    test: int,
    weights: tuple[float, float, float],
    answer: Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]],
) -> Draw:
    def rows(count: int, generator: np.random.Generator) -> Columns:
        x1 = generator.normal(0, 1, count)
        x2 = (generator.random(count) < 0.5).astype(np.float64)
        return {"x1": x1, "x2": x2, "y": answer(weights[0] + weights[1] * x1 + weights[2] * x2, generator)}

    def draw(generator: np.random.Generator) -> Split:
        return Split(tuple(rows(size, generator) for size in sizes), rows(test, generator))

    return draw


def _read(file: str, names: Sequence[str], lists: Mapping[str, Sequence[str]]) -> Columns:
    folder = os.environ.get("SYNDIC_DATA")
    path = Path(folder or ".") / file
    if folder is None or not path.exists():
        raise InputError(f"{file} was not found: set SYNDIC_DATA to a folder that contains it")
    table = pa.csv.read_csv(path).select(names)
    return {name: _numbers(table[name], lists.get(name)) for name in names}


def _numbers(column: pa.ChunkedArray, levels: Sequence[str] | None) -> NDArray[np.float64]:
    if levels is None:
        return np.asarray(column, dtype=np.float64)
    return np.array([levels.index(text) for text in column.to_pylist()], dtype=np.float64)
