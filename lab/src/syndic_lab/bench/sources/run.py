"""All two-way tables of a Parquet file: ours against plain numpy, DuckDB and polars on the same file.

Every method runs in a process of its own, so that its time and peak memory are its own; methods take turns and
figures are medians. Then the same tables of a PostgreSQL server, counted there or streamed.
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data import Schema, Table, open_source
from syndic.document import to_json
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.row import Row
from syndic_lab.bench.sources import pushed as sources_pushed

_SIZES = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)  # Adult, as PrivMRF codes it
_NAMES = tuple(f"c{place}" for place in range(len(_SIZES)))
_PAIRS = tuple(itertools.combinations(range(len(_SIZES)), 2))
_UNITS = {"seconds": "s", "cpu seconds": "s", "megabytes": "MB"}
_PART = 1_000_000


def rows(quick: bool) -> Iterator[Row]:
    """Yield seconds, CPU seconds and peak megabytes of each method; ours has the best other as baseline."""
    count, repeats = (_PART, 3) if quick else (10 * _PART, 5)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        _write(file, count)
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in _METHODS}
        for turn in range(repeats):
            for name in list(_METHODS)[:: 1 if turn % 2 == 0 else -1]:
                runs[name].append(_measured(name, file))
    if len({run["digest"] for found in runs.values() for run in found}) != 1:
        raise RuntimeError("the methods disagree on the counts")
    what = f"{count} rows, {len(_SIZES)} uint8 columns, Parquet, {len(_PAIRS)} two-way tables"
    for metric, unit in _UNITS.items():
        medians = {name: statistics.median(run[metric] for run in found) for name, found in runs.items()}
        best = min(value for name, value in medians.items() if name != "syndic")
        for name, value in medians.items():
            baseline = best if name == "syndic" else None
            yield Row(bench="sources", row=f"{what}, {name}", metric=metric, value=value, unit=unit, baseline=baseline)
    yield from sources_pushed.rows(dict(zip(_NAMES, _SIZES, strict=True)), count // 10, 1 if quick else 3)


def _write(file: Path, count: int) -> None:
    generator = np.random.default_rng(2026)
    with pq.ParquetWriter(file, pa.schema([(name, pa.uint8()) for name in _NAMES])) as writer:
        for _ in range(count // _PART):
            arrays = [generator.binomial(size - 1, 0.3, _PART).astype(np.uint8) for size in _SIZES]
            writer.write_table(pa.table(dict(zip(_NAMES, arrays, strict=True))))


def _measured(name: str, file: Path) -> dict[str, Any]:
    command = [sys.executable, "-P", __file__, "--method", name, str(file)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def _syndic(file: Path) -> list[NDArray[Any]]:
    schema = Schema.from_domain(dict(zip(_NAMES, _SIZES, strict=True)))
    cliques = [(_NAMES[a], _NAMES[b]) for a, b in _PAIRS]
    return [factor.values for factor in Table(schema, open_source(file)).marginals(cliques)]


def _numpy(file: Path) -> list[NDArray[Any]]:
    counts = [np.zeros(_SIZES[a] * _SIZES[b], dtype=np.int64) for a, b in _PAIRS]
    with pq.ParquetFile(file) as reader:
        for batch in reader.iter_batches(65_536):
            columns = [batch.column(name).to_numpy() for name in _NAMES]
            for place, (a, b) in enumerate(_PAIRS):
                cells = columns[a].astype(np.uint16) * np.uint16(_SIZES[b]) + columns[b]
                counts[place] += np.bincount(cells, minlength=_SIZES[a] * _SIZES[b])
    return [table.reshape(_SIZES[a], _SIZES[b]) for table, (a, b) in zip(counts, _PAIRS, strict=True)]


def _duckdb_file(file: Path) -> list[NDArray[Any]]:
    return _duckdb(f"read_parquet('{file}')", load=False)


def _duckdb_loaded(file: Path) -> list[NDArray[Any]]:
    return _duckdb(f"read_parquet('{file}')", load=True)


def _duckdb(place: str, *, load: bool) -> list[NDArray[Any]]:
    import duckdb  # noqa: PLC0415 - an extra

    tables = []
    with duckdb.connect() as connection:
        if load:
            connection.execute(f"CREATE TABLE loaded AS SELECT * FROM {place}")  # noqa: S608 - a path of ours
            place = "loaded"
        for a, b in _PAIRS:
            x, y = _NAMES[a], _NAMES[b]
            query = f"SELECT {x}, {y}, count(*) AS n FROM {place} GROUP BY {x}, {y}"  # noqa: S608 - names of ours
            found = connection.execute(query).fetchnumpy()
            tables.append(_table(a, b, found[x], found[y], found["n"]))
    return tables


def _polars(file: Path) -> list[NDArray[Any]]:
    import polars as pl  # noqa: PLC0415 - an extra

    frame = pl.read_parquet(file)
    tables = []
    for a, b in _PAIRS:
        found = frame.group_by(_NAMES[a], _NAMES[b]).len()
        tables.append(_table(a, b, *(found[name].to_numpy() for name in (_NAMES[a], _NAMES[b], "len"))))
    return tables


def _polars_together(file: Path) -> list[NDArray[Any]]:
    import polars as pl  # noqa: PLC0415 - an extra

    scan = pl.scan_parquet(file)
    frames = pl.collect_all([scan.group_by(_NAMES[a], _NAMES[b]).len() for a, b in _PAIRS])
    return [
        _table(a, b, *(found[name].to_numpy() for name in (_NAMES[a], _NAMES[b], "len")))
        for (a, b), found in zip(_PAIRS, frames, strict=True)
    ]


def _table(a: int, b: int, first: Any, second: Any, counts: Any) -> NDArray[Any]:
    table = np.zeros((_SIZES[a], _SIZES[b]), dtype=np.int64)
    table[np.asarray(first), np.asarray(second)] = np.asarray(counts)
    return table


_METHODS: dict[str, Callable[[Path], list[NDArray[Any]]]] = {
    "syndic": _syndic,
    "numpy": _numpy,
    "duckdb, file": _duckdb_file,
    "duckdb, loaded": _duckdb_loaded,
    "polars, loaded": _polars,
    "polars, all at once": _polars_together,
}


def _run(name: str, file: Path) -> dict[str, Any]:
    started, used = time.perf_counter(), time.process_time()
    tables = _METHODS[name](file)
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    # weights, so that counts in a wrong place or table show
    weights = ((place + 1) * np.arange(1, table.size + 1).reshape(table.shape) for place, table in enumerate(tables))
    digest = sum(int((table * weight).sum()) for table, weight in zip(tables, weights, strict=True))
    return {"seconds": seconds, "cpu seconds": cpu, "megabytes": peak_megabytes(), "digest": digest}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--method"]:
        sys.stdout.write(json.dumps(_run(sys.argv[2], Path(sys.argv[3]))))
    else:
        for measured in rows("--quick" in sys.argv[1:]):
            sys.stdout.write(to_json(measured).decode() + "\n")
