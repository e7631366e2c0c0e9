"""Drafts of studies: what is marked, what is left out, which method, and how a draft is confirmed."""

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import syndic as sy
from syndic.data.dictionary import Declared, read_dictionary
from syndic.errors import InputError
from syndic.study import Study
from syndic.study.draft import Draft, draft
from syndic.study.draft_text import (
    READ,
    Section,
    Unconfirmed,
    confirm,
    read_value,
    sections,
    toml_of,
    unconfirmed,
    with_column,
    with_values,
)


def accept(one: Unconfirmed) -> str:
    return one.value


def table(rows: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "patient_id": [f"SECRET-{seed}-{place}" for place in range(rows)],
            "age": draw.integers(18, 94, rows),
            "sex": draw.choice(["female", "male"], rows),
            "cost": draw.lognormal(8, 1.5, rows),
            "remark": [f"SECRET remark {place} of {seed}" for place in range(rows)],
        }
    )


def test_every_value_from_rows_is_marked() -> None:
    made = draft({"north": table(300), "south": table(200, 2)}, target="sex")
    lines = made.toml().splitlines()
    assert "PRIVATE DRAFT" in lines[0]
    keys = ("people", "kind", "lower", "upper", "values", "scale", "bins", "rows", "person", "outside")
    marked = [line for line in lines if line.startswith(tuple(f"{key} =" for key in keys))]
    assert len(marked) == len(made.unconfirmed) == 2 + 3 + 2 + 4
    assert all(line.endswith(READ) for line in marked)
    assert "SECRET" not in made.toml() + repr(made)
    assert made.left_out == {
        "patient_id": "it identifies people or records",
        "remark": "free text or an id: most values occur once",
    }
    study = Study.loads(made.toml())
    study.check()
    assert [party.people for party in study.parties] == [500, 300]
    assert study.protocol.__struct_config__.tag == "synthesis"
    assert study.budget.epsilon == 1


def test_confirmed_studies_have_no_comment() -> None:
    made = draft({"north": table(300), "south": table(200, 2)})
    text = confirm(made.toml(), accept)
    assert "#" not in text
    assert Study.loads(text) == Study.loads(made.toml())
    assert unconfirmed(text) == ()


def test_another_value_may_be_given() -> None:
    made = draft({"north": table(300)})
    new = {("north", "people"): "40000", ("age", "lower"): "0", ("cost", "scale"): "symlog", ("age", "upper"): " 110 "}
    study = Study.loads(confirm(made.toml(), lambda one: new.get((one.place, one.key), one.value)))
    age, cost = study.schema["age"], study.schema["cost"]
    assert (age.lower, age.upper, cost.scale) == (0, 110, "symlog")  # type: ignore[union-attr]
    # delta follows the number of people
    assert study.delta < Study.loads(made.toml()).delta
    study.check()
    with pytest.raises(InputError, match="lower"):
        confirm(made.toml(), lambda one: "900" if one.key == "lower" else one.value)


def test_values_typed_by_a_person() -> None:
    assert read_value("upper", " 7 ") == "7"
    assert read_value("scale", "log") == '"log"'
    assert read_value("values", '["a", "b"]') == '["a", "b"]'
    with pytest.raises(InputError, match="is not a value"):
        read_value("", "7")
    assert toml_of('a"\\\n\x00é') == '"a\\"\\\\\\U0000000a\\U00000000é"'


def section(text: str, name: str) -> Section:
    return next(one for one in sections(text) if one.name == name)


