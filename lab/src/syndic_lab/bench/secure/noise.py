"""104 averages with noise that nobody knows, one process a party over real sockets, beside the published circuit.

Published (Jayaraman et al. 2018, 104 features, two servers): 40.7 million gates, 777 MB, 22.3 s with Yao's protocol,
56.5 s with dual execution. That circuit adds two inputs and Laplace noise from a fixed-point logarithm; ours has an
exact law, and withstands a server or a dealer that lies. Time here is from when every process is ready to the last
share of the opened sums; processes are not started or stopped within it.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from syndic.kernel import Exchange
from syndic.study import Release, Study, simulate
from syndic_lab.bench.row import Row

PUBLISHED_SECONDS = 22.3
PUBLISHED_DUAL_SECONDS = 56.5
PUBLISHED_BYTES = 777e6

_FEATURES = 104
_PARTIES = ("north", "south", "east")
_PEOPLE = 1000


def rows(quick: bool) -> Iterator[Row]:
    """Yield seconds and bytes."""
    study = _study()
    runs = [_run(study) for _ in range(1 if quick else 3)]
    what = f"two-server noise, {_FEATURES} values"
    seconds = statistics.median(seconds for seconds, _ in runs)
    megabytes = _bytes(runs[0][1].transcript) / 1e6
    yield _row(what, "seconds", seconds, "s", PUBLISHED_SECONDS)
    yield _row(f"{what}, against dual execution", "seconds", seconds, "s", PUBLISHED_DUAL_SECONDS)
    yield _row(what, "megabytes", megabytes, "MB", PUBLISHED_BYTES / 1e6)
    yield _row(what, "times less time than published", PUBLISHED_SECONDS / seconds, "x", None)
    yield _row(what, "times fewer bytes than published", PUBLISHED_BYTES / 1e6 / megabytes, "x", None)


def _row(row: str, metric: str, value: float, unit: str, published: float | None) -> Row:
    return Row(bench="secure", row=row, metric=metric, value=value, unit=unit, published=published)


def _run(study: Study) -> tuple[float, Release]:
    """Run once; return the seconds between the last "ready" and the last opened share, and the release."""
    marks: dict[str, float] = {}

    def progress(what: str, done: int, total: int) -> None:
        if done == total:
            marks[what] = time.perf_counter()

    generator = np.random.default_rng(1)
    names = study.schema.names
    sources = {
        party: pa.table(dict(zip(names, generator.uniform(-1, 1, (_FEATURES, _PEOPLE)), strict=True)))
        for party in _PARTIES
    }
    with tempfile.TemporaryDirectory() as folder:
        release = simulate(study, sources, runtime="processes", folder=Path(folder), progress=progress)
        return marks["two_open"] - marks["ready"], release


def _bytes(transcript: tuple[Exchange, ...]) -> int:
    return sum(exchange.request_bytes + exchange.reply_bytes for exchange in transcript)


def _study() -> Study:
    columns = "".join(
        f'[[schema.columns]]\nname = "x{place}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 2\n'
        "missing = { value = 0.0 }\n"
        for place in range(_FEATURES)
    )
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = {_PEOPLE}\n' for name in _PARTIES)
    return Study.loads(
        f'name = "secure noise"\n[unit]\nneighbours = "replace"\n[budget]\nepsilon = 0.5\ndelta = 1e-6\n'
        f'[protocol]\nmethod = "average"\nservers = ["north", "south"]\n{parties}{columns}'
    )
