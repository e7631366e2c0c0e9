"""All one- and two-way tables of a PostgreSQL table: counted by the server against streamed out and counted here.

CPU seconds are those of both sides, the server's processes and ours; ways take turns and figures are medians.
"""

import itertools
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from syndic.data import Schema, Table, open_source
from syndic_lab.bench.postgres_server import PostgresServer, is_installed, postgres_server
from syndic_lab.bench.row import Row

Names = tuple[str, ...]

_PUSHED = "pushed down"
_WAYS = {_PUSHED: "ibis", "streamed": "postgres"}
_UNITS = {"seconds": "s", "cpu seconds": "s"}


def rows(sizes: Mapping[str, int], count: int, repeats: int) -> Iterator[Row]:
    """Yield seconds and CPU seconds of both ways, streaming being the baseline; nothing without a server to start."""
    try:
        import ibis  # noqa: F401, PLC0415 - an extra, and loading it is no part of counting
    except ImportError:
        return
    if not is_installed():
        return
    with postgres_server() as server:
        _fill(server, sizes, count)
        for width, name in ((2, "two-way"), (1, "one-way")):
            cliques = list(itertools.combinations(sizes, width))
            what = f"{count} rows, {len(sizes)} smallint columns, PostgreSQL, {len(cliques)} {name} tables"
            yield from _compared(server, Schema.from_domain(sizes), cliques, what, repeats)


def _compared(server: PostgresServer, schema: Schema, cliques: list[Names], what: str, repeats: int) -> Iterator[Row]:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in _WAYS}
    for turn in range(repeats):
        for name in list(_WAYS)[:: 1 if turn % 2 == 0 else -1]:
            runs[name].append(_measured(server, schema, cliques, _WAYS[name]))
    if len({run["digest"] for found in runs.values() for run in found}) != 1:
        raise RuntimeError("the two ways disagree on the counts")
    for metric, unit in _UNITS.items():
        medians = {name: statistics.median(run[metric] for run in found) for name, found in runs.items()}
        for name, value in medians.items():
            baseline = medians["streamed"] if name == _PUSHED else None
            yield Row(bench="sources", row=f"{what}, {name}", metric=metric, value=value, unit=unit, baseline=baseline)


def _fill(server: PostgresServer, sizes: Mapping[str, int], count: int) -> None:
    generator = np.random.default_rng(2026)
    drawn = {name: generator.binomial(size - 1, 0.3, count) for name, size in sizes.items()}
    names = ", ".join(sizes)
    server.execute(f"CREATE TABLE visits ({', '.join(f'{name} smallint' for name in sizes)})")
    file = server.folder / "rows.csv"
    pa.csv.write_csv(pa.table(drawn), file)
    file.chmod(0o644)
    server.execute(f"COPY visits ({names}) FROM '{file}' WITH (FORMAT csv, HEADER)")
    server.execute("VACUUM ANALYZE visits")


def _measured(server: PostgresServer, schema: Schema, cliques: list[Names], key: str) -> dict[str, float]:
    before, used, started = _server_seconds(server.folder), time.process_time(), time.perf_counter()
    source = open_source({key: server.uri, "table": "visits"})
    tables = Table(schema, source).marginals(cliques)
    seconds, own = time.perf_counter() - started, time.process_time() - used
    time.sleep(0.5)  # until the server has noted what its process took
    weights = ((place + 1) * np.arange(1, one.domain.size + 1) for place, one in enumerate(tables))
    digest = sum(int((one.values.ravel() * weight).sum()) for one, weight in zip(tables, weights, strict=True))
    cpu = own + _server_seconds(server.folder) - before
    return {"seconds": seconds, "cpu seconds": cpu, "digest": float(digest)}


def _server_seconds(folder: Path) -> float:
    """Return the CPU seconds of the server's processes that have ended."""
    number = (folder / "rows" / "postmaster.pid").read_text().split()[0]
    # after the name in brackets: fields 16 and 17 of proc(5)
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
