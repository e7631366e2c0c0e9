"""`synthesis` beside private evolution: Adult, relations that no pair of columns shows, and a mixed table.

One curator, the same epsilon, the delta that users get, neighbours `add_remove`. The last column is the class.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.methods import Synthesis
from syndic.privacy import default_delta, mu_squared_for
from syndic_lab.bench.interactions import PEOPLE, PLANTED, agreement_of, planted
from syndic_lab.bench.model.synthesis import simulated
from syndic_lab.bench.model.synthesis_data import Coded, alike, codes_of, distances, load
from syndic_lab.bench.row import Row
from syndic_lab.peers.ask import row
from syndic_lab.peers.evolution import Settings, evolve

EPSILONS: Final = ("0.3", "1", "3")
ADULT_NUMBERS: Final = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
CIRCLE: Final = 16
NUMBERS: Final = (*PLANTED, 6)
"""Columns of an exclusive or; `synthesis` looks at sets of at most five columns, so not at the last."""

Agreement = Callable[[Mapping[str, NDArray[np.int64]]], float]


@final
@dataclass(frozen=True, eq=False)
class Case:
    """A table for every seed, its ordered columns, and the share of rows that agree with its planted relation."""

    name: str
    made: Callable[[int], Coded]
    ordered: frozenset[str] = frozenset()
    agreement: Agreement | None = None
    seeds: int = 10


@final
@dataclass(frozen=True)
class Outcome:
    """Distances by number of columns, agreement with the planted relation, CPU seconds."""

    apart: dict[int, float]
    agreement: float
    seconds: float


def rows(quick: bool) -> Iterator[Row]:
    """Yield distances, agreement with planted relations and CPU seconds, private evolution as the baseline."""
    for case in cases():
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            yield from of_case(case, epsilon, range(1 if quick else case.seeds))


def cases() -> list[Case]:
    """Return Adult first, without which there is nothing to compare, then what is made up."""
    adult = load("adult", "adult_coded")
    return [
        Case("adult", lambda _: adult, ADULT_NUMBERS, seeds=3),
        *(_exclusive_or(number) for number in NUMBERS),
        Case("mixed", lambda seed: mixed(seed, PEOPLE), MIXED_NUMBERS, agreement_of_sum),
    ]


def _exclusive_or(number: int) -> Case:
    return Case(
        f"exclusive or of {number} columns",
        lambda seed: planted(number, seed, PEOPLE),
        agreement=lambda codes: agreement_of(list(codes.values()), number),
    )


def of_case(case: Case, epsilon: str, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield mean and worst over seeds of both."""
    pairs = [(_ours(case, epsilon, seed), _theirs(case, epsilon, seed)) for seed in seeds]
    ours, theirs = zip(*pairs, strict=True)
    what = f"{case.name}, epsilon {epsilon}, {len(seeds)} seeds, beside Tab-PE"
    for ways in ours[0].apart:
        values = [[one.apart[ways] for one in found] for found in (ours, theirs)]
        yield from _mean_and_worst(what, f"tvd{ways}", values, "distance", max)
    if case.agreement:
        values = [[one.agreement for one in found] for found in (ours, theirs)]
        yield from _mean_and_worst(what, "rows that agree", values, "of all rows", min)
    seconds = [min(one.seconds for one in found) for found in (ours, theirs)]
    yield row(what, "CPU seconds", seconds[0], "s", seconds[1])


def _ours(case: Case, epsilon: str, seed: int) -> Outcome:
    data = case.made(seed)
    begin, count = time.process_time(), data.table.num_rows
    made = simulated(data, Synthesis(rows=count), epsilon, seed, alike, 1, str(default_delta(count)))
    return _outcome(case, data, codes_of(made.table.to_arrow(), data.schema), time.process_time() - begin)


def _theirs(case: Case, epsilon: str, seed: int) -> Outcome:
    data = case.made(seed)
    codes, begin = data.codes(), time.process_time()
    budget = float(mu_squared_for(Fraction(epsilon), default_delta(data.table.num_rows)))
    made = evolve(codes, data.domain, Settings(budget, case.ordered, data.domain.names[-1]), seed)
    return _outcome(case, data, made, time.process_time() - begin)


def _outcome(case: Case, data: Coded, made: Mapping[str, NDArray[np.int64]], seconds: float) -> Outcome:
    agrees = case.agreement(made) if case.agreement else 0.0
    return Outcome(distances(data.codes(), made, data.domain), agrees, seconds)


def _mean_and_worst(
    what: str, metric: str, values: Sequence[Sequence[float]], unit: str, worst: Callable[[Sequence[float]], float]
) -> Iterator[Row]:
    for kind, summed in (("mean", np.mean), ("worst", worst)):
        ours, theirs = (float(summed(each)) for each in values)
        yield row(what, f"{metric} {kind}", ours, unit, theirs)


MIXED_NUMBERS: Final = frozenset({"first", "second", "sum", "age", "income"})


def mixed(seed: int, people: int) -> Coded:
    """Return numbers and categories: income by age, sex and region, and three numbers that no pair of them shows.

    `sum` is `first` plus `second`, around a circle of 16, at most one beside it in 95 % of the rows.
    """
    draws = np.random.default_rng([seed, 16])
    region = draws.choice(6, people, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    sex, level = draws.integers(0, 2, people), draws.random(people)
    age = np.clip(np.rint(10 + 4 * draws.normal(size=people)), 0, 19)
    income = np.clip(np.rint(0.6 * age + 2 * sex + 0.8 * region + 2.5 * draws.normal(size=people)), 0, 19)
    first, second = (draws.integers(0, CIRCLE, people) for _ in range(2))
    off = np.where(level < 0.95, draws.integers(-1, 2, people), draws.integers(0, CIRCLE, people))
    columns: dict[str, tuple[int, Any]] = {
        "region": (6, region),
        "sex": (2, sex),
        "age": (20, age),
        "income": (20, income),
        "first": (CIRCLE, first),
        "second": (CIRCLE, second),
        "sum": (CIRCLE, (first + second + off) % CIRCLE),
        "owner": (2, draws.random(people) < 1 / (1 + np.exp(6 - 0.5 * income))),
    }
    table = pa.table({name: np.asarray(values).astype(np.int64) for name, (_, values) in columns.items()})
    return Coded("mixed", Schema.from_domain({name: size for name, (size, _) in columns.items()}), table)


def agreement_of_sum(codes: Mapping[str, NDArray[np.int64]]) -> float:
    """Return the share of rows whose `sum` is at most one beside `first` plus `second`, around the circle."""
    return float(np.mean((codes["sum"] - codes["first"] - codes["second"] + 1) % CIRCLE <= 2))
