"""The rows that a Gram matrix is made of, as a trusted curator would code them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic import Study
from syndic.data import Table, open_source
from syndic.kernel import schema_of
from syndic.methods.regression.gram_plan import GramPlan
from syndic.model.gram.scaling import Scale


def exact_rows(study: Study, sources: Mapping[str, pa.Table], scales: tuple[Scale, ...] = ()) -> NDArray[Any]:
    """Return the rows of all groups, in units of z, the parties of a group side by side; the intercept is 1."""
    plan, found = study.plan_as(GramPlan), []
    for group in plan.groups:
        matrix = np.ones((group.people, len(plan.features)))
        for name in group.parties:
            batches = Table(schema_of(study, name), open_source(sources[name])).batches()
            if plan.blocks[name]:
                rows = np.concatenate([plan.rows(name, coded, scales) for coded in batches])
                matrix[:, plan.columns[name]] = rows / 2.0**plan.bits
        found.append(matrix)
    return np.concatenate(found)
