"""A protocol, two neighbouring tables that are as far apart as its claim allows, and what each role makes of a run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.document import from_builtins
from syndic.kernel import Member, Method
from syndic.privacy import Budget, Cost, Unit
from syndic.study import Study
from syndic_lab.audit.leaks import look
from syndic_lab.audit.observation import CHOOSING, KnownLaw, Neighbours, Scores, Trial
from syndic_lab.audit.rehearsal import Run, Stage, WatchedMemory

Sees = Callable[[Run], float]
KEPT: Final = 200
"""Runs of each table whose messages are kept and looked at."""

RELEASE: Final = "anyone with the release"
COALITION: Final = "colluding parties, less their noise"

_PAIRS: Final = 3


@final
@dataclass(frozen=True, kw_only=True)
class View:
    """Numbers with Gaussian noise as one role meets them, what each is without it under either table, its deviation.

    Noise of the same `kind`, a number, is looked at together.
    """

    values: Scores
    one: Scores
    other: Scores
    deviation: Scores
    kind: NDArray[np.int64]

    def lean(self) -> float:
        """Return the logarithm of the likelihoods' ratio, one table over the other."""
        weights = (self.one - self.other) / self.deviation**2
        return float(np.sum((self.values - (self.one + self.other) / 2) * weights))

    def noise(self, side: int, kind: int) -> Scores:
        """Return noise of a kind in units of its deviation, if the first (0) or the second table was there."""
        exact = self.other if side else self.one
        return np.asarray(((self.values - exact) / self.deviation)[self.kind == kind])

    def away(self, kind: int) -> float:
        """Return how far apart the tables are in units of deviations, in numbers with noise of a kind."""
        return float(np.linalg.norm(((self.one - self.other) / self.deviation)[self.kind == kind]))


Tells = Callable[[Run], View]


@final
@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Many numbers of one run, each about a person of their own, and the claim about what they are made of.

    `cost` is the charge for that alone; with `curve` the claim is known at every delta.
    """

    sees: Callable[[Run], Scores]
    cost: Cost
    curve: Mapping[float, float] | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """One protocol on the stage.

    `views` has for every role the number that speaks for the first table, made so that 0 lies half way. `gaussian` has
    the roles that meet Gaussian noise on numbers which are known for either table: the ratio of likelihoods speaks, and
    the size of the noise is looked at, too. `learnt` gives numbers of a run whose law is not known: the direction that
    tells most is learnt from the runs on which events are chosen. `canaries` has many numbers of one run. `quick` and
    `full` are runs on each table; `during` is in force while they last, and with `until` they end when that step was
    answered.
    """

    name: str
    study: Study
    one: Mapping[str, Any]
    other: Mapping[str, Any]
    views: Mapping[str, Sees] = field(default_factory=dict)
    gaussian: Mapping[str, Tells] = field(default_factory=dict)
    learnt: Callable[[Run], Scores] | None = None
    canaries: Mapping[str, Canaries] = field(default_factory=dict)
    quick: int = 60
    full: int = 600
    memory: type[WatchedMemory] = WatchedMemory
    during: Callable[[], AbstractContextManager[Any]] = nullcontext
    until: str = ""

    def trials(self, runs: int, seed: int) -> list[Trial]:
        """Run the protocol on both tables, `runs` times each, and return all there is to judge."""
        with self.during():
            return self._trials(runs, seed)

    def _trials(self, runs: int, seed: int) -> list[Trial]:
        stages = [Stage(self.study, sources, memory=self.memory) for sources in (self.one, self.other)]
        heard = _Heard(self)
        for number in range(runs):
            for side, stage in enumerate(stages):
                # other coins for either table: their laws are compared
                heard.hear(side, stage.run(seed + 2 * number + side, again=number == 0, until=self.until))
        kept = heard.kept
        pairs = [
            (kept[0][place], stages[1].run(seed + 2 * place, until=self.until))
            for place in range(min(_PAIRS, len(kept[0])))
        ]
        return heard.trials() + look(kept[0], kept[1], pairs)


class _Heard:
    """What every role made of the runs so far."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.kept: list[list[Run]] = [[], []]
        leans = {view: _leaning(tells) for view, tells in setting.gaussian.items()}
        self.sees: dict[str, Sees] = {**setting.views, **leans}
        self.scores: dict[str, list[list[float]]] = {view: [[], []] for view in self.sees}
        self.vectors: list[list[Scores]] = [[], []]
        self.people: dict[str, list[list[Scores]]] = {view: [[], []] for view in setting.canaries}

    def hear(self, side: int, run: Run) -> None:
        """Note one run on the first (0) or the second table."""
        setting = self.setting
        if len(self.kept[side]) < KEPT:
            self.kept[side].append(run)
        if setting.learnt is not None:
            self.vectors[side].append(setting.learnt(run))
        for view, sees in self.sees.items():
            self.scores[view][side].append(sees(run) if run.result is not None else np.inf)
        for view, canaries in setting.canaries.items():
            self.people[view][side].append(canaries.sees(run))

    def trials(self) -> list[Trial]:
        """Return what there is to judge about epsilon."""
        found = [self._neighbours(view, np.array(one), np.array(other)) for view, (one, other) in self.scores.items()]
        for view, (one, other) in self.people.items():
            found.append(self._people(view, np.concatenate(one), np.concatenate(other)))
        if self.setting.learnt is not None:
            left, right = along(self.vectors[0], self.vectors[1])
            found.append(self._neighbours(RELEASE, left, right, cuts=()))
        return found + [self._size(view, tells) for view, tells in self.setting.gaussian.items()]

    def _neighbours(self, view: str, one: Scores, other: Scores, cuts: tuple[float, ...] = (0.0,)) -> Trial:
        study = self.setting.study
        return Neighbours(view=view, one=one, other=other, cost=study.joint, delta=float(study.delta), cuts=cuts)

    def _people(self, view: str, one: Scores, other: Scores) -> Trial:
        claim, delta = self.setting.canaries[view], float(self.setting.study.delta)
        return Neighbours(view=view, one=one, other=other, cost=claim.cost, delta=delta, cuts=(0.0,), curve=claim.curve)

    def _size(self, view: str, tells: Tells) -> Trial:
        told = [(side, tells(run)) for side in (0, 1) for run in self.kept[side] if run.result is not None]
        kinds = sorted({int(kind) for _, each in told for kind in each.kind})
        return KnownLaw(
            view=view,
            parts=tuple(
                (
                    np.concatenate([each.noise(side, kind) for side, each in told]),
                    min(each.away(kind) for _, each in told),
                )
                for kind in kinds
            ),
            runs=len(told),
            cost=self.setting.study.joint,
            delta=float(self.setting.study.delta),
        )


