"""Convert coded rows to features of a linear model: public bounds only, every row inside the unit ball.

Nothing is estimated from the rows: scaling by a column's maximum, mean or standard deviation would be a release.
"""

from functools import cached_property
from math import sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT, bins_of
from syndic.data.column import MISSING_LABEL, Boolean, Codes, Listed
from syndic.data.schema import Column, Schema
from syndic.data.table import Coded, Table
from syndic.document import Document
from syndic.errors import InputError

Numbers = NDArray[np.float64]
# the intercept takes half of the unit ball's squared radius, the columns the other half
_INTERCEPT_VALUE: Final = sqrt(0.5)


@final
class Design(Document, dict=True):
    """The features of a row. Public, like the schema.

    Listed columns get a feature for each level, the one for missing values included; booleans get one feature;
    numbers and dates the middle of their bin, scaled by the column's bounds to [0, 1] (`unit`) or [-1, 1]
    (`symmetric`), so set `bins` as fine as the model should see. Where missing values have a level of their own,
    numbers and booleans get one more feature that says so, and 0 instead of a value. The features are clipped to
    a ball such that the row with its intercept has norm at most 1, unless `clipped` is off.

    There is a label for each model. A number has one model: its label is in [-1, 1] by the bounds, 0 where missing. For
    listed values a label is +1 for the class of its model and -1 for every other value, missing included. The one class
    is `positive`; without it, the second of two values, or else every value has a model against all others.
    """

    schema: Schema
    label: str
    positive: str | None = None
    scale: Literal["unit", "symmetric"] = "unit"
    intercept: bool = True
    clipped: bool = True

    def __post_init__(self) -> None:
        if self.label not in self.schema.names:
            raise ValueError(f"label {self.label!r} must be one of the columns {list(self.schema.names)}")
        if len(self.schema.columns) == 1:
            raise ValueError("a design needs at least one column besides its label")
        column = self.schema[self.label]
        if self.positive is not None and not isinstance(column, Listed | Boolean):
            raise ValueError(f"{self.label!r} is a number: remove `positive`")
        if self.positive is not None and self.positive not in column.labels():
            raise ValueError(f"{self.label!r}: positive ({self.positive!r}) must be one of {column.labels()}")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The values that have a model of their own; none for a number."""
        column = self.schema[self.label]
        if not isinstance(column, Listed | Boolean):
            return ()
        values = column.values if isinstance(column, Listed) else column.labels()[: column.levels]
        if self.positive is not None:
            return (self.positive,)
        return values[1:] if len(values) == 2 else values

    @property
    def models(self) -> int:
        """Number of models: one for each class, or one."""
        return max(1, len(self.classes))

    @property
    def shape(self) -> tuple[int, int]:
        """Models, and features of each."""
        return self.models, self.dimension

    @cached_property
    def features(self) -> tuple[str, ...]:
        """A name for each column of the matrix, the intercept last."""
        names = [name for column in self._columns for name in _feature_names(column)]
        return (*names, INTERCEPT) if self.intercept else tuple(names)

    @property
    def blocks(self) -> tuple[tuple[int, bool], ...]:
        """For each feature but the intercept: its column's place, and whether it is a number, not an indicator."""
        return tuple(
            (place, number == 0 and not isinstance(column, Listed))
            for place, column in enumerate(self._columns)
            for number, _ in enumerate(_feature_names(column))
        )

    @property
    def dimension(self) -> int:
        """Number of columns of the matrix."""
        return len(self.features)

    def matrix(self, table: Table) -> tuple[Numbers, Numbers]:
        """Return all rows, each of norm at most 1, and their labels (row, model). Private."""
        for column in self.schema.columns:
            if column not in table.schema.columns:
                raise InputError(f"the table does not have the design's column {column.name!r}: use the same schema")
        rows, labels = [np.empty((0, self.dimension))], [np.empty((0, self.models))]
        for coded in table.batches(self.schema.names):
            rows.append(self.rows(coded))
            labels.append(self.labels(coded[self.label]))
        return np.concatenate(rows), np.concatenate(labels)

    def rows(self, coded: Coded) -> Numbers:
        """Return coded rows as numbers, inside the unit ball."""
        values = np.concatenate([self._lookup[column.name][coded[column.name]] for column in self._columns], axis=1)
        if not self.intercept:
            return into_ball(values, 1.0) if self.clipped else values
        clipped = into_ball(values, sqrt(1 - _INTERCEPT_VALUE**2))
        return into_ball(np.column_stack([clipped, np.full(len(clipped), _INTERCEPT_VALUE)]), 1.0)

    def labels(self, codes: Codes) -> Numbers:
        """Return codes of the label column as labels (row, model): +1 and -1, or numbers in [-1, 1]."""
        column = self.schema[self.label]
        if not self.classes:
            return _level_values(column, symmetric=True)[codes][:, None]
        places = np.array([column.labels().index(each) for each in self.classes])
        return np.where(np.asarray(codes)[:, None] == places, 1.0, -1.0)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.schema.columns if column.name != self.label)

    @cached_property
    def _lookup(self) -> dict[str, Numbers]:
        """The features of every code of every column."""
        return {column.name: _features(column, symmetric=self.scale == "symmetric") for column in self._columns}


def into_ball(rows: Numbers, radius: float) -> Numbers:
    """Return rows clipped to norm `radius`."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    # the factor is a little below 1 so that rounding cannot leave the ball
    return np.where(norms > radius, rows * (radius * (1 - 1e-12) / np.maximum(norms, radius)), rows)


def _feature_names(column: Column) -> list[str]:
    if isinstance(column, Listed):
        return [f"{column.name}={text}" for text in column.labels()]
    missing = [f"{column.name}={MISSING_LABEL}"] if column.size > column.levels else []
    return [column.name, *missing]


def _features(column: Column, *, symmetric: bool) -> Numbers:
    """Return a row of features for each code."""
    if isinstance(column, Listed):
        return np.eye(column.size)
    values = _level_values(column, symmetric=symmetric)
    if column.size == column.levels:
        return values[:, None]
    return np.column_stack([values, np.arange(column.size) >= column.levels])


def _level_values(column: Column, *, symmetric: bool) -> Numbers:
    """Return the number of each code, scaled by the bounds; 0 for the level of missing values."""
    middles, least, most = bins_of(column)
    # from 0 to 1 between the bounds
    unit = (middles - least) / (most - least) if most > least else np.zeros(len(middles))
    scaled = 2 * unit - 1 if symmetric else unit
    return np.concatenate([scaled, np.zeros(column.size - column.levels)])
