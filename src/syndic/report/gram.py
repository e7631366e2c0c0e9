"""The section of a Gram matrix: regressions that follow from it, in the columns' own units, with intervals."""

from syndic.data.coding import INTERCEPT
from syndic.errors import InputError
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.fit import Fit, infer, regress
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_LABELS = 6
_FEATURES = 40


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