def test_sections_of_a_draft_are_edited() -> None:
    text = draft({"north": table(300)}).toml()
    age = section(text, "age")
    assert (age.table, age.values["lower"], age.read) == ("schema.columns", "15", ("kind", "lower", "upper"))
    changed = with_values(text, age, {"upper": "110", "bins": "5", "lower": "15"})
    assert section(changed, "age").values == {"kind": '"integer"', "lower": "15", "upper": "110", "bins": "5"}
    assert section(changed, "age").key != age.key
    assert section(changed, "sex").key == section(text, "sex").key
    assert with_values(changed, section(changed, "age"), {"upper": "95", "bins": ""}) == text
    # a public value that is changed must be confirmed, one that stays need not
    public = confirm(text, accept)
    marked = unconfirmed(with_values(public, section(public, "age"), {"upper": "110", "lower": "15"}))
    assert [(one.place, one.key, one.value) for one in marked] == [("age", "upper", "110")]
    for values in ({"name": '"b"'}, {"lower": "200"}, {"lower = 1\nupper": "5"}, {"": "5"}, {"bins": "5\nname = 3"}):
        with pytest.raises(InputError):
            with_values(text, age, values)
    # a value has one line, so that its mark belongs to it
    with pytest.raises(InputError, match="expected a list"):
        with_values(text, section(text, "sex"), {"values": '["a",\n"b"]'})


def test_columns_are_left_out_and_taken_in() -> None:
    text = draft({"north": table(300)}).toml()
    lines = text.split("\n")
    cost = section(text, "cost")
    without = with_column(text, "cost", ())
    assert Study.loads(without).schema.names == ("age", "sex")
    assert without.endswith("# left out: cost: the owner decided so\n")
    assert with_column(without, "cost", lines[cost.first : cost.end]) == text
    with pytest.raises(InputError):
        with_column(without, "cost", lines[cost.first : cost.first + 2])


def test_a_draft_in_python(tmp_path: Path) -> None:
    (tmp_path / "columns.csv").write_text("name,kind,lower,upper\nage,integer,0,110\n")
    made = sy.draft({"north": table(300)}, declared=tmp_path / "columns.csv")
    assert {one.place for one in made.unconfirmed} == {"north", "sex", "cost"}
    assert made.confirm(accept) == Study.loads(confirm(made.toml(), accept))
    (tmp_path / "domain.json").write_text('{"age": 120}')
    ages = sy.draft({"north": table(300)}, declared=str(tmp_path / "domain.json")).confirm(accept).schema["age"]
    assert (ages.lower, ages.upper) == (0, 119)  # type: ignore[union-attr]


def test_several_rows_of_a_person() -> None:
    visits = pa.table(
        {
            "visit_id": [f"V{place}" for place in range(400)],
            "patient": [f"P{place // 4}" for place in range(400)],
            "flag": [place % 3 == 0 for place in range(400)],
        }
    )
    made = draft({"north": visits})
    study = Study.loads(made.toml())
    assert (study.unit.person, study.unit.rows, study.parties[0].people) == ("patient", 4, 150)
    assert study.schema.names == ("flag",)
    assert {one.key for one in made.unconfirmed if one.place == "unit"} == {"person", "rows"}


def test_different_columns_of_the_same_people() -> None:
    whole = table(300)
    parts = {"clinic": whole.select(["patient_id", "age"]), "laboratory": whole.select(["patient_id", "cost", "sex"])}
    made = draft(parts)
    study = Study.loads(made.toml())
    study.check()
    assert study.protocol.__struct_config__.tag == "synthesis"
    assert [(party.people, party.columns) for party in study.parties] == [(300, ("age",)), (300, ("cost", "sex"))]
    assert any("align" in note for note in made.notes)
    by_rows = draft({"one": whole.select(["age"]), "two": whole.select(["sex"])})
    assert 'method = "synthesis"' in by_rows.toml()
    with pytest.raises(InputError, match=r"no column in common.*the same name.*id column"):
        draft({"one": whole.select(["age"]), "two": whole.select(["sex"]).slice(5)})
    with pytest.raises(InputError, match="no usable column"):
        draft({"one": whole.select(["age", "sex"]), "two": whole.select(["remark"])})


def test_columns_that_only_some_files_have() -> None:
    whole = table(300)
    made = draft({"north": whole, "south": table(200, 2).drop_columns(["cost"])})
    assert made.left_out["cost"] == "not in every file"
    assert Study.loads(made.toml()).schema.names == ("age", "sex")


