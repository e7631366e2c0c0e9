"""The section of a Gram matrix: regressions that follow from it, in the columns' own units."""

from syndic.data.coding import INTERCEPT
from syndic.errors import InputError
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.fit import Fit, regress
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_LABELS = 6
_FEATURES = 40


def gram_sections(release: Release) -> tuple[Section, ...]:
    """Return the linear regression of each of the first numbers on all other columns."""
    result = release.result
    if not isinstance(result, GramResult):
        raise InputError("this section is for a Gram matrix only")
    fits = _fits(result)
    if not fits:
        return ()
    return (
        Section(
            title="Regressions from the matrix",
            paragraphs=(
                f"Sums of products of {number(len(result.note.features))} features over {number(result.note.rows)} "
                "people. Any feature may be the label; every regression follows from the sums and costs nothing.",
                "Each column of the table is the linear regression of one label on the other columns, shrunk as the "
                "noise requires. A coefficient is in the label's unit per unit of its feature (a day for dates).",
            ),
            tables=(_table(fits),),
        ),
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


def _table(fits: list[Fit]) -> Grid:
    units = []
    for fit in fits:
        start, slopes = fit.original()
        units.append({INTERCEPT: start, **dict(zip(fit.features, slopes.tolist(), strict=True))})
    names = list(dict.fromkeys(name for one in units for name in one))[:_FEATURES]
    rows = [(name, *(f"{one[name]:.4g}" if name in one else "" for one in units)) for name in names]
    r_squared = ("R squared", *(f"{fit.r_squared:.2f}" for fit in fits))
    return Grid(
        caption="Coefficients in the columns' own units, by label (others: release.model.regression)",
        head=("feature", *(fit.label for fit in fits)),
        rows=(*rows, r_squared),
        numbers=tuple(range(1, 1 + len(fits))),
    )
