"""Installation to release by the guide's commands alone: they are read off the page and run, each in its order."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import syndic
from federation import free_port, wait_until
from syndic.study import Release

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
DEMO = Path(syndic.__file__).parent / "demo"
STAYS = ("coordinator start", "join")


def blocks() -> Iterator[tuple[str, str]]:
    """The blocks of the guide: kind and text."""
    part = PAGE.read_text().partition("## From installation to release")[2].partition("\n## ")[0]
    return iter(re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL))


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_the_guide_leads_to_a_release(tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    port = str(free_port())
    done = []
    for _kind, text in blocks():
        if title := re.match(r"# ([\w./-]+\.toml)\n", text):
            (tmp_path / title[1]).write_text(text)
            if title[1] == "north/party.toml":  # the others write theirs alike
                for name in ("south", "east"):
                    (tmp_path / name / "party.toml").write_text(text.replace("north", name))
            continue
        for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
            command = line.replace("study.example.org", "127.0.0.1").replace("8002", port)
            if command.startswith("syndic agree"):
                home = shlex.split(command)[-1]
                shutil.copy(DEMO / f"{home}.csv", tmp_path / home / "rows.csv")
            follow(command, tmp_path, processes)
            done.append(command)
    assert len(done) >= 20
    release = Release.load(tmp_path / "run")
    assert release.statement.protects
    assert release.table.to_arrow().column_names == ["age", "smoker"]


def follow(command: str, folder: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    program = f"{shlex.quote(sys.executable)} -m "
    if any(command.startswith(f"syndic {verb}") for verb in STAYS):
        with (folder / f"{command.rsplit(maxsplit=1)[-1]}.out").open("wb") as file:
            words = shlex.split(program + command)
            processes.append(subprocess.Popen(words, cwd=folder, stdout=file, stderr=file))
        return
    wait_until_connected(folder, processes)
    ran = subprocess.run(
        program + command, shell=True, cwd=folder, input="y\n", capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"


def wait_until_connected(folder: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    """Sites that were started have said that they are connected."""
    outputs = [output for output in folder.glob("*.out") if output.name != "federation.out"]

    def connected() -> bool:
        assert all(one.poll() is None for one in processes)
        return all("connected;" in output.read_text() for output in outputs)

    wait_until(connected, lambda: "\n".join(output.read_text() for output in outputs))
