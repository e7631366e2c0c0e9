import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from syndic.data import Boolean, Categorical, Date, Domain, Instead, Integer, Ordinal, Real, Schema
from syndic.document import from_builtins, from_json, from_toml, json_schema, to_json
from syndic.errors import InputError

TOML = """
[[columns]]
kind = "categorical"
name = "sex"
values = ["F", "M"]
outside = {value = "F"}
missing = {value = "M"}

[[columns]]
kind = "ordinal"
name = "grade"
values = ["low", "high"]

[[columns]]
kind = "boolean"
name = "smoker"

[[columns]]
kind = "integer"
name = "age"
lower = 0
upper = 99
bins = 10
outside = "missing"

[[columns]]
kind = "real"
name = "height"
lower = 0
upper = 2.5
bins = 5
missing = {value = 1.7}

[[columns]]
kind = "date"
name = "admitted"
lower = 2020-01-01
upper = "2020-12-31"
bins = 12
"""
SCHEMA = Schema(
    columns=(
        Categorical(name="sex", values=("F", "M"), outside=Instead(value="F"), missing=Instead(value="M")),
        Ordinal(name="grade", values=("low", "high")),
        Boolean(name="smoker"),
        Integer(name="age", lower=0, upper=99, bins=10, outside="missing"),
        Real(name="height", lower=0.0, upper=2.5, bins=5, missing=Instead(value=1.7)),
        Date(name="admitted", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 12, 31), bins=12),
    )
)


def test_toml_reads_as_written(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(TOML)
    assert Schema.load(file) == SCHEMA


def test_json_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_bytes(to_json(SCHEMA))
    assert Schema.load(file) == SCHEMA


def test_domain_counts_other_and_missing_levels() -> None:
    assert SCHEMA.domain == Domain.of({"sex": 2, "grade": 4, "smoker": 3, "age": 11, "height": 5, "admitted": 13})


def test_select_and_lookup() -> None:
    assert SCHEMA.select(["age", "sex"]).names == ("age", "sex")
    assert SCHEMA["smoker"] == Boolean(name="smoker")
    with pytest.raises(InputError, match=r"\['weight'\].*'sex', 'grade'"):
        SCHEMA["weight"]


def test_from_domain_has_exactly_the_sizes(tmp_path: Path) -> None:
    sizes = {"age": 85, "one": 1}
    file = tmp_path / "domain.json"
    file.write_text(json.dumps(sizes))
    assert Schema.from_domain(sizes).domain == Schema.from_domain(file).domain == Domain.of(sizes)
    with pytest.raises(InputError, match="domain"):
        Schema.from_domain({"age": 0})
    with pytest.raises(InputError, match=r"none\.json"):
        Schema.from_domain(tmp_path / "none.json")


def test_json_schema_names_every_kind() -> None:
    text = json.dumps(json_schema(Schema))
    assert all(f'"{kind}"' in text for kind in ("categorical", "ordinal", "boolean", "integer", "real", "date"))


def test_names_are_distinct_and_there_are_some() -> None:
    with pytest.raises(ValueError, match=r"\['a'\] appear more than once"):
        Schema(columns=(Boolean(name="a"), Boolean(name="a")))
    with pytest.raises(ValueError, match="empty"):
        Schema(columns=())


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ({"kind": "categorical", "name": "c", "values": []}, "empty"),
        ({"kind": "categorical", "name": "c", "values": ["a", "a"]}, "distinct"),
        ({"kind": "categorical", "name": "c", "values": ["a", ""]}, "empty"),
        ({"kind": "categorical", "name": "c", "values": [" a"]}, "white space"),
        ({"kind": "categorical", "name": "c", "values": ["a"], "outside": {"value": "b"}}, "'b' must be one of"),
        ({"kind": "ordinal", "name": "c", "values": ["a"], "missing": {"value": "b"}}, "'b' must be one of"),
        ({"kind": "categorical", "name": "c", "values": ["a"], "outside": "clip"}, "outside"),
        ({"kind": "boolean", "name": " "}, "name must not be empty"),
        ({"kind": "integer", "name": "i", "lower": 2, "upper": 1}, r"lower \(2\).*upper \(1\)"),
        ({"kind": "integer", "name": "i", "lower": 0, "upper": 2**53}, "within 2"),
        ({"kind": "integer", "name": "i", "lower": 0, "upper": 9, "bins": 11}, r"bins \(11\).*10"),
        ({"kind": "integer", "name": "i", "lower": 0, "upper": 9, "bins": 0}, r"bins \(0\)"),
        ({"kind": "integer", "name": "i", "lower": 0, "upper": 2**33}, "fewer bins"),
        ({"kind": "integer", "name": "i", "lower": 0, "upper": 9, "missing": {"value": 10}}, "within the bounds"),
        ({"kind": "real", "name": "r", "lower": 1, "upper": 1, "bins": 2}, "below upper"),
        ({"kind": "real", "name": "r", "lower": -1.7e308, "upper": 1.7e308, "bins": 2}, "finite"),
        ({"kind": "real", "name": "r", "lower": 0, "upper": 1, "edges": [0, 0.5]}, "end with upper"),
        ({"kind": "real", "name": "r", "lower": 0, "upper": 1, "bins": 0}, r"bins \(0\)"),
        ({"kind": "real", "name": "r", "lower": 1e15, "upper": 1e15 + 1, "bins": 100}, "fewer"),
        ({"kind": "date", "name": "d", "lower": "2020-01-02", "upper": "2020-01-02"}, "before upper"),
        ({"kind": "date", "name": "d", "lower": "2020-01-01", "upper": "2020-01-03", "bins": 4}, "days"),
        ({"kind": "date", "name": "d", "lower": "2020-13-01", "upper": "2021-01-01"}, "lower"),
        ({"kind": "letters", "name": "d"}, "letters"),
        ({"kind": "boolean", "name": "b", "values": ["x"]}, "values"),
    ],
)
def test_columns_check_themselves(column: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        from_builtins({"columns": [column]}, Schema, where="schema")


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), float("-inf")])
def test_real_bounds_are_finite(bound: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Real(name="r", lower=0.0, upper=bound, bins=2)
    with pytest.raises(InputError, match="finite"):
        from_toml(f'[[columns]]\nkind="real"\nname="r"\nlower={bound}\nupper=1\nbins=2', Schema, where="x")


def test_schema_of_json_text_names_the_place() -> None:
    with pytest.raises(InputError, match=r"x\.json.*columns\[0\]"):
        from_json('{"columns": [{"kind": "boolean"}]}', Schema, where="x.json")
