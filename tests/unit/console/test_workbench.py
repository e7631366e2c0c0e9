"""The schema workbench: what it says about rows, and that nothing of it is kept without the owner's word."""

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from consoles import Visitor, study_between
from syndic.data import Schema
from syndic.document import from_toml
from syndic.study.schema_check import Write, check_schema

SCHEMA = """
[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 49
bins = 5
"""


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    _, homes = study_between(tmp_path)
    table = pa.table(
        {
            "age": [10, 20, 49, 50, 51, None],
            "colour": ["red", "blue", "red", "<b>bold</b>", None, "red"],
            "note": [f'text "{number}"\\' for number in range(6)],
            "wei\u0001rd": [0.5, 1.5, None, 2.5, 3.5, 4.5],
            "ok": [True, False, None, True, True, False],
        }
    )
    pq.write_table(table, homes["north"].folder / "rows.parquet")
    return Visitor(homes["north"].folder)


def test_rows_are_counted_by_level(visitor: Visitor) -> None:
    found = visitor.ask("POST", "/schema/check", body={"text": SCHEMA})
    assert found["names"] == ["age", "colour", "note", "wei\u0001rd", "ok"]
    (age,) = found["columns"]
    # bins of ten: 10 | 20 | 49, 50 and 51 moved to the bound | missing
    assert [one["rows"] for one in age["levels"]] == [0, 1, 1, 0, 3, 1]
    assert (age["clipped"], age["missing"]) == (2, 1)
    assert age["empty"] == 2
    assert found["rows_read"] == 6
    assert found["problem"] == ""


def test_listed_values_outside_are_counted(visitor: Visitor) -> None:
    text = '[[columns]]\nname = "colour"\nkind = "categorical"\nvalues = ["red", "green"]\n'
    (colour,) = visitor.ask("POST", "/schema/check", body={"text": text})["columns"]
    assert colour["unknown"] == 2
    assert {one["label"]: one["rows"] for one in colour["levels"]}["red"] == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SCHEMA.replace("age", "height"), "not in the source: height"),
        (SCHEMA.replace("upper = 49", "upper = -1"), "upper"),
        ("[[columns]", "not valid TOML"),
        ("rows = 3", "rows"),
    ],
)
def test_a_schema_that_does_not_fit_is_told(text: str, says: str, visitor: Visitor) -> None:
    found = visitor.ask("POST", "/schema/check", body={"text": text})
    assert says in found["problem"]
    assert found["columns"] == []
    assert says in visitor.post("/schema", 200, action="check", text=text)


def test_a_draft_is_a_schema_and_marked_private(visitor: Visitor) -> None:
    found = visitor.ask("POST", "/schema/check", body={"text": ""})
    schema = from_toml(found["draft"], Schema, where="draft")
    assert schema.names == ("age", "colour", "note", "wei\u0001rd", "ok")
    assert tomllib.loads(found["draft"])["columns"][0] == {
        "name": "age",
        "kind": "integer",
        "lower": 10,
        "upper": 51,
        "bins": 8,
    }
    page = visitor.post("/schema", 200, action="check", text="")
    assert "publishing them can reveal people" in page
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page


def test_nothing_is_kept_without_the_owners_word(visitor: Visitor) -> None:
    before = {path: path.read_bytes() for path in visitor.folder.rglob("*") if path.is_file()}
    visitor.ask("POST", "/schema/check", body={"text": SCHEMA})
    visitor.post("/schema", 200, action="check", text=SCHEMA)
    visitor.post("/schema", 409, action="save", text=SCHEMA)
    visitor.ask("PUT", "/schema", 409, body={"text": SCHEMA, "public": False})
    visitor.ask("PUT", "/schema", 400, body={"text": "nonsense", "public": True})
    after = {path: path.read_bytes() for path in visitor.folder.rglob("*") if path.is_file()}
    # signing in reads the ledger, which makes its file
    assert {path.name for path in set(after) - set(before)} == set()
    assert visitor.ask("GET", "/schema") == {"text": ""}
    visitor.post("/schema", 200, action="save", text=SCHEMA, public="yes")
    assert visitor.ask("GET", "/schema") == {"text": SCHEMA}
    assert (visitor.folder / "schema.toml").read_text() == SCHEMA


def test_an_empty_source_is_no_error(visitor: Visitor) -> None:
    pq.write_table(pa.table({"age": pa.array([], pa.int64())}), visitor.folder / "rows.parquet")
    found = check_schema(visitor.folder, Write(text=SCHEMA))
    assert found.rows_read == 0
    assert found.preview == ()
