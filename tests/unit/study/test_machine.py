"""The memory of a machine decides, before rows are read, whether a study runs there."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import syndic as sy
from support import CASES, charges
from syndic.cli.main import cli
from syndic.document import to_readable_json
from syndic.errors import InputError, PartyError
from syndic.study import machine, run, simulate
from syndic.study.machine import check_machine, machine_bytes, machine_in_words

CASE = next(case for case in CASES if case.name == "synthesis overlap")


def limits(groups: str, tmp_path: Path, files: dict[str, str]) -> list[int]:
    for name, text in files.items():
        path = tmp_path / "mounted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "groups").write_text(groups)
    return sorted(machine._allowed(tmp_path / "groups", tmp_path / "mounted"))


def test_limits_of_a_job_and_of_all_groups_above_it_count(tmp_path: Path) -> None:
    files = {
        "memory.max": "max\n",
        "jobs/memory.max": "4000\n",
        "jobs/17/memory.max": "3000\n",
        "other/memory.max": "5",
    }
    assert limits("0::/jobs/17\n", tmp_path, files) == [3000, 4000]


def test_limits_of_the_first_version_count_too(tmp_path: Path) -> None:
    files = {f"memory/{name}memory.limit_in_bytes": text for name, text in (("", "9000"), ("job/", "700"))}
    assert limits("7:cpu,cpuacct:/job\n4:memory:/job\n0::/\n", tmp_path, files) == [700, 9000]


def test_a_container_that_does_not_see_its_own_place_has_the_limit_at_the_top(tmp_path: Path) -> None:
    assert limits("0::/docker/a1b2\n", tmp_path, {"memory.max": "512"}) == [512]
    assert list(machine._allowed(tmp_path / "nowhere", tmp_path)) == []


def test_the_smallest_number_counts_and_none_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine_bytes.__wrapped__
    monkeypatch.setattr(machine, "_allowed", lambda *_: [12_345])
    assert found() == 12_345
    monkeypatch.setattr(machine, "_allowed", lambda *_: [])
    assert found() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.delattr(os, "sysconf")
    assert found() is None
    monkeypatch.setattr(machine, "machine_bytes", found)
    check_machine(10**18)
    assert machine_in_words(1, 2) == ""


def test_words_and_errors_have_both_numbers_but_others_do_not_see_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_bytes", lambda: 3 * 10**9)
    assert machine_in_words(10**9, 2 * 10**9) == "3,000 MB of memory: enough"
    assert machine_in_words(10**9, 4 * 10**9).endswith("enough for what is expected, but not for the most")
    assert machine_in_words(4 * 10**9, 5 * 10**9).endswith("too little")
    check_machine(3 * 10**9)
    with pytest.raises(InputError, match="about 4,000 MB of memory are needed, and this machine has 3,000 MB") as error:
        check_machine(4 * 10**9)
    assert "3,000" not in error.value.elsewhere
    assert "4,000 MB" in error.value.elsewhere


def test_a_simulation_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # all parties are in one process
    needed = sy.plan(CASE.study).resources.likely_bytes + machine.in_process_bytes(len(CASE.study.parties))
    monkeypatch.setattr(machine, "machine_bytes", lambda: needed - 1)
    with pytest.raises(InputError, match="use a larger machine"):
        simulate(CASE.study, {party.name: "no.csv" for party in CASE.study.parties}, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["synthesis overlap", "synthesis across", "marginals gaussian"])
def test_a_party_refuses_before_rows_are_read_or_charged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(one for one in CASES if one.name == name)
    needs = sy.plan(case.study).resources
    assert needs.party_bytes is not None
    assert 10**8 < needs.party_bytes <= needs.memory_bytes
    # the coordinator has a larger machine
    for coordinator in (run, sys.modules[simulate.__module__]):
        monkeypatch.setattr(coordinator, "check_machine", lambda _: None)
    least: Any = needs.party_bytes
    monkeypatch.setattr(machine, "machine_bytes", lambda: least - 1)
    with pytest.raises(PartyError, match="MB of memory are needed"):
        simulate(case.study, case.sources, folder=tmp_path, seed=1)
    names = [party.name for party in case.study.parties]
    assert not any(charges(tmp_path, name) for name in names)
    monkeypatch.setattr(machine, "machine_bytes", lambda: least)
    simulate(case.study, case.sources, folder=tmp_path, seed=1)
    assert all(charges(tmp_path, name) for name in names)


def test_a_plan_says_whether_this_machine_has_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.json"
    path.write_bytes(to_readable_json(CASE.study))
    monkeypatch.setattr(machine, "machine_bytes", lambda: 10**8)
    found = CliRunner().invoke(cli, ["plan", str(path)])
    assert found.exit_code == 0
    assert "\n  this machine has 100 MB of memory: too little\n" in found.output
