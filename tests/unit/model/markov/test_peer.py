"""Against `mbi`, where an interpreter that has it is named."""

import itertools
import json
import os
import subprocess

import numpy as np
import pytest

from syndic.data import Domain
from syndic.model.markov import estimate_total, fit
from unit.model.markov.joint import noisy

PYTHON = os.environ.get("SYNDIC_MBI_PYTHON", "")
SCRIPT = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import mbi
import numpy as np
from mbi import estimation
told = json.load(sys.stdin)
domain = mbi.Domain(told["names"], told["sizes"])
tables = [mbi.LinearMeasurement(np.array(v), tuple(n), stddev=told["deviation"]) for n, v in told["tables"]]
model = estimation.MirrorDescent().estimate(domain, tables, known_total=told["total"], iters=3000)
print(json.dumps([np.asarray(model.project(tuple(n)).datavector()).tolist() for n in told["asked"]]))
"""


@pytest.mark.skipif(not PYTHON, reason="set SYNDIC_MBI_PYTHON to an interpreter that has mbi 2")
def test_marginals_and_loss_are_those_of_mbi() -> None:
    domain = Domain(tuple("abcdefgh"), (5, 3, 8, 2, 6, 4, 7, 3))
    generator = np.random.default_rng(8)
    truth = 20_000 * generator.dirichlet(np.full(domain.size, 0.05)).reshape(domain.sizes)
    sets = [("a", "b", "c"), ("c", "d"), ("d", "e", "f"), ("a", "g"), ("b", "c", "h"), ("e", "g")]
    tables = noisy(domain, truth, sets, generator, 8.0)
    total = estimate_total(tables)
    asked = [list(names) for names in itertools.combinations(domain.names, 2)] + [["a", "c", "e"], ["b", "f", "g"]]
    told = {
        "names": domain.names,
        "sizes": domain.sizes,
        "deviation": 8.0,
        "total": total,
        "tables": [(one.names, one.values.reshape(-1).tolist()) for one in tables],
        "asked": asked,
    }
    done = subprocess.run([PYTHON, "-c", SCRIPT], input=json.dumps(told), capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    fitted = fit(domain, tables, total=total, target=0, iterations=4000, tolerance=1e-7)
    for names, values in zip(asked, theirs, strict=True):
        ours = fitted.field.marginal(names).values.reshape(-1)
        assert np.abs(ours - np.array(values)).sum() / total < 0.02
