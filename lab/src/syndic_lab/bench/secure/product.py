"""Two-way tables across two parties: the secure product beside the plain product of the same matrices.

Every figure is of the protocol's own steps, both parties and the coordinator in one process with one BLAS thread,
which includes sealing, packing and encoding every message. `megabytes` counts each message once, as one role sends it
to another; what passes through the coordinator's relay travels twice, which has a row of its own.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data import Domain, Schema
from syndic.document import from_builtins, to_builtins
from syndic.methods.histogram.marginals import Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.privacy import rho_for
from syndic.random import SystemRandomness
from syndic.study import Study
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical
from syndic_lab.bench.row import Row

_PARTIES = ("left", "right", "third")
_ADULT_ROWS = 45_222
_SIXTY = ((9, 9, 9, 9, 8, 8, 8), (8, 8, 8, 8, 7, 7, 7, 7))
_HUNDRED_FIFTY = (2, 3, 4, 5, 6, 7, 8, 9, 10) * 2 + (6,) * 7
# per-cell error of the printed sketch; traffic and CPU seconds of a prototype
_SKETCH, _PROTOTYPE = 1800.0, {"adult": (10.9, 1.6), "sixty": (10.9, 1.6), "large": (360.0, 34.0)}


def rows(quick: bool) -> Iterator[Row]:
    """Yield CPU, traffic and error for Adult, 60 + 60 columns, 300,000 x 150 + 150, and three servers."""
    titles = {"adult": "adult, 45222 rows, 56 tables, 187 levels", "sixty": "product, 45222 rows, 56 tables"}
    if not quick:
        titles["large"] = "product, 300000 rows, 150 + 150 columns"
    for name, title in titles.items():
        found = _measured(name)
        if found is None:
            continue
        megabytes, seconds = _PROTOTYPE[name]
        yield _row(title, "cpu seconds", found["ours"], "s", found["plain"], seconds)
        yield _row(title, "ratio", found["ours"] / found["plain"], "x", 1.0)
        yield _row(title, "megabytes", found["once"], "MB", None, megabytes)
        yield _row(title, "megabytes through the relay, both ways", found["relayed"], "MB", None, None)
        yield _row(title, "bits an entry", found["bits"], "bits")
        yield _row(title, "wrong cells before noise", found["wrong"], "cells")
        # the sketch was measured on tables like Adult's, not on these
        sketch = None if name == "large" else _SKETCH
        yield _row(title, "cell error at (0.4, 1e-5)", found["error"], "count", found["curator"], sketch)
        yield _row(title, "peak memory, all roles and their rows", found["memory"], "MB")
    if quick:
        return
    served = _measured("served") or {}
    for metric, unit in (("cpu seconds", "s"), ("megabytes", "MB")):
        dealt = served[f"{metric}, one dealer"]
        yield _row("product, 45222 rows, three servers", f"{metric}, beside one dealer", served[metric], unit, dealt)


def _row(
    row: str, metric: str, value: float, unit: str, baseline: float | None = None, published: float | None = None
) -> Row:
    return Row(bench="secure", row=row, metric=metric, value=value, unit=unit, baseline=baseline, published=published)


def _measured(name: str) -> dict[str, float] | None:
    """Measure in a child process, so that memory and BLAS threads are its own; None where data is missing."""
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", f"from syndic_lab.bench.secure.product import report; report({name!r})"]
    output = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] | None = json.loads(output)
    return found


def tables_for(name: str) -> list[CodedTable] | None:
    """Return two parties' coded columns; None where Adult is not there."""
    if name == "adult":
        folder = os.environ.get("SYNDIC_DATA")
        path = Path(folder or ".") / "adult_coded.parquet"
        if folder is None or not path.exists():
            return None
        sizes = json.loads((path.parent / "adult_coded-domain.json").read_text())
        codes = {key: np.asarray(column) for key, column in zip(sizes, pq.read_table(path).columns, strict=True)}
        names = list(sizes)
        parts = [names[:7], names[7:]]
        return [
            CodedTable(Domain.of({key: sizes[key] for key in part}), {key: codes[key] for key in part})
            for part in parts
        ]
    count, shapes = (_ADULT_ROWS, _SIXTY) if name == "sixty" else (300_000, (_HUNDRED_FIFTY, _HUNDRED_FIFTY))
    generator = np.random.default_rng(5)
    return [
        CodedTable(
            Domain.of({f"{party}{place}": size for place, size in enumerate(sizes)}),
            {f"{party}{place}": _skewed(generator, size, count) for place, size in enumerate(sizes)},
        )
        for party, sizes in zip("ab", shapes, strict=True)
    ]


