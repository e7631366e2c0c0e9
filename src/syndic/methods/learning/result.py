"""What learning publishes: coefficients, how they were computed, what each iterate cost, and predictions from them."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Boolean, Column, Table
from syndic.data.coding import INTERCEPT, bins_of
from syndic.data.column import Listed
from syndic.data.design import Design
from syndic.data.source import open_rows
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.model.erm.belief import CUT
from syndic.model.erm.loss import Numbers, shares
from syndic.model.erm.second_order import STEPS

# the constant in the intercept's column of the design matrix
_INTERCEPT_VALUE = sqrt(0.5)


class LearnModel(Document):
    """A linear model for each class (or one), on features that public bounds scale into the unit ball.

    `coefficients` is (model, feature) and `intercepts` has one number per model. `noise` is the standard deviation of
    the noise on each number of a round's average. `limits` has what each feature is cut to, if it is. `guarantee` has
    the epsilon, at `delta`, of everything published up to a round: early iterates cost less than the last.
    """

    scheme: str
    loss: str
    label: str
    classes: tuple[str, ...]
    features: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]
    regularisation: float
    rounds: int
    lost: int
    people: int
    present: tuple[str, ...]
    noise: float
    delta: float
    guarantee: tuple[tuple[int, float], ...]
    limits: tuple[tuple[float, float], ...] = ()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LearnResult(Result):
    """The model, and with `path` every iterate (round, model x feature). All of it is released."""

    model: LearnModel
    design: Design
    path: NDArray[np.float64] | None = None

    def files(self) -> Mapping[str, Any]:
        """Return `model.json`, `coefficients.csv` and, if there is a path, `path.csv`."""
        files = {"model.json": self.model, "coefficients.csv": self._coefficients()}
        if self.path is None:
            return files
        lines = [",".join([str(number), *map(repr, row.tolist())]) for number, row in enumerate(self.path)]
        return {**files, "path.csv": "\n".join(lines) + "\n"}

    def summary(self) -> Mapping[str, Any]:
        """Return the model's label and classes, the rounds and parties, and the largest coefficients."""
        model = self.model
        first, weight = np.array(model.coefficients[0]), sizes_of(model, self.design)[0]
        largest = np.argsort(-weight, kind="stable")[:3]
        return {
            "model": f"{model.loss} of {model.label}, scheme {model.scheme}",
            "classes": ", ".join(model.classes) or "none: a number",
            "rounds": f"{model.rounds}, {model.lost} of them lost",
            "parties in the last sum": len(model.present),
            "standard deviation of the noise on an average": float(f"{model.noise:.3g}"),
            "largest coefficients": ", ".join(f"{model.features[place]} {first[place]:.3g}" for place in largest),
        }

    def _coefficients(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = self.model.classes or (self.model.label,)
        writer.writerow(["feature", *names])
        for place, feature in enumerate(self.model.features):
            writer.writerow([feature, *(repr(row[place]) for row in self.model.coefficients)])
        writer.writerow([INTERCEPT, *map(repr, self.model.intercepts)])
        return text.getvalue()


def split_weights(weights: Numbers, design: Design, limits: Numbers | None = None) -> dict[str, Any]:
    """Return weights (model, feature) as the model's features, coefficients and intercepts.

    With limits, the last weight is an intercept.
    """
    names = design.features
    if limits is not None:
        coefficients, intercepts = _rows(weights[:, :-1]), tuple(weights[:, -1].tolist())
        return {"features": names, "coefficients": coefficients, "intercepts": intercepts, "limits": _rows(limits)}
    if not design.intercept:
        zero = (0.0,) * design.models
        return {"features": names, "coefficients": _rows(weights), "intercepts": zero}
    intercepts = tuple((weights[:, -1] * _INTERCEPT_VALUE).tolist())
    return {"features": names[:-1], "coefficients": _rows(weights[:, :-1]), "intercepts": intercepts}


def weights_of(model: LearnModel, design: Design) -> Numbers:
    """Return the weights (model, feature) of a model, the intercept's last."""
    coefficients = np.array(model.coefficients, dtype=np.float64)
    if not design.intercept:
        return coefficients
    return np.column_stack([coefficients, np.array(model.intercepts) / _INTERCEPT_VALUE])


def scores_of(model: LearnModel, design: Design, rows: Numbers) -> Numbers:
    """Return the scores (row, model) of rows of features."""
    if not model.limits:
        return np.asarray(rows @ weights_of(model, design).T)
    within = np.clip(rows, *np.array(model.limits).T)
    return np.asarray(within @ np.array(model.coefficients).T + np.array(model.intercepts))


def sizes_of(model: LearnModel, design: Design) -> Numbers:
    """Return how much each feature says (model, feature): its coefficient's size times its spread, if that is known.

    Limits of a number are some deviations from its mean, those of an indicator one: so they show both's noisy spread.
    """
    sizes: Numbers = np.abs(np.array(model.coefficients))
    if not model.limits:
        return sizes
    least, most = np.array(model.limits).T
    numbers, shares = np.array([number for _, number in design.blocks]), np.clip((least + most) / 2, 0.0, 1.0)
    return np.asarray(sizes * np.where(numbers, (most - least) / (2 * CUT), np.sqrt(shares * (1 - shares))))


def chances_of(scores: Numbers, *, softmax: bool) -> Numbers:
    """Return the probability of each class from scores (row, model); a single model is for the second of two."""
    if scores.shape[1] > 1 and softmax:
        return shares(scores)
    each = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    if scores.shape[1] == 1:
        return np.column_stack([1 - each, each])
    return np.asarray(each / each.sum(axis=1, keepdims=True))


def read_model(folder: Path, design: Design) -> LearnResult:
    """Read back `model.json` and `path.csv`."""
    model = from_file(folder / "model.json", LearnModel)
    features = design.features[: design.dimension - design.intercept]
    whole = len(model.coefficients) == len(model.intercepts) == design.models
    whole = whole and all(len(row) == len(features) for row in model.coefficients)
    whole = whole and len(model.limits) == (0 if design.clipped else len(features))
    if not whole or (model.label, model.classes, model.features) != (design.label, design.classes, features):
        raise InputError(f"{folder.name}: model.json does not have the features and classes of the study")
    path = folder / "path.csv"
    if not path.exists():
        return LearnResult(model=model, design=design)
    try:
        iterates = np.loadtxt(path, delimiter=",", ndmin=2)[:, 1:]
    except ValueError:
        raise InputError(f"{path.name}: cannot be read: it must be a table of numbers") from None
    return LearnResult(model=model, design=design, path=iterates)


def _rows(weights: Numbers) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in weights.tolist())


