"""A Gram matrix across many parties: time and traffic of the secure products, on made-up rows of a given shape.

Every figure is of the protocol's own steps, all parties and the coordinator in one process with one BLAS thread, which
includes sealing, packing and encoding every message. `megabytes` counts each message once, as one role sends it to
another; what passes through the coordinator's relay travels twice, which has a row of its own.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Schema
from syndic.document import from_builtins, to_builtins
from syndic.methods.regression.gram import Gram
from syndic.methods.regression.gram_plan import GramPlan
from syndic.random import SystemRandomness
from syndic.study import Study
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical
from syndic_lab.bench.row import Row

_LEVELS = 256
# people, columns with the label, parties: the songs of the published table, and a tenth of them
_LARGE, _SMALL = (412_276, 91, 10), (41_228, 91, 10)


def rows(quick: bool) -> Iterator[Row]:
    """Yield CPU seconds, traffic and exactness for 91 columns at ten parties."""
    people, columns, parties = _SMALL if quick else _LARGE
    found = _measured(people, columns, parties)
    title = f"secure gram, {people} rows, {columns} columns, {parties} parties"
    figures = (
        ("cpu seconds, all roles", found["ours"], "s", found["plain"]),
        ("cpu seconds, one party", found["ours"] / (parties + 1), "s", None),
        ("megabytes", found["once"], "MB", None),
        ("megabytes through the relay, both ways", found["relayed"], "MB", None),
        ("megabytes, a party's own masked rows", found["own"], "MB", None),
        ("bits a feature", found["bits"], "bits", None),
        ("wrong sums before noise", found["wrong"], "sums", None),
        ("noise of a sum at (1, 1e-9), one colluding", found["sigma"], "z", found["curator"]),
        ("peak memory, all roles and their rows", found["memory"], "MB", None),
    )
    for metric, value, unit, baseline in figures:
        yield Row(bench="regression", row=title, metric=metric, value=value, unit=unit, baseline=baseline)


def _measured(people: int, columns: int, parties: int) -> dict[str, float]:
    """Measure in a child process, so that memory and BLAS threads are its own."""
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = f"from syndic_lab.bench.regression.secure import report; report({people}, {columns}, {parties})"
    output = subprocess.run([sys.executable, "-c", code], env=settings, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(output.stdout)
    return found


def report(people: int, columns: int, parties: int) -> None:
    """Print what was measured, in the child process."""
    print(json.dumps(measure(people, columns, parties)))


def measure(people: int, columns: int, parties: int, **options: Any) -> dict[str, float]:
    """Run the protocol on made-up rows, with options of the method, and return what it took."""
    study, tables = made_up(people, columns, parties, **options)
    plan = study.plan_as(GramPlan)
    carrier = _carrier(study, tables)
    begun = time.process_time()
    Gram().coordinate(carrier)
    ours = time.process_time() - begun
    memory = peak_megabytes()
    plain, exact = _plain({name: table.codes[name] for table in tables.values() for name in table.codes}, plan)
    noiseless = Gram().coordinate(_carrier(study, tables, noisy=False))
    curator, product = float(plan.sensitivity / plan.noise.mu_squared) ** 0.5, Gram().product_at(carrier)
    return {
        "ours": ours,
        "plain": plain,
        "once": (carrier.up + carrier.down - carrier.relayed) / 1e6,
        "relayed": (carrier.up + carrier.down) / 1e6,
        "own": product.sizes.ring.packed_bytes(people * max(map(product.columns, tables))) / 1e6,
        "bits": float(product.sizes.ring.bits),
        "wrong": float((noiseless.sums != exact).sum()),
        "sigma": plan.sigma,
        "curator": curator,
        "memory": memory,
    }


def made_up(people: int, columns: int, parties: int, **options: Any) -> tuple[Study, dict[str, CodedTable]]:
    """Return a study and the parties' rows: whole numbers of 256 levels, drawn with a seed."""
    generator = np.random.default_rng(11)
    names = [f"x{place}" for place in range(columns)]
    held = {f"p{place}": names[place::parties] for place in range(parties)}
    content = {
        "name": "bench",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": 1.0, "delta": 1e-9},
        "protocol": {"method": "gram", "scaling": 0.0, **options},
        "parties": [{"name": name, "people": people, "columns": part} for name, part in held.items()],
        "schema": to_builtins(Schema.from_domain(dict.fromkeys(names, _LEVELS))),
    }
    study = from_builtins(content, Study, where="bench")
    tables = {
        name: CodedTable(
            Domain.of(dict.fromkeys(part, _LEVELS)),
            {each: generator.integers(0, _LEVELS, people, dtype=np.uint8) for each in part},
        )
        for name, part in held.items()
    }
    return study, tables


def _carrier(study: Study, tables: dict[str, CodedTable], *, noisy: bool = True) -> Any:
    """Return open parties and their coordinator, which stands in for a session."""
    members = {
        name: OpenVertical(
            name=name, plan=study.plan, study=study.digest, table=table, randomness=SystemRandomness(), noisy=noisy
        )
        for name, table in tables.items()
    }
    return OpenCarrier(plan=study.plan, study=study.digest, members=members, randomness=SystemRandomness())


def _plain(codes: dict[str, NDArray[Any]], plan: GramPlan) -> tuple[float, NDArray[np.int64]]:
    """Return the CPU seconds of the product of all columns in doubles, and its upper triangle with the sums."""
    scale = 1 << plan.bits
    level = np.rint((2 * np.arange(_LEVELS) / (_LEVELS - 1) - 1) * scale)
    parts = [level[codes[name]] for name in plan.terms.schema.names]
    matrix = np.column_stack([np.full(len(parts[0]), float(scale)), *parts])
    begun = time.process_time()
    product = matrix.T @ matrix
    taken = time.process_time() - begun
    return taken, product[np.triu_indices(len(product))][1:].astype(np.int64)
