"""The bench of growth: a point is run as it says, beside its plan, and a broken bound is an error."""

import subprocess
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.growth import run, worker
from syndic_lab.bench.growth.worker import Found, Point
from syndic_lab.bench.guard.run import WorseError

FOUND = Found(at_most=300.0, expected=200.0, megabytes=180.0, seconds=2.0, announced_seconds=3.0)
SMALL = [
    Point(rows=200, columns=3),
    Point(rows=200, columns=4, cut="columns", levels=3),
    Point(rows=210, columns=3, parties=3, method="marginals"),
]


@pytest.mark.parametrize("point", SMALL, ids=run.words)
def test_a_small_point_is_planned_and_run(point: Point, tmp_path: Path) -> None:
    worker.write(point, tmp_path)
    tables = [pq.read_table(tmp_path / f"p{place}.parquet") for place in range(point.parties)]
    assert sum(one.num_rows for one in tables) == point.rows * (point.parties if point.cut == "columns" else 1)
    study = point.study()
    for column in study.schema.columns:
        values = np.concatenate([np.asarray(one[column.name]) for one in tables if column.name in one.column_names])
        assert 0 <= values.min() <= values.max() < column.size
    found = worker.measure(tmp_path)
    assert found.seconds > 0
    assert 100 < found.expected <= found.at_most
    assert (found.cells > 0) == (point.method == "synthesis")


def test_rows_and_pictures_say_what_was_announced_and_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "measured", lambda _: FOUND)
    rows = list(BENCHES["growth"](True))
    points = [point for _, _, points in run.axes(True) for point in points]
    assert [row.row for row in rows[:-1:3]] == list(map(run.words, points))
    assert [(row.value, row.baseline) for row in rows[:3]] == [(180.0, 200.0), (300.0, 180.0), (2.0, 3.0)]
    assert (rows[-1].metric, rows[-1].value) == ("furthest", 200 / 180)
    assert len(list(Path("bench-results").glob("growth-*.svg"))) == 2 * len(run.axes(True))


def test_more_memory_than_announced_is_an_error_once_all_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    points = [point for _, _, points in run.axes(True) for point in points]
    found = [replace(FOUND, megabytes=301.0), *[FOUND] * (len(points) - 1)]
    monkeypatch.setattr(run, "measured", lambda point: found[points.index(point)])
    measuring = run.rows(True)
    rows = list(islice(measuring, 3 * len(points) + 1))
    with pytest.raises(WorseError, match="301 MB used, at most 300"):
        next(measuring)
    assert len(rows) == 3 * len(points) + 1


def test_a_run_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        returncode, stderr, stdout = 1, "MemoryError: no room\n", ""

    monkeypatch.setattr(subprocess, "run", lambda *_, **__: Done)
    with pytest.raises(RuntimeError, match="no room"):
        run.measured(SMALL[0])


@pytest.mark.bench
def test_a_point_is_measured_in_a_process_of_its_own() -> None:
    found = run.measured(SMALL[0])
    assert 100 < found.megabytes < 1.5 * found.expected
