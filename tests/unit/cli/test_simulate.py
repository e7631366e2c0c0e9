"""What `simulate` says beside the release: deltas, a stored release, an earlier one; and what an interrupt says."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from support import rows, study_text, two_parties
from syndic.cli.main import cli, main

BUDGET = "epsilon = 1.0\ndelta = 1e-6"
GAUSSIAN = 'method = "homm"\nnoise = "gaussian"'
FILES = ("-s", "north=north.parquet", "-s", "south=south.parquet")
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `simulate` on an edition of a study, in a folder with its tables; some rows of one have another cap."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, table in two_parties().items():
        pq.write_table(table, f"{name}.parquet")
    Path("party.toml").write_text(
        'name = "north"\ndataset = "n"\nsource = { path = "north.parquet" }\ncap = { epsilon = 9, delta = 1e-5 }\n'
    )

    def simulated(edition: int, *words: str) -> Result:
        text = study_text(budget=BUDGET, protocol=GAUSSIAN, top=f"edition = {edition}")
        Path("study.toml").write_text(text)
        return CliRunner().invoke(cli, ["simulate", "study.toml", "--out", "run", *(words or FILES)])

    return simulated


def test_a_release_that_was_stored_is_said_to_be(run: Run) -> None:
    stored = "stored release: no row was read, nothing was charged\n"
    first = run(1)
    assert stored not in first.output
    pq.write_table(rows(10), "other.parquet")
    again = run(1, "-s", "north=other.parquet", "-s", "south=north.parquet")
    assert stored in again.output
    # the same line after every run: it does not depend on rows
    for one in (first, again):
        assert "to see how rows fit the study: syndic plan study.toml -s PARTY=FILE\n" in one.output


def test_the_ledgers_name_the_delta_of_every_epsilon(run: Run) -> None:
    result = run(1, "-s", "north=party.toml", "-s", "south=south.parquet")
    line = next(line for line in result.output.splitlines() if line.startswith("│ north"))
    price, spent, cap = (cell.strip() for cell in line.split("│")[3:6])
    assert price == "epsilon 1 at delta 1e-06"
    assert spent.endswith(" at delta 1e-05")
    assert cap == "epsilon 9 at delta 1e-05"


def test_an_earlier_release_is_said_to_be_moved(run: Run) -> None:
    Path("south-party.toml").write_text(Path("party.toml").read_text().replace("north", "south"))
    party = ("-s", "north=party.toml", "-s", "south=south-party.toml")
    first = run(1, *party)
    assert "earlier" not in first.stderr
    second = run(2, *party)
    (moved,) = Path("run/earlier").iterdir()
    assert second.stderr == f"the earlier release in run was moved to {moved}\n"
    assert (moved / "statement.json").is_file()


def test_a_refusal_names_a_party_once_and_says_at_which_delta(run: Run) -> None:
    run(1)
    told = str(run(2).exception)
    assert "north: data set 'north', at delta 1e-06: spent 1 of epsilon 1, asked 1, left 0; " in told
    assert "if a plain file of rows was given, give a party.toml instead" in told
    told = str(run(3, "-s", "north=no.parquet", "-s", "south=south.parquet").exception)
    assert told.startswith("step 'ready' was not answered by every party. north: no.parquet: no such file; south: data")


@pytest.mark.parametrize(("verb", "charges"), [("simulate", True), ("plan", False), ("init", False)])
def test_only_what_charges_speaks_of_charges_when_interrupted(
    verb: str, charges: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["syndic", verb])
    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    told = capsys.readouterr().err
    assert told.startswith("interrupted.")
    assert ("Charges stay in the ledgers" in told) == charges
