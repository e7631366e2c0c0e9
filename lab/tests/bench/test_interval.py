"""The bench of intervals: what one release says, and what a file of releases shows."""

from pathlib import Path

from click.testing import CliRunner

from syndic.document import to_json
from syndic_lab.bench.interval.release import Setting, outcome
from syndic_lab.bench.interval.run import ADULT, settings
from syndic_lab.cli.bench import bench


def test_every_kind_comes_before_the_second_of_any() -> None:
    every = settings(quick=False)
    assert len(set(every)) == len(every) == 90 * 67 + 50
    assert [one.seed for one in every[:182]] == [1] * 91 + [2] * 91
    assert settings(quick=True) == every[:91]
    assert every[90].people == ADULT


def test_a_file_of_releases_is_shown_without_running_any(tmp_path: Path) -> None:
    found = outcome(Setting(population="tree", people=2000, epsilon="3", layout="curator", seed=1))
    assert sum(one.covers is not None for one in found.asked) >= 10
    assert all(one.width is None or one.width > 0.9 for one in found.asked)
    file = tmp_path / "releases.jsonl"
    file.write_bytes(to_json(found) + b"\n")
    shown = CliRunner().invoke(bench, ["interval", "--processes", "0", "--resume", str(file), "--json"])
    assert shown.exit_code == 0, shown.output
    assert '"tree (1 releases)"' in shown.output
    assert "width / that of real rows" in shown.output
    assert '"lowest of 1 cells: tree, 2,000 people, epsilon 3 (1 releases)"' in shown.output
    assert len(file.read_bytes().splitlines()) == 1
