"""Descriptive studies with noise: coverage and widths of intervals by kind, and false alarms of tests.

People are drawn with replacement from a million with known effects: a skewed number, listed columns that do and do not
depend on the arm, parties of different health. The truth is that of this million, without bins. Sums are those of the
study, with its noise drawn as real numbers and rounded, so nobody is protected here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from statistics import fmean, median
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic import Study
from syndic.data import Schema
from syndic.document import from_builtins
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.describe.opened import ONE
from syndic.methods.describe.result import COMPARISONS, DescribeResult
from syndic.model.describe import Kind, compare, independence, regression, trend
from syndic_lab.bench.row import Row

PARTIES: Final = 5
POOL: Final = 1_000_000
"""People of the population."""
BETWEEN: Final = "b against a"
SHARES: Final = (0.3, 0.25, 0.2, 0.15, 0.1)
STAGES: Final = (0.4, 0.3, 0.2, 0.1)


def rows(quick: bool) -> Iterator[Row]:
    """Yield coverage and widths for two sizes and three budgets, then false alarms where nothing differs."""
    for people in (2_000, 20_000):
        for epsilon in ("0.5", "1", "3"):
            yield from covered(people, epsilon, 20 if quick else 300)
            yield from alarms(people, epsilon, 100 if quick else 2_000)


def study(people: int, epsilon: str) -> Study:
    """Return a study of all kinds of statistics over five parties."""
    columns: list[dict[str, Any]] = [
        {"kind": "categorical", "name": "arm", "values": ["a", "b"]},
        {"kind": "integer", "name": "age", "lower": 20, "upper": 99},
        {"kind": "real", "name": "bmi", "lower": 12.0, "upper": 60.0},
        {"kind": "categorical", "name": "sex", "values": ["f", "m"]},
        {"kind": "ordinal", "name": "stage", "values": ["0", "1", "2", "3"]},
        {"kind": "boolean", "name": "ill"},
        {"kind": "integer", "name": "visits", "lower": 0, "upper": 12},
        {"kind": "boolean", "name": "fall"},
    ]
    fits = [
        {"kind": "linear", "outcome": "bmi", "on": ["arm", "sex"]},
        {"kind": "logistic", "outcome": "ill", "on": ["arm", "stage"]},
        {"kind": "poisson", "outcome": "visits", "on": ["arm", "stage"]},
    ]
    described = ["age", "bmi", "sex", "stage", "ill", "fall"]
    protocol = {"group": "arm", "stratum": "party", "columns": described, "regressions": fits}
    return from_builtins(
        {
            "name": "trial",
            "unit": {"neighbours": "add_remove"},
            "budget": {"epsilon": epsilon, "delta": "1e-7"},
            "protocol": {"method": "describe", **protocol},
            "parties": [{"name": f"p{place}", "people": people} for place in range(PARTIES)],
            "schema": {"columns": columns},
        },
        Study,
        where="trial",
    )


@cache
def population() -> tuple[Mapping[str, Any], NDArray[np.int64]]:
    """Return the columns of everybody and their party; sex and stage do not depend on the arm."""
    generator, people = np.random.default_rng(1), POOL
    arm, stage = generator.integers(0, 2, people), generator.choice(4, people, p=STAGES)
    party = generator.choice(PARTIES, people, p=SHARES)
    chance = 1 / (1 + np.exp(1.5 - 0.5 * arm - 0.3 * stage - 0.2 * party))
    columns = {
        "arm": np.array(["a", "b"])[arm],
        "age": np.clip(np.round(generator.normal(55 + arm, 12)), 20, 99).astype(int),
        "bmi": np.clip(15 + generator.gamma(6, 1.8, people) + 0.5 * arm, 12, 60),
        "sex": np.where(generator.random(people) < 0.5, "f", "m"),
        "stage": stage.astype(str),
        "ill": generator.random(people) < chance,
        "visits": np.minimum(generator.poisson(np.exp(0.3 + 0.2 * arm + 0.1 * stage)), 12),
        "fall": generator.random(people) < 0.01 + 0.01 * arm,
    }
    return columns, party


@cache
def _codes(schema: Schema) -> Mapping[str, NDArray[Any]]:
    columns, _ = population()
    return {column.name: column.encode(pa.array(columns[column.name])) for column in schema.columns}


def opened(plan: DescribePlan, generator: np.random.Generator, people: int) -> DescribeResult:
    """Return what the study would open for people drawn anew."""
    _, party = population()
    drawn = generator.integers(0, POOL, people)
    total = np.zeros(plan.masked_sum.count, dtype=np.int64)
    for place in range(PARTIES):
        own = drawn[party[drawn] == place]
        counted = {
            domain.names: np.bincount(
                domain.index([_codes(plan.terms.schema)[name][own] for name in domain.names]), minlength=domain.size
            )
            for domain in plan.domains
        }
        total += np.concatenate([one.sums(counted[one.block.clique], place, PARTIES) for one in plan.readings])
    deviation = plan.deviation(PARTIES)
    total += np.round(generator.normal(0, deviation * ONE, total.size)).astype(np.int64)
    return DescribeResult(note=plan.noted(plan.note.parties), sums=total, schema=plan.terms.schema)


Truth = dict[tuple[str, str, str], float]


@cache
def truth() -> Mapping[tuple[str, str, str], float]:
    """Return the population's values, by kind, column and group."""
    own, party = population()
    second = own["arm"] == "b"
    found = {**_numbers(own, second), **_fits(own, second)}
    for name, level in (("sex", "f"), ("sex", "m"), *(("stage", one) for one in "0123"), ("ill", True), ("fall", True)):
        found |= _shares(f"{name}: {str(level).lower()}", own[name] == level, second, party)
    for name, has in (("sex", own["sex"] == "m"), ("ill", own["ill"]), ("fall", own["fall"])):
        found["standardised difference", name, BETWEEN] = _standardised(has[second], has[~second])
    return found


