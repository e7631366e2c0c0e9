"""Synthesis on real tables: columns at several parties, beside a trusted curator and each party alone.

Distances are means over random sets of 3, 4 and 5 columns; a ratio is of means over the same seeds in the same run.
`megabytes` counts each message once, as one role sends it to another; what the coordinator passes on travels twice.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
from msgspec.structs import replace

from syndic.errors import InputError
from syndic.kernel import groups_of, not_covered
from syndic.methods import Synthesis
from syndic.methods.synthesis.result import SyntheticTable
from syndic.study import Study, simulate
from syndic_lab.bench.model.synthesis_data import Coded, codes_of, distances
from syndic_lab.bench.row import Row, standard_error
from syndic_lab.bench.vertical.runs import Found, curator, cut, found_by, glued, grid_of, held_by, study_of, vertical

EPSILON: Final = "0.8"
# 23.1 minutes a party for sketches and 67 at the server
PUBLISHED_SECONDS: Final = 5406.0
# a study in processes is a real one, so its delta is what a table of this size is asked for
REAL_DELTA: Final = Fraction(1, 10**8)


def of_table(data: Coded, seeds: Sequence[int], parties: Sequence[int], epsilon: str = EPSILON) -> Iterator[Row]:
    """Yield the curator's figures, and those of parties together, and on their own."""
    title = f"{data.name}, epsilon {epsilon}"
    trusted = [curator(data, epsilon, seed) for seed in seeds]
    yield from _apart(f"{title}, trusted curator", trusted, None)
    for number in parties:
        found = [vertical(data, epsilon, seed, number) for seed in seeds]
        row = f"{title}, {number} parties"
        yield from _apart(row, found, trusted)
        yield from _ratios(row, found, trusted)
        yield _row(row, "seconds", min(one.seconds for one in found), "s of processor time, all roles")
        yield _row(row, "megabytes", max(one.sent for one in found) / 1e6, "MB")
        alone = [glued(data, epsilon, seed, number) for seed in seeds]
        yield from _apart(f"{row}, each on its own, side by side", alone, trusted)


def of_trusting(data: Coded, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield what parties reach that trust each other with half of the noise."""
    return _with_options(data, seeds, 2, "partners trusted", colluding=0)


def of_servers(data: Coded, seeds: Sequence[int], parties: int) -> Iterator[Row]:
    """Yield what parties reach of whom three, or four, multiply in place of the coordinator."""
    for number in (3, 4):
        yield from _with_options(data, seeds, parties, f"{number} servers", servers=("p0", "p1", "p2", "p3")[:number])


def _with_options(data: Coded, seeds: Sequence[int], parties: int, title: str, **options: Any) -> Iterator[Row]:
    trusted = [curator(data, EPSILON, seed) for seed in seeds]
    found, row = [vertical(data, EPSILON, seed, parties, **options) for seed in seeds], f"{parties} parties, {title}"
    yield from _ratios(f"{data.name}, epsilon {EPSILON}, {row}", found, trusted)


def of_cuts(data: Coded, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield what people and columns cut both ways reach: two groups of two parties, three groups where columns lack."""
    trusted = [curator(data, EPSILON, seed) for seed in seeds]
    for title, study in (
        ("2 x 2 parties", grid_of(data, EPSILON, 2, 2)),
        ("3 x 2 parties, one lacks half of its columns", grid_of(data, EPSILON, 3, 2, lacking=True)),
    ):
        found, row = [found_by(data, study, seed) for seed in seeds], f"{data.name}, epsilon {EPSILON}, {title}"
        yield from _apart(row, found, trusted)
        yield from _ratios(row, found, trusted)
        yield _row(row, "megabytes", max(one.sent for one in found) / 1e6, "MB")
        lacking = len(not_covered(groups_of(study), study.schema.names))
        yield _row(row, "not covered", lacking, "lines of the plan on what lacks people")
    yield from _in_processes(data, grid_of(data, EPSILON, 2, 2, delta=REAL_DELTA), "2 x 2 parties in processes", None)


def of_processes(data: Coded, published: float | None) -> Iterator[Row]:
    """Yield the wall time of two parties and a coordinator, each in a process of its own."""
    study = study_of(data, EPSILON, cut(data, 2), Synthesis(), REAL_DELTA)
    return _in_processes(data, study, "2 parties in processes", published)


def _in_processes(data: Coded, study: Study, title: str, published: float | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        sources = {name: str(Path(folder) / f"{name}.parquet") for name in (party.name for party in study.parties)}
        for name, rows in held_by(data, study).items():
            pq.write_table(rows, sources[name])
        begin = time.perf_counter()
        release = simulate(study, sources, runtime="processes", folder=Path(folder) / "run")
        seconds = time.perf_counter() - begin
    result = release.result
    if not isinstance(result, SyntheticTable):
        raise InputError("the synthesis made no table")
    row = f"{data.name}, epsilon {EPSILON}, delta {float(REAL_DELTA):g}, {title}"
    yield _row(row, "wall seconds", seconds, "s, end to end", published=published)
    made = codes_of(result.table.to_arrow(), data.schema)
    for ways, value in distances(data.codes(), made, data.domain).items():
        yield _row(row, f"tvd{ways}", value, "distance")


def _apart(row: str, found: Sequence[Found], trusted: Sequence[Found] | None) -> Iterator[Row]:
    for ways in found[0].apart:
        baseline = None if trusted is None else _mean(trusted, ways)
        apart = [one.apart[ways] for one in found]
        mean = _row(row, f"tvd{ways}", _mean(found, ways), "distance", baseline)
        yield replace(mean, error=standard_error(apart), runs=len(apart))
        yield _row(row, f"tvd{ways}, worst", max(apart), "distance")


def _ratios(row: str, found: Sequence[Found], trusted: Sequence[Found]) -> Iterator[Row]:
    for ways in found[0].apart:
        each = [one.apart[ways] / other.apart[ways] for one, other in zip(found, trusted, strict=True)]
        mean = _row(row, f"tvd{ways} ratio", _mean(found, ways) / _mean(trusted, ways), "of the curator's", 1.0)
        yield replace(mean, error=standard_error(each), runs=len(each))
        yield _row(row, f"tvd{ways} ratio, worst seed", max(each), "of the curator's", 1.0)


def _mean(found: Sequence[Found], ways: int) -> float:
    return float(np.mean([one.apart[ways] for one in found]))


def _row(
    row: str, metric: str, value: float, unit: str, baseline: float | None = None, published: float | None = None
) -> Row:
    return Row(bench="vertical", row=row, metric=metric, value=value, unit=unit, baseline=baseline, published=published)
