"""Accuracy of regressions: rows for every number of parties and epsilon, and what rescaling gains in wide bounds."""

import numpy as np

from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.regression.accuracy import made_up, of_table, rows
from syndic_lab.bench.regression.data import Data


def test_rescaled_numbers_are_fitted_better_than_by_wide_bounds() -> None:
    wide = {data.name: data for data in made_up()}["wide bounds"]
    found = list(of_table(Data(wide.name, wide.table[:8000], 2), 2, epsilons=(1.0,)))
    assert len(found) == 2 * 3 * 2
    means = {row.row.split(", ", 1)[1]: row for row in found if "mean" in row.metric}
    for parties in ("two vertical", "five horizontal"):
        better, aimed, worse = (
            means[f"{parties}, epsilon 1, {what}"] for what in ("rescaled", "with a target", "by bounds")
        )
        assert aimed.value > better.value - 0.01
        assert better.baseline is not None
        assert better.value > better.baseline - 0.02
        assert worse.value < better.value - 0.3
        assert np.isfinite(worse.value)


def test_with_a_target_few_people_cost_little_more_than_the_mean() -> None:
    generator = np.random.default_rng(8)
    columns = generator.standard_normal((1400, 9))
    label = np.exp(0.7 * columns[:, :3].sum(axis=1) / 2 + 0.5 * generator.standard_normal(1400))
    table = np.clip(np.column_stack([(columns + 5) / 10, label / 10]), 0, 1)
    found = [row for row in of_table(Data("few", table, 2), 5, epsilons=(0.1,)) if "target" in row.row]
    assert min(row.value for row in found if "mean" in row.metric) > -0.15
    assert min(row.value for row in found) > -0.5


def test_it_is_a_bench_whose_first_rows_need_no_data() -> None:
    assert BENCHES["gram"] is rows
    first = next(rows(True))
    assert first.row == "skewed, two vertical, epsilon 1, rescaled"
    assert first.metric == "test R squared, mean of 2"