def test_what_is_declared_needs_no_confirmation() -> None:
    declared = [
        Declared(name="age", kind="integer", lower=0, upper=110),
        Declared(name="sex", kind="categorical", values=("female", "male")),
        Declared(name="cost", kind="real"),
    ]
    made = draft({"north": table(300)}, declared=declared, people={"north": 1234})
    assert {(one.place, one.key) for one in made.unconfirmed} == {("cost", key) for key in ("lower", "upper", "scale")}
    assert Study.loads(made.toml()).parties[0].people == 1234
    alone = draft({}, declared=declared[:2], people={"north": 1000, "south": 500}, name="both")
    assert alone.unconfirmed == ()
    Study.loads(alone.toml()).check()
    # the drafted log scale does not fit a public bound of 0
    zero = draft({"north": table(300)}, declared=[Declared(name="cost", kind="real", lower=0.0, upper=1e6)])
    assert Study.loads(zero.toml()).schema["cost"].scale == "symlog"  # type: ignore[union-attr]


def test_whole_numbers_of_public_bounds_have_a_public_scale() -> None:
    made = draft({}, declared=[Declared(name="income", kind="integer", lower=0, upper=90_000)], people={"north": 1000})
    assert made.unconfirmed == ()
    income: Any = Study.loads(made.toml()).schema["income"]
    assert (income.scale, income.fine) == ("symlog", True)
    # without a scale every number would have a level
    linear = Declared(name="income", kind="integer", lower=0, upper=90_000, scale="linear")
    assert Study.loads(draft({}, declared=[linear], people={"north": 1000}).toml()).schema["income"].levels == 32


def test_a_scale_that_follows_from_rows_must_be_confirmed(tmp_path: Path) -> None:
    known = Declared(name="income", kind="integer", lower=0, upper=90_000)
    incomes = {"crowded": range(1000, 1400), "even": range(0, 80_000, 200)}
    for name, kind, key in (("crowded", "symlog", "scale"), ("even", "linear", "bins")):
        path = tmp_path / f"{name}.csv"
        path.write_text("income\n" + "\n".join(map(str, incomes[name])))
        made = draft({"north": path}, declared=[known])
        column: Any = Study.loads(made.toml()).schema["income"]
        assert (column.upper, column.scale, column.fine) == (90_000, kind, key == "scale")
        assert {one.key for one in made.unconfirmed if one.place == "income"} == {key}


