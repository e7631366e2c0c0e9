"""One release of rows of a population, and whether its intervals cover: beside real rows, and drawn rows as if real."""

import time
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any, Final, Literal, final
from zlib import crc32

import numpy as np
import pyarrow as pa
from msgspec import to_builtins
from numpy.typing import NDArray

from syndic import Study, simulate
from syndic.data import Schema
from syndic.document import Document, from_builtins, to_json
from syndic.errors import InputError
from syndic.model.interval.one_step import crossing
from syndic.model.interval.question import Question, read_question
from syndic_lab.bench.interval.population import population

Floats = NDArray[np.float64]

Layout = Literal["curator", "horizontal", "vertical"]
PARTIES: Final = 3
CONFIDENCE: Final = 0.95
_TIMES: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@final
class Setting(Document):
    """Which population, how many of its people, at which epsilon, at parties of which layout, and the seed.

    "curator": one party has all rows, and neighbours are by addition and removal. "horizontal": three parties, and
    even seeds have neighbours by replacement. "vertical": two parties with different columns.
    """

    population: str
    people: int
    epsilon: str
    layout: Layout
    seed: int


@final
class Asked(Document):
    """One question: whether intervals cover the truth, None for one that was refused, and widths beside real rows."""

    kind: str
    question: str
    covers: bool | None
    real: bool
    drawn: bool
    measured: float | None
    width: float | None
    drawn_width: float
    seconds: float


@final
class Outcome(Document):
    """One release: all its questions."""

    setting: Setting
    asked: tuple[Asked, ...]
    seconds: float


def outcome(setting: Setting) -> Outcome:
    """Draw people, release and ask every question."""
    start, known = time.process_time(), population(setting.population)
    # other settings have other people and other noise, so that their outcomes are independent
    seed = crc32(to_json(setting))
    generator = np.random.default_rng(seed)
    rows = known.rows.take(generator.integers(0, known.rows.num_rows, setting.people))
    release = simulate(_study(setting), _held(setting, rows), seed=seed)
    spent = time.process_time() - start
    real, drawn = (_codes(known.schema, one) for one in (rows, release.table.to_arrow()))
    asked = []
    for kind, text in known.questions:
        question, true = read_question(text, known.schema), truth(setting.population, text)
        before = time.process_time()
        found = release.interval(text, confidence=CONFIDENCE)
        took = time.process_time() - before
        own, other = (_as_if_real(question, codes) for codes in (real, drawn))
        width = _width(question, own)
        asked.append(
            Asked(
                kind=kind,
                question=text,
                covers=None if found.low is None or found.high is None else found.low <= true <= found.high,
                real=own[0] <= true <= own[1],
                drawn=other[0] <= true <= other[1],
                measured=found.measured,
                width=None
                if found.low is None or found.high is None
                else _width(question, (found.low, found.high)) / width,
                drawn_width=_width(question, other) / width,
                seconds=took,
            )
        )
    return Outcome(setting=setting, asked=tuple(asked), seconds=spent)


@cache
def truth(kind: str, text: str) -> float:
    """Return the true value in a population."""
    known = population(kind)
    exact = dict(known.of_values)
    if text in exact:
        return exact[text](known.rows)
    question = read_question(text, known.schema)
    shares = _shares(question, _codes(known.schema, known.rows))
    if question.is_quantile:
        chance, edges, below, whole = question.below(shares)
        return crossing(chance, edges, np.array([one.value for one in below]), whole=whole)
    return question.estimate(shares).value


def _as_if_real(question: Question, codes: dict[str, NDArray[Any]]) -> tuple[float, float]:
    """Return the interval that rows give which are taken as real."""
    shares, rows = _shares(question, codes), len(next(iter(codes.values())))
    if question.is_quantile:
        chance, edges, below, whole = question.below(shares)
        values = np.array([one.value for one in below])
        errors = np.array([np.sqrt((shares * one.influence**2).sum() / rows) for one in below])
        low, high = (crossing(chance, edges, values + side * _TIMES * errors, whole=whole) for side in (1, -1))
        return low, high
    try:
        found = question.estimate(shares)
    except InputError:
        return 0.0, 0.0
    logarithm = question.is_ratio and found.value > 0
    if logarithm:
        found = found.through(np.log, lambda x: 1 / x)
    half = _TIMES * float(np.sqrt((shares * found.influence**2).sum() / rows))
    ends = found.value - half, found.value + half
    return (float(np.exp(ends[0])), float(np.exp(ends[1]))) if logarithm else ends


def _width(question: Question, ends: tuple[float, float]) -> float:
    """Return the width of an interval, of quotients that of its logarithm; at least one step of whole numbers."""
    low, high = ends
    if question.is_ratio and low > 0:
        return float(np.log(high / low))
    return max(high - low, 1.0) if question.is_quantile else high - low


def _shares(question: Question, codes: dict[str, NDArray[Any]]) -> Floats:
    domain = question.schema.domain.project(question.columns)
    cells = domain.index([codes[name] for name in domain.names])
    return np.bincount(cells, minlength=domain.size).reshape(domain.sizes) / len(cells)


def _codes(schema: Schema, rows: pa.Table) -> dict[str, NDArray[Any]]:
    return {column.name: column.encode(rows[column.name]) for column in schema.columns}


def _study(setting: Setting) -> Study:
    known, vertical = population(setting.population), setting.layout == "vertical"
    names = known.schema.names
    if vertical:
        sides = known.first, tuple(name for name in names if name not in known.first)
        parties: list[dict[str, Any]] = [
            {"name": f"p{place}", "people": setting.people, "columns": list(side)} for place, side in enumerate(sides)
        ]
    else:
        parties = [{"name": f"p{place}", "people": _part(setting, place)} for place in range(_parties(setting))]
    replaced = vertical or (setting.layout == "horizontal" and setting.seed % 2 == 0)
    zeros = {"zeros": list(known.zeros)} if known.zeros else {}
    return from_builtins(
        {
            "name": "intervals",
            "unit": {"neighbours": "replace" if replaced else "add_remove"},
            "budget": {"epsilon": str(Fraction(setting.epsilon)), "delta": "1e-7"},
            "protocol": {"method": "synthesis", **zeros},
            "parties": parties,
            "schema": {"columns": [to_builtins(column) for column in known.schema.columns]},
        },
        Study,
        where="intervals",
    )


def _parties(setting: Setting) -> int:
    return 1 if setting.layout == "curator" else PARTIES


def _part(setting: Setting, place: int) -> int:
    return len(range(place, setting.people, _parties(setting)))


def _held(setting: Setting, rows: pa.Table) -> dict[str, pa.Table]:
    known = population(setting.population)
    if setting.layout == "vertical":
        sides = known.first, tuple(name for name in rows.column_names if name not in known.first)
        return {f"p{place}": rows.select(list(side)) for place, side in enumerate(sides)}
    count = _parties(setting)
    return {f"p{place}": rows.take(np.arange(place, rows.num_rows, count)) for place in range(count)}
