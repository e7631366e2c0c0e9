"""Tests of two columns from the noisy tables of any release, also where the columns are at different parties."""

import numpy as np

from syndic.data import Integer, Real
from syndic.data.coding import bins_of
from syndic.data.schema import Column
from syndic.errors import InputError
from syndic.model.describe.sums import ChiSquared, Floats
from syndic.model.describe.tables import independence, trend
from syndic.model.interval import Measured
from syndic.model.interval.measured import Groups


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
