"""What the advice for vertical studies expects, beside what is measured on real tables of the same sizes."""

from collections.abc import Iterator, Sequence
from typing import Final

from syndic.advice.advice import Variant
from syndic.advice.vertical import advise_vertical
from syndic.methods import Synthesis
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.claims import mean
from syndic_lab.bench.vertical.methods import GLUED, ORACLE, SHARES, SKETCH, found
from syndic_lab.bench.vertical.runs import cut, study_of

MEASURED: Final[dict[str, Variant]] = {SHARES: "shares", SKETCH: "sketch", ORACLE: "oracle", GLUED: "glued"}


def of_advice(data: Coded, epsilons: Sequence[str], methods: Sequence[str] = tuple(MEASURED)) -> Iterator[Row]:
    """Yield measured distances with the middle of what was expected, whether they are in the range, and the choice."""
    for epsilon in epsilons:
        advice = advise_vertical(study_of(data, epsilon, cut(data, 2), Synthesis()))
        told = {one.variant: one.expected for one in advice.variants}
        runs = {name: found(data, name, epsilon, 0) for name in methods}
        begin = f"{data.name}, epsilon {epsilon}, 2 parties"
        for name, one in runs.items():
            for expected in told[MEASURED[name]]:
                apart = one.apart[expected.columns]
                row, ways = f"{begin}, {name}", expected.columns
                yield _row(row, f"tvd{ways}", apart, "distance; beside the middle of the advice", expected.middle)
                within = expected.low <= apart <= expected.high
                span = f"1 if from {expected.low:.3f} to {expected.high:.3f}"
                yield _row(row, f"tvd{ways} as advised", float(within), span)
        best = min(runs, key=lambda name: mean([runs[name]]))
        row = f"{begin}, advised {advice.recommended}, best {MEASURED[best]}"
        yield _row(row, "best method advised", float(advice.recommended == MEASURED[best]), "1 yes, 0 no")


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    return Row(bench="vertical", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
