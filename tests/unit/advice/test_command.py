"""The command: words for people, JSON for programs, errors with a way out."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from support import study_text
from syndic import Study
from syndic.advice import Advice, Assumptions, advise
from syndic.cli.main import cli
from syndic.document import from_json
from syndic.errors import InputError

TASKS = ("--task", "mean:age", "--task", "shares:colour")


@pytest.fixture
def study_file(tmp_path: Path) -> str:
    path = tmp_path / "study.toml"
    path.write_text(study_text(budget="epsilon = 4.0"))
    return str(path)


def test_json_is_the_advice(study_file: str) -> None:
    result = CliRunner().invoke(cli, ["advise", study_file, *TASKS, "--assume", "age.mean=30", "--json"])
    assert result.exit_code == 0, result.output
    advice = from_json(result.output, Advice, where="output")
    same = advise(
        Study.load(study_file), tasks=["mean:age", "shares:colour"], assumptions=Assumptions.of(("age.mean=30",))
    )
    assert advice == same
    assert json.loads(result.output)["tasks"][0]["task"] == "mean:age"


def test_words_name_every_party_and_what_is_assumed(study_file: str) -> None:
    result = CliRunner().invoke(cli, ["advise", study_file, "--task", "mean:age"])
    assert result.exit_code == 0
    for word in ("verdict", "north", "south", "alone", "joint error", "pooled without privacy", "assumes", "(assumed)"):
        assert word in result.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--task", "age"), "KIND:COLUMN"),
        (("--assume", "age.mean=200"), "bounds"),
        (("--assume", "x.toml"), "no such file"),
    ],
)
def test_bad_options_are_input_errors(study_file: str, options: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(cli, ["advise", study_file, *options])
    assert isinstance(result.exception, InputError)
    assert told in str(result.exception)
