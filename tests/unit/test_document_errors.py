"""All errors of a study file in one go: the place, what was found, what is allowed, and the nearest valid name."""

import json
import re
import sys
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest

from syndic import Study
from syndic.cli.main import main
from syndic.document import Document, from_builtins, from_json
from syndic.document_errors import nearest
from syndic.errors import InputError
from syndic.study import PartyFile

TWELVE = """
name = "visits"
alignment = "no digest"
[unit]
neighbours = "add-remove"
rows = "2"
parties = 5
[budget]
eps = 1
[protocol]
method = "sythesis"
[[parties]]
name = "north"
n = 1500
[[schema.columns]]
name = "sex"
kind = "string"
categories = ["f", "m"]
[[schema.columns]]
name = "age"
kind = "int"
min = 0
upper = 99
[[schema.columns]]
name = "weight"
kind = "real"
lower = 500
upper = 10
bins = 4
[[schema.columns]]
name = "day"
kind = "date"
lower = "2020-13-01"
"""
KINDS = "use one of boolean, categorical, date, integer, ordinal, real"
EXPECTED = [
    "unit.neighbours: 'add-remove' is not allowed; use one of add_remove, replace (did you mean 'add_remove'?)",
    "unit.rows: expected a whole number, found text",
    "budget: unknown field 'eps' (did you mean 'epsilon'?); allowed here: epsilon, delta",
    "protocol.method: 'sythesis' is not a method; use one of align, ... (did you mean 'synthesis'?)",
    "parties[0] ('north'): unknown field 'n' (did you mean 'people'?); allowed here: name, people, ...",
    f"schema.columns[0].kind ('sex'): 'string' is not a kind; {KINDS} (did you mean 'categorical'?)",
    "schema.columns[0] ('sex'): unknown field 'categories' (did you mean 'values'?); allowed here: ...",
    f"schema.columns[1].kind ('age'): 'int' is not a kind; {KINDS} (did you mean 'integer'?)",
    "schema.columns[1] ('age'): unknown field 'min' (did you mean 'lower'?); allowed here: ...",
    "schema.columns[2]: 'weight': lower (500.0) must be below upper (10.0)...",
    "schema.columns[3].lower ('day'): expected a date such as 2020-01-31, found other text",
    "schema.columns[3].upper ('day'): required, but missing",
    "alignment must be the digest of an alignment study: 64 hexadecimal digits",
]


def refused(data: Any, kind: Any) -> tuple[str, ...]:
    """Return the errors of a document that must be refused."""
    with pytest.raises(InputError) as caught:
        from_builtins(data, kind, where="x")
    assert all(text in str(caught.value) for text in caught.value.errors)
    return caught.value.errors


def test_all_errors_of_a_study_are_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        Study.loads(TWELVE)
    errors = caught.value.errors
    assert len(errors) == len(EXPECTED)
    for found, expected in zip(errors, EXPECTED, strict=True):
        assert re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), found)
    lines = str(caught.value).splitlines()
    assert lines == [f"study: {len(errors)} errors:", *(f"  {n}. {text}" for n, text in enumerate(errors, 1))]


