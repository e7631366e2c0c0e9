"""The command line on spoiled arguments and spoiled files: a documented exit status, a reason, and no traceback."""

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import CANARY, NUMBERS, TEXTS, bounded, check_text, fuzz, spoiled
from organisations import homes_for
from support import study_text, two_parties
from syndic import Study
from syndic.cli import main
from syndic.cli.main import cli
from syndic.document import to_readable_json
from syndic.study.agreement import agree, receive
from verbs import verbs_of

pytestmark = pytest.mark.fuzz

STATUSES: Final = {0, 1, 2, 3, 4, 5, 6, 130}
LEDGER = "run/parties/north/ledger.sqlite"
ABOUT = """
description = "A table"
region = "Nowhere"
published = "2026-11-15"
authors = ["Office"]
licence = "https://example.org/licence"
sector = "Healthcare"
justification = "Agreed."
[[curators]]
name = "North clinic"
kind = "Nonprofit"
"""
# one good line for every verb that ends by itself within a second; the others are named below
GOOD: Final = tuple(
    line.split()
    for line in f"""
plan study.toml
plan study.toml --json
simulate study.toml -s north=north.csv -s south=south.csv --out out --seed 1
simulate study.toml -s north=north.csv -s south=south.csv --out run
identity --home homes/north
receive between.json --home homes/south --json
agree between.json --home homes/north --yes --expires 90d
agree between.json --home homes/south --rehearsal 7
decline DIGEST --home homes/south --why no
withdraw DIGEST --home homes/north --why no
studies --home homes/north --json
user add maria --home homes/north --role administrator --sign-in token
user list --home homes/north --json
user remove otto --home homes/north
log homes/north --json
coordinator init other --name health --host 127.0.0.1 --port 8002 --days 5
coordinator approve site/request.json --home federation --out again.json --yes
coordinator parties --home federation --json
coordinator remove north --home federation
coordinator fill bare.toml --home federation --people north=30 --out filled.toml
coordinator renew federation --days 9
coordinator authority federation --days 9
party init site --name north --renew
party init other --name other --source north.csv --cap 4,1e-5
demo --files files --json
party accept approval.json --home site
report run --party north --source north.csv --ledger {LEDGER} --out run/parties/north/page.html
report run --json
compare run run --json
export run --about about.toml --registry entry.yaml --croissant croissant.json --healthdcat health.json
export run --dossier dossier --audit audit.json --log homes/north
interval tables mean(age) mean(age,given=colour=='red') --confidence 0.9 --json
log federation --json
log homes/north
ledger show {LEDGER} --calls --json
ledger verify {LEDGER} --published 00
ledger export {LEDGER} out.csv
json-schema study
init north.csv south=south.csv --out draft.toml --target age
init --confirm study.toml --yes --out other.toml
plan study.toml -s north=north.csv --json
""".strip().splitlines()
)
LEFT_OUT: Final = {
    "advise", "audit", "bench", "console", "demo", "doctor", "evaluate", "join", "recompute", "reproduce", "run",
    "start",
}  # fmt: skip
OPTIONS: Final = ("--json", "--help", "--nothing", "--seed", "--out", "--home", "-s", "--", "-h", "--yes", "--days")
WORDS: Final = (
    *(str(number) for number in NUMBERS[:12]), *(text for text in TEXTS if "\x00" not in text),
    *("nowhere", "nowhere.toml", ".", "/proc", "run", "empty.toml", "homes/north/identity.key", "north.csv", LEDGER),
    *("a=b", "=", "north=", "north=.", "north=north.csv", "99999d", "/proc/self/mem", "/dev/null"),
)  # fmt: skip


