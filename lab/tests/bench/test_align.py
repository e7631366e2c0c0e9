"""The measurement of alignments, on small ones."""

import pytest
from click.testing import CliRunner

from syndic_lab.bench import align
from syndic_lab.cli.bench import bench


@pytest.mark.bench
def test_a_small_alignment_is_measured_beside_plain_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "_QUICK_SIZES", ((60, 3),))
    found = {row.metric: row for row in align.rows(quick=True)}
    assert found.pop("cpu seconds, 10^7 additions").value > 0
    assert {row.row for row in found.values()} == {"60 ids a party, 3 parties"}
    common = found["common people"]
    assert common.value == common.baseline
    assert 0 < common.value < 60
    # three sets of points, each through three parties, sealed, there and back
    points = 2 * 3 * 3 * 60 * 32 / 1e6
    assert points < found["megabytes"].value < 3 * points
    assert found["cpu seconds, all parties"].value > 0
    assert found["memory of a party"].value > 50


@pytest.mark.bench
def test_two_parties_may_have_any_number_of_ids() -> None:
    found = {row.metric: row for row in align.rows(quick=True, ids=50)}
    assert found["common people"].row == "50 ids a party, 2 parties"
    assert found["common people"].value == found["common people"].baseline


def test_the_number_of_ids_is_for_alignments_only() -> None:
    refused = CliRunner().invoke(bench, ["noise", "--ids", "5"])
    assert refused.exit_code == 2
    assert "--ids is for the bench align only" in refused.output
