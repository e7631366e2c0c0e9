"""The bench of the secure product measures what it says."""

import pytest

from syndic_lab.bench.secure import product as secure_product


@pytest.mark.bench
def test_quick_rows_are_exact_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)  # without Adult, the made-up table alone
    found = {row.metric: row for row in secure_product.rows(quick=True)}
    assert {row.row for row in found.values()} == {"product, 45222 rows, 56 tables"}
    assert found["wrong cells before noise"].value == 0
    assert found["megabytes"].value < found["megabytes through the relay, both ways"].value < 20.6
    # each masked entry once, at 17 bits, is most of it
    assert found["megabytes"].value == pytest.approx(45_222 * 105 * 17 / 8 / 1e6, rel=0.15)
    noisy = found["cell error at (0.4, 1e-5)"]
    assert noisy.baseline is not None
    assert noisy.value == pytest.approx(2**0.5 * noisy.baseline, rel=0.1)
    assert noisy.baseline == pytest.approx((56 * 2) ** 0.5 * 9.43, rel=1e-3)  # tight zCDP
