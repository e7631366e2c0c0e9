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
from federation import end, free_port, wait_until
from syndic.runtime.flare.coordinator import ask_server
from syndic.runtime.flare.parts import Forward
from syndic.study import Release

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
DEMO = Path(syndic.__file__).parent / "demo"
STAYS = ("coordinator start", "join")


def blocks(title: str) -> Iterator[tuple[str, str]]:
    """The blocks of a part of the guide: kind and text."""
    part = PAGE.read_text().partition(f"## {title}")[2].partition("\n## ")[0]
    return iter(re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL))


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    end(started)


def test_the_guide_leads_to_a_release(tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    port = str(free_port())
    done = []
    for _kind, text in blocks("From installation to release"):
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


def test_ten_commands_and_no_file_lead_to_a_release(tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    ((_kind, text),) = blocks("Ten commands on one machine")
    commands = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    assert len(commands) <= 10
    assert commands[0].startswith("pip install")
    program, port = f"exec {shlex.quote(sys.executable)} -m ", str(free_port())
    for number, line in enumerate(commands[1:]):
        command = program + line.replace("8002", port)
        if line.startswith(("syndic run", "syndic join")):
            with (tmp_path / f"{number}.out").open("wb") as file:
                started = subprocess.Popen(
                    command, shell=True, cwd=tmp_path, stdin=subprocess.PIPE, stdout=file, stderr=file
                )
            assert started.stdin is not None
            started.stdin.write(b"y\n")
            started.stdin.close()
            processes.append(started)
            continue
        ran = subprocess.run(
            command, shell=True, cwd=tmp_path, input="y\ny\n", capture_output=True, text=True, timeout=600, check=False
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"
    run, *sites = processes
    wait_until(
        lambda: run.poll() is not None or any(one.poll() is not None for one in sites),
        lambda: "the run does not end",
        seconds=900,
    )
    assert run.poll() == 0, "\n".join(path.read_text() for path in tmp_path.glob("*.out"))
    assert Release.load(tmp_path / "run").statement.protects
    # the server ended with the run
    assert not [path for path in tmp_path.glob("federation/flare/relay.sock") if alive(path)]


def alive(path: Path) -> bool:
    return not ask_server(path, Forward(site="", kind="sites", body=b"", seconds=5.0)).reason


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