@final
@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """A published linear model. `predict` takes a table, a data frame or a dict with the study's columns.

    A score is the intercept plus coefficients times features. The method clips long rows, or numbers far from the
    mean: `predict` does the same, so its scores are exact. `coefficients` are those of numbers that are not clipped, or
    of a row of middling length, which is clipped by the factor `shortening` (1 if it is not clipped). All of it follows
    from the release and the public schema, so it costs nothing.
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
        return chances_of(self.decision_function(rows), softmax=self.model.loss == "softmax")

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
        """Return intercepts (model) and coefficients (model, feature) in the columns' own units.

        A missing number adds nothing but the coefficient of its level for missing values.
        """
        units, shifts = np.array([self._unit(name) for name in self.feature_names]).reshape(-1, 2).T
        scaled, factor = np.array(self.model.coefficients, dtype=np.float64), self.shortening
        blocks, limits = self.design.blocks, np.array(self.model.limits or [(-np.inf, np.inf)]).T
        absent, there = (np.clip(np.full(len(blocks), each), *limits) for each in (0.0, 1.0))
        numbers = np.array([number for _, number in blocks])
        units, shifts = np.where(numbers, units, there - absent), np.where(numbers, shifts, absent)
        intercepts = np.array(self.model.intercepts) + factor * (scaled @ shifts)
        slopes = factor * scaled * units
        for place, (column, number) in enumerate(blocks):
            if number and (column, False) in blocks:
                # a missing number is 0 as a feature, which is no 0 in its own unit
                slopes[:, place + 1] += factor * scaled[:, place] * (absent[place] - shifts[place])
        if not self.model.classes:
            middle, half = self._label_unit
            return middle + half * intercepts, half * slopes
        return intercepts, slopes

    @cached_property
    def coefficients(self) -> pa.Table:
        """A row for the intercept and each feature: `coefficient` in the columns' own units, and as `scaled`.

        A coefficient is per unit of its column (a day for dates): in the label's unit, or for classes in log odds. A
        missing number adds nothing but the coefficient of "column=(missing)". With several models, `class` says whose.
        Scaled ones are for features scaled by the bounds, as published.
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
