"""An owner sees how the rows fit a study before anything is spent, and nobody else sees it.

Made-up tables, each wrong in one way that was seen at real owners: a misspelt category, wrong bounds, a column of 900
codes, several rows of a person.
"""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from organisations import COORDINATOR, homes_for
from support import study_text, two_parties
from syndic import Study
from syndic.cli.main import cli
from syndic.document import to_json, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.random import SimulationRandomness
from syndic.runtime import Local
from syndic.study import PartyFolder
from syndic.study.agreement import agree, consider
from syndic.study.fit import fit_of
from syndic.study.identity import Identity
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study

CODES = [f"{letter}{number:02d}" for letter in "ABCDEFGHI" for number in range(100)]
COLUMNS = f"""
[[schema.columns]]
name = "sex"
kind = "categorical"
values = ["female", "male"]

[[schema.columns]]
name = "income"
kind = "integer"
lower = 0
upper = 200000
bins = 10

[[schema.columns]]
name = "code"
kind = "categorical"
values = {json.dumps(["A", "B", "C"])}
"""
PARTY = '[[parties]]\nname = "north"\npeople = 2000\n'
PEOPLE = 'neighbours = "add_remove"\nperson = "id"\nrows = 1'


def write(folder: Path, *, columns: str = COLUMNS, unit: str = 'neighbours = "add_remove"', rows: int = 1) -> Study:
    """Write a study and a made-up CSV file with so many rows of each of 600 people."""
    draw = random.Random(7)
    lines = ["id,sex,income,code"]
    for person in range(600):
        sex, letter = draw.choice(["female", "male"]), draw.choice("ABC")
        for _ in range(rows):
            code = draw.choice(CODES) if "A00" in columns else letter
            lines.append(f"p{person},{sex},{draw.randint(10_000, 90_000)},{code}")
    (folder / "north.csv").write_text("\n".join(lines) + "\n")
    text = study_text(unit=unit, parties=PARTY, columns=columns)
    (folder / "study.toml").write_text(text)
    return Study.loads(text)


def home_of(study: Study, folder: Path) -> tuple[Path, Path]:
    """Return the party folder of north and the file of the study with its identity."""
    home = PartyFolder(folder=folder / "home")
    home.folder.mkdir()
    member = f'[[parties]]\nname = "north"\npeople = 2000\nidentity = "{Identity.make(home.keys).public}"\n'
    member += f'[coordinator]\nidentity = "{COORDINATOR.public}"\n'
    (home.folder / "party.toml").write_text(
        'name = "north"\ndataset = "people"\nsource = { path = "../north.csv" }\ncap = { epsilon = 5, delta = 1e-4 }\n'
    )
    file = folder / "joint.toml"
    file.write_text((folder / "study.toml").read_text().replace(PARTY, member))
    assert Study.load(file).schema == study.schema
    return home.folder, file


def run(*words: object, said: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], input=said, catch_exceptions=True, color=False)


def flat(text: str) -> str:
    return " ".join(text.split())


