"""What the console does, in a terminal: keep and decline a study, compare releases."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from consoles import agree_all, run_between, study_between, study_file
from syndic.cli.main import cli
from syndic.errors import InputError, MissingExtraError, RefusedError
from syndic.study.agreement import agree


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=True)


def test_receive_and_decline(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    home = str(homes["north"].folder)
    (tmp_path / "study.json").write_text(study_file(study))
    assert run("receive", str(tmp_path / "study.json"), "--home", home).output == f"test is pending: {study.digest}\n"
    declined = run("decline", study.digest[:8], "--home", home, "--why", "no", "--json")
    assert json.loads(declined.output)["state"] == "declined"
    assert isinstance(run("decline", "zz", "--home", home).exception, InputError)
    agree(homes["north"], study)
    assert isinstance(run("decline", study.digest, "--home", home).exception, RefusedError)


def test_compare(tmp_path: Path) -> None:
    study, homes = study_between(tmp_path)
    agree_all(study, homes)
    run_between(study, homes).write(tmp_path / "one")
    same = run("compare", str(tmp_path / "one"), str(tmp_path / "one"), "--json")
    found = json.loads(same.output)
    assert found["changes"] == []
    assert {one["column"]: one["distance"] for one in found["columns"]} == {"colour": 0.0, "age": 0.0, "score": 0.0}
    assert "0.000" in run("compare", str(tmp_path / "one"), str(tmp_path / "one")).output


def test_console_needs_a_folder_of_its_kind(tmp_path: Path) -> None:
    assert isinstance(run("console", str(tmp_path)).exception, InputError)
    assert isinstance(run("console", str(tmp_path / "nowhere")).exception, InputError)


@pytest.mark.parametrize("library", ["starlette", "uvicorn", "jinja2"])
def test_console_names_the_extra_that_is_missing(library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("web", "guard", "serve"):
        monkeypatch.delitem(sys.modules, f"syndic.console.{name}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    error = run("console", str(tmp_path)).exception
    assert isinstance(error, MissingExtraError)
    assert str(error) == f"{library} is not installed: pip install 'syndic[console]'"