def _leaning(tells: Tells) -> Sees:
    return lambda run: tells(run).lean()


def study_of(
    protocol: Method,
    *,
    columns: Sequence[tuple[str, int]],
    parties: Mapping[str, tuple[int, Sequence[str] | None]],
    unit: Unit,
    budget: Budget,
    missing: Literal["value", "level"] = "value",
    groups: Mapping[str, str] = {},
) -> Study:
    """Return a small study: columns of whole numbers from 0, and for every party its people, columns and group."""
    schema = {
        "columns": [
            {
                "name": name,
                "kind": "integer",
                "lower": 0,
                "upper": size - 1,
                "missing": {"value": 0} if missing == "value" else missing,
            }
            for name, size in columns
        ]
    }
    study = Study(
        name="audit",
        unit=unit,
        budget=budget,
        protocol=protocol,  # type: ignore[arg-type]  # planted faults are no methods that a study file may name
        parties=tuple(
            Member(name=name, people=people, columns=None if held is None else tuple(held), group=groups.get(name))
            for name, (people, held) in parties.items()
        ),
        schema=from_builtins(schema, Schema, where="audit"),
    )
    study.check()
    return study


def rows_of(**columns: Sequence[int]) -> pa.Table:
    """Return a table of whole numbers."""
    return pa.table({name: pa.array(list(values), pa.int64()) for name, values in columns.items()})


def laplace_lean(seen: Any, one: Any, other: Any) -> float:
    """Return what speaks for `one` rather than `other` in numbers with Laplace noise: the likelihoods' ratio."""
    return float(np.sum(np.abs(np.asarray(seen) - other) - np.abs(np.asarray(seen) - one)))


def gaussian_lean(seen: Any, one: Any, other: Any) -> float:
    """Return what speaks for `one` rather than `other` in numbers with Gaussian noise: the likelihoods' ratio."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return float(np.sum((np.asarray(seen) - (one + other) / 2) * (one - other)))


def along(one: Sequence[Scores], other: Sequence[Scores]) -> tuple[Scores, Scores]:
    """Return how far each vector lies along the direction in which the first ones of both sides differ.

    Only runs on which events are chosen decide about the direction, so what is judged is not fitted to itself. Vectors
    of different lengths are compared up to the shortest.
    """
    shortest = min(map(len, [*one, *other]))
    sides = [
        np.nan_to_num(np.array([each[:shortest] for each in side]), posinf=0.0, neginf=0.0) for side in (one, other)
    ]
    train = int(CHOOSING * len(sides[0]))
    first = [side[:train] for side in sides]
    spread = np.concatenate(first).std(axis=0)
    gap = first[0].mean(axis=0) - first[1].mean(axis=0)
    direction = np.where(spread > 0, gap / np.where(spread > 0, spread, 1.0) ** 2, 0.0)
    return sides[0] @ direction, sides[1] @ direction
