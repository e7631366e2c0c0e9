"""A protocol, two neighbouring tables that are as far apart as its claim allows, and what each role makes of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa

from syndic.audit.look import look
from syndic.audit.stage import MemoryMaker, Run, Stage
from syndic.audit.trial import CHOOSING, KnownLaw, Neighbours, Scores, Trial
from syndic.data import Schema
from syndic.document import from_builtins
from syndic.kernel import Member, Protocol
from syndic.privacy import Budget, Cost, Unit
from syndic.study import Study

Sees = Callable[[Run], float]
KEPT: Final = 200
"""Runs of each table whose messages are kept and looked at."""

RELEASE: Final = "anyone with the release"
COALITION: Final = "colluding parties, less their noise"

_PAIRS: Final = 3


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """One protocol on the stage.

    `views` has for every role the number that speaks for the first table, made so that 0 lies half way. `quick` and
    `full` are runs on each table.
    `masked` is a sum of which the size of the noise is looked at, too. `learnt` gives numbers of a run whose law is not
    known: the direction that tells most is learnt from the runs on which events are chosen.
    """

    name: str
    study: Study
    one: Mapping[str, Any]
    other: Mapping[str, Any]
    views: Mapping[str, Sees]
    quick: int = 240
    full: int = 3000
    memory: MemoryMaker | None = None
    masked: "MaskedSum | None" = None
    learnt: Callable[[Run], Scores] | None = None

    def trials(self, runs: int, seed: int) -> list[Trial]:
        """Run the protocol on both tables, `runs` times each, and return all there is to judge."""
        stages = [Stage(self.study, sources, memory=self.memory) for sources in (self.one, self.other)]
        cost = self.study.joint
        kept: list[list[Run]] = [[], []]
        seen: list[list[Scores]] = [[], []]
        scores: dict[str, list[list[float]]] = {view: [[], []] for view in self.views}
        for number in range(runs):
            for side, stage in enumerate(stages):
                # other coins for either table: their laws are compared
                run = stage.run(seed + 2 * number + side, again=number == 0)
                if number < KEPT:
                    kept[side].append(run)
                if self.learnt is not None:
                    seen[side].append(self.learnt(run))
                for view, sees in self.views.items():
                    scores[view][side].append(sees(run) if run.result is not None else np.inf)
        pairs = [(kept[0][place], stages[1].run(seed + 2 * place)) for place in range(min(_PAIRS, len(kept[0])))]
        found: list[Trial] = [
            Neighbours(
                view=view,
                one=np.array(one),
                other=np.array(other),
                cost=cost,
                delta=float(self.study.delta),
                cuts=(0.0,),
            )
            for view, (one, other) in scores.items()
        ]
        if self.learnt is not None:
            one, other = along(seen[0], seen[1])
            found.append(Neighbours(view=RELEASE, one=one, other=other, cost=cost, delta=float(self.study.delta)))
        if self.masked is not None:
            found += self.masked.noise_trials(kept, cost)
        return found + look(kept[0], kept[1], pairs)


def study_of(
    protocol: Protocol,
    *,
    columns: Sequence[tuple[str, int]],
    parties: Mapping[str, tuple[int, Sequence[str] | None]],
    unit: Unit,
    budget: Budget,
    missing: Literal["value", "level"] = "value",
) -> Study:
    """Return a small study: columns of whole numbers from 0, and for every party its people and its columns."""
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
            Member(name=name, people=people, columns=None if held is None else tuple(held))
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


@final
@dataclass(frozen=True, kw_only=True)
class MaskedSum:
    """A sum with shares of noise, as everybody sees it and as those do who know the shares of some, `colluding`.

    The exact sums of both tables, which decide what an attacker looks at, are what is left of one run each when all
    noise, which follows from the coins, is taken off.
    """

    study: Study
    tables: tuple[Mapping[str, Any], Mapping[str, Any]]
    opened: Callable[[Run], Any]
    share: Any
    colluding: tuple[str, ...]
    lean: Callable[[Any, Any, Any], float] = gaussian_lean

    @cached_property
    def exact(self) -> list[Any]:
        """The exact sums of both tables."""
        names = [party.name for party in self.study.parties]
        return [self._without(Stage(self.study, table).run(0), names) for table in self.tables]

    @property
    def views(self) -> dict[str, Sees]:
        """What speaks for the first table, by role."""
        return {
            RELEASE: lambda run: self.lean(self.opened(run), *self.exact),
            COALITION: lambda run: self.lean(self._without(run, self.colluding), *self.exact),
        }

    def noise_trials(self, runs: Sequence[Sequence[Run]], cost: Cost) -> list[Trial]:
        """Return how large the noise is that each role meets, if it is Gaussian."""
        if self.lean is not gaussian_lean:
            return []
        away = float(np.linalg.norm(self.exact[0] - self.exact[1]))
        found: list[Trial] = []
        for view, names in ((RELEASE, ()), (COALITION, self.colluding)):
            left = [self._without(run, names) - self.exact[side] for side in (0, 1) for run in runs[side]]
            found.append(
                KnownLaw(
                    view=view,
                    noise=np.concatenate(left),
                    away=away,
                    runs=len(left),
                    cost=cost,
                    delta=float(self.study.delta),
                )
            )
        return found

    def _without(self, run: Run, names: Sequence[str]) -> Any:
        values = np.asarray(self.opened(run), dtype=np.float64)
        return values - sum(run.own_noise(name, self.share, values.size) for name in names)
