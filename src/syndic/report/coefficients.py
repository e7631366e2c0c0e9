"""The sections of a learnt model and of a Gram matrix: coefficients in the columns' own units."""

from collections.abc import Iterable

import numpy as np

from syndic.data.coding import INTERCEPT
from syndic.data.column import MISSING_LABEL
from syndic.errors import InputError
from syndic.methods.learning.result import LearnModel, LearnResult, LinearPredictor, sizes_of
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.fit import Fit, Inference, infer, regress
from syndic.report.figure import Curve, Figure, Line
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_LABELS = 6
_FEATURES = 40
_SHOWN = 12
_WITH_INTERVALS = ("In brackets is its 95 % interval, which includes sampling error and noise: least squares.",)


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
    sizes = sizes_of(model, predictor.design).max(axis=0)
    largest = np.argsort(-sizes, kind="stable")[:_SHOWN].tolist()
    rows = [(model.features[place], *(f"{row[place]:.4g}" for row in slopes)) for place in largest]
    caption = (
        "Coefficients in the columns' own units, without intervals: none is known to cover (see the report). "
        f"Largest scaled ones{' times spread' if model.limits else ''} first "
        "(all: release.model.coefficients; scaled: coefficients.csv)"
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
        f"{_where_missing(model.features)}"
    )


def _where_missing(features: Iterable[str]) -> str:
    """Return how the table is read for a missing number, if one can be missing."""
    if not any(name.endswith(f"={MISSING_LABEL}") for name in features):
        return ""
    return f" A number that is missing adds nothing but its coefficient of {MISSING_LABEL}."


def gram_section(release: Release, result: GramResult) -> Section | None:
    """Return the linear regression of the target, or of each of the first numbers, on all other columns."""
    fits = _fits(result, getattr(release.study.protocol, "target", None))
    if not fits:
        return None
    known = [_inferred(result, fit) for fit in fits]
    why = release.study.plan_as(GramPlan).no_intervals or "the noise, or the number of columns, is too large"
    return Section(
        title="Regressions from the matrix",
        paragraphs=(
            f"Sums of products of {number(len(result.note.features))} features over {number(result.note.rows)} "
            "people. Any feature may be the label; every regression follows from the sums and costs nothing.",
            "Each column of the table is the linear regression of one label on the other columns. A coefficient is "
            f"in the label's unit per unit of its feature (a day for dates).{_where_missing(result.gram.names)}",
            *(_WITH_INTERVALS if any(known) else ()),
            *(() if all(known) else (f"A coefficient without interval is shrunk as the noise requires; {why}.",)),
        ),
        tables=(_table(fits, known, why),),
    )


def _fits(result: GramResult, target: str | None) -> list[Fit]:
    named = [each.name for each in result.note.features if each.values != "indicator" and not each.parts]
    fits = []
    for name in [name for name in named if name == (target or name) != INTERCEPT][:_LABELS]:
        try:
            fits.append(regress(result.gram, name))
        except InputError:
            # nothing to predict it from
            continue
    return fits


def _inferred(result: GramResult, fit: Fit) -> Inference | None:
    """Return the same regression with intervals; None if there are none that can be relied on."""
    try:
        known = infer(result.gram, fit.label, fit.features)
    except InputError:
        return None
    return known if known.reliable else None


def _texts(fit: Fit, known: Inference | None) -> dict[str, str]:
    """Return each coefficient, with its interval if it has one."""
    if known is None:
        start, slopes = fit.original()
        return {name: f"{one:.4g}" for name, one in zip((INTERCEPT, *fit.features), (start, *slopes), strict=True)}
    found = zip(known.names, known.estimates(), known.intervals(), strict=True)
    return {name: f"{value:.4g} [{low:.4g}, {high:.4g}]" for name, value, (low, high) in found}


def _table(fits: list[Fit], known: list[Inference | None], why: str) -> Grid:
    texts = [_texts(*each) for each in zip(fits, known, strict=True)]
    names = list(dict.fromkeys(name for one in texts for name in one))[:_FEATURES]
    rows = [(name, *(one.get(name, "") for one in texts)) for name in names]
    r_squared = ("R squared", *(f"{fit.r_squared:.2f}" for fit in fits))
    intervals = "95 % intervals" if all(known) else "some with 95 % intervals" if any(known) else "without intervals"
    caption = f"Coefficients in the columns' own units, {intervals}, by label (others: release.model.regression)"
    caption += "" if all(known) else f". No intervals: {why}" if not any(known) else f". Others have none: {why}"
    return Grid(caption, ("feature", *(fit.label for fit in fits)), (*rows, r_squared))