def test_a_long_list_of_codes_is_a_public_file(tmp_path: Path) -> None:
    draws = random.Random(3)
    # every code has at least 5 rows, so it is not too rare to be drafted; 100 of them are most of the rows
    codes = [f"K{place % 150:03d}" for place in range(750)] + [f"K{draws.randrange(90):03d}" for _ in range(2000)]
    rows = pa.table({"icd": codes})
    cut = draft({"north": rows})
    assert cut.notes == (
        "'icd' has more than 100 values: name a public list of all values, values = \"FILE.csv\", in a data dictionary "
        "or in the study",
    )
    (tmp_path / "codes.csv").write_text("value\n" + "".join(f"K{place:03d}\n" for place in range(900)))
    (tmp_path / "dictionary.csv").write_text("name,kind,values\nicd,categorical,codes.csv\n")
    made = draft({"north": rows}, declared=read_dictionary(tmp_path / "dictionary.csv"), folder=tmp_path)
    assert 'values = "codes.csv"\n' in made.toml()
    assert made.notes == ()
    study = Study.loads(confirm(made.toml(), accept, tmp_path), tmp_path)
    assert study.schema["icd"].levels == 901
    assert made.confirm(accept) == study
    assert draft({"north": rows}, declared=tmp_path / "dictionary.csv").confirm(accept) == study
    # or typed when the draft is confirmed
    typed = confirm(cut.toml(), lambda one: '"codes.csv"' if one.key == "values" else one.value, tmp_path)
    assert Study.loads(typed, tmp_path).schema["icd"] == study.schema["icd"]
    with pytest.raises(InputError, match="beside the study"):
        draft({"north": rows}, declared=read_dictionary(tmp_path / "dictionary.csv"), folder=tmp_path / "elsewhere")
    # no 100 codes are in half of the rows
    wide = draft(
        {"north": pa.table({"icd": [f"K{place % 600}" for place in range(6000)], "x": [1.5, 2.5, 3.5] * 2000})}
    )
    assert "name a public list of all values" in wide.left_out["icd"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: draft({}), "at least one party"),
        (lambda: draft({"north": pa.table({"x": pa.array([], pa.int64())})}), "'x': no row has a value"),
        (lambda: draft({"north": table(1)}), "no column can be used"),
        (lambda: draft({"north": table(300)}, target="remark"), "target 'remark' must be one of"),
        (lambda: draft({"north": table(300)}, declared=[Declared(name="size", kind="boolean")]), "no file has: 'size'"),
        (lambda: draft({"north": table(300)}, people={"south": 5}), "no file is given for the party 'south'"),
        (lambda: draft({"the north": table(300)}), "ASCII letters"),
        (lambda: draft({}, people={"north": 5}), "no column can be used"),
        (
            lambda: draft({"north": table(300)}, declared=[Declared(name="age", lower=500)]),
            "'age': the dictionary does not fit",
        ),
        (
            lambda: draft({"north": table(300)}, declared=[Declared(name="age", kind="integer", lower=9, upper=1)]),
            r"lower \(9\)",
        ),
    ],
)
def test_what_cannot_be_drafted(make: Callable[[], Draft], error: str) -> None:
    with pytest.raises(InputError, match=error) as raised:
        make()
    assert "SECRET" not in str(raised.value)


def test_odd_files(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("a,a,,größe,n\n" + "1,2,3,klein,4\n2,3,4,groß,9\n3,4,5,klein,7\n" * 20, encoding="utf-8")
    made = draft({"odd": path})
    assert made.left_out == {"a": "its name appears more than once", "": "it has no name"}
    assert Study.loads(made.toml()).schema.names == ("größe", "n")
    path.write_text("")
    with pytest.raises(InputError, match="column names"):
        draft({"odd": path})


def test_hostile_names_and_categories_stay_text() -> None:
    nasty = f'x"\n[[parties]] {READ}'
    made = draft({"north": pa.table({nasty: [nasty, *["b # c"] * 4] * 8, "y\n# z": list(range(40))})})
    study = Study.loads(made.toml())
    assert study.schema.names == (nasty, "y\n# z")
    values: Any = study.schema[nasty]
    assert sorted(values.values) == sorted([nasty, "b # c"])
    assert Study.loads(confirm(made.toml(), accept)) == study
    left_out = draft({"north": pa.table({"a\nb = 1": [None] * 9, "x": [1, 2, 3] * 3})})
    assert "# left out: a b = 1: no row has a value" in left_out.toml()


def test_edited_drafts() -> None:
    made = draft({"north": table(300)}).toml()
    edited = made.replace(f'values = ["female", "male"]  {READ}', f'values = [  {READ}\n  "female",\n  "male",\n]')
    assert edited != made
    assert Study.loads(confirm(edited.replace("\n", "\r\n"), accept)) == Study.loads(made)
    with pytest.raises(InputError):
        confirm("name = [" + "[" * 5000, accept)
    assert unconfirmed(f"name = {'[' * 5000}\nx = 1 {READ}")[0].key == "x"


def test_dates_of_an_arrow_table() -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * place) for place in range(100)]
    column: Any = Study.loads(draft({"north": pa.table({"since": days})}).toml()).schema["since"]
    assert (column.lower, column.upper) == (datetime.date(2020, 1, 1), datetime.date(2021, 12, 31))