def command(*words: str) -> tuple[int, str, str]:
    """Run a command in this process, as a person would; return its status and what it said."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv, sys.stdin = (sys.argv, sys.stdin), ["syndic", *words], io.StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        finally:
            sys.argv, sys.stdin = before
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all that the good lines name."""
    folder, before = tmp_path_factory.mktemp("whole"), Path.cwd()
    os.chdir(folder)
    (folder / "study.toml").write_text(study_text())
    (folder / "about.toml").write_text(ABOUT)
    (folder / "audit.json").write_text('{"effort": "quick", "seed": 1, "findings": []}')
    (folder / "empty.toml").touch()
    (folder / "bare.toml").write_text(study_text(parties=""))
    tables = 'method = "marginals"\ncliques = [["colour", "age"]]'
    (folder / "tables.toml").write_text(study_text(protocol=tables, budget="epsilon = 4\ndelta = 1e-5"))
    for party in ("north", "south"):
        table = two_parties()[party].to_pandas()
        table.loc[0, "colour"] = CANARY
        table.to_csv(folder / f"{party}.csv", index=False)
    study, homes = homes_for(Study.loads(study_text()), two_parties(), folder / "homes")
    (folder / "between.json").write_bytes(to_readable_json(study))
    agree(homes["north"], study)
    receive(homes["south"], study)
    (folder / "digest").write_text(study.digest)
    for line in (
        "simulate study.toml -s north=north.csv -s south=south.csv --out run",
        "simulate tables.toml -s north=north.csv -s south=south.csv --out tables",
        "coordinator init federation --name health --host 127.0.0.1",
        "user add root --home homes/north --role administrator --sign-in token",
        "user add otto --home homes/north --role reader --sign-in token",
        "party init site --name north",
        "coordinator approve site/request.json --home federation --out approval.json --yes",
    ):
        assert command(*line.split())[0] == 0
    yield folder
    os.chdir(before)


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder for copies of the whole one."""
    before = Path.cwd()
    yield tmp_path
    os.chdir(before)


def copied(whole: Path, place: Path) -> Path:
    """Return a fresh copy of the whole folder, and be in it."""
    target = place / "copy"
    os.chdir(place)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(whole, target)
    os.chdir(target)
    return target


def tried(folder: Path, words: list[str]) -> int:
    """Run a command under the contract; return its status."""
    digest = (folder / "digest").read_text(errors="replace")[:12]
    with bounded():
        status, told, complained = command(*(digest if word == "DIGEST" else word for word in words))
    assert status in STATUSES, complained
    assert "Traceback" not in told + complained
    if status not in (0, 1) and "--json" not in words:
        check_text(complained)
    assert CANARY not in complained.lower()
    return status


def verbs(group: click.Group) -> set[str]:
    found: set[str] = set()
    for name, inside in verbs_of(group).items():
        found |= verbs(inside) if isinstance(inside, click.Group) else {name}
    return found


def test_every_verb_is_tried_or_named() -> None:
    known = {word for line in GOOD for word in line[:2]} | LEFT_OUT
    assert verbs(cli) <= known


@pytest.mark.parametrize("line", GOOD, ids=" ".join)
def test_the_good_lines_are_good(whole: Path, place: Path, line: list[str]) -> None:
    folder = copied(whole, place)
    # nobody is there to agree, and no head was published
    assert tried(folder, line) == (4 if "--rehearsal" in line else 5 if "--published" in line else 0)


@fuzz(0.15)
@given(line=st.sampled_from(GOOD), data=st.data())
def test_spoiled_arguments(whole: Path, place: Path, line: list[str], data: st.DataObject) -> None:
    folder, words = copied(whole, place), list(line)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(words)))
        match data.draw(st.sampled_from(["gone", "again", "other", "option", "moved"])):
            case "gone":
                del words[start : start + 1]
            case "again":
                words[start:start] = words[max(0, start - 1) : start]
            case "other":
                words[start : start + 1] = [data.draw(st.sampled_from(WORDS))]
            case "option":
                words[start:start] = [data.draw(st.sampled_from(OPTIONS))]
            case "moved":
                words = words[start:] + words[:start]
    if not set(words) & (LEFT_OUT - {"run"}) and words[:1] != ["run"]:
        tried(folder, words)


@fuzz(0.15)
@given(line=st.sampled_from(GOOD), data=st.data())
def test_spoiled_files(whole: Path, place: Path, line: list[str], data: st.DataObject) -> None:
    folder = copied(whole, place)
    named = [folder / word.partition("=")[2] for word in line if "=" in word] + [folder / word for word in line]
    files = [path for path in named if path.is_file()]
    files += [path for each in named if each.is_dir() for path in sorted(each.rglob("*")) if path.is_file()]
    for _ in range(data.draw(st.integers(1, 2))):
        if files:
            path = data.draw(st.sampled_from(files))
            path.write_bytes(data.draw(spoiled(path.read_bytes())))
    tried(folder, line)
