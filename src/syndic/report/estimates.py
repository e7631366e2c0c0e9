"""The sections of `describe` and `survival`: tables, curves, tests and regressions with intervals."""

from syndic.methods.describe.opened import is_number
from syndic.methods.describe.result import QUARTILES, DescribeResult, Row
from syndic.methods.survival.result import EVERYBODY, SurvivalResult
from syndic.model.describe import Statistic
from syndic.model.survival import Curve as SurvivalCurve
from syndic.model.survival import Estimate
from syndic.report.figure import Curve, Figure, Line
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_HIDDEN = "hidden by noise"
_MOST_LINES = 6


def describe_section(_release: Release, result: DescribeResult) -> Section:
    """Return the table of all columns by group, then every comparison and regression with its interval."""
    rows = list(result.rows())
    tests = [row for row in rows if "test" in row.what]
    fits = [row for row in rows if "regression" in row.what]
    shown = {"share", "mean", "standard deviation", "median"} | {f"quantile {chance:g}" for chance in QUARTILES}
    single = [row for row in rows if row.what in shown]
    between = [row for row in rows if row not in tests and row not in fits and row not in single]
    tables = [
        *([_first_table(result)] if result.note.columns else []),
        *_estimates("Comparisons of groups", between),
        *_estimates("Tests: is a column the same in all groups? The noise is in the p-value", tests),
        *_estimates("Regressions, each term adjusted for the others, with robust standard errors", fits),
        *_estimates("Every number of the first table, with its interval", single),
    ]
    return Section(
        title="Description",
        paragraphs=(
            "Everything here follows from noisy tables and sums; a count of people has a standard deviation of "
            f"{'at most ' if result.note.deviations else ''}{number(round(result.note.standard_deviation, 1))}.",
            *(
                f"The numbers of {what} are of {share:.0%} of the people: others lack a column, or have these "
                "columns at three or more parties."
                for what, share in result.partly.items()
            ),
            "Intervals are for 95 %. Intervals and p-values contain sampling error and noise. People whose value "
            "is missing are left out of that column.",
            "A ratio is hidden by noise if its parts would not stand out with the same shares in all groups. "
            "Where groups differ by four times and more, and few people are behind it, its interval contains the "
            "true one less often than 95 %.",
        ),
        tables=tuple(tables),
    )


def _first_table(result: DescribeResult) -> Grid:
    rows = [("people", *(f"{result.people[level]:,.0f}" for level in result.groups.values()), "", "")]
    for column in result.note.columns:
        p_value = result.p_value(column)
        apart = [result.standardised_difference(column, *pair).value for pair in result.pairs]
        standardised = ", ".join(f"{one:.2f}" for one in apart if one is not None)
        end = ["" if p_value is None else f"{p_value:.3g}", standardised]
        if is_number(result.schema[column]):
            means = [
                f"{_short(result.mean(column, group))} ({_short(result.deviation(column, group))})"
                for group in result.groups
            ]
            rows.append((f"{column}, mean (standard deviation)", *means, *end))
            quarters = [[_short(result.quantile(column, one, group)) for one in QUARTILES] for group in result.groups]
            rows.append((f"{column}, median (quartiles)", *(f"{b} ({a} to {c})" for a, b, c in quarters), "", ""))
            continue
        for level in result.levels(column):
            found = [result.share(column, level, group).value for group in result.groups]
            shares = ["-" if one is None else f"{100 * one:.1f} %" for one in found]
            rows.append((f"{column}: {level}", *shares, *end))
            end = ["", ""]
    caption = "All columns" if result.note.group is None else f"All columns by {result.note.group}"
    return Grid(caption, ("", *result.groups, "p-value", "standardised difference"), tuple(rows))


def _estimates(caption: str, rows: list[Row]) -> tuple[Grid, ...]:
    head = ("what", "column", "groups", "value", "95 % interval", "p-value", "width against pooled rows")
    texts = tuple((row.what, row.column, row.group, *_texts(row.found)) for row in rows)
    return (Grid(caption, head, texts),) if rows else ()


def _texts(one: Statistic) -> tuple[str, str, str, str]:
    if one.value is None:
        return _HIDDEN, "", "", ""
    interval = "" if one.lower is None or one.upper is None else f"{one.lower:.4g} to {one.upper:.4g}"
    p_value = "" if one.p_value is None else f"{one.p_value:.3g}"
    return f"{one.value:.4g}", interval, p_value, "" if one.widened is None else f"{one.widened:.2f}"


def _short(one: Statistic) -> str:
    return "-" if one.value is None else f"{one.value:.4g}"


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
