"""From two CSV files that nobody has described to a release: six commands, no editor."""

import csv
import datetime
import json
import stat
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from syndic import Release, Study
from syndic.cli.main import cli
from syndic.study.draft_text import READ

HEADER = ("customer_id", "age", "sex", "balance", "rate", "joined", "region_code", "severity", "remark", "churned")


def write_rows(path: Path, rows: int, seed: int) -> None:
    """Write mixed types: ids, missing ages, skewed money, codes, dates, words for missing, free text, a label."""
    draw = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(HEADER)
        for place in range(rows):
            age = int(np.clip(draw.normal(50, 15), 18, 94))
            lines.writerow(
                [
                    f"C-{seed}-{place:05d}",
                    age if draw.random() > 0.05 else "",
                    draw.choice(["female", "male"]),
                    int(draw.lognormal(7, 1.4) - 200),
                    f"{draw.random():.3f}",
                    datetime.date(2020, 1, 1) + datetime.timedelta(days=int(draw.integers(0, 1400))),
                    draw.choice(["0101", "0205", "1107"]),
                    draw.choice(["low", "medium", "high", "NA"]),
                    f"called at {draw.integers(10**9)} and said a word",
                    "yes" if draw.random() < 0.2 + 0.3 * (age > 60) else "no",
                ]
            )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files of two parties, and be in it."""
    write_rows(tmp_path / "north.csv", 500, 1)
    write_rows(tmp_path / "south.csv", 400, 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def syndic(*words: str, answers: str = "") -> Result:
    result = CliRunner().invoke(cli, words, input=answers, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


SOURCES = ("-s", "north=north.csv", "-s", "south=south.csv")


def test_six_commands_to_a_release(place: Path) -> None:
    told = syndic("init", "north=north.csv", "south.csv", "--target", "churned").output
    assert "customer_id" in told
    assert "wrote study.draft.toml: private. 24 values read from rows" in told
    drafted = (place / "study.draft.toml").read_text()
    assert not any(secret in drafted + told for secret in ("C-1-", "called at"))
    assert stat.S_IMODE((place / "study.draft.toml").stat().st_mode) == 0o600
    warned = syndic("plan", "study.draft.toml", "--json")
    assert "24 values were read from rows and are not confirmed" in warned.stderr
    json.loads(warned.stdout)

    assert "24 values confirmed" in syndic("init", "--confirm", "study.draft.toml", "--yes").output
    assert "#" not in (place / "study.toml").read_text()
    planned = syndic("plan", "study.toml")
    assert "warning" not in planned.stderr
    assert "north and south, 2 parties" in planned.stdout
    syndic("simulate", "study.toml", *SOURCES, "--out", "run", "--seed", "1")
    syndic("report", "run")
    syndic("evaluate", "run", *SOURCES)

    released = Release.load(place / "run").table.to_arrow()
    assert set(released.column_names) == set(HEADER) - {"customer_id", "remark"}
    assert 700 < len(released) < 1100
    schema = Study.load(place / "study.toml").schema
    kinds = {column.name: type(column).__name__ for column in schema.columns}
    assert kinds == {
        "age": "Integer",
        "sex": "Categorical",
        "balance": "Integer",
        "rate": "Real",
        "joined": "Date",
        "region_code": "Categorical",
        "severity": "Ordinal",
        "churned": "Boolean",
    }
    assert schema["balance"].scale == "symlog"  # type: ignore[union-attr]


def test_values_are_confirmed_by_column(place: Path) -> None:
    syndic("init", "north.csv", "--out", "draft.toml")
    answers = ["", "what", "lower = 18", "upper = 110", "", *[""] * 20]
    told = syndic("init", "--confirm", "draft.toml", answers="\n".join(answers) + "\n").output
    assert "type one of kind, lower, upper" in told
    study = tomllib.loads((place / "study.toml").read_text())
    age = next(column for column in study["schema"]["columns"] if column["name"] == "age")
    assert (age["lower"], age["upper"]) == (18, 110)


def test_nothing_is_written_without_an_answer(place: Path) -> None:
    syndic("init", "north.csv")
    result = CliRunner().invoke(cli, ["init", "--confirm", "study.draft.toml"], input="\n")
    assert "nothing was written" in str(result.exception)
    assert not (place / "study.toml").exists()


def test_public_descriptions(place: Path) -> None:
    (place / "dict.csv").write_text("name,kind,lower,upper,values\nage,integer,0,110,\nsex,categorical,,,female;male\n")
    (place / "meta.json").write_text(json.dumps({"columns": {"rate": {"sdtype": "id"}}}))
    syndic("init", "north.csv", "--dictionary", "dict.csv", "--metadata", "meta.json", "--people", "north=600")
    lines = (place / "study.draft.toml").read_text().splitlines()
    assert {"people = 600", "upper = 110", 'values = ["female", "male"]', "# left out: rate: its sdtype is id"} <= {
        *lines
    }
    assert any(line.endswith(READ) for line in lines)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("init",), "at least one party"),
        (("init", "nowhere.csv"), "no such file"),
        (("init", "north.csv", "--yes"), "first write one"),
        (("init", "=north.csv"), "PARTY=FILE"),
        (("init", "north.csv", "north=south.csv"), "given twice"),
        (("init", "north.csv", "--out", "x.json"), "expected a .toml file"),
        (("init", "north.csv", "--people", "north=0"), "PARTY=NUMBER"),
        (("init", "north.csv", "--confirm", "x.toml"), "leave out one"),
        (("init", "north.csv", "--target", "remark"), "must be one of the drafted columns"),
        (("init", "north.csv", "--out", "there.toml"), "exists"),
        (("init", "--confirm", "north.bin"), "not UTF-8"),
    ],
)
def test_errors(place: Path, words: tuple[str, ...], error: str) -> None:
    (place / "there.toml").touch()
    (place / "north.bin").write_bytes(b"\xff\xfe")
    result = CliRunner().invoke(cli, words)
    assert error in str(result.exception)
