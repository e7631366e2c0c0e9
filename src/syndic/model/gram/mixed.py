"""Least squares from noisy rows, mixed or not: as published by Wu et al. (UAI 2022), and by a Gram matrix.

Everything here is computed from published numbers, so it costs nothing, however often it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Feature
from syndic.errors import InputError
from syndic.model.gram.matrix import GramMatrix, intercept, places_of

Numbers = NDArray[np.float64]

RIDGE = 1e-5
"""Added to every mean of squares, to avoid division by zero: the paper's lambda."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Mixed:
    """Noisy rows of `features`, of `people` people: one row per person, or, if `mixed`, signed sums over all people.

    Mixed rows are divided by the square root of their number, so that sums of products approximate those of all people.
    `ones` is the same for a column of ones, without noise; `noise` the standard deviation of each column's noise.
    """

    features: tuple[Feature, ...]
    people: int
    table: Numbers
    ones: Numbers
    noise: Numbers
    mixed: bool

    def in_unit(self) -> "Mixed":
        """Return the rows for values in [0, 1] instead of [-1, 1]: numbers and signs are shifted by public amounts."""
        moved = np.array([feature.values != "indicator" for feature in self.features])
        table = np.where(moved, (self.table + self.ones[:, None]) / 2, self.table)
        return replace(self, table=table, noise=np.where(moved, self.noise / 2, self.noise))

    def gram(self) -> GramMatrix:
        """Return sums of products corrected for the variance of the noise, for values in [-1, 1]; see `freed_sums`."""
        rows = np.column_stack([self.ones, self.table])
        return freed_sums(
            rows.T @ rows, self.features, people=self.people, noise=self.noise, rows=len(rows), mixed=self.mixed
        )

    def index(self, name: str) -> int:
        """Return the index of a feature."""
        names = [feature.name for feature in self.features]
        if name not in names:
            raise InputError(f"there is no feature {name!r}; the features are {', '.join(names)}")
        return names.index(name)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquares:
    """Coefficients of `label` on `features`, no intercept; a small `least_eigenvalue` means nearly singular."""

    label: str
    features: tuple[str, ...]
    coefficients: Numbers
    least_eigenvalue: float

    def predict(self, rows: Numbers) -> Numbers:
        """Return predictions, clipped to [-1, 1] as in the paper's experiments."""
        return np.clip(rows @ self.coefficients, -1.0, 1.0)


def least_squares(
    mixed: Mixed, label: str, features: Sequence[str] | None = None, *, debias: bool = False
) -> LeastSquares:
    """Return least squares as published: of RMGM and BGM, or with `debias` of DGM.

    Args:
        mixed: the published rows.
        label: the feature to predict.
        features: those to predict it from; by default all of other columns.
        debias: subtract the variance of the noise from the sums of squares.
    """
    target = mixed.index(label)
    block = mixed.features[target].block
    names = tuple(each.name for each in mixed.features if each.block != block) if features is None else tuple(features)
    places = [mixed.index(name) for name in names]
    if not places or target in places:
        raise InputError(f"features must name at least one feature, and others than the label {label!r}")
    rows = mixed.table[:, [*places, target]]
    noise = mixed.noise[places] ** 2 * len(rows) if debias else np.zeros(len(places))
    found, least = solved(rows.T @ rows, noise, mixed.people, RIDGE)
    return LeastSquares(label=label, features=names, coefficients=found, least_eigenvalue=least)


def solved(sums: Numbers, noise: Numbers | float, people: int, ridge: float) -> tuple[Numbers, float]:
    """Return coefficients of the last column from sums of products, and the least absolute eigenvalue of the Hessian.

    `noise` is subtracted from the diagonal; sums are divided by the number of people, also if rows are mixed.
    """
    size = len(sums) - 1
    hessian = sums[:size, :size] / people + np.diag(np.full(size, ridge) - np.asarray(noise) / people)
    found: Numbers = np.asarray(np.linalg.solve(hessian, sums[:size, size] / people), dtype=np.float64)
    return found, float(np.abs(np.linalg.eigvalsh(hessian)).min())


def freed_sums(
    sums: Numbers, features: Sequence[Feature], *, people: int, noise: Numbers, rows: int, mixed: bool
) -> GramMatrix:
    """Return sums of products of noisy rows, the ones first, corrected for the variance of the noise.

    Means are regressions on the ones, which are known: otherwise the products of different people that random signs
    leave would hide a mean far from 0. `sigma` of the result is a rough size of the error of a sum of products of
    differences from means: noise times values, noise times noise and, if rows are mixed, products of different people,
    each for features of the average size.
    """
    if sums[0, 0] <= 0:
        raise InputError("all signs cancel in every mixed row, so means cannot be estimated: use more mixes")
    every = (intercept(), *features)
    means = sums[0, 1:] / sums[0, 0]
    centred = sums[1:, 1:] - sums[0, 0] * np.outer(means, means) - (rows - 1) * np.diag(noise**2)
    freed = people * np.outer(np.append(1.0, means), np.append(1.0, means))
    freed[1:, 1:] += centred
    places = places_of(every)
    values = np.zeros(int(places.max()) + 1)
    # an indicator's sum occurs twice; the one off the diagonal is less noisy, so it is written last
    for near in (np.eye(len(every), dtype=bool), np.triu(np.ones_like(sums, dtype=bool), 1)):
        chosen = near & (places >= 0)
        values[places[chosen]] = freed[chosen]
    square = float(np.mean(noise**2))
    size = float(np.clip(np.diag(centred).mean(), 0.0, people))
    left = size**2 / rows if mixed else 0.0
    error = float(np.sqrt(2 * square * size + rows * square**2 + left))
    return GramMatrix(features=every, rows=people, values=values, sigma=error)