def _numbers(own: Mapping[str, Any], second: NDArray[np.bool_]) -> Truth:
    found: Truth = {}
    for name in ("age", "bmi"):
        one, other = own[name][second], own[name][~second]
        for arm, values in (("a", other), ("b", one)):
            found |= {("mean", name, arm): values.mean(), ("standard deviation", name, arm): values.std()}
            for chance in (0.25, 0.5, 0.75):
                what = "median" if chance == 0.5 else f"quantile {chance:g}"
                found[what, name, arm] = float(np.quantile(values, chance))
        found["difference of means", name, BETWEEN] = one.mean() - other.mean()
        found["standardised difference", name, BETWEEN] = _standardised(one, other)
    return found


def _standardised(one: Any, other: Any) -> float:
    return float((one.mean() - other.mean()) / ((one.var() + other.var()) / 2) ** 0.5)


def _shares(label: str, has: NDArray[np.bool_], second: NDArray[np.bool_], party: NDArray[np.int64]) -> Truth:
    found: Truth = {("share", label, arm): float(has[held].mean()) for arm, held in (("a", ~second), ("b", second))}
    kinds = [second & has, second & ~has, ~second & has, ~second & ~has]
    strata = np.array([np.bincount(party[kind], minlength=PARTIES) for kind in kinds], dtype=np.float64).T
    for how in COMPARISONS:
        what = how.replace("difference", "difference of shares") + " within strata"
        found[what, label, BETWEEN] = compare(how, strata.reshape(-1, 2, 2), np.zeros((2, 2))).value or 0.0
    return found


