"""Shares, their comparison between two groups, and tests on tables of noisy counts, also within strata.

`tested` takes them from any release, also where the columns are at different parties.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from syndic.data import Integer, Real
from syndic.data.coding import bins_of
from syndic.data.schema import Column
from syndic.errors import InputError
from syndic.model.describe.sums import CLEAR, ChiSquared, Floats, Statistic, Sums, quadratic
from syndic.model.interval import Measured
from syndic.model.interval.measured import Groups
from syndic.model.interval.question import MATHS, Estimate
from syndic.model.interval.wilson import wilson

Comparison = Literal["difference", "risk ratio", "odds ratio"]


@np.errstate(all="ignore")
def share(counts: Floats, variances: Floats, repeated: int = 1) -> Statistic:
    """Return the share of the first of two counts in both, with Wilson's interval."""
    sums = Sums.of_counts(counts, variances, repeated)
    whole = sums[0] + sums[1]
    if not sums.clear(whole):
        return Statistic()
    found = sums[0] / whole
    value, (_, noise) = float(np.clip(found.value, 0.0, 1.0)), sums.errors(found)
    people = np.array(whole.value / repeated)
    lower, upper = wilson(np.array(value), people, np.array(noise))
    sampling = value * (1 - value) / float(people)
    return Statistic(
        value=value,
        lower=float(lower),
        upper=float(upper),
        widened=float(np.sqrt(1 + noise / sampling)) if sampling > 0 else None,
    )


@np.errstate(all="ignore")
def compare(how: Comparison, strata: Floats, variances: Floats, repeated: int = 1) -> Statistic:
    """Compare the share of the first of two counts in a group (first row) with that in another (second row).

    `strata` has a table of 2 x 2 for each stratum, `variances` those of the noise of one. Several are pooled by the
    weights of Mantel and Haenszel; strata whose number of people the noise hides are left out. A ratio is hidden if its
    parts would not be clear of 0 with equal shares: by their own counts, those that noise made large would be shown.
    """
    total = strata.sum(axis=(1, 2))
    kept = strata[total >= CLEAR * np.sqrt(variances.sum() + np.maximum(total, 0.0))]
    if not len(kept):
        return Statistic()
    sums = Sums.of_counts(kept.ravel(), np.tile(variances.ravel(), len(kept)), repeated)
    top, bottom, equal = Estimate(0.0), Estimate(0.0), 0.0
    for place in range(0, kept.size, 4):
        one, rest, other, others = (sums[place + corner] for corner in range(4))
        group, against = one + rest, other + others
        if how == "odds ratio":
            up, down = one * others, rest * other
        elif how == "risk ratio":
            up, down = one * against, other * group
        else:
            up, down = one * against - other * group, group * against
        people = group + against
        top, bottom = top + up / people, bottom + down / people
        both = (one + other).value / people.value
        equal += both * (1 - both if how == "odds ratio" else 1.0) * (group * against / people).value
    if how == "difference":
        return sums.statistic(top / bottom)
    hidden = equal < CLEAR * max(sum(sums.errors(one)) for one in (top, bottom)) ** 0.5
    if hidden or top.value <= 0 or bottom.value <= 0:
        return Statistic()
    found = top.through(*MATHS["log"]) - bottom.through(*MATHS["log"])
    known = replace(found, divisors=(*top.divisors, *bottom.divisors))
    return sums.statistic(known, logarithm=True)


def independence(strata: Floats, variance: float, repeated: int = 1) -> ChiSquared | None:
    """Test that rows and columns of tables (strata x rows x columns) are independent within every stratum.

    For one stratum without noise it is Pearson's test, for several that of Cochran, Mantel and Haenszel.
    """
    strata = _filled(strata, variance)
    rows, columns = strata.shape[1:]
    if rows < 2 or columns < 2 or not len(strata):
        return None
    return _tested(strata, variance, repeated, np.eye(rows)[:, :-1], np.eye(columns)[:, :-1])


