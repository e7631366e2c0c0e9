"""The list of planted faults, each with the audits that must find it, and sound controls that they must not accuse."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import frexp
from typing import Any, Final

import numpy as np

from syndic.document import Document
from syndic.privacy import Budget, Unit
from syndic.study import Study
from syndic_lab.audit.faults import CountFault, PlantedCounts, PlantedSum, SumFault
from syndic_lab.audit.horizontal import ADD, REPLACE
from syndic_lab.audit.mechanisms import stream
from syndic_lab.audit.observation import OneRun, Trial, numbers
from syndic_lab.audit.parts import canaries
from syndic_lab.audit.planted_laws import Fault, laws
from syndic_lab.audit.planted_methods import methods
from syndic_lab.audit.rehearsal import Run, Stage, WatchedMemory
from syndic_lab.audit.setting import COALITION, RELEASE, Setting, laplace_lean, rows_of, study_of

ONE: Final = Budget.of(1)
_RUNS: Final = 150


class Caught(Document):
    """Whether a planted fault was found, by which tests, and the best lower bound beside the claim, if there is one."""

    fault: str
    what: str
    caught: bool
    by: tuple[str, ...]
    control: bool
    epsilon: float | None = None
    delta: float | None = None
    shown: float | None = None


def faults() -> Iterator[Fault]:
    """Yield every planted fault, and the controls."""
    yield from _of_counts()
    yield from _of_sums()
    yield from laws()
    yield from methods()


# Faults of a party's own counts.

_COUNTS: Final[Mapping[CountFault, str]] = {
    "none": "sound noisy counts",
    "half the noise": "noise for twice the epsilon that is charged",
    "sensitivity 1 for 2": "replacing a person moves two counts; the noise is for one",
    "unnoised size": "the exact number of rows beside noisy counts",
    "bins from the data": "bins between the smallest and the largest value of the rows",
    "empty cells left out": "noise on occupied cells only: which are given out shows which are occupied",
    "float noise": "floating-point Laplace noise: its last bits show what it was added to (Mironov 2012)",
    "unnoised choice": "the largest cell, chosen from exact counts",
    "one noise for two answers": "the same draws on two tables: their difference is exact",
    "noise that repeats itself": "noise from a seed that does not change",
    "all rows of a person": "the unit allows one row a person, and all are counted",
    "a sum noised like a count": "values up to 9 are added up with noise for counts",
    "refusal by value": "an error if some value occurs",
    "length by value": "sealed bytes, as many as rows",
    "rows in a public answer": "remembered counts in an answer that passes no release function",
    "charged twice": "the ledger is charged more than the study says",
}
_TABLES: Final[Mapping[CountFault, tuple[list[int], list[int]]]] = {
    "sensitivity 1 for 2": ([1, 0], [0, 0]),
    "bins from the data": ([0] * 10 + [2] * 10 + [9], [0] * 10 + [2] * 10),
    "unnoised choice": ([1, 1, 0], [1, 0]),
    "a sum noised like a count": ([9, 0], [0]),
}

_MORE_RUNS: Final[Mapping[CountFault, int]] = {
    "none": 700,
    "half the noise": 1200,
    "sensitivity 1 for 2": 1100,
    "float noise": 900,
    "all rows of a person": 400,
    "a sum noised like a count": 300,
}


def _of_counts() -> Iterator[Fault]:
    for fault, what in _COUNTS.items():
        name = "control: noisy counts" if fault == "none" else fault
        yield Fault(
            name=name, what=what, trials=partial(_trials_of_counts, fault, WatchedMemory), control=fault == "none"
        )
    yield Fault(
        name="retried noise",
        what="a question asked again gets fresh noise under the same charge",
        trials=partial(_trials_of_counts, "none", _Forgetful),
    )


def _trials_of_counts(fault: CountFault, memory: type[WatchedMemory], seed: int) -> Sequence[Trial]:
    one, other = _TABLES.get(fault, ([1, 0], [0]))
    wide = fault in {"bins from the data", "a sum noised like a count"}
    unit = REPLACE if fault == "sensitivity 1 for 2" else ADD
    tables = [rows_of(x=one), rows_of(x=other)]
    if fault == "all rows of a person":
        unit = Unit(neighbours="add_remove", person="id")
        tables = [rows_of(x=[1] * 4, id=[7] * 4), rows_of(x=[], id=[])]
    study = study_of(
        PlantedCounts(fault=fault),
        columns=(("x", 10 if wide else 2),),
        parties={"a": (len(other), None)},
        unit=unit,
        budget=Budget.of(2) if unit is REPLACE else ONE,
    )
    setting = Setting(
        name=fault,
        study=study,
        one={"a": tables[0]},
        other={"a": tables[1]},
        views={
            "counts, likelihood ratio": lambda run: _lean(run, one, other),
            "last count": lambda run: float(_told(run).counts[-1]) if _told(run).counts.size else 0.0,
            "number of counts": lambda run: float(_told(run).counts.size),
            "what is beside the counts": lambda run: float(_told(run).more.sum()),
            "counts less what is beside them": _difference,
            "finest bit of a number": _finest,
        },
        memory=memory,
    )
    return setting.trials(_MORE_RUNS.get(fault, _RUNS), seed)


def _told(run: Run) -> Any:
    return run.result.values["a"]


def _lean(run: Run, one: list[int], other: list[int]) -> float:
    """Return what speaks for the first table in the counts that both tables would have."""
    seen = _told(run).counts
    ends = [np.bincount(rows, minlength=2)[:2] for rows in (one, other)]
    return laplace_lean(seen, *ends) if seen.size == len(ends[0]) else 0.0


def _difference(run: Run) -> float:
    told = _told(run)
    return float(told.counts[-1] - told.more[-1]) if told.counts.size == told.more.size else 0.0


def _finest(run: Run) -> float:
    """Return the place of the last bit that is set in a floating-point answer: whole numbers have none below 1."""
    floats = _told(run).floats
    if not floats.size:
        return 0.0
    mantissa, power = frexp(float(floats[-1]))
    whole = int(mantissa * 2**53)
    return float(53 - power - ((whole & -whole).bit_length() - 1)) if whole else 0.0


class _Forgetful(WatchedMemory):
    """A memory that keeps what steps remember but no answer."""

    def answer(self, call: str) -> None:
        """Know of no answer."""

    def store(self, call: str, answer: Any) -> None:
        """Forget the answer."""


# Faults of sums under masks.

_SUMS: Final[Mapping[SumFault, str]] = {
    "none": "sound masked sums",
    "no mask": "a share of the noise in an answer without a mask",
    "one mask for all": "masks from a key that everybody has",
    "masks used again": "the masks of the first sum serve the second",
    "half the values masked": "the masks of some values are missing",
    "shares for nobody colluding": "shares of the noise that are enough only if all parties are honest",
}


def _of_sums() -> Iterator[Fault]:
    for fault, what in _SUMS.items():
        name = "control: masked sums" if fault == "none" else fault
        yield Fault(name=name, what=what, trials=partial(_trials_of_sums, fault), control=fault == "none")


def _trials_of_sums(fault: SumFault, seed: int) -> Sequence[Trial]:
    study = _sum_study(PlantedSum(fault=fault))
    setting = Setting(
        name=fault,
        study=study,
        one={"a": rows_of(x=[1]), "b": rows_of(x=[0])},
        other={"a": rows_of(x=[]), "b": rows_of(x=[0])},
        views={RELEASE: lambda run: laplace_lean(run.result.values[:, 1], 1, 0)},
    )
    return [*setting.trials(40, seed), _coalition(fault, seed)]


def _sum_study(protocol: PlantedSum) -> Study:
    parties = {"a": (2, None), "b": (2, None)}
    return study_of(protocol, columns=(("x", protocol.cells),), parties=parties, unit=ADD, budget=Budget.of(2))


def _coalition(fault: SumFault, seed: int) -> Trial:
    """Let coordinator and one party, who takes its own noise off, guess many canaries of the other in one run."""
    protocol = PlantedSum(fault=fault, cells=4000)
    study = _sum_study(protocol)
    drawn = protocol.share(study, 0) if fault == "shares for nobody colluding" else protocol.share(study)
    coins = canaries(protocol.cells, stream(seed, "coalition"))
    run = Stage(study, {"a": rows_of(x=np.flatnonzero(coins == 1).tolist()), "b": rows_of(x=[])}).run(seed)
    own = np.array([run.own_noise("b", drawn, protocol.cells, place) for place in (0, 1)])
    scores = np.sign(run.result.values - own - 0.5).sum(axis=0)
    return OneRun(view=COALITION, coins=coins, scores=numbers(scores), cost=study.joint, delta=0.0)
