"""Studies that learn a model at four parties, and the simulation's view of the same rows, for the suites about risk."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from support import COLUMNS, ONE, rows, study_text
from syndic import Study
from syndic.data import Table, open_source
from syndic.methods import Learn
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.learning.result import LearnResult, weights_of
from syndic.model.erm.loss import Objective
from syndic.study import simulate
from syndic_lab.bench.erm.cohort import Cohort

Numbers = NDArray[np.float64]
SIZES = {f"p{number}": 50 for number in range(4)}
NOISELESS = "epsilon = 1000000.0\ndelta = 1e-6"


def study(
    options: str,
    *,
    sizes: Mapping[str, int] | None = None,
    budget: str = ONE,
    unit: str = 'neighbours = "replace"',
    columns: str = COLUMNS,
) -> Study:
    given = SIZES if sizes is None else sizes
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = {people}\n' for name, people in given.items())
    # most suites here are about gradient descent
    scheme = "" if "scheme" in options else 'scheme = "mpc_grad"\n'
    protocol = f'method = "learn"\n{scheme}{options}'
    return Study.loads(study_text(unit=unit, budget=budget, parties=parties, protocol=protocol, columns=columns))


def sources(sizes: Mapping[str, int] | None = None) -> dict[str, pa.Table]:
    return {name: rows(people, place) for place, (name, people) in enumerate((sizes or SIZES).items())}


def protocol_of(of: Study) -> Learn:
    assert isinstance(of.protocol, Learn)
    return of.protocol


def planned(of: Study) -> LearnPlan:
    return of.plan_as(LearnPlan)


def learnt(of: Study, data: Mapping[str, pa.Table] | None = None, seed: int = 1) -> LearnResult:
    result = simulate(of, data or sources(), seed=seed).result
    assert isinstance(result, LearnResult)
    return result


def weights(of: Study, data: Mapping[str, pa.Table] | None = None) -> Numbers:
    result = learnt(of, data)
    return weights_of(result.model, result.design)


def cohort(of: Study, data: Mapping[str, pa.Table], objective: Objective, *, pooled: bool = False) -> Cohort:
    """Return the simulation's view of the same rows, from the design itself."""
    design = planned(of).design
    parts = [design.matrix(Table(schema=design.schema, source=open_source(each))) for each in data.values()]
    party = np.repeat(np.arange(len(parts)), [len(labels) for _, labels in parts])
    return Cohort(
        csr_array(np.concatenate([part for part, _ in parts])),
        np.concatenate([labels[:, 0] for _, labels in parts]),
        0 * party if pooled else party,
        objective,
    )


def nothing(_iteration: int, at: Numbers) -> Numbers:
    return np.zeros_like(at)


BINARY = 'label = "colour"\npositive = "red"\nregularisation = 0.01\n'
