"""The sections of a descriptive study: the first table of a paper, comparisons with intervals, tests, regressions."""

from syndic.methods.describe.blocks import is_number
from syndic.methods.describe.result import QUARTILES, DescribeResult, Row
from syndic.model.describe import Statistic
from syndic.report.figure import Bars, Figure, Series
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_MOST_FIGURES = 12
_HIDDEN = "hidden by noise"


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
        figures=tuple(_figures(result)),
        tables=tuple(tables),
    )


def _first_table(result: DescribeResult) -> Grid:
    rows = [("people", *(f"{result.people[level]:,.0f}" for level in result.groups.values()), "", "")]
    for column in result.note.columns:
        p_value = result.p_value(column)
        end = ["" if p_value is None else f"{p_value:.3g}", _standardised(result, column)]
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
            shares = [_percent(result.share(column, level, group)) for group in result.groups]
            rows.append((f"{column}: {level}", *shares, *end))
            end = ["", ""]
    caption = "All columns" if result.note.group is None else f"All columns by {result.note.group}"
    return Grid(caption, ("", *result.groups, "p-value", "standardised difference"), tuple(rows))


def _standardised(result: DescribeResult, column: str) -> str:
    found = [result.standardised_difference(column, *pair).value for pair in result.pairs]
    return ", ".join(f"{one:.2f}" for one in found if one is not None)


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


def _figures(result: DescribeResult) -> list[Figure]:
    """Return bars of the shares of every listed column, by group."""
    listed = [column for column in result.note.columns if not is_number(result.schema[column])]
    return [
        Bars(
            title=column if result.note.group is None else f"{column} by {result.note.group}",
            description="Share of people whose value is known.",
            labels=tuple(result.levels(column)),
            series=tuple(
                Series(group, tuple(result.share(column, level, group).value or 0.0 for level in result.levels(column)))
                for group in result.groups
            ),
            form="percent",
        )
        for column in listed[:_MOST_FIGURES]
        if result.groups
    ]


def _short(one: Statistic) -> str:
    return "-" if one.value is None else f"{one.value:.4g}"


def _percent(one: Statistic) -> str:
    return "-" if one.value is None else f"{100 * one.value:.1f} %"
