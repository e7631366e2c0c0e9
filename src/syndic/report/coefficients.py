"""The sections of a learnt model and of a Gram matrix: coefficients in the columns' own units."""

import numpy as np

from syndic.data.coding import INTERCEPT
from syndic.errors import InputError
from syndic.methods.learning.result import LearnModel, LearnResult, LinearPredictor
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.fit import Fit, infer, regress
from syndic.report.figure import Curve, Figure, Line
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_LABELS = 6
_FEATURES = 40
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
        figures=_guarantee(model),
        tables=(_learnt(predictor),),
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


def _learnt(predictor: LinearPredictor) -> Grid:
    model, (intercepts, slopes) = predictor.model, predictor.original()
    sizes = np.abs(np.array(model.coefficients)).max(axis=0)
    largest = np.argsort(-sizes, kind="stable")[:_SHOWN].tolist()
    rows = [(model.features[place], *(f"{row[place]:.4g}" for row in slopes)) for place in largest]
    caption = (
        "Coefficients in the columns' own units, without intervals: none is known to cover (see the report). "
        "Largest scaled ones first (scaled: coefficients.csv)"
    )
    first = ("(intercept)", *(f"{value:.4g}" for value in intercepts))
    return Grid(caption, ("feature", *(model.classes or (model.label,))), (first, *rows))


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


def gram_section(_release: Release, result: GramResult) -> Section | None:
    """Return the linear regression of each of the first numbers on all other columns."""
    fits = _fits(result)
    if not fits:
        return None
    return Section(
        title="Regressions from the matrix",
        paragraphs=(
            f"Sums of products of {number(len(result.note.features))} features over {number(result.note.rows)} "
            "people. Any feature may be the label; every regression follows from the sums and costs nothing.",
            "Each column of the table is the linear regression of one label on the other columns. A coefficient is "
            "in the label's unit per unit of its feature (a day for dates).",
            "In brackets is its 95 % interval, which includes sampling error and noise: least squares. Where noise "
            "or clipping is too large for intervals, the coefficient is shrunk as the noise requires and stands "
            "alone.",
        ),
        tables=(_table(result, fits),),
    )


def _fits(result: GramResult) -> list[Fit]:
    named = [each.name for each in result.note.features if each.values != "indicator" and not each.parts]
    fits = []
    for name in [name for name in named if name != INTERCEPT][:_LABELS]:
        try:
            fits.append(regress(result.gram, name))
        except InputError:
            # nothing to predict it from
            continue
    return fits


def _intervals(result: GramResult, fit: Fit) -> dict[str, str]:
    """Return each coefficient with its interval, or without if there is none that can be relied on."""
    try:
        known = infer(result.gram, fit.label, fit.features)
    except InputError:
        known = None
    if known is None or not known.reliable:
        start, slopes = fit.original()
        return {
            INTERCEPT: f"{start:.4g}",
            **{name: f"{one:.4g}" for name, one in zip(fit.features, slopes, strict=True)},
        }
    found = zip(known.names, known.estimates(), known.intervals(), strict=True)
    return {name: f"{value:.4g} [{low:.4g}, {high:.4g}]" for name, value, (low, high) in found}


def _table(result: GramResult, fits: list[Fit]) -> Grid:
    texts = [_intervals(result, fit) for fit in fits]
    names = list(dict.fromkeys(name for one in texts for name in one))[:_FEATURES]
    rows = [(name, *(one.get(name, "") for one in texts)) for name in names]
    r_squared = ("R squared", *(f"{fit.r_squared:.2f}" for fit in fits))
    caption = "Coefficients in the columns' own units, 95 % intervals, by label (others: release.model.regression)"
    return Grid(caption, ("feature", *(fit.label for fit in fits)), (*rows, r_squared))
