"""Synthesis on real tables: a trusted curator, parties through masked sums, HOMM, each party alone, beside peers."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import Member, Method, Node, Session, in_memory_node, run
from syndic.methods import AnyMethod, Homm, Synthesis
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import Budget, Unit, default_delta
from syndic.random import SimulationRandomness
from syndic.runtime import Local
from syndic.study import Study, simulate
from syndic_lab.bench.memory import peak_megabytes
from syndic_lab.bench.model.synthesis_data import Coded, alike, codes_of, distances, load, sorted_by, unequal
from syndic_lab.bench.row import Row, standard_error

Parts = list[NDArray[np.int64]]

# Adult, the best measured of PrivMRF's own code, AIM and MST on mbi: mean distance of 3, 4 and 5 columns
PUBLISHED: Final = {"0.8": (0.0454, 0.0818, 0.127), "3.2": (0.0327, 0.0645, 0.1081)}
EPSILONS: Final = ("0.2", "0.4", "0.8", "1.6", "3.2")
MIDDLE: Final = "0.8"
# few enough columns for HOMM: age, education, marital status, sex, salary
FEW: Final = 5


@final
@dataclass(frozen=True)
class Found:
    """One run: distances by number of columns, seconds of processor time, rows that came out."""

    apart: dict[int, float]
    seconds: float
    rows: int


def rows(quick: bool) -> Iterator[Row]:
    """Yield distances, their ratio to the curator's, time and memory."""
    try:
        adult, fire = load("adult", "adult_coded"), load("fire", "fire")
    except InputError as error:
        sys.stderr.write(f"skipped: {error}\n")
        return
    seeds = range(2 if quick else 10)
    yield from of_epsilon(adult, MIDDLE, seeds, parties=(5, 50))
    for epsilon in () if quick else EPSILONS:
        if epsilon != MIDDLE:
            yield from of_epsilon(adult, epsilon, seeds, parties=(5, 50) if epsilon == EPSILONS[-1] else ())
    if not quick:
        yield from of_epsilon(fire, MIDDLE, seeds, parties=(5,))
    yield from of_others(adult, seeds, quick)
    yield from of_few(adult, seeds)


def of_epsilon(data: Coded, epsilon: str, seeds: Sequence[int], parties: tuple[int, ...]) -> Iterator[Row]:
    """Yield the curator's figures and those of parties with rows alike."""
    row = f"{data.name}, epsilon {epsilon}, curator"
    curator = [synthesis(data, epsilon, seed, alike, 1) for seed in seeds]
    published = PUBLISHED.get(epsilon) if data.name == "adult" else None
    yield from _apart(row, curator, published)
    yield _row(row, "seconds", min(one.seconds for one in curator), "s of processor time")
    whole, bare = simulate_seconds(data, epsilon, seeds[0])
    yield _row(row, "simulate seconds", whole, "s of processor time, beside those of the method alone", bare)
    yield _row(row, "megabytes", peak_megabytes(), "MB at the most")
    for number in parties:
        yield from _held(data, epsilon, f"{number} parties", alike, number, seeds, curator)
        yield from _held(data, epsilon, f"{number} parties, none colluding", alike, number, seeds, curator, 0)


def of_others(data: Coded, seeds: Sequence[int], quick: bool) -> Iterator[Row]:
    """Yield parties of unequal sizes and of different people, together and each alone."""
    ages = data.codes()[data.domain.names[0]]

    def by_age(count: int, parties: int, draws: np.random.Generator) -> Parts:
        del count
        return sorted_by(ages, parties, draws)

    curator = [synthesis(data, MIDDLE, seed, alike, 1) for seed in seeds]
    cuts: dict[str, Cut] = {"by age": by_age} if quick else {"each half of the one before": unequal, "by age": by_age}
    for name, cut in cuts.items():
        yield from _held(data, MIDDLE, f"5 parties {name}", cut, 5, seeds, curator)
    for name, cut in {"alike": alike, **({} if quick else cuts)}.items():
        for place, which in ((0, "first"),) if quick else ((0, "first"), (4, "last")):
            lone = [alone(data, MIDDLE, seed, cut, 5, place) for seed in seeds]
            row = f"{data.name}, epsilon {MIDDLE}, {which} of 5 parties {name}, alone"
            yield from _apart(row, lone, None, baseline=curator)


