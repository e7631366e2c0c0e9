"""`syndic bench erm` on made-up rows: its rows, figures and skips; and, where the data are, the published numbers."""

import json
import os
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.sparse import csr_array

from syndic.cli.main import cli
from syndic.data.design import into_ball
from syndic_lab.bench.erm import cost as erm_cost
from syndic_lab.bench.erm import data as erm_data
from syndic_lab.bench.erm import published as erm_published
from syndic_lab.bench.erm import run as erm
from syndic_lab.bench.erm.experiment import CHECKPOINTS, LATE, VARIANTS, Experiment
from syndic_lab.bench.erm.private import GradientNoise, gradient_noise


def made_up() -> erm_data.Split:
    generator = np.random.default_rng(0)
    rows = into_ball(generator.normal(size=(700, 8)), 1.0)
    labels = np.where(rows[:, 0] + generator.normal(0, 0.1, 700) > 0, 1.0, -1.0)
    return erm_data.Split("KDDCup99", csr_array(rows[:500]), labels[:500], csr_array(rows[500:]), labels[500:])


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(erm, "PLAN", ((made_up, (50, 500)),))
    monkeypatch.setattr(erm_cost, "PARTIES", ())
    result = CliRunner().invoke(cli, ["bench", "erm", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_hold_every_method_in_both_variants(measured: list[dict[str, object]]) -> None:
    values = {(str(row["row"]), str(row["metric"])): row for row in measured}
    assert len(values) == len(measured)
    for method in erm_published.GAPS:
        for word in ("", ", sound"):
            for metric in ("gap", "loss"):
                assert ("KDDCup99, m 50, " + method + word, metric) in values
    best = min(
        float(str(values[f"KDDCup99, m 50, {name}, sound", "gap"]["value"]))
        for name in ("Pathak", "Local Out P", "Local Obj P", "Local Grad P")
    )
    assert values["KDDCup99, m 50, MPC Grad P, sound", "gap"]["baseline"] == best
    assert ("KDDCup99, m 50, Central, no privacy", "accuracy") in values
    assert not any("m 500," in name for name, _ in values)  # quick: one number of parties


def test_figures_show_every_method(measured: list[dict[str, object]]) -> None:
    for metric in ("gap", "loss"):
        text = " ".join(ET.fromstring(Path(f"bench-results/erm-kddcup99-m50-{metric}.svg").read_text()).itertext())
        assert all(name in text for name in erm.FIGURE)
    value = next(row["value"] for row in measured if row["row"] == "KDDCup99, m 50, Pathak" and row["metric"] == "gap")
    text = " ".join(ET.fromstring(Path("bench-results/erm-kddcup99-m50-gap.svg").read_text()).itertext())
    assert f"Pathak {value:.2g}" in text


def test_reference_is_plain_gradient_descent_written_out() -> None:
    split = made_up()
    experiment = Experiment(split=split, parties=50, repeats=1, iterations=40)
    rows, theta = split.rows.toarray(), np.zeros(8)
    for _ in range(40):
        slopes = -split.labels / (1 + np.exp(split.labels * (rows @ theta)))
        theta = theta - (rows.T @ slopes / 500 + 0.001 * theta)
    assert experiment.reference == pytest.approx(theta, abs=1e-12)
    objective = np.log(1 + np.exp(-split.labels * (rows @ theta))).mean() + 0.0005 * theta @ theta
    assert experiment.objective(theta) == pytest.approx(objective)


def test_digitised_curves_have_a_point_for_each_position() -> None:
    for curves in (erm_published.GAPS, erm_published.LOSSES):
        assert all(len(values) == len(erm_published.POSITIONS) for values in curves.values())
    assert CHECKPOINTS[LATE] == (800, 900, 1000, 1100, 1200, 1300, 1400)
    # published are the ranges of the same points
    assert (min(erm_published.GAPS["MPC Grad P"][LATE]), max(erm_published.GAPS["MPC Grad P"][LATE])) == (
        0.00327,
        0.00394,
    )


def test_data_that_are_not_there_are_skipped_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    monkeypatch.setattr(erm_cost, "PARTIES", ())
    assert list(erm.rows(quick=True)) == []
    assert capsys.readouterr().err.count("set SYNDIC_DATA") == 2


needs_data = pytest.mark.skipif("SYNDIC_DATA" not in os.environ, reason="set SYNDIC_DATA to the folder of data sets")


@pytest.mark.bench
@needs_data
def test_data_sets_have_the_published_sizes() -> None:
    for load, shape, tests in (
        (erm_data.kddcup, (50_000, 118), 20_000),
        (erm_data.adult, (30_000, 104), 15_222),
        (erm_data.nslkdd, (50_000, 122), 20_000),
    ):
        split = load()
        assert split.rows.shape == shape
        assert len(split.test_labels) == tests
        assert np.sqrt(split.rows.multiply(split.rows).sum(axis=1)).max() <= 1.0 + 1e-12
        assert set(split.labels) == {-1.0, 1.0}


@pytest.mark.bench
@needs_data
def test_kddcup_reference_model_is_that_of_our_notes() -> None:
    experiment = Experiment(split=erm_data.kddcup(), parties=1000, repeats=1)
    assert experiment.objective(experiment.reference) == pytest.approx(0.114, abs=5e-4)
    assert experiment.accuracy(experiment.reference) == pytest.approx(0.986, abs=1e-3)
    assert float(np.linalg.norm(experiment.reference)) == pytest.approx(9.5, abs=0.05)


@pytest.mark.bench
@needs_data
def test_kddcup_mpc_grad_p_is_as_good_as_published_and_the_sound_one_better() -> None:
    experiment = Experiment(split=erm_data.kddcup(), parties=1000, repeats=1)
    best, right = experiment.objective(experiment.reference), experiment.accuracy(experiment.reference)
    gaps = {}
    for variant in VARIANTS:
        noise = gradient_noise("MPC Grad P", experiment.setting, variant)
        generator = np.random.default_rng(1)
        draw = partial(_drawn, noise, generator)
        models = experiment.cohort.descend(1, [1000, 1500], draw)[:, :, 0]
        gaps[variant] = [experiment.objective(model) - best for model in models]
        assert all(abs(experiment.accuracy(model) - right) <= 1e-3 for model in models)
    assert all(2e-3 < gap < 6e-3 for gap in gaps["as_published"])
    assert all(sound < printed for sound, printed in zip(gaps["sound"], gaps["as_published"], strict=True))


def _drawn(
    noise: GradientNoise, generator: np.random.Generator, _iteration: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    return noise.simulate(weights.T.shape, generator).T
