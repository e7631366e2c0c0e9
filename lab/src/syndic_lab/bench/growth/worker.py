"""One run in a process of its own, so that its memory can be measured.

`python -m syndic_lab.bench.growth.worker FOLDER`: FOLDER has `point.json` and a Parquet file of every party.
Prints one JSON object.
"""

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from syndic.data import Schema
from syndic.document import Document, from_file, to_json
from syndic.kernel import Limits, Member
from syndic.methods import AnyMethod, Marginals, Synthesis
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import Budget, Unit, default_delta
from syndic.study import Study, plan, simulate
from syndic.study.machine import in_process_bytes
from syndic_lab.bench.memory import peak_megabytes

MIXED: Final = (2, 3, 5, 10, 20, 50)
"""Levels of the columns in turn, where a point does not say how many."""

_PART: Final = 10**6


@final
class Point(Document):
    """A study by its size: rows of all parties together; `levels` of every column, 0 for mixed sizes."""

    method: Literal["synthesis", "marginals"] = "synthesis"
    cut: Literal["rows", "columns"] = "rows"
    rows: int = 10_000
    columns: int = 15
    parties: int = 2
    levels: int = 0
    memory_mb: int = 2000

    @property
    def each(self) -> int:
        """Rows of each party."""
        return self.rows if self.cut == "columns" else self.rows // self.parties

    def study(self) -> Study:
        """Return the study; marginals count every column and every column with the next."""
        names = [f"c{place}" for place in range(self.columns)]
        sizes = [self.levels or MIXED[place % len(MIXED)] for place in range(self.columns)]
        together = [names[place : place + 2] for place in range(self.columns - 1)]
        tables = (*((name,) for name in names), *map(tuple, together))
        protocol: AnyMethod = Marginals(cliques=tables) if self.method == "marginals" else Synthesis()
        cuts = [place * self.columns // self.parties for place in range(self.parties + 1)]
        held = [tuple(names[low:high]) if self.cut == "columns" else None for low, high in pairwise(cuts)]
        return Study(
            name="growth",
            unit=Unit(neighbours="replace" if self.cut == "columns" else "add_remove"),
            budget=Budget.of(1, default_delta(max(self.rows, 100))),
            protocol=protocol,
            parties=tuple(
                Member(name=f"p{place}", people=self.each, columns=columns) for place, columns in enumerate(held)
            ),
            schema=Schema.from_domain(dict(zip(names, sizes, strict=True))),
            limits=Limits(memory_mb=self.memory_mb),
        )


@final
class Found(Document):
    """What was announced and what was used: millions of bytes, CPU seconds; the model's cells."""

    at_most: float
    expected: float
    megabytes: float
    seconds: float
    announced_seconds: float
    cells: int = 0


def rows_of(study: Study, count: int, seed: int) -> Iterator[pa.Table]:
    """Yield rows in parts; neighbouring columns depend on each other through a hidden number that drifts."""
    domain = study.schema.domain
    for part, start in enumerate(range(0, count, _PART)):
        rows, draws = min(_PART, count - start), np.random.default_rng([seed, part])
        hidden = draws.random(rows)
        columns = {}
        for name, size in zip(domain.names, domain.sizes, strict=True):
            hidden = np.clip(hidden + draws.normal(0, 0.05, rows), 0, 0.999)
            columns[name] = (np.clip(hidden + draws.normal(0, 0.15, rows), 0, 0.999) * size).astype(np.int16)
        yield pa.table(columns)


def write(point: Point, folder: Path) -> None:
    """Write the files that the worker reads."""
    study = point.study()
    (folder / "point.json").write_bytes(to_json(point))
    for place, party in enumerate(study.parties):
        # who holds different columns of the same people has them from the same rows
        parts = rows_of(study, point.each, 0 if party.columns else place)
        names = list(party.columns or study.schema.names)
        with pq.ParquetWriter(folder / f"{party.name}.parquet", pa.schema([(n, pa.int16()) for n in names])) as file:
            for part in parts:
                file.write_table(part.select(names))


def measure(folder: Path) -> Found:
    """Plan, run, and return what was announced and what was used."""
    study = from_file(folder / "point.json", Point).study()
    needs = plan(study).resources
    beside = in_process_bytes(len(study.parties))
    begin = time.process_time()
    result = simulate(study, {party.name: folder / f"{party.name}.parquet" for party in study.parties}, seed=1).result
    return Found(
        at_most=(needs.memory_bytes + beside) / 1e6,
        expected=(needs.likely_bytes + beside) / 1e6,
        megabytes=peak_megabytes(),
        seconds=time.process_time() - begin,
        announced_seconds=needs.seconds,
        cells=result.note.cells if isinstance(result, SyntheticTable) else 0,
    )


if __name__ == "__main__":
    sys.stdout.write(to_json(measure(Path(sys.argv[1]))).decode() + "\n")
