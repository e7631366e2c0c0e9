"""Times one mirror descent step of mbi. Runs as a script in an interpreter that has mbi; imports nothing of Syndic."""

import itertools
import json
import sys
import time
from typing import Any

import numpy as np

COLUMNS = "abcdef"
TOTAL = 45_000.0


def main(steps: int) -> dict[str, float]:
    """Return CPU milliseconds a step, with a fixed step and with mbi's line search, and the first call's seconds."""
    import jax  # noqa: PLC0415 - only in that interpreter

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi  # noqa: PLC0415
    from mbi import estimation  # noqa: PLC0415

    domain = mbi.Domain(list(COLUMNS), [10] * 6)
    generator = np.random.default_rng(0)
    tables = [
        mbi.LinearMeasurement(np.abs(generator.normal(45, 27, 1000)), names, stddev=27.0)
        for names in itertools.combinations(COLUMNS, 3)
    ]

    def seconds(optimiser: Any, count: int) -> float:
        start = time.process_time()
        model = optimiser.estimate(domain, tables, known_total=TOTAL, iters=count)
        jax.block_until_ready(jax.tree.leaves(model.potentials))
        jax.block_until_ready(jax.tree.leaves(model.marginals))
        return time.process_time() - start

    found = {}
    for name, optimiser in (
        ("step", estimation.MirrorDescent(stepsize=1e-9)),
        ("search", estimation.MirrorDescent()),
    ):
        first, short, long = (seconds(optimiser, count) for count in (50, 50, 50 + steps))
        found[name] = 1e3 * (long - short) / steps
        found.setdefault("compile", max(0.0, first - short))
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]))) + "\n")
