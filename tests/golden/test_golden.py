"""What people read: plan, statement. Refreshed by one flag and reviewed as a diff."""

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from syndic import Study, plan, simulate
from syndic.study.draft import draft

Golden = Callable[[str, str], None]


def demo() -> Path:
    return Path(str(files("syndic") / "demo"))


def test_plan_of_the_demo(golden: Golden) -> None:
    golden("plan-demo.txt", str(plan(Study.load(demo() / "study.toml"))) + "\n")


def test_draft_of_the_demo(golden: Golden) -> None:
    sources = {name: demo() / f"{name}.csv" for name in ("north", "south", "east")}
    golden("draft-demo.toml", draft(sources, target="diabetes").toml())


def test_statement_of_the_demo(golden: Golden, tmp_path: Path) -> None:
    study = Study.load(demo() / "study.toml")
    release = simulate(study, {party.name: demo() / f"{party.name}.csv" for party in study.parties}, seed=1)
    release.write(tmp_path)
    text = (tmp_path / "statement.json").read_text()
    golden("statement-demo.json", re.sub(r'"syndic": "[^"]+"', '"syndic": "VERSION"', text))
    golden("transcript-demo.json", (tmp_path / "transcript.json").read_text())
