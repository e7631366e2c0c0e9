"""Public descriptions of columns: a data dictionary, SDV's metadata, mbi's domain."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from syndic.data.dictionary import Declared, read_dictionary, read_metadata
from syndic.errors import InputError


def test_a_data_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "dict.csv"
    path.write_text(
        "name,kind,lower,upper,values,bins\nage,integer,18,95,,13\nsex,categorical,,,female; male,\n"
        "since,date,2000-01-01,2020-12-31,,\nid,id,,,,\nsize,,1.5,,,\n"
    )
    assert read_dictionary(path) == (
        Declared(name="age", kind="integer", lower=18, upper=95, bins=13),
        Declared(name="sex", kind="categorical", values=("female", "male")),
        Declared(name="since", kind="date", lower=datetime.date(2000, 1, 1), upper=datetime.date(2020, 12, 31)),
        Declared(name="id", left_out="the data dictionary says so"),
        Declared(name="size", lower=1.5),
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "a line for each column"),
        ("kind\ninteger\n", "at least name"),
        ("name,min\nage,3\n", "unknown: 'min'"),
        ("name,kind\nage,int\n", "line 2: unknown kind 'int'; expected one of boolean, integer"),
        ("name,kind\n,integer\n", "name must not be empty"),
        ("name,kind,lower\nage,integer,x\n", "line 2: lower: expected a whole number"),
        ("name,kind,lower\nage,date,x\n", "expected a date such as"),
        ("name,kind,lower\nage,real,x\n", "expected a number"),
        ("name,bins\nage,x\n", "bins: expected a whole number"),
        ("name,scale\nage,x\n", "unknown scale"),
        ("name\nage\nage\n", "more than once"),
        ("name\nage,1,2\n", "at least name"),
    ],
)
def test_wrong_dictionaries(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "dict.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=error):
        read_dictionary(path)


def read(tmp_path: Path, content: Any) -> tuple[Declared, ...]:
    path = tmp_path / "meta.json"
    path.write_text(json.dumps(content))
    return read_metadata(path)


def test_metadata_of_sdv(tmp_path: Path) -> None:
    columns = {
        "age": {"sdtype": "numerical", "computer_representation": "Int64"},
        "rate": {"sdtype": "numerical", "computer_representation": "Float"},
        "any": {"sdtype": "numerical"},
        "sex": {"sdtype": "categorical"},
        "pain": {"sdtype": "categorical", "order": ["none", "mild"]},
        "smoker": {"sdtype": "boolean"},
        "since": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        "key": {"sdtype": "id"},
        "mail": {"sdtype": "email", "pii": True},
        "odd": 3,
    }
    found = read(tmp_path, {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "primary_key": "key", "columns": columns})
    assert [column.kind for column in found] == [
        *("integer", "real", None, "categorical", "ordinal", "boolean", "date", None, None, None)
    ]
    assert [column.name for column in found if column.left_out] == ["key", "mail", "odd"]
    assert read(tmp_path, {"tables": {"one": {"columns": columns}}, "relationships": []}) == found
    with pytest.raises(InputError, match="2 tables"):
        read(tmp_path, {"tables": {"one": {}, "two": {}}})


def test_a_domain_of_mbi(tmp_path: Path) -> None:
    assert read(tmp_path, {"age": 85, "sex": 2}) == (
        Declared(name="age", kind="integer", lower=0, upper=84),
        Declared(name="sex", kind="integer", lower=0, upper=1),
    )


@pytest.mark.parametrize("content", [{}, [], 3, {"age": 0}, {"age": True}, {"age": "85"}, None])
def test_other_json_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InputError, match="SDV's metadata"):
        read(tmp_path, content)


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe{")
    for reader in (read_dictionary, read_metadata):
        for name in ("x", "nowhere"):
            with pytest.raises(InputError, match="cannot be read"):
                reader(tmp_path / name)
