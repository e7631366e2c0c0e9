"""Peers: asked in an interpreter of their own, left out with a sentence where there is none."""

import json
from pathlib import Path

import numpy as np
import pytest

from syndic.errors import InputError
from syndic_lab.peers import ask as peers_ask
from syndic_lab.peers import regression as peers_regression
from syndic_lab.peers import run as peers


def stand_in(folder: Path, name: str, script: str) -> None:
    """Put a shell script where the interpreter of a library would be; $4 is the folder that it is given."""
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


def test_a_library_that_is_not_there_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    assert list(peers.rows(quick=True)) == []
    said = capsys.readouterr().err
    assert all(f"{name} is left out" in said for name in ("diffprivlib", "mbi", "dpmm", "flower"))
    monkeypatch.delenv("SYNDIC_PEERS")
    assert peers_ask.interpreter("diffprivlib") is None


def test_without_the_rows_of_adult_the_tables_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stand_in(tmp_path, "mbi", "exit 1")
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    assert list(peers.rows(quick=True)) == []
    said = capsys.readouterr().err
    assert all(f"{name} is left out from here on: adult_coded.parquet was not found" in said for name in ("aim", "mbi"))


def test_what_the_interpreter_prints_is_the_baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = peers_regression.made_up(10)
    off = {"linear": data["truth"] + 1, "logistic": data["slope"]}
    answer = {kind: {"coefficients": [found.tolist()], "seconds": 0.5} for kind, found in off.items()}
    stand_in(tmp_path, "diffprivlib", f"test -s \"$4/rows.npz\" || exit 1\necho '{json.dumps(answer)}'")
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    monkeypatch.setattr(peers_regression, "_fitted", lambda *_: (np.zeros(5), 0.25))
    found = list(peers_regression.rows(quick=True))
    linear = next(row for row in found if row.row.startswith("linear") and "distance" in row.metric)
    assert linear.baseline == pytest.approx(5**0.5)
    assert linear.value == pytest.approx(float(np.linalg.norm(data["truth"])))
    assert {row.baseline for row in found if row.metric == "CPU seconds"} == {0.5}


def test_a_library_that_fails_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(tmp_path, "mbi", "echo no such device >&2; exit 3")
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    with pytest.raises(InputError, match=r"script_mbi\.py ended with status 3: no such device"):
        peers_ask.ask("mbi", {}, {})


def test_made_up_people_follow_their_laws() -> None:
    data = peers_regression.made_up(50_000)
    fitted = np.linalg.lstsq(data["features"], data["number"], rcond=None)[0]
    assert np.allclose(fitted, data["truth"], atol=0.01)
    assert np.abs(data["features"]).max() <= 1
