"""The section of a learnt model: its coefficients, and the cost of its rounds."""

import numpy as np

from syndic.methods.learning.predictor import LinearPredictor
from syndic.methods.learning.result import LearnModel, LearnResult
from syndic.report.figure import Bars, Curve, Figure, Line, Series
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_SHOWN = 12


def learn_section(_release: Release, result: LearnResult) -> Section:
    """Return the largest coefficients, their noise, and the guarantee along the rounds."""
    model, predictor = result.model, LinearPredictor(result.model, result.design)
    what = "numbers beyond the limits in model.json" if model.limits else "long rows"
    lost = f" {model.lost} of them were lost: a party fell silent before its sum could open." if model.lost else ""
    return Section(
        title="What was learnt",
        paragraphs=(
            f"A linear model of {model.label} (loss {model.loss}, scheme {model.scheme}) from "
            f"{number(model.people)} people, in {number(model.rounds)} round(s).{lost}",
            "A score is the intercept plus the sum of coefficients times features; above 0 it predicts the class. "
            f"Features are scaled by the declared bounds, and {what} are clipped.",
            _units(predictor),
            f"Noise of standard deviation {model.noise:.3g} was added to each number of every round's average.",
            "The coefficients have no intervals: rows are clipped and coefficients shrunk, so no interval around "
            "them is known to cover those of the people behind the rows. `gram` has intervals of linear "
            "regressions, and releases with noisy tables those of logistic ones: release.interval.",
        ),
        figures=(_coefficients(model), *_guarantee(model)),
        tables=(_table(predictor),),
    )


def _order(model: LearnModel) -> list[int]:
    sizes = np.abs(np.array(model.coefficients)).max(axis=0)
    return [int(place) for place in np.argsort(-sizes, kind="stable")[:_SHOWN]]


def _names(model: LearnModel) -> tuple[str, ...]:
    return model.classes or (model.label,)


def _coefficients(model: LearnModel) -> Figure:
    order = _order(model)
    named = zip(_names(model)[:3], model.coefficients, strict=False)
    few = f" The first three of {len(model.classes)} classes." if len(model.classes) > 3 else ""
    return Bars(
        title="Largest coefficients of scaled features",
        description=f"The {len(order)} of {len(model.features)} features with the largest coefficients.{few}",
        labels=tuple(model.features[place] for place in order),
        series=tuple(Series(name, tuple(row[place] for place in order)) for name, row in named),
        lying=True,
        axis="coefficient",
    )


def _guarantee(model: LearnModel) -> tuple[Figure, ...]:
    if len(model.guarantee) < 2:
        return ()
    points = tuple((float(place), epsilon) for place, epsilon in model.guarantee)
    return (
        Curve(
            title="Guarantee along the rounds",
            description="Epsilon of everything published up to a round: a run that stops early costs less.",
            lines=(Line("epsilon", points),),
            x_axis="round",
            y_axis=f"epsilon at delta {model.delta:g}",
            y_least=0.0,
        ),
    )


def _table(predictor: LinearPredictor) -> Grid:
    model, (intercepts, slopes) = predictor.model, predictor.original()
    rows = [(model.features[place], *(f"{row[place]:.4g}" for row in slopes)) for place in _order(model)]
    caption = (
        "Coefficients in the columns' own units, without intervals: none is known to cover (see the report). "
        "Largest scaled ones first (scaled: coefficients.csv)"
    )
    first = ("(intercept)", *(f"{value:.4g}" for value in intercepts))
    return Grid(caption, ("feature", *_names(model)), (first, *rows))


def _units(predictor: LinearPredictor) -> str:
    """What a coefficient in the table means."""
    model, factor = predictor.model, predictor.shortening
    change = (
        f"the log odds of {model.label}" if model.loss in ("logistic", "softmax") else f"the score of {model.label}"
    )
    change = change if model.classes else f"{model.label}, in its own unit,"
    clipped = f", for a row in the middle of all bounds, which is clipped by the factor {factor:.3g}"
    return (
        f"In the table a coefficient is the change of {change} per unit of its column{clipped if factor < 1 else ''}."
    )
