"""One measured figure, beside what it is held against."""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import stdev

from syndic.document import Document


class Row(Document):
    """`row` says in words what was run, `metric` what was measured; `baseline` is from the same run.

    `error` is the standard error of a mean over `runs` seeds.
    """

    bench: str
    row: str
    metric: str
    value: float
    unit: str
    baseline: float | None = None
    published: float | None = None
    error: float | None = None
    runs: int | None = None


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; infinite for one value, of which nothing is known."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else inf
