"""`bench model`: the engine's rows, with and without the peer."""

import sys
from pathlib import Path

import pytest

from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.model import run as bench


def test_without_the_peer_its_baselines_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SYNDIC_MBI_PYTHON", raising=False)
    rows = list(bench.step_rows(quick=True))
    assert "set SYNDIC_MBI_PYTHON" in capsys.readouterr().err
    assert [row.metric for row in rows] == ["milliseconds a step"] * 2
    assert rows[0].row == "engine, 1e6 cells, 20 three-way tables"
    assert rows[0].baseline is None
    assert rows[1].baseline == rows[0].value > 0


def test_a_peer_that_fails_is_told_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SYNDIC_MBI_PYTHON", sys.executable)
    peer = tmp_path / "peer.py"
    peer.write_text("raise SystemExit('it is not there')")
    monkeypatch.setattr(bench, "PEER", peer)
    assert bench.peer_figures(quick=True) == {}
    assert "no baseline: it is not there" in capsys.readouterr().err
    peer.write_text("print('noise'); print('{\"step\": 2.5}')")
    assert bench.peer_figures(quick=True) == {"step": 2.5}


@pytest.mark.bench
def test_a_hundred_columns_stay_below_what_was_announced() -> None:
    rows = list(bench.wide_rows(quick=True))
    memory = next(row for row in rows if row.metric == "megabytes")
    assert memory.baseline is not None
    assert memory.value < memory.baseline
    assert BENCHES["model"] is bench.rows
