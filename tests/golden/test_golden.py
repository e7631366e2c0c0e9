"""What people read: help, plan, statement. Refreshed by one flag and reviewed as a diff."""

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from syndic import Study, plan, simulate
from syndic.cli.main import cli
from verbs import verbs_of

Golden = Callable[[str, str], None]


def demo() -> Path:
    return Path(str(files("syndic") / "demo"))


def verbs(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [path]
    for name, command in verbs_of(group).items():
        found += verbs(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


@pytest.mark.parametrize("verb", verbs(cli), ids=lambda verb: " ".join(verb) or "syndic")
def test_help(verb: tuple[str, ...], golden: Golden) -> None:
    result = CliRunner().invoke(cli, [*verb, "--help"], terminal_width=100, prog_name="syndic")
    assert result.exit_code == 0
    assert "Example" in result.output or "syndic demo" in result.output or len(verb) > 1
    golden(f"help-{'-'.join(verb) or 'syndic'}.txt", result.output)


def test_plan_of_the_demo(golden: Golden) -> None:
    golden("plan-demo.txt", str(plan(Study.load(demo() / "study.toml"))) + "\n")


def test_statement_of_the_demo(golden: Golden, tmp_path: Path) -> None:
    study = Study.load(demo() / "study.toml")
    release = simulate(study, {party.name: demo() / f"{party.name}.csv" for party in study.parties}, seed=1)
    release.write(tmp_path)
    text = (tmp_path / "statement.json").read_text()
    golden("statement-demo.json", re.sub(r'"syndic": "[^"]+"', '"syndic": "VERSION"', text))
    golden("transcript-demo.json", (tmp_path / "transcript.json").read_text())
