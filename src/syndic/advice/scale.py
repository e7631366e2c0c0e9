"""Read columns as an analyst does: numbers for levels, and the spread of the draw within a bin."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Categorical, Date, Integer, Ordinal, Real
from syndic.data.coding import bins_of
from syndic.data.schema import Column

Numbers = NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Scale:
    """Each code's expected number and its variance within the bin; `valid` is 0 for codes without a number."""

    middle: Numbers
    variance: Numbers
    valid: Numbers
    lower: float
    upper: float

    @property
    def centre(self) -> float:
        """The middle of the range; rows made of noise are centred there."""
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> float:
        """Half of the range."""
        return (self.upper - self.lower) / 2 or 1.0


def listed(column: Column) -> tuple[str, ...]:
    """Return a column's listed values; none for a column with bounds."""
    if isinstance(column, Boolean):
        return ("false", "true")
    return column.values if isinstance(column, Categorical | Ordinal) else ()


def has_numbers(column: Column) -> bool:
    """Return whether a mean makes sense: for numbers, dates, ranks and booleans, not for categories."""
    return not isinstance(column, Categorical)


def bounds_of(column: Column) -> tuple[float, float]:
    """Return the smallest and largest number that a column can release; ranks of listed values."""
    return (0.0, float(max(len(listed(column)) - 1, 1))) if listed(column) else bins_of(column)[1:]


def scale_of(column: Column) -> Scale:
    """Return the numbers of a column's codes; ranks for ordinal values; "other" and missing have none."""
    lower, upper = bounds_of(column)
    middle = np.arange(len(listed(column)), dtype=np.float64)
    variance = np.zeros_like(middle)
    if isinstance(column, Real | Integer | Date):
        middle = bins_of(column)[0]
        # uniform over a bin; over the whole numbers in it
        edges = column.bin_edges.astype(np.int64 if isinstance(column, Date) else np.float64)
        variance = (np.diff(edges) ** 2 - (not isinstance(column, Real))) / 12.0
    padding = (0, column.size - middle.size)
    return Scale(
        middle=np.pad(middle, padding),
        variance=np.pad(variance, padding),
        valid=np.pad(np.ones_like(middle), padding),
        lower=lower,
        upper=upper,
    )
