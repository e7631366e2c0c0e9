"""Predict with a learnt model from rows as they are, and give its coefficients in the columns' own units.

Everything here follows from the release and the study's public schema, so it costs nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Boolean, Column, Table
from syndic.data.coding import INTERCEPT, bins_of
from syndic.data.column import Listed
from syndic.data.design import Design
from syndic.data.source import open_rows
from syndic.errors import InputError
from syndic.methods.learning.result import LearnModel, scores_of
from syndic.model.erm.loss import Numbers, shares
from syndic.model.erm.second_order import STEPS


@final
@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """A published linear model. `predict` takes a table, a data frame or a dict with the study's columns.

    A score is the intercept plus coefficients times features. The method clips long rows, or numbers far from the
    mean: `predict` does the same, so its scores are exact. `coefficients` are those of numbers that are not clipped, or
    of a row of middling length, which is clipped by the factor `shortening` (1 if it is not clipped).
    """

    model: LearnModel
    design: Design

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features: a number, date or boolean by its column's name, a level of a list as "column=level"."""
        return self.model.features

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """The classes in the order of `predict_proba`; none for a number."""
        column, found = self.design.schema[self.design.label], self.model.classes
        if not found:
            return ()
        if len(found) == 1:
            known = column.labels()[: column.levels]
            others = [each for each in known if each != found[0]]
            found = (others[0] if len(others) == 1 else f"not {found[0]}", found[0])
        if isinstance(column, Boolean):
            truths = dict(zip(column.labels(), (False, True), strict=False))
            return tuple(truths[each] for each in found)
        return found

    def decision_function(self, rows: Any) -> Numbers:
        """Return the score of each row for each model, above 0 for the class."""
        schema = self.design.schema.select(name for name in self.design.schema.names if name != self.model.label)
        source = open_rows(rows)
        batches = (self.design.rows(coded) for coded in Table(schema, source).batches(schema.names))
        # rounded as in the method
        parts = [scores_of(self.model, self.design, np.trunc(rows * STEPS) / STEPS) for rows in batches]
        return np.concatenate([np.empty((0, self.design.models)), *parts])

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the most likely class of each row, or a number in the label's own unit, within its bounds."""
        scores = self.decision_function(rows)
        if not self.classes:
            middle, half = self._label_unit
            return np.asarray(middle + half * np.clip(scores[:, 0], -1.0, 1.0))
        places = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)
        kind = np.bool_ if isinstance(self.design.schema[self.model.label], Boolean) else object
        return np.asarray(np.array(self.classes, dtype=kind)[places])

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """Return the probability of each of `classes`, for a logistic or softmax loss."""
        if not self.classes or self.model.loss not in ("logistic", "softmax"):
            raise InputError(f"a model with loss {self.model.loss} has no probabilities: use predict")
        scores = self.decision_function(rows)
        if scores.shape[1] > 1 and self.model.loss == "softmax":
            return shares(scores)
        each = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
        if scores.shape[1] == 1:
            return np.column_stack([1 - each, each])
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    @property
    def shortening(self) -> float:
        """The factor by which the method clips a row with every number in the middle of its bounds."""
        length, design = 0.0, self.design
        if not design.clipped:
            return 1.0
        symmetric = design.scale == "symmetric"
        for column in self._columns:
            if isinstance(column, Listed):
                length += 1.0
            elif isinstance(column, Boolean):
                length += 1.0 if symmetric else 0.5
            else:
                length += 0.0 if symmetric else 0.25
        room = 0.5 if design.intercept else 1.0
        return min(1.0, sqrt(room / length)) if length else 1.0

    def original(self) -> tuple[Numbers, Numbers]:
        """Return intercepts (model) and coefficients (model, feature) in the columns' own units."""
        units, shifts = np.array([self._unit(name) for name in self.feature_names]).reshape(-1, 2).T
        scaled, factor = np.array(self.model.coefficients, dtype=np.float64), self.shortening
        intercepts = np.array(self.model.intercepts) + factor * (scaled @ shifts)
        slopes = factor * scaled * units
        if not self.model.classes:
            middle, half = self._label_unit
            return middle + half * intercepts, half * slopes
        return intercepts, slopes

    @cached_property
    def coefficients(self) -> pa.Table:
        """A row for the intercept and each feature: `coefficient` in the columns' own units, and as `scaled`.

        A coefficient is per unit of its column (a day for dates): in the label's unit, or for classes in log odds. With
        several models, `class` says whose. Scaled ones are for features scaled by the bounds, as published.
        """
        intercepts, slopes = self.original()
        names = self.model.classes or (self.model.label,)
        number = 1 + len(self.feature_names)
        found = {
            "feature": [INTERCEPT, *self.feature_names] * len(names),
            "coefficient": np.column_stack([intercepts, slopes]).ravel(),
            "scaled": np.column_stack([self.model.intercepts, np.array(self.model.coefficients)]).ravel(),
        }
        if len(names) > 1:
            found = {"class": [name for name in names for _ in range(number)], **found}
        return pa.table(found)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.design.schema.columns if column.name != self.model.label)

    @cached_property
    def _label_unit(self) -> tuple[float, float]:
        _, least, most = bins_of(self.design.schema[self.model.label])
        return least / 2 + most / 2, most / 2 - least / 2

    def _unit(self, name: str) -> tuple[float, float]:
        """Return a and b with feature = a x + b for a value x in the column's own unit."""
        column = next((one for one in self._columns if one.name == name and not isinstance(one, Listed)), None)
        if column is None:
            return 1.0, 0.0
        _, least, most = bins_of(column)
        if most <= least:
            return 0.0, 0.0
        if self.design.scale == "symmetric":
            return 2 / (most - least), -2 * least / (most - least) - 1
        return 1 / (most - least), -least / (most - least)