def _fits(own: Mapping[str, Any], second: NDArray[np.bool_]) -> Truth:
    found: Truth = {}
    stages = {f"stage: {one} against 0": own["stage"] == one for one in "123"}
    sex = {"sex: m against f": own["sex"] == "m"}
    kinds: tuple[tuple[Kind, str, str, Mapping[str, Any]], ...] = (
        ("linear", "linear coefficient", "bmi", sex),
        ("logistic", "odds ratio", "ill", stages),
        ("poisson", "rate ratio", "visits", stages),
    )
    for kind, what, name, further in kinds:
        terms = {"arm: b against a": second, **further}
        design = np.column_stack([np.ones(POOL), *terms.values()]).astype(np.float64)
        distinct, group = np.unique(design, axis=0, return_inverse=True)
        value = own[name].astype(np.float64)
        sums = [np.bincount(group, weights=weight) for weight in (np.ones(POOL), value, value**2)]
        fitted = regression(kind, np.column_stack(sums).astype(np.float64), np.zeros((3, 3)), distinct)
        if fitted is None:
            raise ValueError("the population has no coefficients")
        weights = fitted.coefficients if kind == "linear" else np.exp(fitted.coefficients)
        outcome = "ill: true" if name == "ill" else name
        found |= {(f"{what} by regression", outcome, term): one for term, one in zip(terms, weights[1:], strict=True)}
    return found


def covered(people: int, epsilon: str, repeats: int) -> Iterator[Row]:
    """Yield the coverage, width and frequency of intervals by kind."""
    plan = study(people, epsilon).plan_as(DescribePlan)
    generator = np.random.default_rng(people)
    hits, widths, shown = defaultdict(list), defaultdict(list), defaultdict(list)
    for _ in range(repeats):
        for row in opened(plan, generator, people).rows():
            key = row.what, row.column, row.group
            if key not in truth():
                continue
            found = row.found
            shown[row.what].append(found.value is not None)
            if found.lower is not None and found.upper is not None:
                hits[row.what].append(found.lower <= truth()[key] <= found.upper)
            if found.widened is not None:
                widths[row.what].append(found.widened)
    where = f"{people:,} people, epsilon {epsilon}, {repeats} tables"
    for what, inside in hits.items():
        yield _row(where, f"coverage of 95 %: {what}", fmean(inside), 0.95)
        yield _row(where, f"shown: {what}", fmean(shown[what]))
        if widths[what]:
            yield _row(where, f"width against pooled rows: {what}", median(widths[what]))
    yield _row(where, "coverage of 95 %: all", fmean(hit for inside in hits.values() for hit in inside), 0.95)


def alarms(people: int, epsilon: str, repeats: int) -> Iterator[Row]:
    """Yield how often tests reject at 5 % where nothing differs: stages by arm and party, with the study's noise."""
    deviation = study(people, epsilon).plan_as(DescribePlan).deviation(PARTIES)
    generator = np.random.default_rng(people + 1)
    chances = np.multiply.outer(np.outer(SHARES, (0.5, 0.5)), STAGES)
    found: dict[str, list[bool]] = defaultdict(list)
    for _ in range(repeats):
        drawn = generator.multinomial(people, chances.ravel()).reshape(chances.shape)
        noise = [np.round(generator.normal(0, deviation, shape)) for shape in (chances.shape[1:], chances.shape)]
        for where, strata in (("", drawn.sum(axis=0)[None] + noise[0]), (" within strata", drawn + noise[1])):
            tests = {
                "chi-squared": independence(strata, deviation**2),
                "trend": trend(strata, deviation**2, np.arange(2.0), np.arange(4.0)),
            }
            for name, test in tests.items():
                found[name + where] += [] if test is None else [test.p_value < 0.05]
    where = f"{people:,} people, epsilon {epsilon}, {repeats} tables"
    for name, rejected in found.items():
        if rejected:
            yield _row(where, f"false alarms at 5 %: {name}", fmean(rejected), 0.05)
        yield _row(where, f"shown: {name}", len(rejected) / repeats)


def _row(row: str, metric: str, value: float, baseline: float | None = None) -> Row:
    return Row(bench="describe", row=row, metric=metric, value=value, unit="1", baseline=baseline)
