"""One measured figure, beside what it is held against."""

from syndic.document import Document


class Row(Document):
    """`row` says in words what was run, `metric` what was measured; `baseline` is from the same run."""

    bench: str
    row: str
    metric: str
    value: float
    unit: str
    baseline: float | None = None
    published: float | None = None
