"""Theorems as items: printed bounds of HOMM fail by their own noise, the others hold, and decoders are told apart."""

import pytest

from syndic_lab.bench.regression import theorems as regression_theorems
from syndic_lab.bench.row import Row
from syndic_lab.reproduce import CATALOGUE, Found, Item
from syndic_lab.reproduce.item import Verdict


def verdicts(name: str) -> tuple[Item, list[Verdict], Found]:
    item = next(one for one in CATALOGUE if one.name == name)
    assert item.measure is not None
    rows = [part for part in item.measure(True) if isinstance(part, Row)]
    assert all(row.runs is not None and row.runs >= 3 for row in rows if row.error and row.published is not None)
    return item, item.verdicts(rows), Found.of(rows)


def test_printed_bounds_of_homm_fail_and_corrected_ones_hold() -> None:
    item, found, _ = verdicts("homm-theorems")
    # one bound with constants at two epsilons, then four orders
    assert found == ["agrees", "differs", "differs", "differs", "differs", "differs"]
    assert item.measure is not None
    corrected = [part.baseline for part in item.measure(True) if isinstance(part, Row)]
    assert all(ratio is not None and ratio < 1 for ratio in corrected)


def test_theorems_of_wu_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    # fewer people, so that no chance is 0: DGM at epsilon 1 comes near from about 1e8 on
    monkeypatch.setattr(
        regression_theorems, "PEOPLE", {"dgm": (3 * 10**7, 10**8, 10**9), "rmgm": (10**5, 3 * 10**5, 10**6)}
    )
    _, found, _ = verdicts("regression-theorems")
    assert found == ["agrees", "agrees", "agrees"]


def test_theorems_of_jayaraman_hold_and_are_far_above_what_is_measured() -> None:
    item, found, values = verdicts("learning-theorems")
    assert found == ["agrees"] * 5
    assert values.one("Theorem 3.6, MPC Grad P", "excess risk") < 0.1
    del item


def test_theorem_5_cannot_fail_and_the_printed_decoder_does() -> None:
    _, found, values = verdicts("vertimrf-theorem-5")
    assert found == ["agrees"] * 4
    assert values.one("Theorem 5, t 2000, a mean cell", "allowed error over the cell") > 15
    _, found, _ = verdicts("vertimrf-decoder")
    assert found == ["same order", "agrees"]
