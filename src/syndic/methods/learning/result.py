"""What learning publishes: coefficients, how they were computed, and what each iterate cost."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.data.coding import INTERCEPT
from syndic.data.design import Design
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.methods.learning.rows import batches
from syndic.model.erm.loss import Numbers

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
        first = np.array(model.coefficients[0])
        largest = np.argsort(-np.abs(first), kind="stable")[:3]
        return {
            "model": f"{model.loss} of {model.label}, scheme {model.scheme}",
            "classes": ", ".join(model.classes) or "none: a number",
            "rounds": f"{model.rounds}, {model.lost} of them lost",
            "parties in the last sum": len(model.present),
            "standard deviation of the noise on an average": float(f"{model.noise:.3g}"),
            "largest coefficients": ", ".join(f"{model.features[place]} {first[place]:.3g}" for place in largest),
        }

    def scores(self, source: Any) -> Numbers:
        """Return scores (row, model) for rows with the study's columns, as learnt; `Release.model` predicts by them."""
        table = Table(schema=self.design.schema, source=open_source(source))
        parts = [scores_of(self.model, self.design, batch.plain) for batch in batches(self.design, table)]
        return np.concatenate([np.empty((0, self.design.models)), *parts])

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
