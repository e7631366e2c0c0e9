"""Four tables that are wrong in one way each end in advice, by the documented commands, before anything is spent."""

import csv
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from organisations import COORDINATOR
from syndic.cli.main import main
from syndic.privacy import Ledger
from syndic.study.identity import Identity

CODES = [f"{letter}{number:02d}" for letter in "ABCDEFGHI" for number in range(100)]


@dataclass(frozen=True)
class Wrong:
    """A table and what its study gets wrong: `init`'s words, the change to the study, `plan`'s and `agree`'s words.

    `status` is that of `agree --yes`: 4 if the rows fit so poorly that a second yes is needed.
    """

    init: str
    change: Callable[[str], str]
    advice: str
    status: int


def listed(study: str) -> str:
    """List all codes in a column that `init` left out."""
    return f'{study}\n[[schema.columns]]\nname = "code"\nkind = "categorical"\nvalues = {CODES}\n'.replace("'", '"')


WRONG = {
    "a misspelt category": Wrong(
        "sex",
        lambda study: study.replace('"female", "male"', '"Female", "Male"'),
        "sex: 100 % of the values are not in the list; did you mean 'female' instead of 'Female'",
        4,
    ),
    "wrong bounds": Wrong(
        "income",
        lambda study: study.replace('lower = 20000\nupper = 100000\nscale = "log"', "lower = 0\nupper = 5000"),
        "income: 100 % of the values are outside the bounds and are moved to the nearer one, most of them above",
        4,
    ),
    "900 codes": Wrong(
        "name a public list of all values",
        listed,
        "levels have fewer than 5 rows here: noise hides them",
        0,
    ),
    "five rows of a person": Wrong(
        "people have several rows",
        lambda study: study.replace("rows = 5", "rows = 1"),
        "rows = 1 keeps 20 % of the rows, the first of each person; rows = 5 keeps 100 %, with more noise",
        4,
    ),
}


def write_rows(path: Path, case: str) -> None:
    """Write the rows of some people; one table has 900 codes, in another each person has five rows."""
    draw = random.Random(3)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "sex", "income", "code"])
        for person in range(2400 if case.startswith("900") else 600):
            for _ in range(5 if case.startswith("five") else 1):
                code = draw.choice(CODES) if case.startswith("900") else draw.choice("XYZ")
                lines.writerow([f"p{person:04d}", draw.choice(["female", "male"]), draw.randint(20_000, 90_000), code])


@pytest.fixture
def syndic(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Return the program: its status and what it says, on one line."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["syndic", *words])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        told = capsys.readouterr()
        return status, " ".join((told.out + told.err).replace("│", " ").split())

    return run


@pytest.mark.parametrize("case", WRONG)
def test_advice_before_anything_is_spent(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syndic: Callable[..., tuple[int, str]]
) -> None:
    wrong = WRONG[case]
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "north.csv", case)
    status, told = syndic("init", "north=north.csv")
    assert status == 0
    assert wrong.init in told
    assert syndic("init", "--confirm", "study.draft.toml", "--yes")[0] == 0

    # the study that its author writes instead
    drafted = (tmp_path / "study.toml").read_text()
    assert wrong.change(drafted) != drafted
    (tmp_path / "study.toml").write_text(wrong.change(drafted))
    status, told = syndic("plan", "study.toml", "-s", "north=north.csv")
    assert status == 0
    assert wrong.advice in told

    home = tmp_path / "home"
    home.mkdir()
    (home / "party.toml").write_text(
        'name = "north"\ndataset = "people"\nsource = { path = "../north.csv" }\ncap = { epsilon = 5, delta = 1e-4 }\n'
    )
    line = Identity.make(home / "identity.key").public
    text = (
        (tmp_path / "study.toml")
        .read_text()
        .replace('name = "north"\npeople', f'name = "north"\nidentity = "{line}"\npeople')
    )
    (tmp_path / "study.toml").write_text(f'{text}\n[coordinator]\nidentity = "{COORDINATOR.public}"\n')
    status, told = syndic("agree", "study.toml", "--home", "home", "--yes")
    assert status == wrong.status, told
    assert wrong.advice in told
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert ledger.spent("people").epsilon == 0
        assert not [entry for entry in ledger.entries() if entry.events or entry.kind == "plan"]
    assert bool(list(home.glob("studies/*/agreement.json"))) == (status == 0)
