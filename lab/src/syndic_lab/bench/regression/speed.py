"""Streamed mixing against a plain product of the same shape: CPU seconds, and the memory it takes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from syndic.methods.regression.mixing import signs_of
from syndic.model.gram.mixing import Mixer, tile_of
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.row import Row

_MIXES, _COLUMNS, _BITS = 3575, 11, 10
_BATCH = 1 << 16


def rows(quick: bool) -> Iterator[Row]:
    """Yield the figures for the published number of mixes, at 3 million people or, quick, at a tenth."""
    people = 300_000 if quick else 3_000_000
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = f"from syndic_lab.bench.regression.speed import report; report({people}, {_MIXES}, {_COLUMNS})"
    output = subprocess.run([sys.executable, "-c", code], env=settings, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(output.stdout)
    title = f"mixing, {people} rows, {_MIXES} mixes, {_COLUMNS} columns"
    for metric, value, unit, baseline in (
        ("cpu seconds", found["streamed"], "s", found["dense"]),
        ("ratio to a dense product in single precision", found["streamed"] / found["dense"], "ratio", None),
        ("peak memory", found["memory"], "MB", found["whole"]),
    ):
        yield Row(bench="regression", row=title, metric=metric, value=value, unit=unit, baseline=baseline)


def report(people: int, mixes: int, columns: int) -> None:
    """Print what was measured, in the child process."""
    print(json.dumps(measure(people, mixes, columns)))


def measure(people: int, mixes: int, columns: int) -> dict[str, float]:
    """Mix made-up rows, a batch at a time, and multiply as much by signs that are there already."""
    generator = np.random.default_rng(0)
    batch = generator.integers(-(1 << _BITS), 1 << _BITS, (_BATCH, columns), dtype=np.int32)
    begun = time.process_time()
    mixer = Mixer(mixes=mixes, width=columns, bits=_BITS, stream=signs_of(bytes(32)))
    for start in range(0, people, _BATCH):
        mixer.add(batch[: people - start])
    mixer.total()
    streamed = time.process_time() - begun
    memory = peak_megabytes()
    return {
        "streamed": streamed,
        "dense": _dense(people, mixes, batch[: tile_of(_BITS)].astype(np.float32), generator),
        "memory": memory,
        # all signs in single precision
        "whole": 4 * people * mixes / 1e6,
    }


def _dense(people: int, mixes: int, rows: np.ndarray, generator: np.random.Generator) -> float:
    """Return the CPU seconds of the product with a block of signs, as often as it takes for all people."""
    signs = np.where(generator.integers(0, 2, (mixes, len(rows)), dtype=np.int8), np.float32(1), np.float32(-1))
    total = np.zeros((mixes, rows.shape[1]), dtype=np.float32)
    begun = time.process_time()
    for _ in range(-(-people // len(rows))):
        total += signs @ rows
    return time.process_time() - begun
