"""The bench of planted relations: they are kept with `interactions` and lost without, and all figures are there."""

import pytest

from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.interactions import COLUMNS, agreement, of_other, of_planted, planted


def test_a_planted_relation_is_kept_beside_a_run_that_loses_it() -> None:
    found = {row.metric: row for row in of_planted(3, range(1))}
    worst = found["rows that agree, worst"]
    assert worst.value == found["rows that agree, mean"].value > 0.93
    assert worst.baseline is not None
    assert worst.baseline < 0.6
    assert found["other sets found"].value == 0


@pytest.mark.bench
def test_a_planted_relation_across_two_parties_is_kept_beside_a_run_that_loses_it() -> None:
    found = {row.metric: row for row in of_planted(2, range(1), groups=1)}
    worst = found["rows that agree, worst"]
    assert "two parties with different columns" in worst.row
    assert worst.value > 0.93
    assert worst.baseline is not None
    assert worst.baseline < 0.6
    assert found["other sets found"].value == 0


def test_planted_tables_agree_in_19_of_20_rows() -> None:
    data = planted(4, 1, 20_000)
    assert len(data.domain) == COLUMNS
    assert abs(agreement(data.table, data.schema, 4) - 0.95) < 0.01
    assert abs(agreement(data.table, data.schema, 3) - 0.5) < 0.02


def test_another_table_has_distances_with_and_without_in_the_same_run() -> None:
    found = {row.metric: row for row in of_other(planted(2, 0, 500), range(2))}
    assert {"tvd3, mean", "tvd4, worst", "tvd5 ratio of the same seeds", "sets found"} <= set(found)
    assert all(row.baseline is not None for row in found.values())
    assert "interactions" in BENCHES
