"""How far a federation scales on one machine: many parties with masks and dropouts, many rows in databases, many sites.

Counts are compared with plain ones in the same run: a wrong sum is an error, not a figure.
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from click.testing import CliRunner
from numpy.typing import NDArray

from syndic.cli.main import cli
from syndic.data import Schema, Table, open_source
from syndic.kernel import Call, Delivery, Session, decode, in_memory_node, run
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.random import SystemRandomness
from syndic.runtime.local import Local
from syndic.study import Release, Study
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.postgres_server import is_installed, postgres_server
from syndic_lab.bench.row import Row

_DRAFT: Final = """
name = "scale"
[unit]
neighbours = "add_remove"
[budget]
epsilon = 1.0
delta = 1e-6
[protocol]
method = "marginals"
cliques = [["a", "b"]]
missing = {missing}
colluding = {colluding}
[limits]
message_mb = 64
[[schema.columns]]
name = "a"
kind = "categorical"
values = ["0", "1", "2", "3", "4", "5", "6", "7"]
[[schema.columns]]
name = "b"
kind = "categorical"
values = ["0", "1", "2", "3"]
"""
_SIZES: Final = {"a": 8, "b": 4}
_ROWS: Final = 20
_COLUMNS: Final = {f"c{place}": size for place, size in enumerate((16, 7, 16, 16, 7, 14, 6, 5, 2, 41))}
_CONNECTED: Final = "connected;"
_WAIT_SECONDS: Final = 1800.0


def rows(quick: bool) -> Iterator[Row]:
    """Yield the figures of parties, databases and sites, as they are measured."""
    yield from parties(100 if quick else 1000)
    yield from databases(10**6 if quick else 10**7)
    yield from sites(3 if quick else 50)


def _row(row: str, metric: str, value: float, unit: str) -> Row:
    return Row(bench="scale", row=row, metric=metric, value=value, unit=unit)


# Many parties, in this process.


class _Losing:
    """A runtime in which some parties never answer a step."""

    def __init__(self, local: Local, lost: Mapping[str, frozenset[str]]) -> None:
        self._local, self._lost = local, lost

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Answer for the others."""
        gone = {name for name, data in calls.items() if name in self._lost.get(decode(data, Call).step, ())}
        here = {name: data for name, data in calls.items() if name not in gone}
        delivery = self._local.send(here, seconds=seconds, arrived=arrived)
        return Delivery(replies=delivery.replies, silent=dict.fromkeys(gone, "lost"))

    def close(self) -> None:
        """Close all ledgers."""
        self._local.close()


