"""Peers: asked in an interpreter of their own, left out with a sentence where there is none."""

import json
from pathlib import Path

import numpy as np
import pytest

from syndic.bench import peers


def test_a_library_that_is_not_there_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    assert list(peers.rows(quick=True)) == []
    assert "diffprivlib is left out" in capsys.readouterr().err
    monkeypatch.delenv("SYNDIC_PEERS")
    assert peers.interpreter("diffprivlib") is None


def test_what_the_interpreter_prints_is_the_baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = peers.made_up(10)
    off = {"linear": data["truth"] + 1, "logistic": data["slope"]}
    answer = {kind: {"coefficients": [found.tolist()], "seconds": 0.5} for kind, found in off.items()}
    python = tmp_path / "diffprivlib" / "bin" / "python"
    python.parent.mkdir(parents=True)
    # stands for the library: checks that it was given rows, then answers
    python.write_text(f"#!/bin/sh\ntest -s \"$4/rows.npz\" || exit 1\necho '{json.dumps(answer)}'\n")
    python.chmod(0o755)
    monkeypatch.setenv("SYNDIC_PEERS", str(tmp_path))
    monkeypatch.setattr(peers, "_fitted", lambda *_: (np.zeros(5), 0.25))
    found = list(peers.regressions(quick=True))
    linear = next(row for row in found if row.row.startswith("linear") and "distance" in row.metric)
    assert linear.baseline == pytest.approx(5**0.5)
    assert linear.value == pytest.approx(float(np.linalg.norm(data["truth"])))
    assert {row.baseline for row in found if row.metric == "CPU seconds"} == {0.5}


def test_made_up_people_follow_their_laws() -> None:
    data = peers.made_up(50_000)
    fitted = np.linalg.lstsq(data["features"], data["number"], rcond=None)[0]
    assert np.allclose(fitted, data["truth"], atol=0.01)
    assert np.abs(data["features"]).max() <= 1
