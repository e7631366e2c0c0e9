"""`bench vertical`: the experiments on vertical synthesis, each by name, on Adult and Fire or on any table."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

from syndic.errors import InputError
from syndic_lab.bench.model.synthesis_data import Coded, load
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.advice import of_advice
from syndic_lab.bench.vertical.binary import factors, of_binary
from syndic_lab.bench.vertical.claims import (
    FEW_SHARES,
    SHARES_OF_LOCAL,
    of_budget,
    of_consistency,
    of_cost,
    of_distance,
    of_local,
    of_recovery,
)
from syndic_lab.bench.vertical.methods import (
    CURATOR,
    GAN,
    GAN_SUITED,
    GLUED,
    METHODS,
    ORACLE,
    ORACLE_PRINTED,
    PRIVMRF,
    SHARES,
    SKETCH,
    TREE,
)
from syndic_lab.bench.vertical.run import EPSILON, PUBLISHED_SECONDS, of_cuts, of_processes, of_table, of_trusting
from syndic_lab.bench.vertical.svm import of_svm
from syndic_lab.bench.vertical.table import coded_table

EPSILONS: Final = ("0.2", "0.4", "0.8", "1.6", "3.2")
_FEW: Final = ("0.8", "3.2")
_COMPARED: Final = (2, 5)
BINARY: Final = "binary"


@final
@dataclass(frozen=True)
class Plan:
    """On what, and how much of it."""

    data: Coded
    large: Coded | None
    quick: bool

    @property
    def seeds(self) -> Sequence[int]:
        """Three runs of everything: what is compared has a spread."""
        return range(3)

    @property
    def many(self) -> Sequence[int]:
        """Ten runs of the synthesis, of which the worst is shown too, if there is time."""
        return self.seeds if self.quick else range(10)

    @property
    def epsilons(self) -> Sequence[str]:
        """One epsilon, or all that the paper shows."""
        return (EPSILON,) if self.quick else EPSILONS

    @property
    def methods(self) -> tuple[str, ...]:
        """All that can run here; the slow ones only if there is time."""
        slow = (GAN, GAN_SUITED, PRIVMRF, SKETCH, ORACLE, TREE) if self.quick else ()
        missing = () if find_spec("torch") else (GAN, GAN_SUITED)
        return tuple(name for name in METHODS if name not in (*slow, *missing))

    @property
    def classified(self) -> tuple[str, ...]:
        """Methods whose rows a classifier is trained on."""
        if self.quick:
            return (CURATOR, SHARES, ORACLE_PRINTED, GLUED)
        return tuple(name for name in self.methods if name != SKETCH)

    @property
    def ways(self) -> tuple[str, ...]:
        """Encodings whose parameters are varied."""
        return ("oracle",) if self.quick else ("sketch", "oracle")


@final
@dataclass(frozen=True)
class Experiment:
    """What it shows, what makes its rows, and about how many minutes it takes on two free cores."""

    title: str
    rows: Callable[[Plan], Iterator[Row]]
    quick_minutes: float
    minutes: float


def _parties(plan: Plan) -> Iterator[Row]:
    columns = len(plan.data.domain)
    numbers = _COMPARED if plan.quick else (2, 3, 5, columns)
    kept = tuple(number for number in dict.fromkeys(numbers) if number <= columns)
    yield from of_table(plan.data, plan.many, kept)
    if plan.large is not None and not plan.quick:
        yield from of_table(plan.data, plan.many, tuple(number for number in kept if number in _COMPARED), _FEW[-1])
        yield from of_trusting(plan.data, plan.many)
        yield from of_table(plan.large, plan.many, (2,))


def _binary(plan: Plan) -> Iterator[Row]:
    return of_binary(plan.many, (2,) if plan.quick else (2, 5))


def _distance(plan: Plan) -> Iterator[Row]:
    return of_distance(plan.data, plan.epsilons, plan.seeds, plan.methods)


def _svm(plan: Plan) -> Iterator[Row]:
    label = plan.data.domain.names[-1]
    for epsilon in plan.epsilons:
        yield from of_svm(plan.data, label, epsilon, plan.classified, folds=3 if plan.quick else 5)


def _processes(plan: Plan) -> Iterator[Row]:
    yield from of_processes(plan.data, PUBLISHED_SECONDS if plan.data.name == "adult" else None)
    if plan.large is not None and not plan.quick:
        yield from of_processes(plan.large, None)


def _advice(plan: Plan) -> Iterator[Row]:
    if plan.quick:
        return
    for data in (plan.data, plan.large):
        if data is not None:
            yield from of_advice(data, ("0.4", "0.8", "1.6"))


def _cost(plan: Plan) -> Iterator[Row]:
    return of_cost(plan.data, plan.seeds, EPSILON, plan.methods)


EXPERIMENTS: Final[dict[str, Experiment]] = {
    "parties": Experiment("number of parties", _parties, 0.6, 40),
    BINARY: Experiment("made-up binary tables", _binary, 1.5, 10),
    "distance": Experiment("distances over epsilon, every method", _distance, 1.5, 45),
    "cost": Experiment("time and traffic beside the published", _cost, 0.5, 3),
    "svm": Experiment("misclassification of a classifier", _svm, 0.6, 90),
    "budget": Experiment(
        "part of the budget for local models",
        lambda plan: of_budget(
            plan.data, EPSILON, plan.seeds, plan.ways, FEW_SHARES if plan.quick else SHARES_OF_LOCAL
        ),
        0.2,
        4,
    ),
    "local": Experiment(
        "with and without local models", lambda plan: of_local(plan.data, EPSILON, plan.seeds, plan.ways), 0.1, 2
    ),
    "recovery": Experiment(
        "histogram recovery",
        lambda plan: of_recovery(plan.data, (EPSILON,) if plan.quick else _FEW, plan.seeds, plan.ways),
        0.1,
        4,
    ),
    "consistency": Experiment(
        "consistency",
        lambda plan: of_consistency(plan.data, (EPSILON,) if plan.quick else EPSILONS, plan.seeds, plan.ways),
        0.1,
        10,
    ),
    "cuts": Experiment("people and columns cut both ways", lambda plan: of_cuts(plan.data, plan.many), 2.5, 8),
    "processes": Experiment("real processes", _processes, 0.5, 4),
    "advice": Experiment("what the advice expects, beside what is measured", _advice, 0.0, 15),
}


def rows(quick: bool, only: Sequence[str] = (), table: Path | None = None) -> Iterator[Row]:
    """Yield the experiments in order: those named in `only`, else all, on Adult and Fire or on the table of a file."""
    _check(only)
    if table is not None:
        plan = Plan(coded_table(table), None, quick)
    elif only and {*only} == {BINARY}:
        plan = Plan(factors(1), None, quick)
    else:
        try:
            plan = Plan(load("adult", "adult_coded"), load("fire", "fire"), quick)
        except InputError as error:
            sys.stderr.write(f"skipped: {error}\n")
            return
    yield from rows_of(plan, only)


def rows_of(plan: Plan, only: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the experiments of a plan in order: those named in `only`, else all."""
    _check(only)
    chosen = [one for name, one in EXPERIMENTS.items() if not only or name in only]
    minutes = [one.quick_minutes if plan.quick else one.minutes for one in chosen]
    for place, one in enumerate(chosen):
        left = f"about {max(1, round(sum(minutes[place:])))} minutes left on two free cores, for Adult"
        sys.stderr.write(f"experiment {place + 1} of {len(chosen)}, {one.title}: {left}\n")
        yield from one.rows(plan)


def _check(only: Sequence[str]) -> None:
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown:
        raise InputError(f"there is no experiment '{unknown[0]}': choose from {', '.join(EXPERIMENTS)}")
