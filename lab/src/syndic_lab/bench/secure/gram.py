"""What proofs of lengths cost: the Gram matrix of two parties with them and without, in one process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from syndic_lab.bench.regression.secure import measure
from syndic_lab.bench.row import Row

# people, columns of both parties, and how many bits a feature has
_FULL, _QUICK, _COLUMNS, _BITS = 100_000, 20_000, 20, 12


def rows(quick: bool) -> Iterator[Row]:
    """Yield CPU seconds and traffic against a party that deviates; the baseline is without proofs."""
    people = _QUICK if quick else _FULL
    # in a child process, so that BLAS threads are its own
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = f"from syndic_lab.bench.secure.gram import report; report({people})"
    output = subprocess.run([sys.executable, "-c", code], env=settings, check=True, capture_output=True, text=True)
    active, passive = json.loads(output.stdout)
    title = f"gram, {people} rows, 10 + 10 columns of {_BITS} bits, active"
    for name, metric, unit in (
        ("ours", "cpu seconds", "s"),
        ("once", "megabytes", "MB"),
        ("bits", "bits a feature", "bits"),
        ("wrong", "wrong sums before noise", "sums"),
        ("sigma", "noise of a sum", "z"),
    ):
        yield Row(bench="secure", row=title, metric=metric, value=active[name], unit=unit, baseline=passive[name])
    yield Row(bench="secure", row=title, metric="ratio of megabytes", value=active["once"] / passive["once"], unit="x")


def report(people: int) -> None:
    """Print what was measured with and without proofs, in the child process."""
    settings = ({"bits": _BITS, "adversary": adversary} for adversary in ("active", "passive"))
    print(json.dumps([measure(people, _COLUMNS, 2, **each) for each in settings]))