def trend(
    strata: Floats, variance: float, row_scores: Floats, column_scores: Floats, repeated: int = 1
) -> ChiSquared | None:
    """Test that rows and columns are independent, against an association that is linear in their scores.

    Of two groups without noise it is the test of Cochran and Armitage.
    """
    if len(strata) > 1:
        strata = strata[_clear(strata.sum(axis=(1, 2)), variance * strata[0].size)]
    if not len(strata) or not len(set(row_scores)) > 1 or not len(set(column_scores)) > 1:
        return None
    # centred and scaled, which changes nothing but the rounding errors
    rows, columns = ((one - one.mean()) / np.ptp(one) for one in (row_scores, column_scores))
    return _tested(strata, variance, repeated, rows[:, None], columns[:, None])


def _tested(strata: Floats, variance: float, repeated: int, rows: Floats, columns: Floats) -> ChiSquared | None:
    """Test contrasts of rows times contrasts of columns of what is left of each table beside its margins."""
    every = list(_residuals(strata, variance, rows, columns, many=len(strata) > 1))
    excess = np.sum([left for left, _, _ in every], axis=0)
    covariance = np.sum([repeated * sampling + noise for _, sampling, noise in every], axis=0)
    return quadratic(excess.ravel(), covariance)


def _residuals(
    strata: Floats, variance: float, rows: Floats, columns: Floats, *, many: bool
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the contrasts of each stratum, and the covariances of sampling and noise if nothing is associated."""
    for table in strata:
        people = max(float(table.sum()), 2.0)
        p, q = (_shares(table.sum(axis=axis)) for axis in (1, 0))
        centred = [(np.eye(one.size) - np.outer(np.ones(one.size), one)) for one in (p, q)]
        left = rows.T @ (centred[0].T @ table @ centred[1]) @ columns
        spread = [each.T @ (np.diag(one) - np.outer(one, one)) @ each for each, one in ((rows, p), (columns, q))]
        noise = [each.T @ one.T @ one @ each for each, one in zip((rows, columns), centred, strict=True)]
        size = people**2 / (people - 1) if many else people
        sampling, noisy = (np.asarray(np.kron(*each), np.float64) for each in (spread, noise))
        yield left, size * sampling, variance * noisy


def _shares(counts: Floats) -> Floats:
    positive = np.maximum(counts, 0.0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(counts.size, 1 / counts.size)


def _filled(strata: Floats, variance: float) -> Floats:
    """Return the tables without strata, rows and columns that are empty as far as the noise shows."""
    if len(strata) > 1:
        strata = strata[_clear(strata.sum(axis=(1, 2)), variance * strata[0].size)]
    cells = variance * len(strata)
    kept_rows = _clear(strata.sum(axis=(0, 2)), cells * strata.shape[2])
    kept_columns = _clear(strata.sum(axis=(0, 1)), cells * strata.shape[1])
    return strata[:, kept_rows][:, :, kept_columns]


def _clear(counts: Floats, variance: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray(counts > max(CLEAR * variance**0.5, 0.5))


def tested(measured: Measured, one: str, other: str, *, linear: bool) -> ChiSquared | None:
    """Test that two columns are independent, of people who have both; None if the noise leaves nothing to test.

    `linear`: against an association that is linear in their numbers, or in the order of their values.

    Raises:
        InputError: if no noisy table has both columns.
    """
    names = tuple(measured.schema[name].name for name in (one, other))
    tables = [table for table in measured.onto(names) if set(table.names) == set(names)]
    if not tables or one == other:
        raise InputError(f"no noisy table has both {one} and {other}")
    table = max(tables, key=lambda each: each.values.size)
    counts, scores = table.values, []
    for axis, (name, groups) in enumerate(zip(table.names, table.groups, strict=True)):
        known, values = _known(measured.schema[name], groups)
        counts = counts.take(known, axis=axis)
        scores.append(values)
    if linear:
        return trend(counts[None], table.variance, scores[0], scores[1], measured.repeated)
    return independence(counts[None], table.variance, measured.repeated)


def _known(column: Column, groups: Groups) -> tuple[Groups, Floats]:
    """Return the groups without missing values, and their score."""
    known = np.setdiff1d(groups[: column.levels], groups[column.levels :])
    values = bins_of(column)[0] if isinstance(column, Integer | Real) else np.arange(column.levels, dtype=np.float64)
    return known, np.array([values[groups[: column.levels] == group].mean() for group in known])
