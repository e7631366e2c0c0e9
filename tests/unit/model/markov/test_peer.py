"""Against `mbi`: its answers are in `mbi.json`. The bench suite asks it again, where an interpreter with it is named.

`SYNDIC_MBI_PYTHON=... pytest -m bench tests/unit/model/markov/test_peer.py --refresh-golden` writes them anew.
"""

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from syndic.data import Domain
from syndic.model.markov import Measurement, estimate_total, fit
from unit.model.markov.joint import noisy

PYTHON = os.environ.get("SYNDIC_MBI_PYTHON", "")
ANSWERS = Path(__file__).parent / "mbi.json"
DOMAIN, DEVIATION = Domain(tuple("abcdefgh"), (5, 3, 8, 2, 6, 4, 7, 3)), 8.0
ASKED = [*itertools.combinations(DOMAIN.names, 2), ("a", "c", "e"), ("b", "f", "g")]
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


def measured() -> list[Measurement]:
    """Return noisy tables of eight columns."""
    generator = np.random.default_rng(8)
    truth = 20_000 * generator.dirichlet(np.full(DOMAIN.size, 0.05)).reshape(DOMAIN.sizes)
    sets = [("a", "b", "c"), ("c", "d"), ("d", "e", "f"), ("a", "g"), ("b", "c", "h"), ("e", "g")]
    return noisy(DOMAIN, truth, sets, generator, DEVIATION)


def apart(some: Any, others: Any, total: float) -> float:
    """Return the largest distance of two lists of tables, as a part of all people."""
    return max(float(np.abs(np.array(one) - other).sum()) / total for one, other in zip(some, others, strict=True))


def test_marginals_are_those_of_mbi() -> None:
    tables = measured()
    total = estimate_total(tables)
    fitted = fit(DOMAIN, tables, total=total, target=0, iterations=4000, tolerance=1e-7)
    ours = [fitted.field.marginal(names).values.reshape(-1) for names in ASKED]
    assert apart(json.loads(ANSWERS.read_text()), ours, total) < 0.02


@pytest.mark.bench
@pytest.mark.skipif(not PYTHON, reason="set SYNDIC_MBI_PYTHON to an interpreter that has mbi 2")
def test_mbi_still_answers_so(request: pytest.FixtureRequest) -> None:
    tables = measured()
    total = estimate_total(tables)
    told = {
        "names": DOMAIN.names,
        "sizes": DOMAIN.sizes,
        "deviation": DEVIATION,
        "total": total,
        "tables": [(one.names, one.values.reshape(-1).tolist()) for one in tables],
        "asked": ASKED,
    }
    done = subprocess.run([PYTHON, "-c", SCRIPT], input=json.dumps(told), capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout.splitlines()[-1])
    if request.config.getoption("--refresh-golden"):
        rounded = [[round(value, 2) for value in one] for one in answers]
        ANSWERS.write_text("[\n" + ",\n".join(json.dumps(one) for one in rounded) + "\n]\n")
    assert apart(json.loads(ANSWERS.read_text()), answers, total) < 1e-3
