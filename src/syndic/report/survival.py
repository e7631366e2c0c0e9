"""The sections of a survival study: curves with intervals, tests and hazard ratios."""

from syndic.methods.survival.result import EVERYBODY, SurvivalResult
from syndic.model.survival import Curve as SurvivalCurve
from syndic.model.survival import Estimate
from syndic.report.figure import Curve, Figure, Line
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_MOST_LINES = 6


def survival_section(_release: Release, result: SurvivalResult) -> Section:
    """Return the curves of all people and of every group, their medians, the tests and the hazard ratios."""
    layout = result.note.layout
    views = [None, *(one.name for one in layout.by)]
    causes = layout.causes if len(layout.causes) > 1 else ()
    figures = [_figure(result, by, None) for by in views] + [_figure(result, None, cause) for cause in causes]
    tables = [_times(result, view) for view in views]
    if layout.by:
        tables += [_tests(result), *_ratios(result)]
    return Section(
        title="Survival",
        paragraphs=(
            f"Time to the event ({layout.event}) in {layout.time}, from one table of noisy counts with a standard "
            f"deviation of {number(round(result.note.standard_deviation, 1))} people.",
            "Intervals are for 95 %. They contain sampling error and noise. A curve ends where the noise hides how "
            "many people are still at risk.",
        ),
        figures=tuple(figures),
        tables=tuple(tables),
    )


def _figure(result: SurvivalResult, by: str | None, cause: str | None) -> Figure:
    what = "Survival" if cause is None else f"Cumulative incidence of {cause}"
    curves = dict(list(result.curves(by, cause).items())[:_MOST_LINES])
    return Curve(
        title=what if by is None else f"{what} by {by}",
        description="Share of people, with a 95 % interval at every time.",
        lines=tuple(_line(name, curve) for name, curve in curves.items()),
        x_axis=result.note.layout.time,
        y_axis="share without the event" if cause is None else "share with the event",
        y_least=0.0,
    )


def _line(name: str, curve: SurvivalCurve) -> Line:
    lower, upper = curve.interval()
    begin = 1.0 if curve.falls else 0.0
    places = zip(curve.times.tolist(), lower.tolist(), upper.tolist(), strict=True)
    points = [(curve.start, begin), *zip(curve.times.tolist(), curve.values.tolist(), strict=True)]
    return Line(name, tuple(points), band=((curve.start, begin, begin), *places))


def _times(result: SurvivalResult, by: str | None) -> Grid:
    medians, means = result.median(by), result.restricted_mean(by=by)
    end = number(result.note.layout.times[-1])
    rows = tuple(
        ("everybody" if level == EVERYBODY and by is None else level, _text(medians[level]), _text(means[level]))
        for level in medians
    )
    caption = "Time without an event" + ("" if by is None else f", by {by}")
    return Grid(caption, ("people" if by is None else by, "median", f"mean up to {end}"), rows)


def _text(one: Estimate) -> str:
    value, lower, upper = ("-" if end is None else f"{end:.4g}" for end in (one.value, one.lower, one.upper))
    return "not reached" if one.value is None and one.lower is None else f"{value} ({lower} to {upper})"


def _tests(result: SurvivalResult) -> Grid:
    tests = {one.name: result.log_rank(one.name) for one in result.note.layout.by if len(one.levels) > 1}
    caption = "Log-rank tests: is survival the same in all groups? The noise is in the p-value"
    rows = tuple(
        (name, "-", "too few people") if test is None else (name, f"{test.statistic:.3g}", f"{test.p_value:.3g}")
        for name, test in tests.items()
    )
    return Grid(caption, ("groups", "statistic", "p-value"), rows)


def _ratios(result: SurvivalResult) -> tuple[Grid, ...]:
    ratios = result.hazard_ratios()
    if ratios is None:
        return ()
    rows = tuple(
        (x.term, f"{x.ratio:.3g}", f"{x.lower:.3g} to {x.upper:.3g}", f"{x.p_value:.3g}", f"{x.widened:.2f}")
        for x in ratios
    )
    head = ("comparison", "ratio", "95 % interval", "p-value", "width against pooled rows")
    return (Grid("Hazard ratios (Cox), each adjusted for the others", head, rows),)
