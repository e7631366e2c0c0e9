"""One synthesis of many columns in a process of its own, so that its memory can be measured.

`python -m syndic_lab.bench.model.synthesis_worker COLUMNS ROWS` prints one JSON object.
"""

import json
import sys
import time

import numpy as np
import pyarrow as pa

from syndic.data import Schema
from syndic.kernel import Member
from syndic.methods import Synthesis
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import Budget, Unit, default_delta
from syndic.study import Study, plan, simulate
from syndic_lab.bench.memory import peak_megabytes

SIZES = (2, 3, 5, 10, 20, 50)


def study_of(columns: int, rows: int) -> Study:
    """Return a study of two parties with columns of mixed sizes."""
    return Study(
        name="wide",
        unit=Unit(neighbours="add_remove"),
        budget=Budget.of(1, default_delta(2 * rows)),
        protocol=Synthesis(),
        parties=(Member(name="north", people=rows), Member(name="south", people=rows)),
        schema=Schema.from_domain({f"c{place}": SIZES[place % len(SIZES)] for place in range(columns)}),
    )


def rows_of(study: Study, count: int, seed: int) -> pa.Table:
    """Return rows in which neighbouring columns hang together through something hidden that drifts."""
    draws = np.random.default_rng(seed)
    hidden = draws.random(count)
    columns = {}
    for name, size in zip(study.schema.domain.names, study.schema.domain.sizes, strict=True):
        hidden = np.clip(hidden + draws.normal(0, 0.05, count), 0, 0.999)
        columns[name] = (np.clip(hidden + draws.normal(0, 0.15, count), 0, 0.999) * size).astype(np.int64)
    return pa.table(columns)


def main() -> None:
    """Plan, run, and say what was announced and what was used."""
    columns, rows = (int(word) for word in sys.argv[1:])
    study = study_of(columns, rows)
    announced = plan(study).resources.memory_bytes
    sources = {party.name: rows_of(study, rows, seed) for seed, party in enumerate(study.parties)}
    begin = time.process_time()
    result = simulate(study, sources, seed=1).result
    cells = result.note.cells if isinstance(result, SyntheticTable) else 0
    found = {
        "announced": announced / 1e6,
        "megabytes": peak_megabytes(),
        "seconds": time.process_time() - begin,
        "cells": cells,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
