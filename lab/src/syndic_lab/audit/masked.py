"""Sums with shares of noise, as everybody and as colluding parties see them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from syndic.methods.regression.gram_plan import GramPlan
from syndic.study import Study
from syndic_lab.audit.observation import Scores
from syndic_lab.audit.rehearsal import Run, Stage
from syndic_lab.audit.setting import COALITION, RELEASE, Sees, Tells, View, laplace_lean


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

    @cached_property
    def exact(self) -> list[Scores]:
        """The exact sums of both tables."""
        names = [party.name for party in self.study.parties]
        return [self._without(Stage(self.study, table).run(0), names) for table in self.tables]

    @property
    def gaussian(self) -> dict[str, Tells]:
        """What every role is told; the deviation is the same everywhere, and none is assumed."""
        return {RELEASE: lambda run: self._told(run, ()), COALITION: lambda run: self._told(run, self.colluding)}

    @property
    def laplace(self) -> dict[str, Sees]:
        """What speaks for the first table, by role, where the noise is Laplace."""
        return {
            RELEASE: lambda run: laplace_lean(self._without(run, ()), *self.exact),
            COALITION: lambda run: laplace_lean(self._without(run, self.colluding), *self.exact),
        }

    def _told(self, run: Run, names: Sequence[str]) -> View:
        values = self._without(run, names)
        return View(
            values=values,
            one=self.exact[0],
            other=self.exact[1],
            deviation=np.ones(values.size),
            kind=np.zeros(values.size, dtype=np.int64),
        )

    def _without(self, run: Run, names: Sequence[str]) -> Scores:
        values = np.asarray(self.opened(run), dtype=np.float64)
        return np.asarray(values - sum(run.own_noise(name, self.share, values.size) for name in names))


def masked_gram(study: Study, one: Mapping[str, Any], other: Mapping[str, Any], *colluding: str) -> MaskedSum:
    """Return the sums of a Gram matrix."""
    share = study.plan_as(GramPlan).noise
    return MaskedSum(
        study=study, tables=(one, other), opened=lambda run: run.result.sums, share=share, colluding=colluding
    )
