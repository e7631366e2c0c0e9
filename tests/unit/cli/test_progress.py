"""The progress display: on standard error, on a terminal, for every command that may take a while."""

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from consoles import study_between
from support import study_text, two_parties
from syndic.cli import show
from syndic.cli.main import cli

SOURCES = "-s north=north.parquet -s south=south.parquet"
LEDGER = "run/parties/north/ledger.sqlite"
# a command and what its display says first
SHOWN: Mapping[str, str] = {
    f"simulate study.toml {SOURCES} --out other": "simulate test",
    "plan study.toml": "plan",
    "advise study.toml --task mean:age": "predict errors",
    "report run": "write the report",
    f"evaluate run {SOURCES}": "evaluate",
    "compare run run": "compare",
    f"plan study.toml {SOURCES}": "read rows",
    f"ledger show {LEDGER}": "read the ledger",
    f"ledger verify {LEDGER}": "verify the ledger",
    f"ledger export {LEDGER} ledger.csv": "export the ledger",
    "doctor federation": "check the setup",
    "demo --runtime local": "three clinics",
}
Typed = Callable[[str], str]


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("progress")
    (folder / "study.toml").write_text(study_text())
    for name, rows in two_parties().items():
        pq.write_table(rows, folder / f"{name}.parquet")
    study_between(folder / "homes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            f"simulate study.toml {SOURCES} --out run",
            "coordinator init federation --name health --host 127.0.0.1",
        ):
            cli.main(line.split(), standalone_mode=False)
    return folder


@pytest.fixture
def typed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Return a function that runs a command with a terminal, and returns what was drawn on it."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TERM", "xterm")

    def run(line: str) -> str:
        terminal = Terminal()
        # the doctor ends with status 1: the server is not running
        with redirect_stderr(terminal), suppress(SystemExit):
            cli.main(line.split(), prog_name="syndic", standalone_mode=False)
        return terminal.getvalue()

    return run


@pytest.mark.parametrize("line", SHOWN)
def test_a_terminal_shows_that_something_is_done(line: str, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = typed(line)
    assert SHOWN[line] in drawn
    assert SHOWN[line] not in capsys.readouterr().out.splitlines()


def test_steps_are_counted(typed: Typed) -> None:
    drawn = typed(f"simulate study.toml {SOURCES} --out third")
    assert "sanitise" in drawn
    assert "2/2" in drawn


def test_programs_see_no_display(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("plan study.toml --json") == ""
    assert capsys.readouterr().out.startswith("{")


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress_bar("work", shown=True) as progress:
        progress("steps", 1, 2)
    assert capsys.readouterr().err == ""


def test_standard_output_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with redirect_stderr(Terminal()), show.progress_bar("work", shown=True):
        print("a line for a program")
    assert capsys.readouterr().out == "a line for a program\n"
