"""`syndic reproduce`: a small item really run, the list, and errors."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syndic.cli.main import cli
from syndic.errors import InputError


def test_a_small_item_is_run_and_kept(tmp_path: Path) -> None:
    words = ["reproduce", "--quick", "--only", "learning-table-1", "--only", "learning-figure-2"]
    for state in ("done", "kept"):
        result = CliRunner().invoke(cli, [*words, "--out", str(tmp_path), "--json"], catch_exceptions=False)
        assert result.exit_code == 0
        found = json.loads(result.stdout)
        assert [one["state"] for one in found["items"]] == [state, "no data"]
        values = {(one["row"], one["metric"]): one["value"] for one in found["items"][0]["outcome"]["rows"]}
        assert values["noise, MPC Out P", "noise parameter"] == pytest.approx(8.0)
        assert found["summary"].startswith("1 of 2 tables and figures in ")
    assert "Ask for KDD Cup 1998 at archive.ics.uci.edu" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "report.html").exists()


def test_without_data_items_are_listed_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    result = CliRunner().invoke(cli, ["reproduce", "--list", "--json", "--only", "homm-table-1"])
    (found,) = json.loads(result.stdout)
    assert found["what"].startswith("no data: needs insurance.csv, Social_Network_Ads.csv")
    result = CliRunner().invoke(cli, ["reproduce", "--only", "homm-table-1", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "needs insurance.csv" in (tmp_path / "report.md").read_text()


def test_a_failed_measurement_sets_the_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the data are there by name only
    for name in ("insurance.csv", "Social_Network_Ads.csv"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("SYNDIC_DATA", str(tmp_path))
    result = CliRunner().invoke(cli, ["reproduce", "--only", "homm-table-1", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "homm-table-1 failed: " in result.stderr


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--only nothing"):
        CliRunner().invoke(cli, ["reproduce", "--only", "nothing", "--out", str(tmp_path)], catch_exceptions=False)
