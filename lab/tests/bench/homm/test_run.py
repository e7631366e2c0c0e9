"""`syndic bench homm`: its rows, its figures, what it skips, and experiment 1's published thresholds."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from syndic.cli.main import cli
from syndic_lab.bench.homm import run as homm
from syndic_lab.bench.homm.experiment import Experiment, Outcome, threshold


def few() -> Experiment:
    return replace(homm.mean_of_normal(), quick_repeats=4, epsilons=(0.1, 1.0, 10.0))


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(homm, "EXPERIMENTS", (few,))
    result = CliRunner().invoke(cli, ["bench", "homm", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_hold_every_party_the_curve_and_the_thresholds(measured: list[dict[str, object]]) -> None:
    values = {str(row["row"]): row for row in measured}
    assert len(values) == len(measured) == 5 + 2 + 3 + 3
    alone = [float(str(row["value"])) for name, row in values.items() if "alone" in name]
    average = values["experiment 1, average of the parties"]["value"]
    assert average == pytest.approx(sum(alone) / 5)
    curve = {e: values[f"experiment 1, sanitised merged, epsilon {e:g}"] for e in (0.1, 1.0, 10.0)}
    smallest = values["experiment 1, smallest party"]
    below = [e for e in curve if all(float(str(curve[o]["value"])) < alone[0] for o in curve if o >= e)]
    if below:
        assert (smallest["metric"], smallest["value"]) == ("threshold epsilon", min(below))
    else:
        assert smallest["metric"] == "threshold epsilon is above"
    assert smallest["published"] == 0.08
    # discrete and continuous noise at the same epsilon differ in draws
    assert all(row["baseline"] != row["value"] for row in curve.values())


def test_figure_is_written(measured: list[dict[str, object]]) -> None:
    root = ET.fromstring(Path("bench-results/homm-1.svg").read_text())
    text = " ".join(root.itertext())
    for name in ("sanitised", "original", "average party", "each party", "printed noise", "epsilon"):
        assert name in text
    average = next(row["value"] for row in measured if "average of" in str(row["row"]))
    assert f"average party {average:.4g}" in text


def test_experiments_without_their_data_are_skipped_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    monkeypatch.setattr(homm, "EXPERIMENTS", (homm.medical_costs, homm.social_network_ads))
    assert list(homm.rows(quick=True)) == []
    assert capsys.readouterr().err.splitlines() == [
        "skipped: insurance.csv was not found: set SYNDIC_DATA to a folder that contains it",
        "skipped: Social_Network_Ads.csv was not found: set SYNDIC_DATA to a folder that contains it",
    ]


def outcome(sanitised: dict[float, float]) -> Outcome:
    return Outcome(
        parties=np.array([3.0, 2.0]), original=1.0, originals=np.ones(2), sanitised=sanitised, printed=sanitised
    )


def test_a_threshold_that_is_not_reached_is_said_so() -> None:
    (row,) = homm._thresholds(replace(few(), marks=few().marks[:1], epsilons=(1.0, 2.0)), outcome({1.0: 5.0, 2.0: 4.0}))
    assert (row.metric, row.value, row.baseline) == ("threshold epsilon is above", 2.0, None)


def test_plateau_is_one_point_above_the_end() -> None:
    assert threshold({1.0: 0.3, 2.0: 0.185, 3.0: 0.18}, homm.plateau(outcome({1.0: 0.3, 3.0: 0.18}))) == 2.0


def test_each_party_gets_a_level_line() -> None:
    path = homm._one_line_each([1.0, 2.0, 3.0], (0.1, 10.0))
    levels = {(a[1], b[1]) for a, b in pairwise(path) if a[0] != b[0]}
    assert levels == {(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)}


def test_grid_of_experiment_4_is_the_one_described() -> None:
    assert homm.insurance_schema().domain.size == 6 * 2 * 6 * 6 * 2 * 4 * 6 == 20_736


@pytest.mark.bench
def test_experiment_1_reaches_the_published_thresholds_within_one_grid_step() -> None:
    experiment = homm.mean_of_normal()
    grid = experiment.epsilons
    measured = experiment.measure(quick=True)
    for mark in experiment.marks:
        found = threshold(measured.sanitised, mark.reference(measured))
        assert found is not None
        assert mark.published is not None
        assert abs(grid.index(found) - grid.index(mark.published)) <= 1, mark.name
