"""Graphical models like an estimator: frames in and out, values given, questions, what a fit costs."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import syndic as sy
from syndic import Ledger, Schema
from syndic.data import Instead
from syndic.document import exact
from syndic.errors import InputError, SyndicError
from syndic.sklearn import MarkovSynthesizer

SCHEMA = Schema(
    columns=(
        sy.Boolean(name="smoker"),
        sy.Integer(name="age", lower=18, upper=95, bins=6, missing=Instead(value=50)),
        sy.Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 12, 31), bins=4),
        sy.Categorical(name="ward", values=("a", "b")),
    )
)


def frame(count: int = 400, seed: int = 1) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    age = draws.integers(18, 96, count)
    return pd.DataFrame(
        {
            "smoker": draws.random(count) < np.where(age < 57, 0.6, 0.1),
            "age": age,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(draws.integers(0, 366, count), unit="D"),
            "ward": draws.choice(["a", "b"], count),
            "id": range(count),
        }
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (frame(), pd.DataFrame),
        (pl.DataFrame(frame()), pl.DataFrame),
        (pa.table(frame()), pa.Table),
        ({"north": frame(seed=1), "south": frame(seed=2)}, pd.DataFrame),
    ],
    ids=["pandas", "polars", "arrow", "parties"],
)
def test_samples_and_answers_are_of_the_kind_that_was_fitted(given: Any, kind: type) -> None:
    made = MarkovSynthesizer(SCHEMA, people=400, seed=1).fit(given)
    for table in (made.sample(), made.sample(7), made.sample(3, given={"ward": "a"}), made.query(["ward"])):
        assert isinstance(table, kind)
    assert len(made.sample()) == len(made.release_.table)
    assert pa.table(made.sample(7)).column_names == list(SCHEMA.names)
    assert len(made.sample(0)) == 0


def test_dependence_values_given_and_answers_follow_the_rows() -> None:
    made = MarkovSynthesizer(SCHEMA, 8, people=400, seed=1).fit(frame())
    rows = made.sample(4000)
    young = rows[rows["age"] < 57]["smoker"].astype("boolean").mean()
    old = rows[rows["age"] >= 57]["smoker"].astype("boolean").mean()
    assert young > old + 0.25
    given = made.sample(300, given={"age": 20, "smoker": True})
    assert given["age"].between(18, 30).all()
    assert given["smoker"].all()
    counts = made.query(["smoker", "ward"])
    assert list(counts.columns) == ["smoker", "ward", "count"]
    assert counts["count"].sum() == pytest.approx(made.model_.total)
    assert abs(made.model_.total - 400) < 60
    assert len(made.sample(given={"ward": "b"})) == len(made.sample())


def test_parameters_are_stored_as_given_cloned_and_shown() -> None:
    made = MarkovSynthesizer(SCHEMA, "1/3", people={"a": 10}, selector="adaptive")
    assert clone(made).get_params() == made.get_params()
    assert repr(made) == (
        "MarkovSynthesizer(schema=<smoker, age, day, ward>, epsilon='1/3', people={'a': 10}, selector='adaptive')"
    )
    study = MarkovSynthesizer(SCHEMA, people=400, model_cells=900).study()
    assert isinstance(study.protocol, sy.Synthesis)
    assert study.protocol.model_cells == 900
    assert float(study.budget.delta) == 2.5e-05 or 0 < study.budget.delta <= exact("0.01") / 400


def test_every_fit_is_charged_and_asking_is_not(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = MarkovSynthesizer(SCHEMA, 1, people=400, delta=1e-5, ledger=path, dataset="clinic", cap=1.2)
    made.fit(frame())
    with Ledger.open(path) as ledger:
        spent = ledger.spent("clinic").epsilon
    assert 0.999 < (spent or 0) <= 1
    made.sample(100)
    made.query(["age"])
    with Ledger.open(path) as ledger:
        assert ledger.spent("clinic").epsilon == spent
    with pytest.raises(SyndicError, match=r"spent .* of epsilon 1.2"):
        made.fit(frame())
    assert made.statement_.protects


def test_misuse_is_refused() -> None:
    made = MarkovSynthesizer(SCHEMA, people=400, seed=1)
    with pytest.raises(InputError, match="not fitted: call fit"):
        made.sample()
    with pytest.raises(InputError, match="not fitted: call fit"):
        made.query(["age"])
    with pytest.raises(InputError, match="people is missing"):
        MarkovSynthesizer(SCHEMA, seed=1).fit(frame())
    with pytest.raises(InputError, match="schema is missing"):
        MarkovSynthesizer(people=9).fit(frame())
    made.fit(frame())
    with pytest.raises(InputError, match="unknown columns"):
        made.sample(3, given={"nobody": 1})
    with pytest.raises(InputError, match=r"n_samples \(-2\)"):
        made.sample(-2)
    with pytest.raises(InputError, match="unknown columns"):
        made.query(["nobody"])
