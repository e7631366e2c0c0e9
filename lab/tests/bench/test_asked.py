"""Tables that one has to ask for: read if they are there, refused if they have another shape, one sentence if not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from syndic.errors import InputError
from syndic_lab.bench.erm import data as erm_data
from syndic_lab.bench.erm import run as erm
from syndic_lab.bench.erm.experiment import AGAINST, JOINT, Experiment
from syndic_lab.bench.model.synthesis_data import ASKED, Coded, load_asked
from syndic_lab.bench.row import Row
from syndic_lab.reproduce import vertical


def write(folder: Path, name: str, *, rows: int | None = None, most: int = 0) -> None:
    asked, draws = ASKED[name], np.random.default_rng(4)
    columns = {
        f"x{place}": draws.integers(0, size + most, rows or asked.rows) for place, size in enumerate(asked.sizes)
    }
    if name == "br2000":
        columns["x2"][:5] = 21
    csv.write_csv(pa.table(columns), folder / asked.file)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", list(ASKED))
def test_a_table_of_the_right_shape_is_read(folder: Path, name: str) -> None:
    write(folder, name)
    data = load_asked(name)
    assert (data.table.num_rows, data.domain.sizes) == (ASKED[name].rows, ASKED[name].sizes)
    if name == "br2000":
        assert (data.codes()["c02"][:5] == 20).all()
    shown = {row.metric: row.value for row in vertical.table_1(quick=True) if row.row == name}
    assert shown["records"] == ASKED[name].rows


def test_another_shape_is_refused_and_a_missing_one_says_where_to_ask(folder: Path) -> None:
    with pytest.raises(InputError, match=r"nltcs.csv was not found .* Ask for .* at icpsr.umich.edu"):
        load_asked("nltcs")
    write(folder, "nltcs", rows=100)
    with pytest.raises(InputError, match="expected 21,574 rows of 16 columns, found 100 of 16"):
        load_asked("nltcs")
    write(folder, "br2000", most=3)
    with pytest.raises(InputError, match="expected codes from 0 to 1 in column 1"):
        load_asked("br2000")


def test_figures_run_on_a_table_of_that_shape(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "nltcs")
    seen: list[str] = []

    def distances(data: Coded, *_: Any) -> Iterator[Row]:
        seen.append(data.name)
        return iter(())

    def errors(_data: Coded, label: str, *_: Any, **_more: Any) -> Iterator[Row]:
        seen.append(label)
        return iter(())

    monkeypatch.setattr(vertical, "of_distance", distances)
    monkeypatch.setattr(vertical, "of_svm", errors)
    list(vertical.over_epsilon(False, on="nltcs", epsilons=("0.8",)))
    list(vertical.classified(False, on="nltcs", epsilons=("0.8",)))
    assert seen == ["nltcs", *(f"c{place:02d}" for place in range(16))]


def donations(folder: Path, rows: int) -> None:
    draws = np.random.default_rng(5)
    wealth = draws.random(rows)
    columns = {"CONTROLN": np.arange(rows), "TARGET_B": (wealth > 0.5).astype(int), "TARGET_D": 20 * wealth}
    columns |= {f"n{place}": wealth + draws.normal(0, 0.2, rows) for place in range(6)}
    table = pa.table(columns).append_column("sex", pa.array(draws.choice(["M", "F"], rows)))
    csv.write_csv(table, folder / erm_data.DONATIONS)


def test_a_regression_on_donations(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"cup98LRN.txt was not found .* archive.ics.uci.edu"):
        erm_data.kddcup98()
    donations(folder, 700)
    with pytest.raises(InputError, match="expected 95,412 rows of 481 columns, found 700 rows of 10"):
        erm_data.kddcup98()
    monkeypatch.setattr(erm_data, "_DONATED", (700, 10))
    monkeypatch.setattr(erm_data, "_COMPONENTS", 5)
    split = erm_data.kddcup98()
    assert split.rows.shape == (500, 5)
    experiment = Experiment(split=split, parties=10, repeats=3, iterations=1500)
    traces = experiment.measure()
    assert not any("sound" in name for name in traces)
    assert {*erm.PRINTED, JOINT} <= set(traces) - {AGAINST}
    # a model without noise explains part of the amount; centred features have no intercept
    assert -experiment.accuracy(experiment.reference) < 0.9 * (split.test_labels**2).mean()
    rows = list(erm.of_experiment(experiment, traces))
    assert all(row.runs == 3 for row in rows if row.metric in ("gap", "loss"))
