"""Intervals of means cover the rows' means where a target has rare levels: the fine bins' noise is in them.

The levels of the target that noise merged say nothing of the other columns' counts.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from support import study_text
from syndic import Study, simulate
from syndic.model.interval.question import numbers_of

pytestmark = pytest.mark.statistical

LEVEL = 1e-6
ROWS = 6000
NUMBERS = tuple(f"x{place}" for place in range(10))
COLUMNS = (
    '[[schema.columns]]\nname = "health"\nkind = "ordinal"\nvalues = ["poor", "fair", "good", "lost", "none"]\n'
    'outside = { value = "poor" }\nmissing = { value = "poor" }\n'
) + "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = 0\nupper = 100\nmissing = {{ value = 0 }}\n'
    for name in NUMBERS
)


def held() -> pa.Table:
    """Two levels of the target are rare; every number has a spike at 0, a body, and a few rows in its upper half."""
    draws = np.random.default_rng(1)
    health = draws.choice(["poor", "fair", "good", "lost", "none"], ROWS, p=(0.4, 0.3, 0.298, 0.001, 0.001))
    numbers = {
        name: np.where(draws.random(ROWS) < 0.2, 0.0, 100 * draws.beta(1.0, 1.5 + 0.3 * place, ROWS))
        for place, name in enumerate(NUMBERS)
    }
    return pa.table({"health": health, **numbers})


def test_means_of_fine_bins_are_covered_where_the_target_has_rare_levels() -> None:
    text = study_text(
        protocol='method = "synthesis"\ntarget = "health"',
        budget="epsilon = 1\ndelta = 1e-6",
        parties=f'[[parties]]\nname = "north"\npeople = {ROWS}\n',
        columns=COLUMNS,
    )
    table, agreed = held(), Study.loads(text)
    exact = {}
    for name in NUMBERS:
        exact[name] = float(numbers_of(agreed.schema[name])[agreed.schema[name].encode(table[name])].mean())
    off = []
    for seed in range(4):
        release = simulate(agreed, {"north": table}, seed=seed)
        for name in NUMBERS:
            found = release.interval(f"mean({name})")
            if found.value is not None and found.error is not None:
                off.append((found.value - exact[name]) / found.error)
    # the error includes sampling, which these fixed rows do not have: the sum of squares is below chi-squared
    assert len(off) >= 30
    assert np.square(off).sum() < stats.chi2.isf(LEVEL, len(off))
