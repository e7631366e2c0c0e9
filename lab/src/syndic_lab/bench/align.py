"""Alignment: every party in a process of its own, over sockets, from files with ids to the stored order."""

import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from syndic.data import Schema
from syndic.document import exact
from syndic.kernel import Member
from syndic.methods import Align
from syndic.methods.align import CommonPeople
from syndic.privacy import Budget, Unit
from syndic.study.document import Study
from syndic.study.simulate import simulate
from syndic_lab.bench.row import Row

_SIZES = ((300_000, 2), (300_000, 3))
_QUICK_SIZES = ((20_000, 2), (20_000, 3))


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one alignment took, and how many people it found and should have found."""

    seconds: float
    processor_seconds: float
    megabytes: float
    memory_megabytes: float
    people: int
    expected: int


def rows(quick: bool, ids: int | None = None) -> Iterator[Row]:
    """Yield time, work, traffic and memory for two and three parties, or for two with so many `ids` each."""
    yield Row(bench="align", row="this machine", metric="cpu seconds, 10^7 additions", value=_calibrated(), unit="s")
    sizes = _QUICK_SIZES if quick else _SIZES
    for people, parties in sizes if ids is None else ((ids, 2),):
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(people, parties, Path(folder))
        what = f"{people} ids a party, {parties} parties"
        figures = (
            ("seconds", measured.seconds, "s"),
            ("cpu seconds, all parties", measured.processor_seconds, "s"),
            ("megabytes", measured.megabytes, "MB"),
            ("memory of a party", measured.memory_megabytes, "MB"),
        )
        for metric, value, unit in figures:
            yield Row(bench="align", row=what, metric=metric, value=value, unit=unit)
        yield Row(
            bench="align",
            row=what,
            metric="common people",
            value=measured.people,
            unit="people",
            baseline=measured.expected,
        )


def measure(people: int, parties: int, folder: Path) -> Measured:
    """Align parties that each hold so many of a third more people; the baseline is the intersection of plain sets."""
    draws = np.random.default_rng(1)
    sources, common = {}, set(range(4 * people // 3))
    for number in range(parties):
        held = draws.permutation(4 * people // 3)[:people]
        common &= set(held.tolist())
        path = folder / f"p{number}.parquet"
        pq.write_table(pa.table({"id": [f"id {each:09d}" for each in held], f"c{number}": held % 2}), path)
        sources[f"p{number}"] = str(path)
    before, start = _children(), time.perf_counter()
    release = simulate(_study(people, parties), sources, runtime="processes", folder=folder / "run")
    seconds, after = time.perf_counter() - start, _children()
    if not isinstance(release.result, CommonPeople):
        raise TypeError("an alignment publishes common people")
    return Measured(
        seconds=seconds,
        processor_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        megabytes=sum(each.request_bytes + each.reply_bytes for each in release.transcript) / 1e6,
        memory_megabytes=after.ru_maxrss * 1024 / 1e6,
        people=release.result.note.people or 0,
        expected=len(common),
    )


def _study(people: int, parties: int) -> Study:
    return Study(
        name="alignment",
        unit=Unit(neighbours="replace"),
        budget=Budget(epsilon=exact(1)),
        protocol=Align(),
        parties=tuple(Member(name=f"p{number}", people=people, columns=(f"c{number}",)) for number in range(parties)),
        schema=Schema.from_domain({f"c{number}": 2 for number in range(parties)}),
    )


def _calibrated() -> float:
    """Return how long a plain loop takes: machines that are busy or slow take longer for everything."""
    start = time.process_time()
    for number in range(10**7):
        number + 1
    return time.process_time() - start


def _children() -> resource.struct_rusage:
    return resource.getrusage(resource.RUSAGE_CHILDREN)
