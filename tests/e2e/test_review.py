"""What a reviewer found, and must not come back."""

import hashlib
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from support import PARTIES, charges, rows, study_text, two_parties
from syndic import Budget, Ledger, Schema, Study, simulate
from syndic.errors import BudgetError, InputError, IntegrityError, PartyError
from syndic.sklearn import HommSynthesizer

EDITION = "edition = {}"


def party_file(folder: Path, cap: str = "1.0") -> Path:
    """Write rows and a party file for north."""
    pa.parquet.write_table(rows(60, 1), folder / "north.parquet")
    path = folder / "party.toml"
    path.write_text(
        f'name = "north"\ndataset = "patients"\ncap = {{ epsilon = {cap} }}\nsource = {{ path = "north.parquet" }}\n'
    )
    return path


def test_a_plain_source_does_not_get_round_the_owners_cap(tmp_path: Path) -> None:
    file = party_file(tmp_path)
    simulate(Study.loads(study_text()), {"north": file, "south": rows(40)}, folder=tmp_path / "run")
    again = Study.loads(study_text(top=EDITION.format(2)))
    for source in (file, tmp_path / "north.parquet", rows(60, 1)):
        with pytest.raises(PartyError, match="data set 'patients': spent 1 of epsilon 1"):
            simulate(again, {"north": source, "south": rows(40)}, folder=tmp_path / "run")
    with Ledger.open(tmp_path / "run/parties/north/ledger.sqlite") as ledger:
        assert ledger.datasets() == ("patients",)


def test_a_cap_lowered_in_the_ledger_stays_until_the_party_file_changes(tmp_path: Path) -> None:
    file = party_file(tmp_path, cap="5.0")
    south = party_file_for_south(tmp_path)
    sources = {"north": file, "south": south}
    simulate(Study.loads(study_text()), sources, folder=tmp_path / "run")
    with Ledger.open(tmp_path / "run/parties/north/ledger.sqlite") as ledger:
        ledger.declare("patients", Budget.of(1), why="the board lowered it")
    with pytest.raises(PartyError, match="of epsilon 1, "):
        simulate(Study.loads(study_text(top=EDITION.format(2))), sources, folder=tmp_path / "run")
    party_file(tmp_path, cap="3.0")
    simulate(Study.loads(study_text(top=EDITION.format(3))), sources, folder=tmp_path / "run")
    assert len(charges(tmp_path / "run", "north")) == 2


def party_file_for_south(folder: Path) -> Path:
    """Write rows and a generous party file for south."""
    pa.parquet.write_table(rows(40, 2), folder / "south.parquet")
    path = folder / "south-party.toml"
    path.write_text('name = "south"\ndataset = "south"\ncap = { epsilon = 9.0 }\nsource = { path = "south.parquet" }\n')
    return path


def test_no_rows_stay_behind_and_a_partys_folder_is_its_own(tmp_path: Path) -> None:
    simulate(Study.loads(study_text()), two_parties(), folder=tmp_path, runtime="processes")
    assert list(tmp_path.rglob("rows.arrow")) == []
    for name in ("north", "south"):
        assert (tmp_path / "parties" / name).stat().st_mode & 0o077 == 0


def test_batches_with_dictionaries_of_their_own_reach_a_process(tmp_path: Path) -> None:
    parts = [rows(30, seed) for seed in (1, 2)]
    parts[1] = parts[1].set_column(0, "colour", pa.array(["blue"] * 30))
    coded = [part.set_column(0, "colour", part["colour"].combine_chunks().dictionary_encode()) for part in parts]
    table = pa.Table.from_batches([batch for part in coded for batch in part.to_batches()])
    study = Study.loads(study_text())
    one = simulate(study, {"north": table, "south": rows(40)}, seed=1, folder=tmp_path / "a", runtime="processes")
    other = simulate(study, {"north": table, "south": rows(40)}, seed=1, folder=tmp_path / "b")
    assert one.table.to_arrow().equals(other.table.to_arrow())


def test_columns_of_a_party_are_columns_of_the_study() -> None:
    parties = PARTIES.replace("people = 40", 'people = 40\ncolumns = ["age"]')
    Study.loads(study_text(parties=parties)).check()
    for columns in ('["zzz"]', "[]", '["age", "age"]'):
        with pytest.raises(InputError, match="columns must be names of the schema"):
            Study.loads(study_text(parties=parties.replace('["age"]', columns)))


@pytest.mark.parametrize(
    ("unit", "budget"),
    [
        ('neighbours = "add_remove"', "epsilon = 1e-13"),
        ('neighbours = "add_remove"', "epsilon = 1e17"),
        ('neighbours = "add_remove"', "epsilon = 10000000"),
        ('neighbours = "add_remove"\nrows = 9000000000000000000', "epsilon = 1.0"),
    ],
)
def test_numbers_out_of_range_are_input_errors(unit: str, budget: str) -> None:
    with pytest.raises(InputError):
        Study.loads(study_text(unit=unit, budget=budget)).check()


def test_an_emptied_ledger_is_not_whole_and_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    for path in (empty, tmp_path / "absent.sqlite"):
        with pytest.raises(IntegrityError, match="missing or empty"):
            Ledger.open(path, create=False)
    assert empty.stat().st_size == 0
    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = hashlib.sha256(foreign.read_bytes()).hexdigest()
    with pytest.raises(IntegrityError, match="not a Syndic ledger"):
        Ledger.open(foreign)
    assert hashlib.sha256(foreign.read_bytes()).hexdigest() == before


def test_a_wrapper_with_overlapping_parties_keeps_to_its_cap(tmp_path: Path) -> None:
    schema = Schema.from_domain({"age": 5})
    table = pa.table({"age": [1, 2, 3]})
    model = HommSynthesizer(
        schema=schema, epsilon=1, parties_per_person=2, ledger=tmp_path / "h.sqlite", dataset="d", cap=1
    )
    model.fit({"a": table, "b": table})
    with pytest.raises((PartyError, BudgetError), match="spent 1 of epsilon 1"):
        model.fit({"a": table, "b": table})
