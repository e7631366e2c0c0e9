"""Advice on a synthesis: the demo's own study gets one, more people and more budget are better, a poor one is told."""

import importlib.resources
from functools import cache

import msgspec
import pytest
from click.testing import CliRunner

from syndic.advice import Advice, Assumptions
from syndic.advice.budgets import break_even
from syndic.advice.synthesis import advise_synthesis
from syndic.cli.main import cli
from syndic.methods.synthesis.trust import POOR
from syndic.privacy import Budget
from syndic.study import Study

DEMO = Study.loads((importlib.resources.files("syndic") / "demo" / "study.toml").read_text())


@cache
def advised(epsilon: str = "1", target: str | None = None) -> Advice:
    protocol = msgspec.structs.replace(DEMO.protocol, target=target)
    study = msgspec.structs.replace(DEMO, budget=Budget.of(epsilon, "1e-6"), protocol=protocol)
    return advise_synthesis(study, Assumptions())


def test_the_demo_is_advised_on() -> None:
    found = advised()
    one, two = found.tasks
    assert one.task == "tables of one column, total variation distance"
    assert one.pooled < one.joint < two.joint
    assert two.pooled < two.joint
    assert two.joint_range[0] <= two.joint <= two.joint_range[1]
    # south has the fewest people, so its own rows say least
    alone = {party.party: party.alone for party in two.parties}
    assert alone["south"] > alone["east"] > alone["north"]
    assert "poor" not in found.words
    assert any("3 rounds: all columns, all pairs, then about" in text for text in found.assumptions)


def test_less_budget_is_worse_and_a_poor_forecast_is_told() -> None:
    poor = advised("0.05")
    assert poor.tasks[1].joint > 2 * advised().tasks[1].joint
    assert poor.tasks[1].joint > POOR
    assert poor.verdict == "do not share"
    assert "which is poor (above 0.1): use more people, a larger epsilon, or fewer columns and values" in poor.words


def test_relations_to_the_target_are_a_task() -> None:
    assert [one.task.split(",")[0] for one in advised(target="diabetes").tasks] == [
        "tables of one column",
        "tables of two columns",
        "tables of diabetes with a column",
    ]


def test_break_even() -> None:
    # errors halve while budgets are times 4
    factors, curve = [0.25, 1.0, 4.0], [0.4, 0.2, 0.1]
    assert break_even(factors, curve, 0.5) == 0.25
    assert break_even(factors, curve, 0.3) == pytest.approx(0.25 * (0.4 / 0.3) ** 2)
    assert break_even(factors, curve, 0.1 * 2**0.5) == pytest.approx(2.0)
    assert break_even(factors, curve, 0.05) is None
    # from where it stays below
    assert break_even([1.0, 2.0, 4.0], [0.1, 0.3, 0.1], 0.3**0.5 * 0.1**0.5) == pytest.approx(2 * 2**0.5)


def test_on_the_command_line() -> None:
    with importlib.resources.as_file(importlib.resources.files("syndic") / "demo" / "study.toml") as path:
        result = CliRunner().invoke(cli, ["advise", str(path)])
    assert result.exit_code == 0, result.output
    assert "tables of two columns, total variation distance: joint error" in result.output
