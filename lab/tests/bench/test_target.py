"""The bench of a declared target runs on rows of Bank's shape, and says what it needs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from syndic.errors import InputError
from syndic_lab.bench import target
from syndic_lab.bench.benches import BENCHES


def bank(count: int) -> pa.Table:
    """Return made-up rows with some of Bank's columns; the label follows the duration."""
    chance = np.random.default_rng(3)
    duration = np.minimum(chance.lognormal(5, 1, count), 4999).astype(int)
    label = np.where(chance.random(count) < 1 / (1 + np.exp(4 - duration / 150)), "yes", "no")
    balance = np.clip(chance.lognormal(6, 1.5, count), 0, 100_000).astype(int)
    return pa.table(
        {"balance": balance, "duration": duration, "job": chance.choice(["clerk", "nurse"], count), "y": label}
    )


@pytest.mark.bench
def test_every_way_has_a_mean_and_a_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(bank(9_000), tmp_path / "bank_marketing.parquet")
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    monkeypatch.setattr(target, "TESTED", 2_000)
    found = {(row.row, row.metric): row for row in BENCHES["target"](True)}
    assert len(found) == 3 * 4
    best = found["Bank, target", "AUC of boosting, worst"]
    assert best.baseline is not None
    assert best.baseline - 0.1 < best.value <= 1
    assert best.value <= found["Bank, target", "AUC of boosting, mean"].value


def test_without_the_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    with pytest.raises(InputError, match="SYNDIC_DATA"):
        next(BENCHES["target"](True))
