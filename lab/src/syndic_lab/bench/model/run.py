"""Graphical models: the engine's step, fit, memory, questions and rows, next to `mbi` in the same run.

`mbi` runs in another interpreter, named by `SYNDIC_MBI_PYTHON`; without it its baselines are missing.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from syndic.data import Domain
from syndic.model.markov import Measurement, fit, plan_tree
from syndic.model.markov.kernels import NUMPY_KERNELS, Kernels, kernels
from syndic.model.markov.passes import Passes
from syndic_lab.bench.model import synthesis as model_synthesis
from syndic_lab.bench.model.mirror import mirror
from syndic_lab.bench.row import Row

PEER = Path(__file__).with_name("peer.py")
DEVIATION = 27.0


def rows(quick: bool) -> Iterator[Row]:
    """Yield every part's rows as they are measured."""
    for part in PARTS:
        yield from part(quick)


def step_rows(quick: bool) -> Iterator[Row]:
    """Yield one step on a clique of a million cells with twenty three-way tables, in CPU time."""
    peer = peer_figures(quick)
    name = "engine, 1e6 cells, 20 three-way tables"
    ours = step_milliseconds(kernels(), 10 if quick else 40)
    yield _row(name, "milliseconds a step", ours, "ms", peer.get("step"))
    if "step" in peer:
        yield _row(f"{name}, mbi against ours", "ratio", peer["step"] / ours, "times")
        yield _row(f"{name}, mbi with its line search", "milliseconds a step", peer["search"], "ms", ours)
        yield _row(f"{name}, before the first step", "seconds", prepare_seconds(), "s", peer["compile"])
    numpy = step_milliseconds(NUMPY_KERNELS, 5 if quick else 20)
    yield _row(f"{name}, without a compiler", "milliseconds a step", numpy, "ms", ours)


def fit_rows(quick: bool) -> Iterator[Row]:
    """Yield a whole fit by both optimisers, the second held to the loss of the first."""
    domain, tables = six_columns()
    fit(domain, tables, iterations=1)  # compiled
    start = time.process_time()
    fitted = fit(domain, tables, target=1.0)
    seconds = time.process_time() - start
    name = "fit, 1e6 cells, 20 three-way tables"
    start = time.process_time()
    target = fitted.loss / (0.5 * sum(one.values.size for one in tables))
    slow = fit(domain, tables, optimiser=mirror, target=target, iterations=200 if quick else 2000, tolerance=0)
    slower = time.process_time() - start
    yield _row(name, "passes", fitted.iterations, "passes", slow.iterations)
    yield _row(name, "seconds", seconds, "s", slower)
    yield _row(name, "loss", fitted.loss, "half squares", slow.loss)


def wide_rows(quick: bool) -> Iterator[Row]:
    """Yield the memory and time of a model of a hundred columns of mixed sizes, next to what its plan announced."""
    generator = np.random.default_rng(5)
    sizes = generator.choice([2, 3, 5, 8, 16, 40], 100)
    domain = Domain(tuple(f"c{place}" for place in range(100)), tuple(int(size) for size in sizes))
    sets = [
        *(domain.names[place : place + 3] for place in range(98)),
        *((domain.names[place], domain.names[place + 4]) for place in range(0, 96, 12)),
    ]
    tables = [
        Measurement(part.names, generator.normal(1e5 / part.size, DEVIATION, part.sizes), DEVIATION**2)
        for part in map(domain.project, sets)
    ]
    tree = plan_tree(domain, sets)
    start = time.process_time()
    fitted = fit(domain, tables, tree=tree, iterations=50 if quick else 300, target=0)
    seconds = time.process_time() - start
    tracemalloc.start()
    fit(domain, tables, tree=tree, iterations=20, target=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    name = f"100 columns, {len(sets)} tables, {tree.cells} cells"
    yield _row(name, "megabytes", peak / 1e6, "MB", tree.memory_for(sets) / 1e6)
    yield _row(name, "milliseconds a step", 1e3 * seconds / max(1, fitted.iterations), "ms")
    start = time.process_time()
    fitted.field.sample(50_000, generator)
    yield _row(f"{name}, 50000 rows", "seconds", time.process_time() - start, "s")
    start = time.process_time()
    fitted.field.marginals(list(itertools.combinations(domain.names[:40], 2)))
    yield _row(f"{name}, 780 pairs asked", "seconds", time.process_time() - start, "s")


def six_columns() -> tuple[Domain, list[Measurement]]:
    """Return six columns of ten levels with every three-way table of 45,000 rows, noisy."""
    domain = Domain(tuple("abcdef"), (10,) * 6)
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.full(10, 0.3), size=(20, 6))  # of the levels, in twenty kinds of rows
    tables = []
    for axes in itertools.combinations(range(6), 3):
        truth = 45_000 / 20 * np.einsum("ka,kb,kc->abc", *(shares[:, axis] for axis in axes))
        names = tuple(domain.names[axis] for axis in axes)
        tables.append(Measurement(names, truth + generator.normal(0, DEVIATION, (10,) * 3), DEVIATION**2))
    return domain, tables


def step_milliseconds(loops: Kernels, repeats: int) -> float:
    """Return the median CPU milliseconds of one step, one thread, after one that compiles."""
    domain, tables = six_columns()
    passes = Passes(plan_tree(domain, [domain.names]), [one.names for one in tables], loops, 1)
    moves = np.random.default_rng(1).normal(0, 0.01, passes.measured)
    passes.start(np.zeros(passes.measured))
    passes.advance(moves)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        passes.advance(moves)
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def prepare_seconds() -> float:
    """Return the CPU seconds from tables to the first step, all index tables included."""
    domain, tables = six_columns()
    start = time.process_time()
    fit(domain, tables, iterations=0)
    return time.process_time() - start


def peer_figures(quick: bool) -> dict[str, float]:
    """Return CPU milliseconds a step and seconds of compilation of `mbi`, nothing where it cannot be run."""
    python = os.environ.get("SYNDIC_MBI_PYTHON")
    if not python:
        sys.stderr.write("no baseline: set SYNDIC_MBI_PYTHON to an interpreter that has mbi 2\n")
        return {}
    done = subprocess.run([python, PEER, "100" if quick else "200"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(f"no baseline: {done.stderr.strip().splitlines()[-1]}\n")
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None = None) -> Row:
    return Row(bench="model", row=row, metric=metric, value=float(value), unit=unit, baseline=baseline)


# Each takes `quick` and yields rows; others are added here.
PARTS: list[Callable[[bool], Iterator[Row]]] = [step_rows, fit_rows, wide_rows, model_synthesis.rows]
