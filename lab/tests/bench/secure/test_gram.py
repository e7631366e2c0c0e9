"""The bench of proofs of lengths measures what it says."""

import pytest

from syndic_lab.bench.secure import gram as secure_gram


def test_quick_rows_compare_both_adversaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure_gram, "_QUICK", 6000)
    found = {row.metric: row for row in secure_gram.rows(quick=True)}
    assert found["wrong sums before noise"].value == 0
    # the noise is the same, and four more columns in a larger field at most double the traffic
    assert found["noise of a sum"].value == found["noise of a sum"].baseline
    assert found["ratio of megabytes"].value < 2.2
