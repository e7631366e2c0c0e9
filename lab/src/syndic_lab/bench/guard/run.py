"""Is it still as good and as fast as it was? Compares with a stored baseline, and fails beyond the noise of repeats.

The band of a mark is measured, not chosen: the baseline keeps mean and standard deviation of its repeats. A run is
worse if its mean is above the baseline's by more than `_WIDE` standard errors of their difference, and by more than a
share of the mean that no user would notice. With normal noise five standard errors are passed by chance once in three
million marks; twenty repeats estimate a standard deviation within a third, and `_WIDE` allows for that.
"""

import statistics
from collections.abc import Iterable, Iterator
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Final, final

from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError, SyndicError
from syndic_lab.bench.guard.errors import Found, errors
from syndic_lab.bench.guard.speeds import speeds
from syndic_lab.bench.row import Row

BASELINE: Final = Path(__file__).parent / "baseline.json"
_WIDE = 6.0
_UNNOTICED = {"utility": 0.03, "speed": 0.35}
_REPEATS = 5
_BASELINE_REPEATS = 20


class WorseError(SyndicError):
    """Something is worse than the baseline by more than noise."""


@final
class Mark(Document):
    """Mean and standard deviation of one measured figure over so many runs. Lower is better."""

    row: str
    metric: str
    mean: float
    sd: float
    runs: int

    @property
    def kind(self) -> str:
        """Errors repeat from a seed; times do not, and a busy machine moves their ratios too."""
        return "speed" if "time" in self.metric else "utility"

    def limit(self, runs: int) -> float:
        """Return the largest mean of so many runs that counts as noise."""
        noise = _WIDE * self.sd * sqrt(1 / self.runs + 1 / runs)
        return self.mean + max(noise, _UNNOTICED[self.kind] * self.mean)


@final
class Baseline(Document):
    """Every mark, as `syndic bench guard --refresh FILE` measured it."""

    marks: tuple[Mark, ...]


def rows(quick: bool) -> Iterator[Row]:
    """Yield every mark beside the baseline; then raise `WorseError` if one is beyond its limit."""
    baseline = from_file(BASELINE, Baseline)
    found = measured(1 if quick else _REPEATS, first=1_000)
    yield from (
        Row(
            bench="guard",
            row=mark.row,
            metric=mark.metric,
            value=mark.mean,
            unit="x" if mark.kind == "speed" else "error",
            baseline=next((one.mean for one in baseline.marks if _key(one) == _key(mark)), None),
        )
        for mark in found
    )
    judge(baseline, found)


def measured(repeats: int, *, first: int) -> tuple[Mark, ...]:
    """Return every mark over so many runs, with noise from seeds that begin at `first`."""
    return marks_of(runs_of(range(first, first + repeats)))


def runs_of(seeds: Iterable[int]) -> list[tuple[Found, ...]]:
    """Measure once for each seed in a fresh process: ratios of times differ more between processes than within one."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(measured_alone, list(seeds), chunksize=1)


def measured_alone(seed: int) -> tuple[Found, ...]:
    """Return every mark, measured once; to be run in a process of its own. Noise from a seed protects nobody."""
    return (*errors(seed), *speeds())


def marks_of(runs: Iterable[Iterable[Found]]) -> tuple[Mark, ...]:
    """Return mean and standard deviation of each mark over runs."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for row, metric, value in run:
            values.setdefault((row, metric), []).append(value)
    return tuple(
        Mark(
            row=row,
            metric=metric,
            mean=statistics.fmean(found),
            sd=statistics.stdev(found) if len(found) > 1 else 0.0,
            runs=len(found),
        )
        for (row, metric), found in values.items()
    )


def judge(baseline: Baseline, found: Iterable[Mark]) -> None:
    """Raise `WorseError` if a mark is beyond its limit, or `InputError` if the marks are not those of the baseline."""
    known, now = {_key(mark): mark for mark in baseline.marks}, {_key(mark): mark for mark in found}
    if set(known) != set(now):
        changed = ", ".join(sorted(row for row, _ in set(known) ^ set(now)))
        raise InputError(
            f"the baseline has other marks ({changed}): write one with syndic bench guard --refresh FILE, and compare"
        )
    worse = [
        f"{row}: {metric} {mark.mean:.4g}, at most {known[row, metric].limit(mark.runs):.4g} is noise "
        f"(baseline {known[row, metric].mean:.4g})"
        for (row, metric), mark in now.items()
        if mark.mean > known[row, metric].limit(mark.runs)
    ]
    if worse:
        raise WorseError("worse than the baseline: " + "; ".join(worse))


def refresh(path: Path) -> Path:
    """Measure a new baseline and write it to `path`; return the path. People judge the difference."""
    path.write_bytes(to_readable_json(Baseline(marks=measured(_BASELINE_REPEATS, first=1))))
    return path


def _key(mark: Mark) -> tuple[str, str]:
    return mark.row, mark.metric
