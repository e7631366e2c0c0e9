"""A run stays within the memory that its plan announced, also where the model had to be made smaller to fit."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from syndic.model.selection import Adaptive

RUN = """
import json, sys
import numpy as np, pyarrow as pa
import syndic as sy
from syndic_lab.bench.memory import peak_megabytes

columns, rows, limit = (int(word) for word in sys.argv[1:])
sizes = {f"c{place}": (2, 3, 5, 10, 20, 50)[place % 6] for place in range(columns)}
study = sy.Study(
    name="wide", unit=sy.Unit(neighbours="add_remove"), budget=sy.Budget.of(1, "1e-8"), protocol=sy.Synthesis(),
    parties=tuple(sy.Member(name=name, people=rows) for name in ("north", "south")),
    schema=sy.Schema.from_domain(sizes), limits=sy.Limits(memory_mb=limit),
)
sources = {}
for seed, party in enumerate(study.parties):
    draws = np.random.default_rng(seed)
    hidden = draws.random(rows)
    codes = {n: (np.clip(hidden + draws.normal(0, 0.2, rows), 0, 0.999) * s).astype(int) for n, s in sizes.items()}
    sources[party.name] = pa.table(codes)
needs = sy.plan(study).resources
release = sy.simulate(study, sources, seed=1)
peak = 1e6 * peak_megabytes()
json.dump({
    "announced": needs.memory_bytes, "expected": needs.expected_bytes, "peak": peak, "cells": release.result.note.cells,
    "most": study.plan.size.model_cells, "rows": len(release.table),
}, sys.stdout)
"""


def run(columns: int, rows: int, limit: int) -> dict[str, Any]:
    command = [sys.executable, "-c", RUN, str(columns), str(rows), str(limit)]
    # as many threads of linear algebra as a person's run has
    settings = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, env=settings).stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows", "limit"), [(16, 3000, 430)])
def test_the_peak_is_below_what_was_announced(columns: int, rows: int, limit: int) -> None:
    found = run(columns, rows, limit)
    assert found["cells"] <= found["most"] < Adaptive().cells
    assert found["peak"] <= found["announced"] <= limit * 10**6
    assert found["expected"] / 1.5 <= found["peak"] <= 1.5 * found["expected"]
    assert abs(found["rows"] - 2 * rows) < 600
