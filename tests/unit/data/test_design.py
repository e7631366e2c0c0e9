"""`Design`: numbers by public bounds only, rows in the unit ball, missing levels, labels."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from syndic.data import ArrowSource, Boolean, Categorical, Date, Instead, Integer, Ordinal, Real, Schema, Table
from syndic.data.coding import INTERCEPT
from syndic.data.design import Design, into_ball
from syndic.errors import InputError

SCHEMA = Schema(
    columns=(
        Categorical(name="colour", values=("red", "green"), outside="missing"),
        Ordinal(name="grade", values=("low", "high"), outside="missing", missing=Instead(value="low")),
        Boolean(name="member"),
        Integer(name="age", lower=0, upper=100, missing=Instead(value=0)),
        Real(name="score", lower=-2.0, upper=2.0, bins=4),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 11)),
        Categorical(name="answer", values=("no", "yes"), outside="missing"),
    )
)
ROWS = pa.table(
    {
        "colour": ["red", "green", None, "blue"],
        "grade": ["high", None, "low", "high"],
        "member": [True, False, None, True],
        "age": [0, 50, 100, 1000],
        "score": [-2.0, 0.1, None, 99.0],
        "day": ["2020-01-01", "2020-01-06", None, "2020-01-11"],
        "answer": ["yes", "no", None, "yes"],
    }
)
RAW = np.array(
    [
        # colour x 3, grade x 2, member, its missing, age, score, its missing, day, its missing
        [1, 0, 0, 0, 1, 1, 0, 0.0, 0.125, 0, 0.0, 0],
        [0, 1, 0, 1, 0, 0, 0, 0.5, 0.625, 0, 0.5, 0],
        [0, 0, 1, 1, 0, 0, 1, 1.0, 0.0, 1, 0.0, 1],
        [0, 0, 1, 0, 1, 1, 0, 1.0, 0.875, 0, 1.0, 0],
    ]
)


def table(rows: pa.Table = ROWS, schema: Schema = SCHEMA) -> Table:
    return Table(schema=schema, source=ArrowSource(rows))


def by_hand(raw: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    return np.array([row * min(1.0, radius / float(np.sqrt(sum(row**2)))) for row in raw])


def test_features_and_values_are_those_worked_out_by_hand() -> None:
    design = Design(schema=SCHEMA, label="answer", positive="yes", intercept=False)
    rows, labels = design.matrix(table())
    assert design.features == (
        *("colour=red", "colour=green", "colour=(missing)", "grade=low", "grade=high"),
        *("member", "member=(missing)", "age", "score", "score=(missing)", "day", "day=(missing)"),
    )
    assert rows == pytest.approx(by_hand(RAW, 1.0), abs=1e-9)
    assert labels.tolist() == [[1.0], [-1.0], [-1.0], [1.0]]


def test_intercept_is_constant_and_leaves_every_row_in_the_ball() -> None:
    design = Design(schema=SCHEMA, label="answer", positive="yes")
    rows, _ = design.matrix(table())
    assert design.features[-1] == INTERCEPT
    assert design.dimension == rows.shape[1] == 13
    assert rows[:, -1] == pytest.approx(np.full(4, np.sqrt(0.5)), abs=1e-9)
    assert rows[:, :-1] == pytest.approx(by_hand(RAW, np.sqrt(0.5)), abs=1e-9)
    assert all(float(np.sqrt(sum(row**2))) <= 1.0 for row in rows)


def test_symmetric_scale_and_a_number_as_label() -> None:
    design = Design(schema=SCHEMA, label="score", scale="symmetric", intercept=False)
    rows, labels = design.matrix(table())
    assert labels[:, 0].tolist() == [-0.75, 0.25, 0.0, 0.75]  # middles of the bins over the bounds; missing is 0
    ages = [row[list(design.features).index("age")] for row in rows]
    assert [np.sign(age) for age in ages] == [-1.0, 0.0, 1.0, 1.0]


def test_numbers_do_not_depend_on_the_other_rows() -> None:
    design = Design(schema=SCHEMA, label="answer", positive="yes")
    whole, _ = design.matrix(table())
    alone, _ = design.matrix(table(ROWS.slice(1, 1)))
    assert np.array_equal(alone[0], whole[1])


def test_all_batches_are_in_the_matrix_and_people_have_one_row() -> None:
    design = Design(schema=SCHEMA, label="answer", positive="yes")
    many = ROWS.take(np.tile(np.arange(4), 20_000)).combine_chunks()
    assert design.matrix(table(many))[0].shape == (80_000, 13)
    named = ROWS.append_column("who", pa.array(["a", "b", "a", "c"]))
    one_each = Table(schema=SCHEMA, source=ArrowSource(named), person="who")
    rows, _ = design.matrix(one_each)
    whole, _ = design.matrix(table())
    assert np.array_equal(rows, whole[[0, 1, 3]])


def test_no_rows_give_an_empty_matrix() -> None:
    design = Design(schema=SCHEMA, label="answer", positive="yes")
    rows, labels = design.matrix(table(ROWS.slice(0, 0)))
    assert rows.shape == (0, 13)
    assert labels.shape == (0, 1)


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({"label": "nothing"}, "must be one of the columns"),
        ({"label": "answer", "positive": "perhaps"}, "positive"),
        ({"label": "age", "positive": "3"}, "remove `positive`"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(parts: dict[str, str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Design(schema=SCHEMA, **parts)  # type: ignore[arg-type]  # what is wrong is the point


def test_a_table_of_another_schema_is_refused() -> None:
    other = Schema(columns=(Integer(name="age", lower=0, upper=90), *SCHEMA.columns[:3], *SCHEMA.columns[4:]))
    design = Design(schema=SCHEMA, label="answer", positive="yes")
    with pytest.raises(InputError, match="'age'"):
        design.matrix(table(schema=other))


def test_ball_holds_after_rounding() -> None:
    rows = np.random.default_rng(0).normal(0, 5, (20_000, 7))
    norms = np.sqrt((into_ball(rows, 1.0).astype(np.longdouble) ** 2).sum(axis=1))
    assert norms.max() <= 1.0
    short = rows / 1e6
    assert np.array_equal(into_ball(short, 1.0), short)


def test_the_largest_bounds_stay_within_their_own() -> None:
    large = Real(name="large", lower=1.2e308, upper=1.7e308, bins=4)
    design = Design(schema=Schema(columns=(large, Boolean(name="yes"))), label="yes", positive="true", intercept=False)
    assert design.rows({"large": np.arange(4, dtype=np.uint8)})[:, 0] == pytest.approx([0.125, 0.375, 0.625, 0.875])