def parties(count: int) -> Iterator[Row]:
    """Yield the cost of a masked sum in which one party in twenty is lost, half of them after all have met."""
    gone = count // 20
    text = _DRAFT.format(missing=gone, colluding=gone)
    names = [f"p{place}" for place in range(count)]
    study = Study.loads(text + "".join(f'[[parties]]\nname = "{name}"\npeople = {_ROWS}\n' for name in names))
    tables = {name: _table(name) for name in names}
    used, began = time.process_time(), time.perf_counter()
    nodes = {
        name: in_memory_node(
            study.protocol, study.plan, name, rows, lambda _label: SystemRandomness(), study=study.digest
        )
        for name, rows in tables.items()
    }
    early, late = frozenset(names[: gone // 2]), frozenset(names[gone // 2 : gone])
    runtime = _Losing(Local(nodes), {"sum_meet": early, "count": early | late, "sum_open": early | late})
    session = Session(
        runtime=runtime, study=study.digest, method=study.protocol, plan=study.plan, randomness=SystemRandomness()
    )
    result = run(study.protocol, session)
    cpu, seconds = time.process_time() - used, time.perf_counter() - began
    _check(study, result, [tables[name] for name in names[gone:]])
    what = f"{count} parties, {gone} lost, {gone} may collude, masked table of 32 cells"
    yield _row(what, "cpu seconds, all parties and coordinator", cpu, "s")
    yield _row(what, "seconds", seconds, "s")
    yield _row(what, "masks shared with", study.plan_as(MarginalsPlan).masked_sum.graph.neighbours, "parties")
    yield _row(what, "peak memory, all in one process", peak_megabytes(), "MB")


def _table(name: str) -> pa.Table:
    draws = np.random.default_rng(list(name.encode()))
    return pa.table({key: [str(one) for one in draws.integers(0, size, _ROWS)] for key, size in _SIZES.items()})


def _check(study: Study, result: Any, present: list[pa.Table]) -> None:
    """Raise if the sum is not that of the parties present, but for noise."""
    plan = study.plan_as(MarginalsPlan)
    true = Table(study.schema, open_source(pa.concat_tables(present))).marginals([("a", "b")])[0].values
    away = np.abs(np.asarray(result.tables[0].values, dtype=float) - true).max()
    if away > 7 * plan.deviation(len(present)):
        raise RuntimeError(f"the sum is {away:.0f} away from that of {len(present)} parties")


# Many rows, in a database.


def databases(count: int) -> Iterator[Row]:
    """Yield seconds to count all one-way and the first ten two-way tables, by the documented ways."""
    cliques = [*((name,) for name in _COLUMNS), *list(combinations(_COLUMNS, 2))[:10]]
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        file = Path(place) / "rows.parquet"
        _write(file, count)
        expected = None
        for name, source in _sources(file, stack):
            began, used = time.perf_counter(), time.process_time()
            found = Table(Schema.from_domain(_COLUMNS), open_source(source)).marginals(cliques)
            seconds, cpu = time.perf_counter() - began, time.process_time() - used
            values: list[NDArray[Any]] = [one.values for one in found]
            expected = expected or values
            if not all(map(np.array_equal, values, expected)):
                raise RuntimeError(f"{name} counts differently")
            what = f"{count} rows, {len(_COLUMNS)} columns, {len(cliques)} tables, {name}"
            yield _row(what, "seconds", seconds, "s")
            yield _row(what, "cpu seconds of Syndic's process", cpu, "s")
            yield _row(what, "peak memory of Syndic's process so far", peak_megabytes(), "MB")


def _write(file: Path, count: int) -> None:
    draws, part = np.random.default_rng(2026), 10**6
    with pq.ParquetWriter(file, pa.schema([(name, pa.int16()) for name in _COLUMNS])) as writer:
        for _ in range(count // part):
            arrays = {name: draws.binomial(size - 1, 0.3, part).astype(np.int16) for name, size in _COLUMNS.items()}
            writer.write_table(pa.table(arrays))


def _sources(file: Path, stack: ExitStack) -> Iterator[tuple[str, Any]]:
    """Yield the ways that this machine has: a file, DuckDB, PostgreSQL streamed and counting, Spark counting."""
    import duckdb  # noqa: PLC0415  # an extra

    yield "Parquet file, streamed", file
    base = file.with_suffix(".duckdb")
    with duckdb.connect(str(base)) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_parquet('{file}')")  # noqa: S608  # a path of ours
    yield "DuckDB, streamed", {"duckdb": str(base), "table": "visits"}
    yield "DuckDB, counts itself", {"ibis": f"duckdb://{base}", "table": "visits"}
    if is_installed():
        server = stack.enter_context(postgres_server())
        server.execute(f"CREATE TABLE visits ({', '.join(f'{name} smallint' for name in _COLUMNS)})")
        text = server.folder / "rows.csv"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT * FROM read_parquet('{file}')) TO '{text}' (HEADER)")  # noqa: S608
        text.chmod(0o644)
        server.execute(f"COPY visits FROM '{text}' WITH (FORMAT csv, HEADER)")
        yield "PostgreSQL, streamed", {"postgres": server.uri, "table": "visits"}
        yield "PostgreSQL, counts itself", {"ibis": server.uri, "table": "visits"}
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # an extra
    except ImportError:
        return
    settings = {
        "ui.enabled": "false",
        "driver.host": "127.0.0.1",
        "driver.bindAddress": "127.0.0.1",
        "driver.memory": "2g",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    spark = builder.getOrCreate()
    stack.callback(spark.stop)
    spark.read.parquet(str(file)).createOrReplaceTempView("visits")
    yield "Spark, counts itself", {"ibis": "pyspark://", "table": "visits"}


# Many sites, each a process under mutual TLS.


def sites(count: int) -> Iterator[Row]:
    """Yield how long a study of so many sites on this machine takes, by the commands of the guide, and its memory."""
    names = [f"p{place}" for place in range(count)]
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        (folder / "draft.toml").write_text(_DRAFT.format(missing=0, colluding=1))
        port = _free_port()
        _do(folder, "coordinator", "init", "federation", "--name", "scale", "--host", "127.0.0.1", "--port", port)
        for name in names:
            pa.csv.write_csv(_table(name), folder / f"{name}.csv")
            _do(folder, "party", "init", name, "--name", name, "--source", f"{name}.csv", "--cap", "4,1e-5")
        _do(
            folder,
            "coordinator",
            "approve",
            *(f"{name}/request.json" for name in names),
            "--home",
            "federation",
            "--yes",
        )
        people = [word for name in names for word in ("--people", f"{name}={_ROWS}")]
        _do(folder, "coordinator", "fill", "draft.toml", "--home", "federation", *people)
        for name in names:
            _do(folder, "party", "accept", f"{name}/approval-{name}.json", "--home", name)
            _do(folder, "agree", "study.toml", "--home", name, "--yes", "--despite-fit")
        began = time.perf_counter()
        server = _start(stack, folder, "server", "coordinator", "start", "federation")
        running = [_start(stack, folder, name, "join", name) for name in names]
        _wait(lambda: sum(_CONNECTED in (folder / f"{name}.out").read_text() for name in names) == count)
        yield _row(f"{count} sites on FLARE", "seconds until all are connected", time.perf_counter() - began, "s")
        yield _row(f"{count} sites on FLARE", "memory of a waiting site", _megabytes(running) / count, "MB")
        yield _row(f"{count} sites on FLARE", "memory of the server", _megabytes([server]), "MB")
        began = time.perf_counter()
        _do(folder, "run", "study.toml", "--home", "federation", "--out", "run", "--patience", "600")
        yield _row(f"{count} sites on FLARE, masked sum", "seconds", time.perf_counter() - began, "s")
        yield _row(
            f"{count} sites on FLARE, masked sum", "memory of a site and its study", _megabytes(running) / count, "MB"
        )
        release = Release.load(folder / "run")
        _check(release.study, release.result, [_table(name) for name in names])


def _do(folder: Path, *words: str) -> None:
    """Run a command in this process: starting Python so often would take longer than all else."""
    with chdir(folder):
        ran = CliRunner().invoke(cli, words)
    if ran.exit_code:
        raise RuntimeError(f"syndic {' '.join(words[:2])}: {ran.output[-500:]} {ran.exception}")


def _command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "syndic", *words]


def _start(stack: ExitStack, folder: Path, name: str, *words: str) -> int:
    with (folder / f"{name}.out").open("wb") as file:
        process = subprocess.Popen(_command(*words), cwd=folder, stdout=file, stderr=file)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process.pid


def _wait(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not happened():
        if time.monotonic() > end:
            raise RuntimeError("not all sites connected")
        time.sleep(1.0)


def _free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def _megabytes(processes: list[int]) -> float:
    """Return the memory of processes and their children, shared pages counted in parts."""
    total = 0
    for number in processes:
        place = Path(f"/proc/{number}")
        line = next(one for one in (place / "smaps_rollup").read_text().splitlines() if one.startswith("Pss:"))
        total += int(line.split()[1])
        children = [int(one) for task in (place / "task").iterdir() for one in (task / "children").read_text().split()]
        total += int(_megabytes(children) * 1e6 / 1024)
    return total * 1024 / 1e6