def of_few(data: Coded, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield HOMM and the synthesis on few columns, where HOMM can work, and HOMM on all of them."""
    names = data.domain.names
    few = data.select((names[0], names[4], names[5], names[9], names[-1]))
    for number in (1, 5):
        made = [synthesis(few, MIDDLE, seed, alike, number) for seed in seeds]
        merged = [homm(few, MIDDLE, seed, alike, number) for seed in seeds]
        yield from _apart(f"{few.name}, epsilon {MIDDLE}, {number} parties", made, None, baseline=merged)
        yield from _apart(f"{few.name}, epsilon {MIDDLE}, {number} parties, HOMM", merged, None)
    merged = [homm(data, MIDDLE, seed, alike, 5, at_least=60) for seed in seeds]
    yield _row(f"{data.name}, epsilon {MIDDLE}, 5 parties, HOMM", "rows", merged[0].rows, "rows above noise")


Cut = Callable[[int, int, np.random.Generator], Parts]


@lru_cache(maxsize=256)
def synthesis(data: Coded, epsilon: str, seed: int, cut: Cut, parties: int, colluding: int = 1) -> Found:
    """Run the synthesis once, as many rows out as in."""
    held = cut(data.table.num_rows, parties, np.random.default_rng(seed))
    return _run(data, Synthesis(rows=data.table.num_rows, colluding=colluding), epsilon, seed, held)


def alone(data: Coded, epsilon: str, seed: int, cut: Cut, parties: int, place: int) -> Found:
    """Run the synthesis on one party's rows only, held against the rows of all."""
    held = cut(data.table.num_rows, parties, np.random.default_rng(seed))
    return _run(data, Synthesis(rows=data.table.num_rows), epsilon, seed, [held[place]])


def homm(data: Coded, epsilon: str, seed: int, cut: Cut, parties: int, at_least: int = 1) -> Found:
    """Run HOMM once, without delta."""
    held = cut(data.table.num_rows, parties, np.random.default_rng(seed))
    return _run(data, Homm(at_least=at_least), epsilon, seed, held)


def _run(data: Coded, protocol: AnyMethod, epsilon: str, seed: int, held: Parts) -> Found:
    """Run a protocol once; delta is one over all rows, as peers have it."""
    delta = Fraction(0) if isinstance(protocol, Homm) else Fraction(1, data.table.num_rows)
    made, seconds = _made(data, protocol, Budget.of(epsilon, delta), seed, held)
    found = distances(data.codes(), codes_of(made.table.to_arrow(), data.schema), data.domain)
    return Found(found, seconds, len(made.table))


def simulated(
    data: Coded, protocol: Synthesis, epsilon: str, seed: int, cut: Cut, parties: int, delta: str | None = None
) -> SyntheticTable:
    """Return the release of a synthesis; delta is by default one over all rows."""
    held = cut(data.table.num_rows, parties, np.random.default_rng(seed))
    budget = Budget.of(epsilon, Fraction(1, data.table.num_rows) if delta is None else delta)
    made = _made(data, protocol, budget, seed, held)[0]
    assert isinstance(made, SyntheticTable)  # noqa: S101 (for the type checker)
    return made


def _made(data: Coded, protocol: AnyMethod, budget: Budget, seed: int, held: Parts) -> tuple[Any, float]:
    """Run a protocol with every party in this process; return its result and seconds of processor time."""
    study = _study(data, protocol, budget, held)
    with ExitStack() as stack:
        nodes = {}
        for place, part in enumerate(held):
            nodes[f"p{place}"] = simulated_node(study, f"p{place}", data.rows(part), seed)
            stack.callback(nodes[f"p{place}"].close)
        method: Method = protocol
        session = Session(
            runtime=Local(nodes),
            study=study.digest,
            method=method,
            plan=study.plan,
            randomness=SimulationRandomness(seed, "draws"),
        )
        begin = time.process_time()
        made: Any = run(method, session)
        return made, time.process_time() - begin


def simulate_seconds(data: Coded, epsilon: str, seed: int) -> tuple[float, float]:
    """Return the processor time of `syndic.simulate` for the curator's study, and that of the method alone."""
    count = data.table.num_rows
    held, protocol = alike(count, 1, np.random.default_rng(seed)), Synthesis(rows=count)
    budget = Budget.of(epsilon, default_delta(count))
    bare = _made(data, protocol, budget, seed, held)[1]
    begin = time.process_time()
    simulate(_study(data, protocol, budget, held), {"p0": data.rows(held[0])}, seed=seed)
    return time.process_time() - begin, bare


def _study(data: Coded, protocol: AnyMethod, budget: Budget, held: Parts) -> Study:
    return Study(
        name="bench",
        unit=Unit(neighbours="add_remove"),
        budget=budget,
        protocol=protocol,
        parties=tuple(Member(name=f"p{place}", people=len(part)) for place, part in enumerate(held)),
        schema=data.schema,
    )


def simulated_node(study: Study, party: str, rows: pa.Table, seed: int) -> Node:
    """Return a party that holds these rows, with a generous ledger and seeded noise."""
    return in_memory_node(
        study.protocol,
        study.plan,
        party,
        rows,
        lambda label: SimulationRandomness(seed, party, label),
        study=study.digest,
    )


def _held(
    data: Coded,
    epsilon: str,
    who: str,
    cut: Cut,
    parties: int,
    seeds: Sequence[int],
    curator: Sequence[Found],
    colluding: int = 1,
) -> Iterator[Row]:
    """Yield what parties reach together, and how that compares with the curator of the same run."""
    found = [synthesis(data, epsilon, seed, cut, parties, colluding) for seed in seeds]
    row = f"{data.name}, epsilon {epsilon}, {who}"
    yield from _apart(row, found, None, baseline=curator)
    for ways in found[0].apart:
        yield _row(row, f"tvd{ways} ratio", _mean(found, ways) / _mean(curator, ways), "of the curator's", 1.0)
    yield _row(row, "seconds", min(one.seconds for one in found), "s of processor time, all parties")


def _apart(
    row: str, found: Sequence[Found], published: Sequence[float] | None, baseline: Sequence[Found] | None = None
) -> Iterator[Row]:
    for place, ways in enumerate(found[0].apart):
        printed = None if published is None else published[place]
        beside = None if baseline is None else _mean(baseline, ways)
        apart = [one.apart[ways] for one in found]
        made = _row(row, f"tvd{ways}", _mean(found, ways), "distance", beside, printed)
        yield replace(made, error=standard_error(apart), runs=len(apart))
        yield _row(row, f"tvd{ways}, worst", max(apart), "distance")


def _mean(found: Sequence[Found], ways: int) -> float:
    return float(np.mean([one.apart[ways] for one in found]))


def _row(
    row: str, metric: str, value: float, unit: str, baseline: float | None = None, published: float | None = None
) -> Row:
    return Row(
        bench="model", row=row, metric=metric, value=float(value), unit=unit, baseline=baseline, published=published
    )