def study_for(tables: list[CodedTable], **options: Any) -> Study:
    """Return a study of all pairs across parties at the issue's budget; as a real study its delta would be refused."""
    sizes = {name: table.domain[name] for table in tables for name in table.domain.names}
    parties = [
        {"name": party, "people": table.rows, "columns": list(table.domain.names)}
        for party, table in zip(_PARTIES, tables, strict=False)
    ]
    names = [table.domain.names for table in tables]
    across = [pair for one, other in itertools.combinations(names, 2) for pair in itertools.product(one, other)]
    content = {
        "name": "bench",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": 0.4, "delta": 1e-5},
        "protocol": {"method": "marginals", "cliques": across, **options},
        "parties": parties,
        "schema": to_builtins(Schema.from_domain(sizes)),
    }
    return from_builtins(content, Study, where="bench")


def carrier_for(study: Study, tables: list[CodedTable], *, noisy: bool = True) -> OpenCarrier:
    """Return open parties with the study's columns, and their coordinator."""
    members = {
        party.name: OpenVertical(
            name=party.name,
            plan=study.plan,
            study=study.digest,
            table=table,
            randomness=SystemRandomness(),
            noisy=noisy,
        )
        for party, table in zip(study.parties, tables, strict=True)
    }
    return OpenCarrier(plan=study.plan, study=study.digest, members=members, randomness=SystemRandomness())


def opened(carrier: OpenCarrier) -> NDArray[np.int64]:
    """Run the method and return the counts of all tables, one after the other."""
    result = Marginals().coordinate(carrier)  # type: ignore[arg-type]  # stands in for a session
    return np.concatenate([table.values.ravel() for table in result.tables])


def _measure_served() -> dict[str, float]:
    """Measure the same tables by three servers and by one dealer, in turn; a third party has one column."""
    tables = tables_for("sixty") or []
    tables.append(CodedTable(Domain.of({"c": 2}), {"c": np.arange(_ADULT_ROWS) % 2}))
    left, right, _ = (table.domain.names for table in tables)
    pairs = [*itertools.product(left, right), (left[0], "c")]
    taken: dict[str, list[float]] = {"": [], ", one dealer": []}
    sent = {}
    for _, what in itertools.product(range(5), taken):
        study = study_for(tables, cliques=pairs, servers=() if what else _PARTIES)
        carrier = carrier_for(study, tables)
        begun = time.process_time()
        opened(carrier)
        taken[what].append(time.process_time() - begun)
        sent[f"megabytes{what}"] = (carrier.up + carrier.down - carrier.relayed) / 1e6
    return sent | {f"cpu seconds{what}": statistics.median(each) for what, each in taken.items()}


def _measure(name: str) -> dict[str, float] | None:
    if name == "served":
        return _measure_served()
    tables = tables_for(name)
    if tables is None:
        return None
    study = study_for(tables)
    plan = study.plan_as(MarginalsPlan)
    taken = []
    for _ in range(1 if name == "large" else 5):
        carrier = carrier_for(study, tables)
        begun = time.process_time()
        noisy = opened(carrier)
        taken.append(time.process_time() - begun)
    memory = peak_megabytes()
    plain, exact = _plain(tables)
    rho = rho_for(study.budget.epsilon, study.budget.delta)
    return {
        "ours": statistics.median(taken),
        "plain": plain,
        "once": (carrier.up + carrier.down - carrier.relayed) / 1e6,
        "relayed": (carrier.up + carrier.down) / 1e6,
        "bits": float(plan.masked_sum.ring.bits),
        "wrong": float((opened(carrier_for(study, tables, noisy=False)) != exact).sum()),
        "error": float(np.sqrt(np.mean((noisy - exact) ** 2.0))),
        "curator": (len(plan.cliques) / float(rho)) ** 0.5,
        "memory": memory,
    }


def _plain(tables: list[CodedTable]) -> tuple[float, NDArray[np.int64]]:
    """Return the CPU seconds of the product of the one-hot matrices in doubles, and the tables it gives."""
    matrices = []
    for table in tables:
        matrix = np.zeros((table.rows, sum(table.domain.sizes)))
        starts = np.cumsum([0, *table.domain.sizes[:-1]])
        for begin, name in zip(starts, table.domain.names, strict=True):
            matrix[np.arange(table.rows), begin + table.codes[name].astype(np.int64)] = 1
        matrices.append(matrix)
    taken = []
    for _ in range(5):
        begun = time.process_time()
        product = matrices[0].T @ matrices[1]
        taken.append(time.process_time() - begun)
    columns = [np.cumsum(table.domain.sizes)[:-1] for table in tables]
    blocks = [block for part in np.split(product, columns[0]) for block in np.split(part, columns[1], axis=1)]
    return statistics.median(taken), np.concatenate([block.ravel() for block in blocks]).astype(np.int64)


def _skewed(generator: np.random.Generator, size: int, count: int) -> NDArray[np.uint8]:
    return generator.binomial(size - 1, 0.3, count).astype(np.uint8)


def report(name: str) -> None:
    """Print what was measured, in the child process."""
    print(json.dumps(_measure(name)))
