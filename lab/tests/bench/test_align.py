"""The measurement of alignments, on small ones."""

import pytest

from syndic_lab.bench import align


def test_a_small_alignment_is_measured_beside_plain_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "_QUICK_SIZES", ((60, 3),))
    found = {row.metric: row for row in align.rows(quick=True)}
    assert {row.row for row in found.values()} == {"60 ids a party, 3 parties"}
    common = found["common people"]
    assert common.value == common.baseline
    assert 0 < common.value < 60
    # three sets of points, each through three parties, sealed, there and back
    points = 2 * 3 * 3 * 60 * 32 / 1e6
    assert points < found["megabytes"].value < 3 * points
    assert found["cpu seconds, all parties"].value > 0
    assert found["memory of a party"].value > 50
