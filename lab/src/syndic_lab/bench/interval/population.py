"""Five made-up populations and Adult, each with questions whose answers are known."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.document import from_builtins
from syndic.errors import InputError

POOL: Final = 400_000
"""Rows of a made-up population: a release is of some of them, drawn with replacement."""

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Population:
    """Its rows, how they are described, its questions by kind, and which columns the first of two parties holds.

    `zeros` are combinations that no row has; `of_values` has the true value of questions about numbers within bins.
    """

    rows: pa.Table
    schema: Schema
    questions: tuple[tuple[str, str], ...]
    first: tuple[str, ...]
    zeros: tuple[dict[str, Any], ...] = ()
    of_values: tuple[tuple[str, Callable[[pa.Table], float]], ...] = ()


def _logistic(x: Any) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


_LISTED: Final = (
    ("mean", "mean(y)"),
    ("mean", "mean(e)"),
    ("mean", "mean(c == 'c1')"),
    ("difference", "mean(y, given=a) - mean(y, given=not a)"),
    ("difference", "mean(e, given=b) - mean(e, given=not b)"),
    ("difference", "mean(f, given=c == 'c2') - mean(f, given=c == 'c0')"),
    ("ratio", "mean(y, given=a) / mean(y, given=not a)"),
    ("ratio", "mean(f, given=d == 'd1') / mean(f, given=d == 'd0')"),
    ("odds ratio", "odds(y, given=b) / odds(y, given=not b)"),
    ("odds ratio", "odds(f, given=y) / odds(f, given=not y)"),
    ("linear", "linear(e, a)"),
    ("linear", "linear(e, b, a)"),
    ("logistic", "logistic(y, a, b)"),
    ("logistic", "logistic(f, e)"),
    ("quantile", "quantile(e, 0.5)"),
    ("quantile", "quantile(e, 0.75, given=y)"),
    ("product", "mean(e * y) - mean(e) * mean(y)"),
    ("three-way", "mean(y, given=a and c == 'c1') - mean(y, given=not a and c == 'c1')"),
    ("three-way", "logistic(y, a, c, given=b)"),
)


def _listed(kind: str, generator: np.random.Generator) -> Population:
    """Return seven columns of 2 to 10 levels: independent, a tree, or a tree with a hidden effect of three columns."""
    draw = generator.random
    related = 0.0 if kind == "independent" else 1.0
    a = draw(POOL) < 0.45
    b = draw(POOL) < _logistic(-0.2 + related * 1.2 * a)
    c = generator.choice(3, POOL, p=(0.5, 0.3, 0.2))
    d = np.where(draw(POOL) < 0.4 * related, c, generator.choice(4, POOL, p=(0.4, 0.3, 0.2, 0.1)))
    e = generator.binomial(9, _logistic(-0.4 + related * 0.7 * b))
    f = draw(POOL) < _logistic(-0.5 + related * (0.8 * (d == 1) + 0.15 * e))
    hidden = 3.0 * (a ^ (c == 1)) - 1.5 if kind == "three-way" else 0.0
    y = draw(POOL) < _logistic(-0.6 + related * 0.9 * b + hidden)
    text = {"c": [f"c{level}" for level in range(3)], "d": [f"d{level}" for level in range(4)]}
    codes = {"c": c, "d": d}
    rows = pa.table(
        {
            "a": a,
            "b": b,
            **{name: pa.array(text[name]).take(pa.array(codes[name])) for name in "cd"},
            "e": e,
            "f": f,
            "y": y,
        }
    )
    columns = [
        *(_truth(name) for name in "ab"),
        *(_list(name, text[name]) for name in "cd"),
        {"kind": "integer", "name": "e", "lower": 0, "upper": 9, "missing": {"value": 0}},
        *(_truth(name) for name in "fy"),
    ]
    return Population(rows, _schema(columns), _LISTED, ("a", "c", "e"))


def _numbers(generator: np.random.Generator) -> Population:
    """Return fine numbers, three of them strongly related, and their groups: levels are merged."""
    normal = generator.standard_normal
    sex = generator.random(POOL) < 0.5
    u = normal(POOL)
    age = np.clip(np.floor(48 + 15 * u), 18, 90)
    weight = np.clip(72 + 9 * (0.5 * u + np.sqrt(0.75) * normal(POOL)) + 8 * sex, 30, 140)
    pressure = np.clip(125 + 15 * (0.7 * u + np.sqrt(0.51) * normal(POOL)), 70, 220)
    days = np.clip(np.floor(np.exp(1.2 + 0.3 * u + 0.8 * normal(POOL))), 1, 365)
    ward = generator.choice(3, POOL, p=(0.6, 0.3, 0.1))
    ill = generator.random(POOL) < _logistic(-1.2 + 0.03 * (age - 48) + 0.02 * (pressure - 125) + 0.5 * (ward == 2))
    names = ["w0", "w1", "w2"]
    rows = pa.table(
        {
            "age": age.astype(np.int64),
            "weight": weight,
            "pressure": pressure,
            "days": days.astype(np.int64),
            "sex": sex,
            "ward": pa.array(names).take(pa.array(ward)),
            "ill": ill,
        }
    )
    columns = [
        {"kind": "integer", "name": "age", "lower": 18, "upper": 90},
        {"kind": "real", "name": "weight", "lower": 30, "upper": 140},
        {"kind": "real", "name": "pressure", "lower": 70, "upper": 220},
        {"kind": "integer", "name": "days", "lower": 1, "upper": 365, "scale": "log"},
        _truth("sex"),
        _list("ward", names),
        _truth("ill"),
    ]
    questions = (
        ("mean", "mean(age)"),
        ("mean", "mean(weight)"),
        ("mean", "mean(days)"),
        ("mean", "mean(ill)"),
        ("difference", "mean(weight, given=sex) - mean(weight, given=not sex)"),
        ("difference", "mean(age, given=ill) - mean(age, given=not ill)"),
        ("ratio", "mean(ill, given=age >= 60) / mean(ill, given=age < 60)"),
        ("odds ratio", "odds(ill, given=ward == 'w2') / odds(ill, given=ward == 'w0')"),
        ("linear", "linear(pressure, age)"),
        ("linear", "linear(weight, age, sex)"),
        ("logistic", "logistic(ill, age)"),
        ("logistic", "logistic(ill, sex, ward)"),
        ("quantile", "quantile(age, 0.5)"),
        ("quantile", "quantile(weight, 0.9)"),
        ("quantile", "quantile(age, 0.5, given=ill)"),
        ("product", "sqrt(mean(pressure * pressure) - mean(pressure) * mean(pressure))"),
        ("three-way", "mean(weight, given=sex and ill) - mean(weight, given=not sex and ill)"),
    )
    of_values = (
        ("mean(weight)", lambda one: _mean(one, "weight")),
        ("mean(days)", lambda one: _mean(one, "days")),
        ("linear(pressure, age)", lambda one: _slope(one, "pressure", ["age"])),
        ("linear(weight, age, sex)", lambda one: _slope(one, "weight", ["age", "sex"])),
        ("quantile(weight, 0.9)", lambda one: float(np.quantile(_column(one, "weight"), 0.9))),
        (questions[15][1], lambda one: float(_column(one, "pressure").std())),
        (questions[4][1], lambda one: _difference(one, "weight", "sex")),
        (questions[16][1], lambda one: _difference(one.filter(one["ill"]), "weight", "sex")),
    )
    return Population(rows, _schema(columns), questions, ("age", "sex", "days"), of_values=of_values)


def _rare(generator: np.random.Generator) -> Population:
    """Return a list with rare values, missing values, a rare outcome, and a combination that no row has."""
    draw = generator.random
    weights = 1 / np.arange(1, 13)
    code = generator.choice(12, POOL, p=weights / weights.sum())
    female = draw(POOL) < 0.52
    pregnant = female & (draw(POOL) < 0.06)
    stage = generator.choice(4, POOL, p=(0.7, 0.2, 0.07, 0.03))
    score = generator.binomial(20, 0.2 + 0.02 * code)
    unknown = draw(POOL) < 0.1
    event = draw(POOL) < _logistic(-3.4 + 0.8 * (stage >= 2) + 0.5 * female + 0.05 * score)
    codes, stages = [f"k{level}" for level in range(12)], ["s0", "s1", "s2", "s3"]
    rows = pa.table(
        {
            "code": pa.array(codes).take(pa.array(code)),
            "female": female,
            "pregnant": pregnant,
            "stage": pa.array(stages).take(pa.array(stage)),
            "score": pa.array(score, mask=unknown),
            "event": event,
        }
    )
    columns = [
        _list("code", codes),
        _truth("female"),
        _truth("pregnant"),
        _list("stage", stages),
        {"kind": "integer", "name": "score", "lower": 0, "upper": 20},
        _truth("event"),
    ]
    questions = (
        ("mean", "mean(event)"),
        ("mean", "mean(score)"),
        ("mean", "mean(code == 'k7')"),
        ("mean", "mean(pregnant, given=female)"),
        ("difference", "mean(event, given=female) - mean(event, given=not female)"),
        ("difference", "mean(score, given=code == 'k1') - mean(score, given=code == 'k0')"),
        ("ratio", "mean(event, given=stage != 's0') / mean(event, given=stage == 's0')"),
        ("odds ratio", "odds(event, given=female) / odds(event, given=not female)"),
        ("linear", "linear(score, event)"),
        ("linear", "linear(score, female, stage)"),
        ("logistic", "logistic(event, score)"),
        ("logistic", "logistic(event, female, stage)"),
        ("quantile", "quantile(score, 0.5)"),
        ("quantile", "quantile(score, 0.9, given=female)"),
        ("product", "mean(score * female) - mean(score) * mean(female)"),
        ("three-way", "mean(event, given=female and stage == 's1')"),
    )
    zeros = ({"columns": ["female", "pregnant"], "cells": [["false", "true"]]},)
    return Population(rows, _schema(columns), questions, ("code", "female", "pregnant"), zeros)


def _adult() -> Population:
    folder = os.environ.get("SYNDIC_DATA")
    paths = [Path(folder or ".") / f"adult_{part}.parquet" for part in ("train", "test")]
    if folder is None or not all(path.is_file() for path in paths):
        raise InputError("adult_train.parquet was not found: set SYNDIC_DATA to a folder that contains it")
    return adult_of(pa.concat_tables([pq.read_table(path) for path in paths]))


def adult_of(rows: pa.Table) -> Population:
    """Return Adult's complete rows, described by its own dictionary; the survey's weight is left out."""
    rows = rows.drop_columns(["fnlwgt"])
    complete = np.ones(rows.num_rows, dtype=np.bool_)
    for name in ("workclass", "occupation", "native-country"):
        complete &= rows[name].to_numpy() != "?"
    rows = rows.filter(pa.array(complete))
    columns = [
        {"kind": "integer", "name": name, "missing": {"value": _BOUNDS[name]["lower"]}, **_BOUNDS[name]}
        if name in _BOUNDS
        else _list(name, sorted(rows[name].unique().to_pylist()))
        for name in rows.column_names
    ]
    return Population(rows, _schema(columns), _OF_ADULT, ("age", "sex", "race", "income"))


# of the census's dictionary: bounds that were not read off these rows
_BOUNDS: Final[dict[str, dict[str, Any]]] = {
    "age": {"lower": 17, "upper": 90},
    "education-num": {"lower": 1, "upper": 16},
    "capital-gain": {"lower": 0, "upper": 99_999, "scale": "symlog"},
    "capital-loss": {"lower": 0, "upper": 9_999, "scale": "symlog"},
    "hours-per-week": {"lower": 1, "upper": 99},
}
_RICH: Final = "income == '>50K'"
_OF_ADULT: Final = (
    ("mean", "mean(age)"),
    ("mean", "mean('hours-per-week')"),
    ("mean", f"mean({_RICH})"),
    ("mean", f"mean({_RICH}, given=sex == 'Female')"),
    ("difference", f"mean({_RICH}, given=sex == 'Male') - mean({_RICH}, given=sex == 'Female')"),
    ("difference", "mean('hours-per-week', given=sex == 'Male') - mean('hours-per-week', given=sex == 'Female')"),
    ("ratio", f"mean({_RICH}, given=race == 'Black') / mean({_RICH}, given=race == 'White')"),
    ("odds ratio", f"odds({_RICH}, given='education-num' >= 13) / odds({_RICH}, given='education-num' < 13)"),
    ("linear", "linear('hours-per-week', age)"),
    ("linear", "linear('hours-per-week', age, sex)"),
    ("logistic", f"logistic({_RICH}, age)"),
    ("logistic", f"logistic({_RICH}, sex == 'Male', 'education-num')"),
    ("quantile", "quantile(age, 0.5)"),
    ("product", "mean(age * 'hours-per-week') - mean(age) * mean('hours-per-week')"),
    ("product", "mean('education-num' * age) - mean('education-num') * mean(age)"),
)


FEW_LEVELS: Final = ("independent", "tree", "three-way")
MADE_UP: Final = (*FEW_LEVELS, "numbers", "rare")


@cache
def population(kind: str) -> Population:
    """Return a population by name."""
    generator = np.random.default_rng(20_261_116)
    if kind == "adult":
        return _adult()
    if kind == "numbers":
        return _numbers(generator)
    return _rare(generator) if kind == "rare" else _listed(kind, generator)


def _truth(name: str) -> dict[str, Any]:
    return {"kind": "boolean", "name": name, "missing": {"value": False}}


def _list(name: str, values: Sequence[str]) -> dict[str, Any]:
    other = {"value": values[0]}
    return {"kind": "categorical", "name": name, "values": list(values), "outside": other, "missing": other}


def _schema(columns: list[dict[str, Any]]) -> Schema:
    return from_builtins({"columns": columns}, Schema, where="schema")


def _column(rows: pa.Table, name: str) -> Floats:
    return np.asarray(rows[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def _mean(rows: pa.Table, name: str) -> float:
    return float(_column(rows, name).mean())


def _difference(rows: pa.Table, name: str, group: str) -> float:
    values, inside = _column(rows, name), _column(rows, group) == 1
    return float(values[inside].mean() - values[~inside].mean())


def _slope(rows: pa.Table, explained: str, names: Sequence[str]) -> float:
    regressors = np.column_stack([np.ones(rows.num_rows), *(_column(rows, name) for name in names)])
    return float(np.linalg.lstsq(regressors, _column(rows, explained), rcond=None)[0][1])
