"""What an owner sees of its own ids before an alignment, at home."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from aligning import table
from organisations import homes_for
from support import VERTICAL, align_study, rows, study_text
from syndic.cli.main import cli
from syndic.data import open_source
from syndic.data.aligned import IdRule, distinct_ids
from syndic.document import to_readable_json
from syndic.errors import InputError
from syndic.study.fit import fit_of
from syndic.study.fit_people import IdFit, fit_ids

NAMES = ["Ann Hara", "HARA, Ann", "Bo Sör", "bo sor", None, "  ", "Cy", "Cy", "Di", "No. 007"]
SPELLED: Any = ("nfkc", "casefold", "words")


def found(names: list[Any], bound: int = 100, **rule: Any) -> IdFit:
    return fit_ids(open_source(pa.table({"id": pa.array(names)})), ("id",), IdRule(**rule), bound)


@pytest.mark.parametrize("duplicates", ["drop", "first"])
def test_numbers_are_those_of_the_alignment(duplicates: Any) -> None:
    told = found(NAMES, spelling=SPELLED, duplicates=duplicates)
    kept = distinct_ids(open_source(pa.table({"id": NAMES})), ["id"], IdRule(spelling=SPELLED, duplicates=duplicates))
    assert (told.rows, told.blank, told.ids) == (10, 2, len(kept))
    assert (told.repeated, told.respelled, told.near) == (2, 1, 1)
    assert told.lost == 10 - len(kept)
    assert found(NAMES, bound=3, spelling=SPELLED, duplicates=duplicates).lost == 7


def test_examples_show_what_becomes_of_ids() -> None:
    told = found(NAMES, spelling=SPELLED)
    fates = {form.compared: (form.written, form.fate) for form in told.forms}
    assert fates["ann hara"][0] == ("Ann Hara", "HARA, Ann")
    assert "all left out" in fates["ann hara"][1]
    assert fates["cy"][0] == ("Cy",)
    assert fates["bo sor"] == (("bo sor",), "another id than 'bo sör'")
    assert fates["007 no."] == (("No. 007",), "takes part")
    assert any("written in several ways" in text for text in told.advice)
    assert any("only in marks" in text for text in told.advice)
    assert all("private" in text for text in told.advice)


def test_many_rows_lost_need_a_second_yes() -> None:
    clean = [f"p{number}" for number in range(20)]
    assert not found([*clean, None]).poor
    assert found([*clean, None, None, None]).poor
    assert found(clean, bound=19).poor
    assert found(clean).advice == ()


def test_no_value_stops_the_preview() -> None:
    odd = pa.array([b"\xff\xfe", b"[/red]", b"a" * 10_000, b"\x00", None], pa.binary())
    assert fit_ids(open_source(pa.table({"id": odd})), ("id",), IdRule(), 9).rows == 5
    assert found([1.0, float("nan"), 7.0]).blank == 1
    assert fit_ids(open_source(pa.table({"id": pa.array([[1], [2]])})), ("id",), IdRule(), 9).blank == 2


def test_plan_shows_it_to_the_owner_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    protocol = 'method = "align"\nspelling = ["nfkc", "casefold", "words"]'
    text = study_text(protocol=protocol, unit='neighbours = "replace"', parties=VERTICAL)
    Path("study.toml").write_text(text)
    lines = ["id,colour,age", *(f'"{name}",red,5' for name in ("Ann [/b] Hara", "HARA, Ann [/b]", "Secret Name"))]
    Path("rows.csv").write_text("\n".join(lines))
    before = sorted(tmp_path.rglob("*"))
    shown = CliRunner().invoke(cli, ["plan", "study.toml", "-s", "north=rows.csv"])
    assert shown.exit_code == 0, shown.output
    assert "PRIVATE" in shown.output
    assert "ids that take part 1 of at most" in " ".join(shown.output.split())
    assert "'Ann [/b] Hara', 'HARA, Ann [/b]'" in shown.output
    assert "'[/b] ann hara'" in shown.output
    assert sorted(tmp_path.rglob("*")) == before
    wrong = CliRunner().invoke(cli, ["plan", "study.toml", "-s", "south=rows.csv"])
    assert wrong.exit_code != 0
    assert "Hara" not in wrong.output


def test_agreeing_stores_no_id_and_tells_none_to_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ids = ["Zebedee Quux", "ZEBEDEE QUUX", "Quux, Zebedee", *(f"x{place}" for place in range(57))]
    study, _ = homes_for(align_study(), {"north": table(ids), "south": table(ids, 1)}, tmp_path)
    Path("joint.json").write_bytes(to_readable_json(study))
    words = ["agree", "joint.json", "--home", "north", "--yes", "--despite-fit"]
    told = CliRunner().invoke(cli, [*words, "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["owner_only"]["ids"]["respelled"] == 1
    assert "zebedee" not in told.output.lower()
    shown = CliRunner().invoke(cli, words)
    assert "zebedee" in shown.output.lower()
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != "rows.parquet"):
        assert b"zebedee" not in file.read_bytes().lower(), file


def test_a_missing_id_column_says_where_the_owner_names_it() -> None:
    with pytest.raises(InputError, match=r"the id columns \['id'\] are missing: .* with `id` in its party.toml"):
        fit_of(align_study(), "north", rows(10))
