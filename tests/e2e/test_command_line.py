"""The command line as a person uses it: real files, exit statuses; each kind of ending also as a process."""

import contextlib
import io
import json
import signal
import sqlite3
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest

from support import rows, study_text
from syndic import Schema, Study
from syndic.cli.main import main
from syndic.document import from_json


def by_process(*words: str | Path, cwd: Path, status: int = 0) -> str:
    """Run a command as a process, check its exit status, return what it printed."""
    command = [sys.executable, "-m", "syndic", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 or "--json" in words else done.stderr


def syndic(*words: str | Path, cwd: Path, status: int = 0) -> str:
    """Do the same in this process, which has loaded the libraries; what is not an exit status fails the test."""
    ended: object = 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["syndic", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            ended = end.code
    assert ended == status, err.getvalue() + out.getvalue()
    return out.getvalue() if status == 0 or "--json" in words else err.getvalue()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a study and rows for its two parties."""
    (tmp_path / "study.toml").write_text(study_text())
    pq.write_table(rows(60, 1), tmp_path / "north.parquet")
    rows(40, 2).to_pandas().to_csv(tmp_path / "south.csv", index=False)
    return tmp_path


SOURCES = ("-s", "north=north.parquet", "-s", "south=south.csv")


def test_plan_checks_the_study_and_reads_no_row(place: Path) -> None:
    digest = Study.load(place / "study.toml").digest
    text = by_process("plan", "study.toml", cwd=place)
    assert text.endswith(f"study.toml is valid: test, 2 parties\ndigest {digest}\n")
    planned = json.loads(syndic("plan", "study.toml", "--json", cwd=place))
    assert planned["statement"]["epsilon"] == 1.0
    assert planned["resources"]["memory_bytes"] > 0
    assert (planned["study"], planned["digest"], planned["parties"]) == ("test", digest, ["north", "south"])
    assert "costs        epsilon 1 for one person at each party" in text
    assert not (place / "syndic-run").exists()


@pytest.mark.parametrize("runtime", ["local", "processes"])
def test_simulate_then_ledger(runtime: str, place: Path) -> None:
    told = by_process("simulate", "study.toml", *SOURCES, "--out", "run", "--runtime", runtime, cwd=place)
    assert "epsilon 1 for one person at each party" in told
    ledger = "run/parties/north/ledger.sqlite"
    assert "reserve" in syndic("ledger", "show", ledger, cwd=place)
    shown = json.loads(syndic("ledger", "show", ledger, "--json", cwd=place))
    assert shown["spent"][0]["cost"]["pure"] == 10**12
    verified = json.loads(syndic("ledger", "verify", ledger, "--json", cwd=place))
    assert verified["entries"] == 3
    syndic("ledger", "verify", ledger, "--published", verified["head"], cwd=place)
    syndic("ledger", "verify", ledger, "--published", "0" * 64, cwd=place, status=5)
    syndic("ledger", "export", ledger, "ledger.csv", cwd=place)
    assert "reserve" in (place / "ledger.csv").read_text()
    statement = json.loads((place / "run" / "statement.json").read_text())
    assert statement["protects"] is True
    # the same study again: the stored answers, nothing charged
    again = json.loads(syndic("simulate", "study.toml", *SOURCES, "--out", "run", "--json", cwd=place))
    assert again["ledgers"]["north"][0]["cost"]["pure"] == 10**12


def test_a_changed_ledger_is_found(place: Path) -> None:
    syndic("simulate", "study.toml", *SOURCES, "--out", "run", cwd=place)
    file = place / "run/parties/north/ledger.sqlite"
    connection = sqlite3.connect(file)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("UPDATE entry SET why = 'harmless' WHERE number = 2")
    connection.commit()
    connection.close()
    assert "entry 2" in by_process("ledger", "verify", file, cwd=place, status=5)


def test_errors_are_one_sentence_with_a_status(place: Path) -> None:
    assert "nowhere.toml: no such file" in syndic("plan", "nowhere.toml", cwd=place, status=2)
    (place / "bad.toml").write_text(study_text(budget="epsilon = -1.0"))
    assert "must be positive" in by_process("plan", "bad.toml", cwd=place, status=2)
    error = json.loads(by_process("plan", "bad.toml", "--json", cwd=place, status=2))["error"]
    assert error["code"] == "input"
    assert "PARTY=FILE" in syndic("simulate", "study.toml", "-s", "north", cwd=place, status=2)
    assert "twice" in syndic("simulate", "study.toml", "-s", "north=a.csv", "-s", "north=b.csv", cwd=place, status=2)
    assert "no source for" in syndic("simulate", "study.toml", cwd=place, status=2)
    missing = by_process("simulate", "study.toml", "-s", "north=no.csv", "-s", "south=south.csv", cwd=place, status=4)
    assert "no.csv" in missing
    assert "no such ledger" in syndic("ledger", "show", "none.sqlite", cwd=place, status=2)
    (place / "junk.sqlite").write_bytes(b"not a database at all" * 100)
    syndic("ledger", "show", "junk.sqlite", cwd=place, status=5)
    assert "No such option" in by_process("plan", "study.toml", "--loud", cwd=place, status=2)


def test_a_file_where_a_folder_should_be_is_bad_input(place: Path) -> None:
    told = syndic("simulate", "study.toml", *SOURCES, "--out", "study.toml", cwd=place, status=2)
    assert told.startswith("error: study.toml/parties/north: Not a directory")
    told = syndic("simulate", "study.toml", *SOURCES, "--out", "study.toml", "--json", cwd=place, status=2)
    assert json.loads(told)["error"]["code"] == "input"


def test_a_party_file_brings_its_own_cap(place: Path) -> None:
    home = place / "north"
    home.mkdir()
    (home / "party.toml").write_text(
        'name = "north"\ndataset = "visits"\ncap = { epsilon = 0.5 }\nsource = { path = "../north.parquet" }\n'
    )
    sources = ("-s", "north=north/party.toml", "-s", "south=south.csv")
    told = by_process("simulate", "study.toml", *sources, "--out", "run2", cwd=place, status=3)
    assert "spent 0 of epsilon 0.5" in told
    assert "the largest charge of this kind that fits is 0.5" in told
    text = (home / "party.toml").read_text().replace("0.5", "1.5")
    (home / "party.toml").write_text(text)
    result = json.loads(syndic("simulate", "study.toml", *sources, "--out", "run2", "--json", cwd=place))
    (spending,) = result["ledgers"]["north"]
    assert (spending["dataset"], spending["left"]) == ("visits", "1/2")


def test_a_party_that_was_ready_once_is_asked_again(place: Path) -> None:
    syndic(
        "simulate", "study.toml", "-s", "north=north.parquet", "-s", "south=no.csv", "--out", "run", cwd=place, status=4
    )
    syndic("simulate", "study.toml", "-s", "north=no.csv", "-s", "south=south.csv", "--out", "run", cwd=place, status=4)
    shown = json.loads(syndic("ledger", "show", "run/parties/south/ledger.sqlite", "--json", cwd=place))
    assert [entry["kind"] for entry in shown["entries"]] == ["declare"]


def test_demo_says_in_20_lines_what_the_clinics_gain(tmp_path: Path) -> None:
    facts = json.loads(syndic("demo", "--runtime", "local", "--json", cwd=tmp_path))
    gains = {gain["by"]: gain for gain in facts["gains"]}
    assert {name: gain["rows"] for name, gain in gains.items()} == {
        "north": 1400,
        "south": 700,
        "east": 1000,
        "together": 3100,
    }
    # the noise is secret, so one clinic may be lucky; not all three
    assert gains["together"]["misplaced"] < fmean(gains[name]["misplaced"] for name in ("north", "south", "east"))
    assert set(facts["cost"]) == set(facts["ledgers"]) == {"north", "south", "east"}
    # the same folder again: the same release, and nothing is charged
    text = syndic("demo", cwd=tmp_path)
    lines = text.splitlines()
    assert len(lines) <= 20
    assert max(len(line) for line in lines) <= 80
    for name in ("north alone", "south alone", "east alone"):
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1
    together = f"  together     {100 * gains['together']['misplaced']:5.1f} %   from 3,100 patients"
    assert together in lines
    assert "because the patients are made up" in text
    assert "this study costs epsilon 1; after it 1 of your cap 1 is spent" in " ".join(text.split())
    assert f"Report: {facts['report']} (open it in a browser)" in lines
    assert all(command in text for command in facts["next"])
    for command in facts["next"]:
        syndic(*command.split()[1:], cwd=tmp_path)


def test_demo_leaves_a_table_a_statement_and_three_ledgers(tmp_path: Path) -> None:
    by_process("demo", cwd=tmp_path)
    folder = tmp_path / "syndic-demo"
    assert pq.read_table(folder / "synthetic.parquet").num_rows > 1000
    assert json.loads((folder / "statement.json").read_text())["protects"] is True
    ledgers = sorted(path.parent.name for path in folder.glob("parties/*/ledger.sqlite"))
    assert ledgers == ["east", "north", "south"]
    for name in ledgers:
        syndic("ledger", "verify", folder / "parties" / name / "ledger.sqlite", cwd=tmp_path)


@pytest.mark.parametrize("document", ["study", "columns", "party"])
def test_json_schema_describes_what_is_read(document: str, tmp_path: Path) -> None:
    schema = json.loads(syndic("json-schema", document, cwd=tmp_path))
    assert schema["$schema"].startswith("https://json-schema.org")
    names = set(next(iter([schema["$defs"][schema["$ref"].split("/")[-1]]]))["properties"])
    wanted = {"study": {"unit", "budget", "protocol", "parties"}, "columns": {"columns"}, "party": {"cap", "source"}}
    assert wanted[document] <= names


def test_an_interrupt_ends_the_run_and_the_next_one_goes_on(place: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "syndic",
        "simulate",
        "study.toml",
        *SOURCES,
        "--runtime",
        "processes",
        "--out",
        "run",
    ]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (place / "run/parties/south/party.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode in {0, 130}, told
    assert "Traceback" not in told
    result = json.loads(syndic("simulate", "study.toml", *SOURCES, "--out", "run", "--json", cwd=place))
    assert result["ledgers"]["north"][0]["cost"]["pure"] == 10**12


def test_the_demos_schema_reads_back_from_json() -> None:
    study = Study.load(Path(str(files("syndic") / "demo" / "study.toml")))
    from syndic.document import to_json  # noqa: PLC0415

    assert from_json(to_json(study.schema), Schema, where="x") == study.schema
