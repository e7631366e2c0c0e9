"""Time and memory over rows, columns, parties and levels, each run in a fresh process, beside what its plan announced.

Runs that use more memory than their plans allow are an error at the end, once everything is measured.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from syndic.document import from_json
from syndic.report.figure import Curve, Line
from syndic_lab.bench.growth.worker import Found, Point, write
from syndic_lab.bench.guard.run import WorseError
from syndic_lab.bench.row import Row

FOLDER = Path("bench-results")

Axis = tuple[str, Callable[[Point], int], tuple[Point, ...]]
"""What grows, how to read it off a point, and the points in order."""


def _along(base: Point, name: str, values: Sequence[int]) -> tuple[Point, ...]:
    return tuple(replace(base, **{name: value}) for value in values)


_TEN: Final = Point(columns=10)
_TABLES: Final = Point(method="marginals", columns=10)
_VERTICAL: Final = Point(cut="columns", columns=12)
_WIDE: Final = Point(rows=40_000)
_MANY: Final = Point(method="marginals", columns=4, levels=4)


def axes(quick: bool) -> tuple[Axis, ...]:
    """Return what is measured."""
    rows = (10**4, 10**5) if quick else (10**4, 10**5, 10**6, 10**7)
    more = (10**5,) if quick else (10**6, 10**7, 10**8)
    apart = (10**4,) if quick else (10**4, 10**5, 10**6)
    columns = (5, 15) if quick else (5, 15, 50, 100, 200, 500)
    levels = (2, 64) if quick else (2, 8, 64, 1000, 10_000)
    parties = (2, 50) if quick else (2, 10, 100, 1000, 5000, 10_000)
    return (
        ("rows", lambda point: point.rows, _along(_TEN, "rows", rows)),
        ("rows, tables only", lambda point: point.rows, _along(_TABLES, "rows", more)),
        ("rows, columns of two parties", lambda point: point.rows, _along(_VERTICAL, "rows", apart)),
        ("columns", lambda point: point.columns, _along(_WIDE, "columns", columns)),
        ("levels", lambda point: point.levels, _along(_TEN, "levels", levels)),
        ("parties", lambda point: point.parties, tuple(_of_parties(number) for number in parties)),
    )


def _of_parties(number: int) -> Point:
    """Return a study of so many parties of 20 rows each."""
    return replace(_MANY, parties=number, rows=20 * number)


def rows(quick: bool) -> Iterator[Row]:
    """Yield the figures of every run, and draw them; then raise `WorseError` if one is beyond what was announced."""
    beyond, furthest = [], 1.0
    for name, value, points in axes(quick):
        found = []
        for point in points:
            one = measured(point)
            found.append((value(point), one))
            yield from _rows(point, one)
            furthest = max(furthest, one.megabytes / one.expected, one.expected / one.megabytes)
            if one.megabytes > one.at_most:
                beyond.append(f"{words(point)}: {one.megabytes:.0f} MB used, at most {one.at_most:.0f} announced")
        draw(name, found)
    yield Row(bench="growth", row="all", metric="furthest", value=furthest, unit="times, memory used and expected")
    if beyond:
        raise WorseError("; ".join(beyond))


def measured(point: Point) -> Found:
    """Return what a run in a fresh process announced and used."""
    with tempfile.TemporaryDirectory() as place:
        write(point, Path(place))
        command = [sys.executable, "-m", "syndic_lab.bench.growth.worker", place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words(point)}: {done.stderr.strip().splitlines()[-1]}")
    return from_json(done.stdout.encode(), Found, where="the worker")


def words(point: Point) -> str:
    """Return what was run."""
    levels = f"{point.levels} levels" if point.levels else "2 to 50 levels"
    who = f"{point.parties} parties" + (" of the same people" if point.cut == "columns" else "")
    return f"{point.method}, {point.rows:,} rows, {point.columns} columns of {levels}, {who}"


def _rows(point: Point, found: Found) -> Iterator[Row]:
    def row(metric: str, value: float, unit: str, baseline: float) -> Row:
        return Row(bench="growth", row=words(point), metric=metric, value=value, unit=unit, baseline=baseline)

    yield row("megabytes", found.megabytes, "MB used, beside those expected", found.expected)
    yield row("megabytes at most", found.at_most, "MB announced, beside those used", found.megabytes)
    yield row("seconds", found.seconds, "s of processor time, beside those announced", found.announced_seconds)


def draw(name: str, found: Sequence[tuple[int, Found]]) -> None:
    """Write two pictures, of memory and of time."""
    FOLDER.mkdir(exist_ok=True)
    shown: dict[str, dict[str, Callable[[Found], float]]] = {
        "memory": {
            "used": lambda one: one.megabytes,
            "expected": lambda one: one.expected,
            "at most": lambda one: one.at_most,
        },
        "time": {"used": lambda one: one.seconds, "announced": lambda one: one.announced_seconds},
    }
    for what, lines in shown.items():
        unit = "MB" if what == "memory" else "CPU seconds"
        picture = Curve(
            title=f"{what.capitalize()} over {name}",
            description=f"{unit} of the whole run in one process, over {name}.",
            width=420,
            lines=tuple(
                Line(key, tuple((x, max(value(one), 0.01)) for x, one in found), dots=key == "used")
                for key, value in lines.items()
            ),
            x_axis=name.partition(",")[0],
            y_axis=unit,
            x_log=True,
            y_log=True,
        )
        path = FOLDER / f"growth-{name.replace(', ', '-').replace(' ', '-')}-{what}.svg"
        path.write_text(picture.to_svg(), encoding="utf-8")
