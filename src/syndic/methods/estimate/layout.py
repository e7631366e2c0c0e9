"""Fixed-point statistics of one column: a public table from every code to whole numbers, and its exact diameter.

A value becomes a code of a fine public grid, and the code's statistic is looked up. So whatever a row holds, what it
adds to a sum is one line of the table, and how far two lines are apart needs no argument about rounding.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Integer, Ordinal, Real, Schema
from syndic.errors import InputError
from syndic.model import AnyFamily, Multinomial
from syndic.model.families.estimate import Model
from syndic.model.families.family import Array

FINE = 2**16
"""Steps between the ends of a statistic or of a parameter: so fine that rounding is nothing beside any noise."""

_MOST_COMPARED = 2**28


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Public. `steps`: the statistic of every code, in `unit`s from `start`. Sums of steps are what gets noise.

    `l1` and `l2_squared`: the farthest that two lines of `steps` are apart, which is what replacing a row changes.
    """

    schema: Schema
    model: Model
    steps: NDArray[np.int64]
    start: Array
    unit: Array
    l1: int
    l2_squared: int

    @property
    def dimension(self) -> int:
        """How many numbers are summed."""
        return int(self.steps.shape[1])

    @property
    def block_unit(self) -> Array:
        """The length of a step of a block estimate: `FINE` of them span the set of parameters."""
        return np.asarray((self.model.most - self.model.least) / FINE)

    def statistics(self, codes: NDArray[Any]) -> Array:
        """Return the statistics that the codes stand for."""
        return np.asarray(self.start + self.unit * self.steps[codes])

    def sums(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of all rows' steps, exactly."""
        return np.asarray(np.bincount(codes, minlength=len(self.steps)) @ self.steps)

    def block_steps(self, estimates: Array) -> NDArray[np.int64]:
        """Return block estimates as whole steps, rounded first and clipped last: from 0 to `FINE`."""
        return np.clip(self.loose_steps(self.model.inside(estimates)), 0, FINE)

    def loose_steps(self, estimates: Array) -> NDArray[np.int64]:
        """Return block estimates as whole steps, however many those are."""
        return np.asarray(np.rint((estimates - self.model.least) / self.block_unit).astype(np.int64))


@lru_cache(maxsize=32)
def layout_of(
    schema: Schema,
    name: str,
    family: AnyFamily,
    bits: int,
    least: tuple[float, ...] = (),
    most: tuple[float, ...] = (),
) -> Layout:
    """Return the table of a column, or say what it lacks."""
    column = schema.select([name]).columns[0]
    fine, values, step = _grid(column, bits, isinstance(family, Multinomial))
    lower, upper = float(values[0]), float(values[-1])
    try:
        if not isinstance(family, Multinomial):
            family.check_values(lower, upper)
    except ValueError as error:
        raise InputError(f"column '{name}' cannot be {family.__struct_config__.tag}: {error}") from None
    suited = family.suited(lower, upper, fine.labels())
    steps, start, unit = _fixed_point(suited.statistic(values))
    l1, l2_squared = _diameters(steps, name)
    return Layout(
        schema=Schema(columns=(fine,)),
        model=_model(suited, suited.span(lower, upper, step), least, most),
        steps=steps,
        start=start,
        unit=unit,
        l1=l1,
        l2_squared=l2_squared,
    )


def _model(family: AnyFamily, span: tuple[Array, Array], least: tuple[float, ...], most: tuple[float, ...]) -> Model:
    low, high = (np.array(given or found) for given, found in zip((least, most), span, strict=True))
    names = family.parameters
    if low.shape != (len(names),) or high.shape != (len(names),):
        raise InputError(f"least and most need one number for each of: {', '.join(names)}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError(f"least must be below most, both finite, for each of: {', '.join(names)}")
    return Model(family=family, least=low, most=high)


def _grid(column: Any, bits: int, categories: bool) -> tuple[Any, Array, float]:
    """Return the column with a fine grid, the value of every code, and how far values are apart."""
    if categories:
        return column, np.arange(column.size, dtype=np.float64), 1.0
    if column.missing == "level":
        raise InputError(f"column '{column.name}': an estimate needs a value for missing ones, missing.value")
    if isinstance(column, Boolean | Categorical | Ordinal):
        return column, np.arange(column.size, dtype=np.float64), 1.0
    if not isinstance(column, Integer | Real):
        raise InputError(f"column '{column.name}' is a date: estimates are of numbers, truths and categories")
    whole = isinstance(column, Integer)
    bins = min(2**bits, column.upper - column.lower + 1) if whole else 2**bits
    fine = msgspec.structs.replace(column, bins=int(bins))
    edges = np.asarray(fine.edges, dtype=np.float64)
    values = (edges[:-1] + edges[1:] - (1 if whole else 0)) / 2
    return fine, values, float((edges[-1] - edges[0]) / (len(edges) - 1))


def _fixed_point(statistics: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return statistics as whole steps from 0 to `FINE` or less; small whole numbers stay as they are."""
    start, end = statistics.min(axis=0), statistics.max(axis=0)
    whole = bool((statistics == np.rint(statistics)).all()) and float((end - start).max()) <= FINE
    unit = np.ones_like(start) if whole else np.where(end > start, (end - start) / FINE, 1.0)
    steps = np.clip(np.rint((statistics - start) / unit), 0, FINE).astype(np.int64)
    return steps, start, unit


def _diameters(steps: NDArray[np.int64], name: str) -> tuple[int, int]:
    """Return the largest l1 and squared l2 distance of two lines, by comparing all."""
    lines = np.unique(steps, axis=0)
    if lines.shape[1] == 1:
        reach = int(lines[-1, 0] - lines[0, 0])
        return max(1, reach), max(1, reach**2)
    if lines.shape[0] * lines.size > _MOST_COMPARED:
        raise InputError(
            f"column '{name}': {lines.shape[0]} levels are too many for this family: use fewer or less bits"
        )
    l1 = l2 = 1
    for line in lines:
        apart = np.abs(lines - line)
        l1 = max(l1, int(apart.sum(axis=1).max()))
        l2 = max(l2, int((apart**2).sum(axis=1).max()))
    return l1, l2