def test_the_command_line_gives_them_as_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text(TWELVE)
    monkeypatch.setattr(sys, "argv", ["syndic", "plan", str(tmp_path / "study.toml"), "--json"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == InputError.exit_code
    assert len(json.loads(capsys.readouterr().out)["error"]["errors"]) == len(EXPECTED)


def test_checks_run_that_read_valid_fields_only() -> None:
    text = TWELVE.replace('rows = "2"', "rows = 2").replace("add-remove", "replace").replace("n = 1500", "people = 9")
    with pytest.raises(InputError) as caught:
        Study.loads(text)
    assert "unit.parties (5) must be at most the 1 parties" in caught.value.errors


class Part(Document):
    """A part."""

    name: str
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size ({self.size}) must be at least 1")


class Whole(Document):
    """One field of each type."""

    day: date | None = None
    exact: Fraction | None = None
    flag: bool = False
    pair: tuple[int, str] = (0, "")
    parts: tuple[Part, ...] = ()
    named: dict[str, Part] = {}  # noqa: RUF012  # never changed
    word: Literal["one", "two"] | int = 1
    choice: Literal["one", "two"] | Part | None = None
    either: tuple[int, ...] | str = ""


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("day", "yesterday", "day: expected a date such as 2020-01-31, found other text"),
        ("day", 3, "day: expected a date such as 2020-01-31, found a whole number"),
        ("exact", "a half", "exact: expected a finite number such as 0.5 or \"1/3\", found 'a half'"),
        ("exact", True, 'exact: expected a number such as 0.5 or "1/3", found true or false'),
        ("flag", 1, "flag: expected true or false, found a whole number"),
        ("pair", [1], "pair: expected a list of 2, found one of 1"),
        ("pair", ["a", "b"], "pair[0]: expected a whole number, found text"),
        ("parts", {}, "parts: expected a list, found a table"),
        ("parts", [{}], "parts[0].name: required, but missing"),
        ("parts", [{"name": "a", "size": 0}], "parts[0] ('a'): size (0) must be at least 1"),
        ("parts", [{"name": "a", "size": 1.5}], "parts[0].size ('a'): expected a whole number, found a number ..."),
        ("named", {"a": 3}, "named.a: expected a table, found a whole number"),
        ("word", "tow", "word: expected one of one, two or a whole number, found text"),
        ("choice", "three", "choice: 'three' is not allowed; use one of one, two, or a table {name = ..., size = ...}"),
        ("choice", {"size": 1}, "choice.name: required, but missing"),
        ("either", 2.5, "either: expected a list or text in quotes, found a number that is not whole"),
        ("either", [2.5], "either[0]: expected a whole number, found a number that is not whole"),
        ("flags", True, "unknown field 'flags' (did you mean 'flag'?); allowed here: ..."),
        ("x" * 99, True, f"unknown field '{'x' * 40}...'; allowed here: ..."),
    ],
)
def test_an_error_names_place_and_what_is_allowed(field: str, value: Any, text: str) -> None:
    (found,) = refused({field: value}, Whole)
    assert re.fullmatch(re.escape(text).replace(r"\.\.\.", ".*"), found)


def test_valid_parts_are_no_errors() -> None:
    good = {
        "day": "2020-01-31",
        "exact": "1/3",
        "pair": [1, "a"],
        "word": "one",
        "choice": {"name": "a"},
        "either": [1],
    }
    assert refused({**good, "flag": 0}, Whole) == ("flag: expected true or false, found a whole number",)
    assert from_builtins(good, Whole, where="x").exact == Fraction(1, 3)


def test_a_value_is_not_quoted_where_any_is_allowed() -> None:
    """A party file may hold an address with a password."""
    secret = "postgresql://me:secret@host/db"
    for text in ('{"name": ["%s"]}', '{"cap": {"epsilon": 1, "delta": ["%s"]}}', '{"source": {"csv": ["%s"]}}'):
        with pytest.raises(InputError) as caught:
            from_json(text % secret, PartyFile, where="party.toml")
        assert "secret" not in str(caught.value)


def test_a_list_of_errors_has_an_end() -> None:
    errors = refused({f"unknown {number}": 0 for number in range(10**5)}, Whole)
    assert len(errors) == 50
    with pytest.raises(InputError, match="more than 50 errors; the first:") as caught:
        from_builtins({"parts": [0] * 10**5}, Whole, where="x")
    assert len(str(caught.value).splitlines()) == 51


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("min", ["lower", "upper"], "lower"),
        ("Max", ["lower", "upper"], "upper"),
        ("type", ["name", "method"], "method"),
        ("float", ["integer", "real"], "real"),
        ("Add Remove", ["replace", "add_remove"], "add_remove"),
        ("uper", ["lower", "upper"], "upper"),
        ("zzz", ["lower", "upper"], None),
        (3, ["lower"], None),
        ("lower" * 20, ["lower"], None),
    ],
)
def test_the_nearest_name(name: object, names: list[str], found: str | None) -> None:
    assert nearest(name, names) == found
