"""Rivals of the vertical synthesis, measured on a made-up table whose columns hang together across parties."""

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Schema
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.bench.vertical.rivals import accuracy, classification, published, rivals

SIZES = {"a": 3, "b": 4, "c": 4, "d": 5, "e": 2}


def coded(count: int = 3000) -> Coded:
    draws = np.random.default_rng(1)
    hidden = draws.random(count)
    columns = {
        name: np.minimum(size - 1, (hidden * size + draws.normal(0, 0.2, count)).clip(0)).astype(np.int64)
        for name, size in SIZES.items()
    }
    return Coded("made", Schema.from_domain(SIZES), pa.table(columns))


def test_a_latent_tree_is_nearer_to_the_rows_than_parties_side_by_side() -> None:
    found = {(row.row, row.metric): row.value for row in rivals(coded(), "3.2", [0])}
    tree, apart = (found[f"made, epsilon 3.2, 2 parties, {name}", "tvd3"] for name in ("latent tree", "glued"))
    assert tree < 0.7 * apart
    assert found["made, epsilon 3.2, 2 parties, latent tree", "megabytes"] > 0


def test_classes_are_learned_from_specialisation_and_not_by_chance() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'syndic[evaluate]'")
    found = {(row.row, row.metric): row for row in classification(coded(), "e", "3.2", [0], times=4)}
    real = found["made, epsilon 3.2, 2 parties, real rows", "accuracy"]
    made = found["made, epsilon 3.2, 2 parties, two-party specialisation", "accuracy"]
    assert real.baseline is not None
    # always the more frequent class, the release, the real rows
    assert real.baseline + 0.1 < made.value < real.value + 0.03
    assert made.baseline == real.value
    assert ("made, epsilon 3.2, 2 parties, specialisation as published, one curator", "tvd3") in found


def test_accuracy_is_the_share_of_right_classes() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'syndic[evaluate]'")
    data = Coded("made", Schema.from_domain({"x": 2, "y": 2}), pa.table({"x": [0, 1], "y": [0, 1]}))
    training = {"x": np.array([0, 1] * 20), "y": np.array([0, 1] * 20)}
    test = {"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 1, 1])}
    assert accuracy(data, "y", training, test) == 0.75
    assert accuracy(data, "y", {"x": training["x"], "y": np.ones(40, dtype=np.int64)}, test) == 0.75


def test_the_published_method_keeps_the_classes_where_there_is_budget_enough() -> None:
    data = coded()
    made = published(data, "e", "1000", 6, 0)
    real = data.codes()
    assert len(made["e"]) == pytest.approx(3000, abs=5)
    assert np.mean(made["e"]) == pytest.approx(np.mean(real["e"]), abs=0.01)
    assert {name: set(codes) <= set(range(SIZES[name])) for name, codes in made.items()} == dict.fromkeys(made, True)
