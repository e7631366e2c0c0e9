"""How rows fit the columns of a study: every kind of column, and what is named."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from msgspec.structs import replace

from support import VERTICAL, align_study, gram_study, with_ids
from syndic.data import Boolean, Categorical, Column, Date, Instead, Integer, Ordinal, Real, Schema, open_source
from syndic.data.aligned import Alignment, IdRule, id_batches, name_of
from syndic.privacy import Unit
from syndic.study import PartyFolder
from syndic.study.fit import ColumnFit, Fit, fit, own_fit
from syndic.study.fit_people import percent


def of(column: Column, values: Sequence[object]) -> ColumnFit:
    return fit(Schema(columns=(column,)), open_source(pa.table({column.name: list(values)}))).columns[0]


def numbers(one: ColumnFit) -> tuple[int, int, int, int]:
    return one.missing, one.unknown, one.clipped, one.outside


@pytest.mark.parametrize("instead", [False, True])
@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (Integer(name="c", lower=0, upper=9), [1, -5, 12, 13, None], (1, 0, 3, 0)),
        (Integer(name="c", lower=0, upper=9, outside="missing"), [1, -5, 12, 13, None], (1, 0, 0, 3)),
        (Integer(name="c", lower=0, upper=9, bins=1), ["1", "x", "12"], (1, 0, 1, 0)),
        (Real(name="c", lower=0, upper=1), [0.5, 2.0, float("nan")], (1, 0, 1, 0)),
        (
            Date(name="c", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 12, 31)),
            ["2019-05-05"],
            (0, 0, 1, 0),
        ),
        (Boolean(name="c"), [True, None], (1, 0, 0, 0)),
        (Boolean(name="c"), ["yes", "maybe"], (1, 0, 0, 0)),
        (Categorical(name="c", values=("a", "other")), ["a", "b", "other", ""], (1, 1, 0, 0)),
        (Categorical(name="c", values=("a", "b"), outside="missing"), ["a", "c", None], (1, 1, 0, 0)),
        (Ordinal(name="c", values=("a", "b"), outside=Instead(value="a")), ["a", "c", "d"], (0, 2, 0, 0)),
    ],
)
def test_every_value_is_counted_once(
    column: Column, values: list[object], expected: tuple[int, int, int, int], instead: bool
) -> None:
    if instead and isinstance(column, Categorical | Ordinal):
        column = type(column)(
            name="c", values=column.values, outside=column.outside, missing=Instead(value=column.values[0])
        )
    found = of(column, values)
    assert numbers(found) == expected
    assert found.values == len(values)
    assert found.poor is (2 * sum(expected) > len(values))


def test_a_value_is_named_only_if_it_occurs_a_few_times_and_looks_like_a_listed_one() -> None:
    column = Categorical(name="c", values=("Berlin", "Hamburg"))
    assert "'berlin' instead of 'Berlin'" in of(column, ["berlin"] * 5).advice[0]
    assert "'Hamberg' instead of 'Hamburg'" in of(column, ["Hamberg"] * 5).advice[0]
    for values in (["berlin"] * 4, ["Cologne"] * 50, [f"berlin{place}" for place in range(50)]):
        text = of(column, values).advice[0]
        assert text == "c: 100 % of the values are not in the list: list them, or groups of them (this line is private)"
    # a code that occurs itself is not a misspelling of its neighbour
    codes = Categorical(name="c", values=("E11.90",))
    assert "did you mean" not in of(codes, ["E11.90"] * 9 + ["E11.91"] * 9).advice[0]
    # a few misspelt values are named, too; and no value controls the terminal
    assert "'BERLIN'" in of(column, ["BERLIN"] * 5 + ["Berlin"] * 500).advice[0]
    assert "\x1b" not in of(column, ["Berli\x1bn"] * 9).advice[0]


def test_advice_for_codes() -> None:
    codes = [f"{letter}{place:02d}" for letter in "ABC" for place in range(100)]
    long = of(Categorical(name="c", values=tuple(codes)), ["A01"] * 90 + ["B02"] * 4)
    assert "noise hides them. List groups of them, or set `tree`: a synthesis releases rare values" in long.advice[0]
    values = [f"{code}.{place}" for code in codes for place in range(5)]
    assert of(Categorical(name="c", values=tuple(codes)), values).advice[0] == (
        "c: 100 % of the values are not in the list: most are after `prefix = 3` (this line is private)"
    )
    assert of(Categorical(name="c", values=tuple(codes), prefix=3), values).unknown == 0
    assert (
        '`values = "FILE.csv"` reads a long public list' in of(Categorical(name="c", values=("x",)), values).advice[0]
    )
    # branches are levels too, and are no misspelt values
    tree = Categorical(name="c", values=("A01", "B02"), tree=(("A01", "A"),), outside="missing")
    assert numbers(of(tree, ["A01", "A", "B02", "C", None])) == (1, 1, 0, 0)


def test_columns_with_very_many_levels_or_values_are_bounded() -> None:
    wide = of(Integer(name="c", lower=0, upper=10**9), [1, 2, -3])
    assert (numbers(wide), wide.levels) == ((0, 0, 1, 0), ())
    texts = of(Categorical(name="c", values=("a",)), [f"free text {place}" for place in range(30_000)])
    assert texts.unknown == 30_000


def test_of_many_levels_every_row_is_in_a_line() -> None:
    ages = of(Integer(name="c", lower=0, upper=89), [0, 1, 2, 89, None, None]).levels
    assert [(one.label, one.rows) for one in ages[:3]] == [("0", 1), ("1 to 2", 2), ("3", 0)]
    assert [(one.label, one.rows) for one in ages[-2:]] == [("88 to 89", 1), ("(missing)", 2)]
    listed = of(Categorical(name="c", values=tuple(f"v{place}" for place in range(90))), ["v0", "v80", "x", None])
    assert [(one.label, one.rows) for one in listed.levels[-2:]] == [("32 more values", 2), ("(missing)", 1)]
    assert (len(ages), len(listed.levels)) == (61, 61)


def visits(rows: Sequence[str | None], bound: int) -> Fit:
    table = pa.table({"id": rows, "x": [0] * len(rows)})
    unit = Unit(neighbours="add_remove", person="id", rows=bound)
    return fit(Schema(columns=(Integer(name="x", lower=0, upper=1),)), open_source(table), unit=unit)


def test_what_every_bound_keeps() -> None:
    found = visits([*"aaabbc", None], 1)
    assert (found.people, found.nobody) == (3, 1)
    *bounds, weighted = found.bounds
    assert [(one.rows, one.rows_kept, one.people_kept) for one in bounds] == [(1, 3, 1), (2, 5, 2), (3, 6, 3)]
    assert (weighted.rows, weighted.rows_kept, weighted.people_kept, weighted.weighted) == (3, 6, 3, True)
    assert found.poor
    assert found.advice[0].startswith("14 % of the rows have no person")
    assert found.advice[1].startswith("rows = 1 keeps 42 % of the rows, the first of each person; rows = 3 keeps 85 %")
    assert not visits(["a", "b", "c"], 4).poor
    # one of 20 rows is cut: no second yes
    assert not visits(["a"] * 2 + [str(place) for place in range(18)], 1).poor


@pytest.mark.parametrize(
    ("unit", "people", "told"),
    [
        (Unit(neighbours="replace"), 3, ""),
        (Unit(neighbours="replace"), 2, "3 rows that count, and the study says people = 2: in a run the last rows"),
        (Unit(neighbours="replace"), 4, "people = 4: in a run rows of missing values are added"),
        (Unit(neighbours="replace", person="id"), 2, ""),
        (Unit(neighbours="replace", person="id"), 3, "2 rows that count"),
        (Unit(neighbours="add_remove"), 9, ""),
        (Unit(neighbours="add_remove"), 2, "at most 1 rows each: larger counts are cut"),
        (Unit(neighbours="add_remove", person="id", rows=2), 1, "3 rows that count"),
        (Unit(neighbours="add_remove", person="id", rows=2), 2, ""),
    ],
)
def test_another_number_of_rows_than_declared_needs_a_second_yes(unit: Unit, people: int, told: str) -> None:
    table = pa.table({"id": ["a", "a", "b"], "x": [0, 0, 1]})
    schema = Schema(columns=(Integer(name="x", lower=0, upper=1),))
    found = fit(schema, open_source(table), unit=unit, people=people)
    numbers = [text for text in found.advice if "the study says people" in text]
    assert [told in text for text in numbers] == [True] * bool(told)
    assert found.poor or not told


def test_no_rows_are_no_error() -> None:
    found = visits([], 2)
    assert (found.rows, found.people, found.poor) == (0, 0, False)
    assert found.advice == ("the source has no rows",)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 9, "0 %"), (1, 1000, "below 1 %"), (999, 1000, "99 %"), (7, 7, "100 %"), (0, 0, "0 %")],
)
def test_percent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


def test_ids_beyond_the_bound_and_common_people_without_a_row_need_a_second_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, home = with_ids(50, 1), PartyFolder(folder=tmp_path)
    pyarrow.csv.write_csv(rows, tmp_path / "rows.csv")
    (tmp_path / "party.toml").write_text(
        'name = "north"\ndataset = "d"\nsource = { path = "rows.csv" }\ncap = { epsilon = 1 }\nid = "id"\n'
    )
    align = align_study()
    for bound, told in ((50, False), (49, True)):
        fewer = align_study(parties=VERTICAL.replace("people = 60", f"people = {bound}"))
        found, _ = own_fit(home, fewer)
        assert found is not None
        assert any("50 ids, and the study says people = 49" in text for text in found.advice) is told
        assert found.poor is told
    names = [
        name_of(each, b"key")
        for ids in id_batches(rows.to_batches(), ["id"], IdRule())
        for each in ids
        if each is not None
    ]
    stored = Alignment(rule=IdRule(), columns=("id",), key=b"key", names=b"".join(names))
    study = replace(gram_study(parties=VERTICAL.replace("people = 60", "people = 50")), alignment=align.digest)
    with monkeypatch.context() as patch:
        patch.setattr("syndic.study.fit.order_of", lambda *_: stored)
        found, _ = own_fit(home, study)
        assert found is not None
        assert not found.poor
        pyarrow.csv.write_csv(rows.slice(2), tmp_path / "rows.csv")
        found, _ = own_fit(home, study)
        assert found is not None
        assert found.poor
        assert "2 of the common people have no row of their own" in found.advice[-1]
    # the alignment comes later
    found, unread = own_fit(home, study)
    assert (found is not None, unread) == (True, "")
