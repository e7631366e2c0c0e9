"""What the synthesis' measurements are made of, on a small table."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Schema
from syndic.errors import InputError
from syndic_lab.bench.model import synthesis as model_synthesis
from syndic_lab.bench.model import synthesis_data
from syndic_lab.bench.model.synthesis_data import Coded, alike, codes_of, distances, sorted_by, unequal

SCHEMA = Schema.from_domain({"a": 4, "b": 3, "c": 2, "d": 2, "e": 5})


def small(count: int = 600) -> Coded:
    draws = np.random.default_rng(1)
    first = draws.integers(0, 4, count)
    columns = {name: (first + draws.integers(0, 2, count)) % SCHEMA.domain[name] for name in SCHEMA.names}
    return Coded("small", SCHEMA, pa.table({**columns, "a": first}))


def test_distance_is_the_mean_over_sets_of_columns() -> None:
    real, made = small().codes(), small(100).codes()
    found = distances(real, made, SCHEMA.domain)
    # of five columns there is one set of five
    wide = SCHEMA.domain
    cells = [np.bincount(wide.index([codes[n] for n in wide.names]), minlength=wide.size) for codes in (real, made)]
    assert found[5] == pytest.approx(np.abs(cells[0] / 600 - cells[1] / 100).sum() / 2)
    every = []
    for names in combinations(SCHEMA.names, 3):
        counts = [np.zeros(SCHEMA.domain.project(names).sizes) for _ in range(2)]
        for table, codes in zip(counts, (real, made), strict=True):
            np.add.at(table, tuple(codes[name] for name in names), 1 / len(codes["a"]))
        every.append(np.abs(counts[0] - counts[1]).sum() / 2)
    assert min(every) < found[3] < max(every)
    assert distances(real, real, SCHEMA.domain) == {3: 0.0, 4: 0.0, 5: 0.0}
    none = {name: np.empty(0, dtype=np.int64) for name in SCHEMA.names}
    assert distances(real, none, SCHEMA.domain)[3] == pytest.approx(0.5)


def test_rows_are_cut_into_parties_without_loss() -> None:
    draws = np.random.default_rng(1)
    codes = small().codes()["a"]
    for parts in (alike(600, 5, draws), unequal(600, 5, draws), sorted_by(codes, 5, draws)):
        assert sorted(np.concatenate(parts)) == list(range(600))
    sizes = [len(part) for part in unequal(600, 5, draws)]
    assert all(one > 1.8 * other for one, other in pairwise(sizes))
    means = [codes[part].mean() for part in sorted_by(codes, 5, draws)]
    assert means == sorted(means)
    assert means[-1] - means[0] > 2


def test_rows_say_what_was_run_beside_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis_data, "SUBSETS", 10)
    data = small()
    found = list(model_synthesis.of_epsilon(data, "0.8", range(1), parties=(3,)))
    by = {(one.row, one.metric): one for one in found}
    curator, parties = (by[f"small, epsilon 0.8, {who}", "tvd3"] for who in ("curator", "3 parties"))
    assert parties.baseline == curator.value
    assert by["small, epsilon 0.8, 3 parties", "tvd3 ratio"].value == pytest.approx(parties.value / curator.value)
    assert 0 < curator.value < 0.5
    assert by["small, epsilon 0.8, curator", "seconds"].value > 0
    whole = by["small, epsilon 0.8, curator", "simulate seconds"]
    assert whole.value > 0
    assert (whole.baseline or 0) > 0
    assert all(one.bench == "model" for one in found)
    merged = model_synthesis.homm(data, "0.8", 0, alike, 3)
    assert 0 < merged.apart[3] < 1
    assert merged.rows > 0
    lone = model_synthesis.alone(data, "8", 0, alike, 3, 0)
    assert lone.rows == 600


def test_codes_come_back_from_a_table_and_missing_data_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = small()
    assert np.array_equal(codes_of(data.table, SCHEMA)["e"], np.asarray(data.table["e"]))
    assert data.select(("b", "a")).domain.sizes == (3, 4)
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    with pytest.raises(InputError, match="set SYNDIC_DATA"):
        synthesis_data.load("adult", "adult_coded")
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    assert list(model_synthesis.rows(quick=True)) == []
    assert "skipped: adult_coded.parquet" in capsys.readouterr().err