WRONG = {
    "a misspelt category": (
        COLUMNS.replace('"female", "male"', '"Female", "Males"'),
        'neighbours = "add_remove"',
        1,
        "sex: 100 % of the values are not in the list; did you mean 'female' instead of 'Female', 'male' instead of "
        "'Males'? (this line is private)",
        True,
    ),
    "wrong bounds": (
        COLUMNS.replace("upper = 200000", "upper = 5000"),
        'neighbours = "add_remove"',
        1,
        "income: 100 % of the values are outside the bounds and are moved to the nearer one, most of them above the "
        "upper bound",
        True,
    ),
    "900 codes": (
        COLUMNS.replace('["A", "B", "C"]', json.dumps(CODES)),
        'neighbours = "add_remove"',
        1,
        "levels have fewer than 5 rows here: noise hides them",
        False,
    ),
    "900 codes of which few are listed": (
        COLUMNS.replace('["A", "B", "C"]', json.dumps(CODES[:9])),
        'neighbours = "add_remove"',
        1,
        "code: 99 % of the values are not in the list: list them, or groups of them",
        True,
    ),
    "fewer people than declared": (
        COLUMNS,
        'neighbours = "replace"',
        1,
        "your source has 600 rows that count, and the study says people = 2000: in a run rows of missing values are "
        "added. Ask for the right number",
        True,
    ),
    "five rows of each person": (
        COLUMNS,
        PEOPLE,
        5,
        "rows = 1 keeps 20 % of the rows, the first of each person; rows = 5 keeps 100 %, with more noise",
        True,
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_study_that_does_not_fit_ends_in_advice_before_anything_is_spent(case: str, tmp_path: Path) -> None:
    columns, unit, rows, advice, poor = WRONG[case]
    study = write(tmp_path, columns=columns, unit=unit, rows=rows)
    before = sorted(tmp_path.rglob("*"))
    words = ("plan", tmp_path / "study.toml", "-s", f"north={tmp_path / 'north.csv'}")
    shown = run(*words)
    assert shown.exit_code == 0
    assert advice in flat(shown.output)
    assert "PRIVATE, for the data owner only" in shown.output
    fit = json.loads(run(*words, "--json").output)["owner_only"]["north"]
    assert fit["poor"] is poor
    # nothing was written
    assert sorted(tmp_path.rglob("*")) == before

    home, joint = home_of(study, tmp_path)
    asked = ("agree", joint, "--home", home)
    result = run(*asked, "--yes")
    assert advice in flat(result.output)
    assert (result.exit_code == 0) is not poor
    if not poor:
        return
    for answer in (result, run(*asked, said="y\nn\n"), run(*asked, said="n\n"), run(*asked, said="y\n")):
        assert isinstance(answer.exception, RefusedError)
        assert "north did not agree; nothing was signed" in str(answer.exception)
    assert not list(home.glob("studies/*/agreement.json"))
    assert run(*asked, said="y\ny\n").exit_code == 0
    assert run(*asked, "--yes", "--despite-fit").exit_code == 0
    assert json.loads(run(*asked, "--yes", "--despite-fit", "--json").stdout)["owner_only"]["poor"]


@pytest.mark.parametrize(
    ("listed", "rows", "advice"),
    [
        (["f", "M"], ["f", "M", "m"], "not in the list; rows also have 'm' beside 'M': spell them alike"),
        (["A05.1", "B10"], ["A08.1", "B10"], "not in the list: list them, or groups of them"),
        # 'female' looks like 'Male' too, but it is the other listed value
        (["Female", "Male"], ["female", "x"], "did you mean 'female' instead of 'Female'? (this line"),
        (["x", "y"], ["", "x"], "50 % of the values are empty (this line"),
    ],
)
def test_alike_values_are_named_only_if_they_mean_the_same(
    listed: list[str], rows: list[str], advice: str, tmp_path: Path
) -> None:
    columns = f'[[schema.columns]]\nname = "code"\nkind = "categorical"\nvalues = {json.dumps(listed)}\n'
    study = Study.loads(study_text(parties=PARTY, columns=columns))
    (tmp_path / "north.csv").write_text("id,code\n" + "".join(f"1,{row}\n" for row in rows * 20))
    assert advice in fit_of(study, "north", tmp_path / "north.csv").advice[0]


def test_rows_that_fit_need_one_yes(tmp_path: Path) -> None:
    home, joint = home_of(write(tmp_path, unit=PEOPLE), tmp_path)
    result = run("agree", joint, "--home", home, said="y\n")
    assert result.exit_code == 0
    assert "every value fits" in flat(result.output)
    assert "LOOK AT" not in result.output


def test_rows_that_cannot_be_read_are_said_and_nothing_else_changes(tmp_path: Path) -> None:
    home, joint = home_of(write(tmp_path), tmp_path)
    (tmp_path / "north.csv").unlink()
    result = run("agree", joint, "--home", home, "--yes")
    assert result.exit_code == 0
    assert "your rows were not compared with the study: party 'north':" in flat(result.output)


def test_sources_of_a_plan(tmp_path: Path) -> None:
    home, joint = home_of(write(tmp_path), tmp_path)
    assert "600 rows" in flat(run("plan", joint, "-s", f"north={home / 'party.toml'}").output)
    for source in ("west=north.csv", "north=nowhere.csv", f"north={tmp_path / 'study.toml'}"):
        assert isinstance(run("plan", joint, "-s", source).exception, InputError)
    assert "owner_only" not in json.loads(run("plan", joint, "--json").output)


def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time stand still and heads be seeded, so that two runs can be compared byte by byte."""
    monkeypatch.setattr("syndic.kernel.memory.SystemRandomness", lambda: SimulationRandomness(0, "heads"))
    now = datetime.now(UTC)

    class Still(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return now.astimezone(tz)

    modules = ("syndic.study.agreement", "syndic.privacy.store", "syndic.privacy.audit", "syndic.kernel.agreement")
    for module in modules:
        monkeypatch.setattr(f"{module}.datetime", Still)


def test_nothing_of_the_check_reaches_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen(monkeypatch)
    # the values of no column fit, so there is a lot that could be told
    text = study_text(columns=COLUMNS_OF_OTHERS)
    study, homes = homes_for(Study.loads(text), two_parties(), tmp_path / "checked")
    shutil.copytree(tmp_path / "checked", tmp_path / "unchecked")
    (tmp_path / "study.json").write_bytes(to_readable_json(study))
    others = {name: PartyFolder(folder=tmp_path / "unchecked" / name) for name in homes}
    offers = []
    for name, home in homes.items():
        source = home.folder / "rows.parquet"
        assert "LOOK AT" in run("plan", tmp_path / "study.json", "-s", f"{name}={source}").output
        words = ("agree", tmp_path / "study.json", "--home", home.folder, "--rehearsal", 3, "--yes", "--despite-fit")
        signed = run(*words, "--json")
        assert json.loads(signed.stdout)["owner_only"]["poor"]
        offers.append((json.loads(signed.stdout)["offer"], consider(others[name], study, rehearsal=3)))
        agree(others[name], study, rehearsal=3)
    for shown, offer in offers:
        assert shown == json.loads(to_json(offer))
    released = []
    for group in (homes, others):
        local = Local({name: home.agreed_node(run_digest(study, 3)) for name, home in group.items()})
        released.append(run_study(study, local, seed=3, identity=COORDINATOR))
        local.close()
    checked, unchecked = released
    assert checked.transcript == unchecked.transcript
    assert to_json(checked.statement) == to_json(unchecked.statement)
    assert contents(tmp_path / "checked") == contents(tmp_path / "unchecked")


COLUMNS_OF_OTHERS = """
[[schema.columns]]
name = "colour"
kind = "categorical"
values = ["Red", "Green"]

[[schema.columns]]
name = "age"
kind = "integer"
lower = 200
upper = 299
bins = 5
"""


def contents(folder: Path) -> dict[str, object]:
    """Return the bytes of every file, ledgers as the statements that make them."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as database:
                found[str(path.relative_to(folder))] = list(database.iterdump())
        elif path.is_file() and not path.name.endswith(("-wal", "-shm")):
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
