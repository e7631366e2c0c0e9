"""The guard: what is worse is caught, what is noise is not."""

import statistics
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from syndic.cli.main import cli
from syndic.document import from_file
from syndic.errors import InputError
from syndic_lab.bench.guard import run as guard
from syndic_lab.bench.guard.errors import errors
from syndic_lab.bench.guard.run import BASELINE, Baseline, Mark, WorseError, judge, marks_of


def stored() -> Baseline:
    return from_file(BASELINE, Baseline)


def only_errors() -> Baseline:
    return Baseline(marks=tuple(mark for mark in stored().marks if mark.kind == "utility"))


def test_the_stored_baseline_says_how_it_was_measured() -> None:
    assert {mark.kind for mark in stored().marks} == {"utility", "speed"}
    for mark in stored().marks:
        assert mark.runs >= 20
        assert 0 < mark.sd < mark.mean


def test_this_code_is_as_good_as_the_baseline() -> None:
    judge(only_errors(), marks_of([tuple(errors(501))]))


@pytest.mark.bench
def test_runs_with_a_quarter_of_the_budget_are_caught() -> None:
    with pytest.raises(WorseError) as caught:
        judge(only_errors(), marks_of([tuple(errors(501, epsilon=0.25))]))
    # with so few people the error of responses is that of the model, whatever the noise
    missed = [mark.row for mark in only_errors().marks if mark.row not in str(caught.value)]
    assert missed in ([], ["VertiMRF with responses, two parties"])


@pytest.mark.parametrize("place", range(len(stored().marks)))
def test_a_planted_worse_value_is_caught_and_named(place: int) -> None:
    baseline = stored()
    marks = [msgspec.structs.replace(mark, runs=5) for mark in baseline.marks]
    judge(baseline, marks)
    bad = marks[place]
    marks[place] = msgspec.structs.replace(bad, mean=1.01 * baseline.marks[place].limit(5))
    with pytest.raises(WorseError, match=bad.row):
        judge(baseline, marks)


def test_noise_is_not_caught() -> None:
    """200,000 marks of normal noise: with a false alarm at one in a million, one is expected in five such tests."""
    draws = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        samples = draws.normal(1.0, 0.2, (1000, 20))
        later = draws.normal(1.0, 0.2 / 5**0.5, 1000)
        for mean, sd, value in zip(samples.mean(axis=1), samples.std(axis=1), later, strict=True):
            mark = Mark(row="r", metric="m", mean=float(mean), sd=float(sd), runs=20)
            alarms += bool(value > mark.limit(5))
    assert alarms <= 20


def test_other_marks_than_the_baseline_are_refused() -> None:
    with pytest.raises(InputError, match="refresh"):
        judge(stored(), stored().marks[1:])


def test_refresh_writes_what_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "runs_of", lambda seeds: [[("row", "metric", float(seed))] for seed in seeds])
    written = from_file(guard.refresh(tmp_path / "baseline.json"), Baseline)
    assert written.marks == (Mark(row="row", metric="metric", mean=10.5, sd=statistics.stdev(range(1, 21)), runs=20),)


def test_the_command_ends_with_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = [(mark.row, mark.metric, 2 * mark.mean) for mark in stored().marks]
    monkeypatch.setattr(guard, "runs_of", lambda seeds: [worse for _ in seeds])
    result = CliRunner().invoke(cli, ["bench", "guard", "--json"])
    assert isinstance(result.exception, WorseError)
    assert result.output.count('"bench":"guard"') == len(worse)
    assert isinstance(CliRunner().invoke(cli, ["bench", "noise", "--refresh", "new.json"]).exception, InputError)
