"""The short way to a first release: the demo's files, party.toml from options, several approvals, a server."""

import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syndic.cli.main import cli
from syndic.errors import InputError, RefusedError
from syndic.federation import coordinator as coordinators
from syndic.federation.coordinator import Coordinator
from syndic.study import PartyFolder, Study
from syndic.study.agreement import studies, withdraw


def syndic(*words: str | Path, typed: str = "") -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], input=typed)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the demo, a coordinator, and two parties that asked to be admitted."""
    folder = tmp_path_factory.mktemp("first")
    assert syndic("demo", "--files", folder / "demo").exit_code == 0
    Coordinator.create(folder / "federation", name="health", host="127.0.0.1", port=1)
    for name in ("north", "south"):
        rows = folder / "demo" / f"{name}.csv"
        ran = syndic("party", "init", folder / name, "--name", name, "--source", rows, "--cap", "4,1e-5")
        assert ran.exit_code == 0, ran.output
    requests = [folder / name / "request.json" for name in ("north", "south")]
    ran = syndic("coordinator", "approve", *requests, "--home", folder / "federation", typed="y\ny\n")
    assert ran.exit_code == 0, ran.output
    ran = syndic(
        *("coordinator", "fill", folder / "demo" / "draft.toml", "--home", folder / "federation"),
        *("--people", "north=1500", "--people", "south=800", "--out", folder / "study.toml"),
    )
    assert ran.exit_code == 0, ran.output
    return folder


def test_the_draft_is_the_study_without_its_parties(place: Path) -> None:
    whole = (place / "demo" / "study.toml").read_text()
    assert Study.loads(whole).name == "three clinics"
    assert "[[parties]]" not in (place / "demo" / "draft.toml").read_text()
    assert Study.load(place / "study.toml").schema == Study.loads(whole).schema


def test_party_toml_has_source_and_cap_and_is_never_overwritten(place: Path) -> None:
    owner = PartyFolder(folder=place / "north").owner()
    assert (float(owner.cap.epsilon), float(owner.cap.delta)) == (4.0, 1e-5)
    file = place / "north" / "party.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    again = ("party", "init", place / "north", "--name", "north", "--renew", "--source", "x.csv", "--cap", "9")
    assert syndic(*again).exit_code != 0
    assert file.read_text() == before


@pytest.mark.parametrize("given", [("--source", "a.csv"), ("--cap", "1")])
def test_source_and_cap_come_together(given: tuple[str, str], tmp_path: Path) -> None:
    ran = syndic("party", "init", tmp_path / "new", "--name", "new", *given)
    assert ran.exit_code != 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cap", ["", "a lot", "1,2,3", "-1", '4" }\nname = "x"'])
def test_a_cap_is_one_or_two_numbers(cap: str, tmp_path: Path) -> None:
    ran = syndic("party", "init", tmp_path / "new", "--name", "new", "--source", "a.csv", "--cap", cap)
    assert ran.exit_code != 0
    assert not (tmp_path / "new" / "party.toml").exists()


def test_each_party_is_admitted_by_an_answer_of_its_own(place: Path, tmp_path: Path) -> None:
    federation = tmp_path / "federation"
    opened = Coordinator.create(federation, name="other", host="127.0.0.1", port=1)
    requests = [place / name / "request.json" for name in ("north", "south")]
    ran = syndic("coordinator", "approve", *requests, "--home", federation, "--out", tmp_path / "one.json")
    assert ran.exit_code != 0
    assert opened.admitted() == ()
    # a no ends it; who was admitted before stays so
    ran = syndic("coordinator", "approve", *requests, "--home", federation, typed="y\nn\n")
    assert isinstance(ran.exception, RefusedError)
    assert [one.party for one in opened.admitted()] == ["north"]


def test_join_asks_before_it_agrees_and_does_not_connect_after_a_no(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, home = place / "study.toml", place / "north"
    connected: list[Path] = []
    monkeypatch.setattr("syndic.cli.federation._join", connected.append)
    given = ("join", home, "--approval", home / "approval-north.json", "--agree", study)
    assert isinstance(syndic(*given, typed="n\n").exception, RefusedError)
    assert connected == []
    assert studies(PartyFolder(folder=home)) == ()
    ran = syndic(*given, typed="y\n")
    assert ran.exit_code == 0, ran.output
    assert connected == [home]
    assert [one.state for one in studies(PartyFolder(folder=home))] == ["agreed"]


def test_a_server_that_does_not_start_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    opened = Coordinator.open(place / "federation")
    with pytest.raises(InputError, match=r"server\.out"), coordinators.serving(opened):
        pytest.fail("there is no server")


def test_files_of_the_demo_overwrite_no_others(tmp_path: Path) -> None:
    """Somebody's own rows or study may have the same name; the demo's own files may be written again."""
    own = tmp_path / "north.csv"
    own.write_text("age\n44\n")
    assert isinstance(syndic("demo", "--files", tmp_path).exception, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["north.csv"]
    assert own.read_text() == "age\n44\n"
    own.unlink()
    for _ in range(2):
        assert syndic("demo", "--files", tmp_path).exit_code == 0


def test_a_join_that_starts_again_does_not_undo_a_withdrawal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, home = place / "study.toml", PartyFolder(folder=place / "south")
    connected: list[Path] = []
    monkeypatch.setattr("syndic.cli.federation._join", connected.append)
    given = ("join", home.folder, "--approval", home.folder / "approval-south.json", "--agree", study, "--yes")
    for _ in range(2):
        assert syndic(*given).exit_code == 0
    withdraw(home, Study.load(study).digest)
    assert isinstance(syndic(*given).exception, RefusedError)
    assert len(connected) == 2
    assert [one.state for one in studies(home)] == ["withdrawn"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux stops the child")
def test_a_server_ends_with_a_run_that_was_killed(place: Path, tmp_path: Path) -> None:
    """SIGKILL leaves no time to stop it."""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    fake.chmod(0o700)
    code = (
        "import sys; from pathlib import Path; from syndic.federation import coordinator as c\n"
        f"sys.executable = {str(fake)!r}\n"
        f"with c.serving(c.Coordinator.open(Path({str(place / 'federation')!r}))): pass"
    )
    running = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().endswith("\n"))
    running.kill()
    running.wait()
    server = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/status")
    until(lambda: not server.exists() or "State:\tZ" in server.read_text())


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not met():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_an_approval_beside_a_request_follows_no_link(place: Path, tmp_path: Path) -> None:
    """Whoever can write where requests lie could else have the coordinator overwrite its own keys."""
    opened = Coordinator.create(tmp_path / "federation", name="other", host="127.0.0.1", port=1)
    key, exchange = opened.authority.keys[0], tmp_path / "exchange"
    exchange.mkdir()
    (exchange / "north.json").write_bytes((place / "north" / "request.json").read_bytes())
    before, approval = key.read_bytes(), exchange / "approval-north.json"
    approval.symlink_to(key)
    for _ in range(2):
        ran = syndic("coordinator", "approve", exchange / "north.json", "--home", opened.folder, "--yes")
        assert ran.exit_code == 0, ran.output
        assert not approval.is_symlink()
    assert key.read_bytes() == before
